"""Find the sentence around a place in wikitext, without splitting links, templates, references or abbreviations."""

import re

from pipelines.corpus.markup import blank_ignored

_ABBREVIATION_LIST = """
adm al approx apr art assoc aug ave bishop bros c ca capt cf ch co col comdr corp cpl dec dept dr ed eds e.g est etc
feb fig fl fr ft gen gov hon i.e inc jan jr jul jun lat lt ltd maj mar messrs mr mrs ms msgr mt mts no nos nov oct op
p.m a.m ph.d pl pp prof pt pvt rep rev sen sept sgt sr st sta ste vol vols vs u.s u.k u.n d.c b.c a.d
"""
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_MARK = re.compile(
    r"(?P<open>\[\[|\{\{|<ref(?:\s[^<>]*)?(?<!/)>)"
    r"|(?P<close>\]\]|\}\}|</ref\s*>)"
    r"|(?P<stop>[.!?]+)",
    re.IGNORECASE,
)
_AFTER_STOP = re.compile(
    r"[\"'”’»)\]]*"
    r"(?:<ref(?:\s[^<>]*)?/>|<ref(?:\s[^<>]*)?>[^\n]*?</ref\s*>|\{\{[^{}\n]*\}\})*"
    r"(?=(?P<gap>\s+)(?P<next>\S)|\s*$)"
)
_WORD_BEFORE = re.compile(r"[\w.]+$")
_CLOSERS = {"[[": "]]", "{{": "}}"}
_LONGEST_WORD = 24


def find_sentence(text: str, position: int) -> tuple[int, int]:
    """Return the span of the sentence that holds a character of raw wikitext.

    A sentence lies within one line. References and templates right after its full stop belong to it.

    Args:
        text: the page's wikitext.
        position: a character offset into it.

    Returns:
        (start, end) without surrounding blanks; a place between two sentences belongs to the one after it.

    Raises:
        ValueError: the position lies outside the text.
    """
    if not 0 <= position < len(text):
        raise ValueError(f"position {position} is outside a text of {len(text)} characters")
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line = blank_ignored(text[line_start : len(text) if line_end < 0 else line_end])
    start, end = _cut_line(line, position - line_start)
    return line_start + start, line_start + end


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of all sentences of a text, line by line; empty lines have none."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for raw in text.split("\n"):
        line = blank_ignored(raw)
        start = 0
        for end in [*_find_ends(line), len(line)]:
            first, last = _strip_span(line, start, end)
            if first < last:
                spans.append((offset + first, offset + last))
            start = end
        offset += len(raw) + 1
    return spans


def _cut_line(line: str, position: int) -> tuple[int, int]:
    start, end = 0, len(line)
    for stop in _find_ends(line):
        if stop > position:
            end = stop
            break
        start = stop
    return _strip_span(line, start, end)


def _strip_span(line: str, start: int, end: int) -> tuple[int, int]:
    body = line[start:end]
    last = start + len(body.rstrip())
    return min(start + len(body) - len(body.lstrip()), last), last


def _find_ends(line: str) -> list[int]:
    """Return where sentences end: offsets just after their stop and what belongs to it, blanks not included."""
    ends: list[int] = []
    stack: list[str] = []
    resume = 0
    for mark in _MARK.finditer(line):
        if mark.start() < resume:
            continue
        if opener := mark.group("open"):
            stack.append(_CLOSERS.get(opener, "</ref>"))
        elif closer := mark.group("close"):
            expected = "</ref>" if closer.startswith("<") else closer
            if expected in stack[-4:]:
                while stack.pop() != expected:
                    pass
        elif not stack and (after := _AFTER_STOP.match(line, mark.end())) and _is_end(line, mark, after):
            resume = after.end()
            ends.append(resume + len(after.group("gap") or ""))
    return ends


def _is_end(line: str, mark: re.Match[str], after: re.Match[str]) -> bool:
    following = after.group("next")
    if following is None:
        return True
    if following.islower():
        return False
    if mark.group() != "." or after.end() > mark.end():
        return True
    before = _WORD_BEFORE.search(line[max(0, mark.start() - _LONGEST_WORD) : mark.start()])
    word = before.group() if before else ""
    is_initial = len(word) == 1 and word.isupper()
    is_acronym = re.fullmatch(r"(?:[A-Za-z]\.)+[A-Za-z]", word) is not None
    return not (is_initial or is_acronym or word.lower() in _ABBREVIATIONS)
