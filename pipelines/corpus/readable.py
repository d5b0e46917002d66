"""An article as a search index and a page reader show it: its infobox as lines, then its text without markup."""

from collections.abc import Iterator
from itertools import groupby

from pipelines.corpus.infobox import Infobox
from pipelines.corpus.plaintext import plain_text

_SKIPPED_KEYS = (
    "image",
    "caption",
    "alt",
    "coordinates",
    "map",
    "pushpin",
    "website",
    "signature",
    "logo",
    "footnotes",
)


def render_article(text: str, infobox: Infobox | None) -> str:
    """Return the plain text of an article, its infobox as ``Key: value.`` lines first."""
    facts = "\n".join(render_fields(infobox)) if infobox else ""
    body = plain_text(text)
    return f"{facts}\n{body}" if facts else body


def render_fields(infobox: Infobox) -> Iterator[str]:
    """Yield ``Key: value; value.`` lines of the fields that say something in words."""
    for field in infobox.fields:
        if field.key.lower().startswith(_SKIPPED_KEYS):
            continue
        values = "; ".join(value for value, _ in groupby(value.text for value in field.values) if value)
        if values:
            yield f"{field.key.replace('_', ' ').capitalize()}: {values}."
