"""The addresses of a wiki's pages."""

from urllib.parse import quote, unquote, urlsplit

SAFE = ":/(),!*;@$-._~'"
"""Characters that MediaWiki leaves as they are in an address (``wfUrlencode``), and the apostrophe."""


def make_page_url(base: str, title: str) -> str:
    """Return a page's address: spaces as underscores, the rest percent-encoded as MediaWiki does."""
    return base + quote(title.replace(" ", "_"), safe=SAFE)


def parse_page_url(base: str, url: str) -> str | None:
    """Return the title that an address names, or None if it is no page of this wiki.

    The scheme may be http or https and the fragment is ignored; a query string makes it another resource.
    """
    try:
        wanted, given = urlsplit(base), urlsplit(url)
    except ValueError:  # an invalid address, such as one with an unclosed [
        return None
    if given.scheme not in ("http", "https") or given.query or given.netloc.lower() != wanted.netloc.lower():
        return None
    if not given.path.startswith(wanted.path):
        return None
    return unquote(given.path.removeprefix(wanted.path)).replace("_", " ").strip() or None
