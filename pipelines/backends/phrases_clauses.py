"""Quoting a sentence: the blanked clause that alone supports a hop, cut and made fit to stand in a question."""

import re
from collections.abc import Sequence

BLANK = "____"

_SPACED_MARK = re.compile(r" +([,.;:!)])")


def cut_clause(clause: str, words: int) -> str:
    """Shorten a blanked clause to at most ``words`` words around its blank, marking cuts with an ellipsis.

    Quotation marks become single ones and question marks end the clause, so that it can stand inside a question.
    """
    clean = re.sub(r"[\[\]{}<>|\ue000-\uf8ff]", "", clause).replace("“", "‘").replace("”", "’").replace('"', "’")
    tokens = clean.split()
    middle = next((i for i, token in enumerate(tokens) if BLANK in token), None)
    if middle is None:
        return BLANK
    start = max((i + 1 for i in range(middle) if "?" in tokens[i]), default=0)
    stop = min((i for i in range(middle + 1, len(tokens)) if "?" in tokens[i]), default=len(tokens))
    start, stop = _narrow(start, middle, stop, words)
    kept = [token.replace("?", "") for token in tokens[start:stop]]
    text = _SPACED_MARK.sub(r"\1", " ".join(kept)).strip(" ,;:.…")
    return f"{'… ' if start > 0 else ''}{text}{' …' if stop < len(tokens) else ''}"


def elide_names(clause: str, names: Sequence[str]) -> str:
    """Replace names in a clause by an ellipsis, whatever their case; the blank stays."""
    for name in sorted((name for name in names if name.strip(" _")), key=len, reverse=True):
        clause = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", clause, flags=re.IGNORECASE)
    return clause


def _narrow(start: int, middle: int, stop: int, words: int) -> tuple[int, int]:
    before = min(middle - start, (words - 1) // 2)
    after = min(stop - middle - 1, words - 1 - before)
    before = min(middle - start, words - 1 - after)
    return middle - before, middle + 1 + after
