"""Read the infobox of a page: its fields, the values of each field, and the span of every value in the page's text.

A value is cut so that it can be checked later: ``parse_value(text[value.start:value.end])`` gives the same value again.
The verifier relies on that, so values are split (``values.split_value``) until nothing splits further, and each piece
is then read on its own.
"""

import re
from dataclasses import dataclass, replace

import mwparserfromhell
from mwparserfromhell.nodes import Template

from pipelines.corpus.markup import blank_ignored, match_template
from pipelines.corpus.values import FieldValue, parse_value

__all__ = ["Field", "FieldValue", "Infobox", "has_infobox", "parse_value", "read_infobox"]

_OPENING = re.compile(r"\{\{[\s_]*+(?=infobox|taxobox|speciesbox|automatic[ _]taxobox)", re.IGNORECASE)
_IMAGE_KEY = re.compile(r"(?:image|photo|picture|logo|cover|img)[ _]?(?:name|file|skyline)?1?", re.IGNORECASE)
_FILE = re.compile(
    r"(?:(?:file|image)\s*:\s*)?([^\[\]|{}<>=:\n]{1,240}\.(?:jpe?g|png|svg|gif|tiff?|webp))", re.IGNORECASE
)
_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Field:
    """One named parameter of an infobox that has a value."""

    key: str
    start: int
    """Span of the raw value, stripped, in the page's text."""
    end: int
    values: tuple[FieldValue, ...]


@dataclass(frozen=True, slots=True)
class Infobox:
    """The first infobox of a page."""

    template: str
    """Normalised name such as ``Infobox bridge``."""
    start: int
    end: int
    fields: tuple[Field, ...]
    """In the order of the page; of a repeated key the last, which is the one MediaWiki shows."""

    def find_image(self, text: str) -> str:
        """Return the file that the infobox shows first, with spaces, or an empty string.

        Args:
            text: the page the infobox was read from.
        """
        for field in self.fields:
            if _IMAGE_KEY.fullmatch(field.key) and (match := _FILE.search(text, field.start, field.end)):
                name = " ".join(match.group(1).replace("_", " ").split())
                return name[:1].upper() + name[1:]
        return ""


def has_infobox(text: str) -> bool:
    """Say quickly whether a page may have an infobox; True is a candidate, False is certain."""
    return _OPENING.search(text) is not None or "{{<!--" in text


def read_infobox(text: str) -> Infobox | None:
    """Read the first template whose name starts with Infobox, Taxobox, Speciesbox or Automatic taxobox.

    Returns:
        None when there is none or its braces are not balanced (MediaWiki shows no template then either).
    """
    opening = _OPENING.search(blank_ignored(text))
    if opening is None:
        return None
    start = opening.start()
    end = match_template(blank_ignored(text), start)
    if end < 0:
        return None
    templates = mwparserfromhell.parse(text[start:end], skip_style_tags=True).filter_templates(recursive=False)
    if not templates or str(templates[0]) != text[start:end]:
        return None
    name = _normalise_name(str(templates[0].name))
    return Infobox(name, start, end, _read_fields(templates[0], start))


def _normalise_name(raw: str) -> str:
    name = " ".join(_COMMENT.sub("", raw).replace("_", " ").split())
    return name[:1].upper() + name[1:]


def _read_fields(template: Template, offset: int) -> tuple[Field, ...]:
    fields: dict[str, Field] = {}
    position = offset + len("{{") + len(str(template.name))
    for parameter in template.params:
        raw = str(parameter.value)
        value_start = position + len("|") + (len(str(parameter.name)) + len("=") if parameter.showkey else 0)
        position = value_start + len(raw)
        stripped = raw.strip()
        key = _COMMENT.sub("", str(parameter.name)).strip()
        if not (parameter.showkey and key and stripped):
            continue
        start = value_start + raw.index(stripped)
        values = tuple(shift_value(value, start) for value in parse_value(stripped))
        fields.pop(key, None)
        if values:
            fields[key] = Field(key, start, start + len(stripped), values)
    return tuple(fields.values())


def shift_value(value: FieldValue, offset: int) -> FieldValue:
    """Move the offsets of a value, as when its field's text becomes part of a page."""
    link_start = value.link_start + offset if value.link_start >= 0 else -1
    return replace(value, start=value.start + offset, end=value.end + offset, link_start=link_start)
