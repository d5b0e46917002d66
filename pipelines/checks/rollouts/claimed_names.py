"""Proper names in a thought, and which of them nothing backs."""

import re
from collections.abc import Iterator, Sequence

from pipelines.checks.rollouts.trails import fold_words
from pipelines.names import fold_name, is_common_word

_WORD = re.compile(r"[^\W_]+(?:['’&.-][^\W_]+)*")
_LEFT_OUT = re.compile(r"\bimg_\d+\b|https?://\S+")
_JOINTS = frozenset(
    "of the and de la le du des von van der den del di da dos al el y e bin ibn for in on at to".split()
)
_OWN_WORDS = frozenset(
    "i im ive ill id ok okay url urls wikipedia wikidata wikimedia commons google english internet web ai ocr "
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday "
    "bc ad bce ce mr mrs ms dr prof sir yes no therefore however thus hence according final answer question note "
    "user assistant image images picture pictures text query queries search searches result results tool tools step "
    "steps page pages wiki article infobox website html json pdf api gps summary conclusion key fact facts source "
    "sources evidence based given since because verify verified verification confirm confirmed confidence".split()
)
"""Words that may have a capital although nothing showed them: of the calendar, and of how one works and concludes."""
LONGEST_NAME, MOST_JOINTS = 12, 3
"""Words of a run, and small words between two of them; a longer run is looked at in pieces. Models that are caught in a
loop say one name thousands of times."""
_GAPS = ((" ", ""), (" ", "", ". ", "."))
"""What may stand between two words of a name; after an initial also a dot."""
Run = list[re.Match[str]]


def find_unbacked_names(said: str, backing: Sequence[str]) -> Iterator[str]:
    """Yield the proper names of a text that stand in none of some folded texts.

    A name is a run of words with capitals. A single word that begins a sentence is none, as nobody can tell; ordinary
    words at the ends of a run may be titles (``Engineer``) and need no backing.
    """
    said = _LEFT_OUT.sub(" ; ", said)
    for run in _list_runs(said):
        if not _is_backed(said, run, backing) and not (_begins_sentence(said, run[0]) and _rest(said, run, backing)):
            yield said[run[0].start() : run[-1].end()]


def _rest(said: str, run: Run, backing: Sequence[str]) -> bool:
    """Say whether a run without its first word is backed; the first word of a sentence has a capital anyway."""
    return len(run) == 1 or _is_backed(said, run[1:], backing)


def _list_runs(said: str) -> Iterator[Run]:
    """Yield runs of words with capitals, small words such as ``of`` between them included."""
    run: Run = []
    joints: Run = []
    start = end = 0
    for match in _WORD.finditer(said):
        joined = said[end : match.start()] in _GAPS[len(said[start:end]) == 1]
        start, end = match.span()
        small = not match[0][0].isupper() and match[0].lower() in _JOINTS
        if run and joined and small and len(joints) < MOST_JOINTS:
            joints.append(match)
            continue
        if not joined or not match[0][0].isupper() or len(run) >= LONGEST_NAME:
            if run:
                yield run
            run, joints = [], []
        if match[0][0].isupper():
            run += [*joints, match]
            joints = []
    if run:
        yield run


def _is_backed(said: str, run: Run, backing: Sequence[str]) -> bool:
    """Say whether a run stands in a text; where not as a whole, each of the names that small words join has to."""
    while run and _is_free(run[0][0]) and not _stands(said, run, backing):
        run = run[1:]
    while run and _is_free(run[-1][0]) and not _stands(said, run, backing):
        run = run[:-1]
    if not run or _stands(said, run, backing):
        return True
    place = next((place for place, word in enumerate(run) if word[0] in _JOINTS), None)
    if place is None:
        return False
    return _is_backed(said, run[:place], backing) and _is_backed(said, run[place + 1 :], backing)


def _stands(said: str, run: Run, backing: Sequence[str]) -> bool:
    end = run[-1].end()
    dotted = said[end : end + 1] == "." and "." in run[-1][0]
    words = fold_words(said[run[0].start() : end + dotted])
    return any(words in text for text in backing)


def _is_free(word: str) -> bool:
    folded = fold_name(word)
    return len(word) == 1 or word in _JOINTS or folded in _OWN_WORDS or is_common_word(folded)


def _begins_sentence(said: str, word: re.Match[str]) -> bool:
    before = said[max(0, word.start() - 8) : word.start()].rstrip(" \t\"'“‘«(")
    return not before or before[-1] in ".!?:;\n•*-–—…”"
