"""Turn wikitext into text for reading and searching; templates are dropped, never expanded."""

import html
import re

from pipelines.corpus.markup import drop_spans, find_braces, find_ignored, find_references

_INNER_LINK = re.compile(r"\[\[([^\[\]]*+)\]\]")
_EXTERNAL = re.compile(r"\[(?:https?:)?//[^\s\[\]]++\s*([^\[\]]*+)\]")
_DROPPED_LINK = re.compile(
    r"\s*(?:file|image|media|category|datei|fichier|archivo|kategorie|catégorie)\s*:", re.IGNORECASE
)
_LANGUAGE_LINK = re.compile(r"(?:[a-z]{2,3}|simple|zh-[a-z-]+|be-[a-z-]+):[^|]+$")
_BREAK = re.compile(r"<br\s*/?>|</?(?:p|div|li|ul|ol|blockquote|center)(?:\s[^<>]*)?>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_QUOTES = re.compile(r"'{2,5}")
_MAGIC_WORD = re.compile(r"__[A-Z]{3,}__")
_HOLLOW = re.compile(r"\(\s*+(?:[;,:/–-]\s*+)*+\)")
_HOLLOW_START = re.compile(r"\((?:\s*+[;,:])++\s*+")
_BEFORE_MARK = re.compile(r"(?<! ) ++([,;.:!?)])(?=\s|$)")
_HEADING = re.compile(r"^==.*==\s*$", re.MULTILINE)
_SAYS_WHAT = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one)\s")
_NOTICES = ("This is a featured article", "This article is about", "For other uses", "For the ")
_MAX_NESTING = 8
_LEAD_CHARACTERS = 20_000
_BARE_LEAD_CHARACTERS = 6_000
_LEAD_LINES = 12


def plain_text(wikitext: str) -> str:
    """Turn wikitext into text for reading and searching.

    Templates, tables, references, files, categories and tags go; links leave their anchors; entities are decoded. Lines
    stay lines and paragraphs stay apart by one empty line. Unbalanced brackets stay as literal text.
    """
    text = drop_spans(wikitext, find_ignored(wikitext)) if "<" in wikitext else wikitext
    if "<" in text:
        text = drop_spans(text, find_references(text))
    if "{" in text:
        text = drop_spans(text, find_braces(text))
    was_cut = len(text) != len(wikitext)
    text = _flatten_links(text)
    if "<" in text:
        text = _TAG.sub("", _BREAK.sub("\n", text))
    if "''" in text or "__" in text:
        text = _MAGIC_WORD.sub("", _QUOTES.sub("", text))
    if "&" in text:
        text = html.unescape(text)
    if was_cut:
        text = _BEFORE_MARK.sub(r"\1", _HOLLOW_START.sub("(", _HOLLOW.sub("", text)))
    return _tidy_lines(text)


def clean_anchor(anchor: str) -> str:
    """Remove markup from a link's text; text without any is returned as it is, stripped."""
    if any(mark in anchor for mark in "'<{&[\n"):
        return " ".join(plain_text(anchor).split())
    return anchor.strip()


def lead_paragraph(text: str) -> str:
    """Return the plain first paragraph that defines the subject, or an empty string.

    Preferred is a paragraph above the first heading that says what something is or was; hatnotes and the captions that
    some sources run together are passed over.
    """
    is_bare = "{{" not in text[:_BARE_LEAD_CHARACTERS]
    lead = text[: _BARE_LEAD_CHARACTERS if is_bare else _LEAD_CHARACTERS]
    heading = _HEADING.search(lead)
    lead = lead[: heading.start()] if heading else lead
    running = "\n".join(line for line in lead.split("\n") if not line.startswith((":", "*", "#")))
    lines = [line for line in plain_text(running).split("\n") if line][:_LEAD_LINES]
    sentences = [line for line in lines if line.count(" ") >= 5 and not line.startswith(_NOTICES)]
    for line in sentences:
        if _SAYS_WHAT.search(line[:400]):
            return line
    for line in sentences:
        if line[-1] in ".!?":
            return line
    return lines[0] if lines else ""


def _flatten_links(text: str) -> str:
    if "[" not in text:
        return text
    text = _EXTERNAL.sub(r"\1", text)
    for _ in range(_MAX_NESTING):
        text, count = _INNER_LINK.subn(_show_link, text)
        if not count:
            break
    return text.replace("[[", "").replace("]]", "")


def _show_link(match: re.Match[str]) -> str:
    content = match.group(1)
    if ":" in content and (_DROPPED_LINK.match(content) or _LANGUAGE_LINK.match(content)):
        return ""
    target, pipe, anchor = content.partition("|")
    return anchor if pipe and anchor else target.removeprefix(":")


def _tidy_lines(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        kept = " ".join(line.split())
        if kept and kept[0] in "*#:;=-":
            kept = _strip_line_markup(kept)
        if kept or (lines and lines[-1]):
            lines.append(kept)
    return "\n".join(lines).strip("\n")


def _strip_line_markup(line: str) -> str:
    if line[0] == "=":
        return line.strip("=").strip()
    if line[0] == "-":
        return line.lstrip("-").strip() if line.startswith("----") else line
    return line.lstrip("*#:; ")
