"""What is kept of an article beside its text, links and facts."""

import hashlib
import re

from pipelines.corpus.dump import RawPage
from pipelines.corpus.infobox import Infobox
from pipelines.corpus.kinds import choose_kind, find_domain, name_infobox_kind, name_lead_kind
from pipelines.corpus.markup import drop_spans, find_braces
from pipelines.corpus.plaintext import lead_paragraph, plain_text
from pipelines.corpus.titles import hash_title, is_disambiguation_title, is_list_title

_BOLD = re.compile(r"'''(?!')([^'\n][^\n]*?)'''")
_HEADING = re.compile(r"^==", re.MULTILINE)
_LEAD_CHARACTERS = 20_000
_MAX_BOLD = 6
_MAX_BOLD_CHARACTERS = 80
_DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:disambig(?:uation)?(?: page| cleanup)?|dab|hndis|geodis|human name disambiguation|school disambiguation"
    r"|place name disambiguation|numberdis|roadis|letter-number combination disambiguation)\s*(?:\||\}\})",
    re.IGNORECASE,
)


def describe_article(page: RawPage, infobox: Infobox | None) -> tuple[object, ...]:
    """Return an article's row of ``parts.ARTICLE_PARTS`` after its ordinal."""
    source = page.text.encode("utf-8", "surrogatepass")
    lead_kind = name_lead_kind(lead_paragraph(page.text))
    kind = choose_kind(name_infobox_kind(infobox.template) if infobox else "", lead_kind)
    return (
        page.page_id,
        page.title,
        hash_title(page.title),
        page.revision,
        page.timestamp,
        len(source),
        hashlib.sha256(source).hexdigest(),
        is_list_title(page.title),
        is_disambiguation_title(page.title) or _DISAMBIGUATION.search(page.text) is not None,
        infobox.template if infobox else "",
        kind,
        lead_kind,
        find_domain(kind, lead_kind),
        infobox.find_image(page.text) if infobox else "",
        find_bold_names(page.text),
    )


def find_bold_names(text: str) -> list[str]:
    """Return the names that the lead's first paragraph with bold text sets in bold, as plain text, at most six."""
    if "'''" not in text:
        return []
    heading = _HEADING.search(text, 0, _LEAD_CHARACTERS)
    lead = text[: heading.start() if heading else _LEAD_CHARACTERS]
    running = drop_spans(lead, find_braces(lead))
    for line in running.split("\n"):
        if "'''" in line and not line.startswith((":", "*", "[[File:", "[[Image:")):
            names = [" ".join(plain_text(match.group(1)).split()) for match in _BOLD.finditer(line)]
            return [name for name in names if 1 < len(name) <= _MAX_BOLD_CHARACTERS][:_MAX_BOLD]
    return []
