"""The text of a page of HTML, by trafilatura; run in a child process that can be killed (``page_children``)."""

from pipelines.backends.page_text import read_plain, read_title


def extract_text(html: str) -> tuple[str, str]:
    """Return a page's title and its text: prose and tables without menus and comments, all text where that is empty.

    Both are without control characters and cut (``page_text``).

    Args:
        html: a whole document.
    """
    # Imported here, so that nothing but the child needs it.
    from trafilatura import bare_extraction, html2txt

    found = bare_extraction(html, with_metadata=True, include_comments=False, include_tables=True, favor_recall=True)
    title = getattr(found, "title", None) or ""
    text = getattr(found, "text", None) or html2txt(html) or ""
    return read_title(str(title)), read_plain(str(text))
