"""Checks of a rollout (R1 to R10): form, errors, length, pictures, repetition, path, contamination, memory, claims.

Texts are folded to words between single spaces, with one before and after, so that a name is found as whole words by
containment. For claims (R10) the last thought and the answer are looked at: the question, the observations and the
accepted forms of the answer back a name, a number (by value) or a date (by day).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from itertools import combinations, pairwise

from pipelines.checks.leakage import POSSESSIVE, find_numbers
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.dump import strip_qualifier
from pipelines.graph.values import (
    KNOWN_UNITS,
    Date,
    Number,
    Spot,
    compare_measures,
    find_dates,
    find_measures,
    parse_date,
)
from pipelines.names import fold_name, is_common_word
from schemas.datasets import Rollout, Step
from schemas.proofs import Answer

_PAGE, _PAGES = 300, 512
"""Shortest text, in characters, whose folded form is cached, and the size of that cache."""
BARE_LETTERS = 3
"""Shortest word, in letters, that identifies a name by itself."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A page as a step showed it: opened, or a search result with its snippet."""

    url: str
    title: str
    text: str
    """As shown."""
    words: str
    """Title and text, folded."""
    opened: bool


@dataclass(frozen=True, slots=True)
class Leg:
    """One step of a rollout."""

    step: Step
    problem: str
    """How its reply differs from the recorded step; empty if it does not."""
    answer: str
    """The answer in its reply; empty for a call."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    thought: str = " "
    """Folded."""
    used: str = " "
    """Query, goal and decoded address of its call, folded."""
    seen: str = " "
    """The observation, folded; blank if the call failed."""
    told: str = ""
    """The observation with result numbers, addresses, picture coordinates and notes on made pictures blanked out; the
    length is unchanged. Empty if the call failed."""
    sights: tuple[Sight, ...] = ()
    flags: tuple[str, ...] = ()
    """Contamination flags, computed from the stored text."""

    @property
    def shown(self) -> str:
        """The observation's text; empty if the call failed."""
        seen = self.step.observation
        return seen.text if seen is not None and seen.ok else ""

    @property
    def failed(self) -> bool:
        """Whether the observation is an error, malformed turns included."""
        return self.step.observation is not None and not self.step.observation.ok


@dataclass(frozen=True, slots=True)
class Trail:
    """A rollout and its steps."""

    rollout: Rollout
    question: str
    """Folded."""
    legs: tuple[Leg, ...]

    @property
    def answered(self) -> bool:
        """Whether it ends with an answer."""
        return self.rollout.stop_reason == "answered" and bool(self.legs)

    @property
    def calls(self) -> tuple[Leg, ...]:
        """The steps that called a tool."""
        return tuple(leg for leg in self.legs if leg.step.tool)


@dataclass(frozen=True, slots=True)
class NameWords:
    """The words by which a title is found in a text."""

    whole: str
    """Folded, without a closing qualifier."""
    telling: tuple[str, ...]
    """Its words that are not common words of the language."""


def fold_words(text: str) -> str:
    """Return a text folded, with a space before and after; a blank text gives one space."""
    return _fold_page(text) if len(text) >= _PAGE else _fold_text(text)


@lru_cache(maxsize=_PAGES)
def _fold_page(text: str) -> str:
    return _fold_text(text)


def _fold_text(text: str) -> str:
    if not text.isascii():
        # Of a page few words have letters beyond ASCII, and these again and again.
        text = " ".join(word if word.isascii() else _fold_word(word) for word in text.split())
    folded = fold_name(text) if text.strip() else ""
    return f" {folded} " if folded else " "


@lru_cache(maxsize=65536)
def _fold_word(word: str) -> str:
    folded = fold_name(word)
    # Marks alone keep what they are, and a lone one such as an ellipsis would make the whole text slow to fold.
    return folded if any(map(str.isalnum, folded)) else ""


@lru_cache(maxsize=8192)
def read_title(title: str) -> NameWords:
    """Return what a page's title is found by."""
    whole = fold_words(strip_qualifier(title))
    words = whole.split()
    telling = (f" {word} " for word in words if len(word) >= BARE_LETTERS and not is_common_word(word))
    return NameWords(whole, tuple(dict.fromkeys(telling)))


def names(words: str, title: str) -> bool:
    """Say whether folded words name a page: by its whole title, or by all words that tell it from others.

    ``Tolland's birthplace`` names no ``Mira Tolland``; ``the Kelm architect`` names the ``Kelm Bridge``.
    """
    read = read_title(title)
    return (bool(read.whole.strip()) and read.whole in words) or (
        bool(read.telling) and all(word in words for word in read.telling)
    )


FATAL_ERRORS = 3
"""Consecutive tool errors that are fatal and end a rollout (OpenSearch-VL, K)."""
BAD_CALLS = ("unknown-tool", "bad-arguments", "bad-turn")
"""Errors of malformed steps: calls that do not fit the tools' schemas (VSearcher's rule) and unparseable turns."""
LIMITS = ("turn-limit", "context-limit", "time-limit", "failed")
"""Stop reasons that are no fault of the last turn."""


def check_turns(trail: Trail) -> CheckResult:
    """FAIL (``format``) when a reply is not a valid turn of the dialect, or differs from its recorded step.

    Every step but the answer must be an answered call of a known tool with valid arguments. A malformed turn refuses
    the rollout even if the loop continued: training data would contain the model's answer to an error it cannot see.
    """
    problem = _find_problem(trail)
    return CheckResult("FAIL", "format", problem) if problem else PASSED


def _find_problem(trail: Trail) -> str:
    stop = trail.rollout.stop_reason
    if not trail.legs:
        return "" if stop in LIMITS else "no step"
    for number, leg in enumerate(trail.legs):
        problem = leg.problem or _find_leg_problem(leg, answers=trail.answered and leg is trail.legs[-1])
        if problem:
            return f"step {number}: {problem}"
    if trail.answered and trail.legs[-1].answer != trail.rollout.answer:
        return f"the last reply answers {trail.legs[-1].answer!r}, the rollout {trail.rollout.answer!r}"
    return f"step {len(trail.legs) - 1}: stopped by format" if stop == "format" else ""


def _find_leg_problem(leg: Leg, *, answers: bool) -> str:
    step = leg.step
    if answers:
        return "the last step makes a call" if step.tool else ""
    if not step.tool or step.observation is None:
        return "a step before the answer must be a call with its observation"
    return f"{step.tool}: {step.observation.error}" if step.observation.error in BAD_CALLS else ""


def check_tool_errors(trail: Trail) -> CheckResult:
    """FAIL (``tool-errors``) on :data:`FATAL_ERRORS` consecutive errors, or if the row disagrees."""
    rollout = trail.rollout
    found = find_fatal(rollout.steps)
    told = (rollout.fatal_begins, rollout.fatal_reached)
    if found is not None:
        return CheckResult("FAIL", "tool-errors", f"steps {found[0]} to {found[1]} are errors, one after the other")
    if told != (None, None):
        return CheckResult("FAIL", "tool-errors", f"a fatal step is recorded at {told}; the steps show none")
    if rollout.stop_reason == "tool-errors":
        return CheckResult("FAIL", "tool-errors", "stopped by tool errors; the steps show no fatal one")
    return PASSED


def find_fatal(steps: Sequence[Step]) -> tuple[int, int] | None:
    """Return the steps at which the first run of so many consecutive errors begins and reaches that number, or None."""
    run = 0
    for number, step in enumerate(steps):
        run = run + 1 if step.observation is not None and not step.observation.ok else 0
        if run == FATAL_ERRORS:
            return number - FATAL_ERRORS + 1, number
    return None


def list_loss(steps: Sequence[Step]) -> tuple[bool, ...]:
    """Return whether a student is trained on each step: on answers and on calls that went well."""
    return tuple(step.observation.ok if step.observation is not None else bool(step.thought) for step in steps)


def check_length(tokens: int, max_tokens: int) -> CheckResult:
    """FAIL (``too-long``) when a trajectory does not fit into the length that it is trained at.

    Trainers truncate the end, which holds the answer (VSearcher rolls out at 200,000 tokens and trains at 20,480).
    Tokens include pictures; a ``max_tokens`` of 0 is no limit.
    """
    if max_tokens == 0 or tokens <= max_tokens:
        return PASSED
    return CheckResult("FAIL", "too-long", f"{tokens:,} tokens, trained on are {max_tokens:,}")


FIRST = "img_1"
_ID = re.compile(r"(?<![\w/-])img_\d+(?!\w|\.(?:jpe?g|png|gif|webp|svg|tiff?)\b)")
"""A picture's id; a file name such as ``img_1.jpg`` is not one."""


def check_images(trail: Trail) -> CheckResult:
    """FAIL (``unknown-image``) when a call, a thought or an observation names a picture that is not there yet.

    The question's picture is ``img_1``; each one that an observation shows takes the next number, exactly once, and the
    rollout has no others. A thought may name what its own call is about to make.
    """
    problem = next(_find_problems(trail), "")
    return CheckResult("FAIL", "unknown-image", problem) if problem else PASSED


def _find_problems(trail: Trail) -> Iterator[str]:
    ids = [image.id for image in trail.rollout.images]
    if ids[:1] != [FIRST]:
        yield f"the pictures are {ids}; the first is {FIRST}"
    known = [FIRST]
    for number, leg in enumerate(trail.legs):
        made = () if leg.step.observation is None else leg.step.observation.images
        yield from (f"step {number}: {problem}" for problem in _find_leg_problems(leg, known, made))
        known += made
    if ids != known:
        yield f"the pictures are {ids}; the steps show {known}"


def _find_leg_problems(leg: Leg, known: list[str], made: tuple[str, ...]) -> Iterator[str]:
    missing = [name for name in _list_named(leg) if name not in known]
    if missing:
        yield f"the call names {missing[0]}; there are {known}"
    thought = [name for name in _ID.findall(leg.step.thought) if name not in known and name not in made]
    if thought:
        yield f"the thought names {thought[0]}; there are {known}"
    expected = [f"img_{len(known) + place}" for place in range(1, len(made) + 1)]
    if list(made) != expected:
        yield f"the observation shows {list(made)}; next are {expected}"
    results = () if leg.step.observation is None else leg.step.observation.results
    shown = [result.image for result in results if result.image and result.image not in made]
    if shown:
        yield f"a result is shown as {shown[0]}, which the observation does not have"


def _list_named(leg: Leg) -> list[str]:
    image = leg.arguments.get("image")
    named = [image] if isinstance(image, str) else []
    return named + [name for value in leg.arguments.values() if isinstance(value, str) for name in _ID.findall(value)]


STOP_WORDS = frozenset(
    "a about an and are as at be been by did do does for from had has have how in into is it its of on or that the "
    "their there these this to was were what when where which who whom whose why with".split()
)
REPEATS_SHOWN = 3


def check_repetition(trail: Trail, overlap: float = 0.8, max_repeats: int = 0) -> CheckResult:
    """FAIL (``repetition``) when more than ``max_repeats`` steps do what an earlier one did, and bring nothing new.

    Such a step makes an identical call, a query of similar words (Jaccard similarity of at least ``overlap``, without
    stop words), a query with the same results in the same order, or a visit that shows the same text. New is a number,
    or a word that is not common, on a page that was found or opened, if nobody had asked for it or seen it.
    """
    found = list(find_repeats(trail, overlap))
    if len(found) <= max_repeats:
        return PASSED
    shown = "; ".join(found[:REPEATS_SHOWN])
    return CheckResult("FAIL", "repetition", f"{len(found)} repetitions, allowed are {max_repeats}: {shown}")


def find_repeats(trail: Trail, overlap: float) -> Iterator[str]:
    """Yield what each repeating step repeats; a call that failed may be tried again, and counts if it fails again."""
    first: dict[object, int] = {}
    known = set(trail.question.split())
    for number, leg in enumerate(trail.legs):
        if not leg.step.tool:
            continue
        known |= set(leg.used.split())
        told = {word for sight in leg.sights for word in sight.words.split()} - known
        known |= told
        # What the step does, by how it would repeat an earlier one; a failed call repeats only failed and good ones.
        call = (leg.step.tool, leg.step.arguments)
        does: list[tuple[object, str]] = [(call, "identical call")]
        if leg.failed:
            does.append((("failed", call), "identical call"))
        elif leg.step.tool == "visit":
            does.append((leg.shown, "the same page, read alike"))
        elif leg.step.tool == "text_search":
            words = fold_words(str(leg.arguments.get("query", ""))).split()
            asked = frozenset(words) - STOP_WORDS or frozenset(words)
            alike = (key for key in first if isinstance(key, frozenset) and _overlap(asked, key) >= overlap)
            urls = tuple(sight.url for sight in leg.sights)
            does += [(next(alike, asked), "a query of the same words"), *([(urls, "the same results")] if urls else [])]
            first.setdefault(asked, number)
        repeated = next(((key, how) for key, how in does if first.get(key, number) < number), None)
        if repeated is not None and all(map(is_common_word, told)):
            yield f"step {number} as {first[repeated[0]]} ({repeated[1]})"
        for key, _ in does[1:] if leg.failed else does:
            first.setdefault(key, number)


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    union = len(first | second)
    return len(first & second) / union if union else 1.0


MAX_FORMS = 60
"""Most accepted forms that are searched for."""
SHORT_ACRONYM = 4
"""Shortest acronym, in letters, that is matched without regard to case."""
_WORD = re.compile(r"\S+")
_DIGIT = re.compile(r"\d")
_SPELLED = frozenset(map(str, range(21)))
"""Numbers that are also read in words."""
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Form:
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    folded: str
    """Empty if the form must match as written."""


def list_answer_forms(rollout: Rollout) -> tuple[str, ...]:
    """Return how a rollout's answer may be written: as given, and every accepted form."""
    reference = rollout.reference
    forms = (rollout.answer, reference.surface, reference.value, *reference.aliases)
    return tuple(dict.fromkeys(form.strip() for form in forms if form.strip()))[:MAX_FORMS]


def locate_answer(text: str, words: str, forms: tuple[str, ...], reference: Answer) -> Span | None:
    """Return where a text holds an answer, in one of its written forms or as the same value; None if nowhere."""
    return locate_form(text, words, forms) or locate_value(text, reference)


def locate_form(text: str, words: str, forms: tuple[str, ...]) -> Span | None:
    """Return where a text holds one of several spellings as whole words, ignoring case and, in names, accents.

    Short capitals such as ``US`` match in capitals only.
    """
    plain = text.casefold()
    return next((span for form in forms if (span := _locate_form(text, plain, words, form)) is not None), None)


def locate_value(text: str, reference: Answer, bare: bool = True) -> Span | None:
    """Return where a text holds a date in any writing, or a finer one; or a number, in another unit as well.

    With ``bare``, a number may lack the unit of the reference.
    """
    if reference.type == "date":
        return _locate_date(text, reference)
    return _locate_number(text, reference, bare) if reference.type == "number" else None


def _locate_form(text: str, plain: str, words: str, form: str) -> Span | None:
    read = _read_form(form)
    if all(word in plain for word in read.words):
        found = read.pattern.search(text)
        if found is not None:
            return found.span()
    return _locate_words(text, read.folded.split()) if read.folded and read.folded in words else None


@lru_cache(maxsize=4096)
def _read_form(form: str) -> _Form:
    words = form.split()
    body = r"\s+".join(re.escape(word) for word in words)
    pattern = re.compile(rf"(?<!\w)(?<!\d[.,]){body}(?!\w)(?![.,]\d)", re.IGNORECASE)
    # Folding drops signs and decimal points: 5 would be found in 1,5. Of US and WHO it makes words of any sentence.
    folded = "" if _DIGIT.search(form) else fold_words(form)
    if form.isupper() and (len(folded.strip()) < SHORT_ACRONYM or is_common_word(folded.strip())):
        return _Form(tuple(word.casefold() for word in words), re.compile(pattern.pattern), "")
    return _Form(tuple(word.casefold() for word in words), pattern, folded if folded.strip() else "")


def _locate_words(text: str, wanted: list[str]) -> Span | None:
    found = [(word, match.span()) for match in _WORD.finditer(text) for word in fold_name(match[0]).split()]
    size = len(wanted)
    for place in range(len(found) - size + 1):
        if found[place][0] == wanted[0] and [word for word, _ in found[place : place + size]] == wanted:
            return found[place][1][0], found[place + size - 1][1][1]
    return None


def _locate_date(text: str, reference: Answer) -> Span | None:
    wanted = parse_date(reference.value)
    if wanted is None or not any(str(year) in text for year in (abs(wanted.year), abs(wanted.year - 1))):
        return None
    return next(((spot.start, spot.end) for spot in find_dates(text) if wanted.covers(spot.value)), None)


def _locate_number(text: str, reference: Answer, bare: bool) -> Span | None:
    if _DIGIT.search(text) is None and reference.value.strip("-") not in _SPELLED:
        return None
    wanted = Number(reference.value, reference.unit)
    spots = (spot for spot in find_measures(text) if spot.value.unit or bare or not wanted.unit)
    return next(((spot.start, spot.end) for spot in spots if _is_same(spot.value, wanted)), None)


def _is_same(found: Number, wanted: Number) -> bool:
    if found.value == wanted.value and (not found.unit or not wanted.unit or found.unit == wanted.unit):
        return True
    return compare_measures(found, wanted) == "same"


def check_path(trail: Trail) -> CheckResult:
    """FAIL (``path-not-covered``) when the rollout did not see a link of the proof.

    Two nodes that follow one another are linked where one page, opened or shown in a search with a snippet, names both,
    or where the pages of both were opened. The answer is covered where a page that names the answer node holds it.
    Which page that is does not matter, so that another way to the same facts counts as well.
    """
    path = trail.rollout.path
    if not path:
        return CheckResult("UNKNOWN", "path-not-covered", "the rollout has no path to hold it against")
    sights = [sight for leg in trail.legs for sight in leg.sights]
    opened = {fold_words(sight.title) for sight in sights if sight.opened}
    for title, after in pairwise(path):
        both = fold_words(title) in opened and fold_words(after) in opened
        if not both and not any(names(sight.words, title) and names(sight.words, after) for sight in sights):
            return CheckResult("FAIL", "path-not-covered", f"no page links {title!r} and {after!r}")
    if not _covers_answer(trail, sights):
        return CheckResult("FAIL", "path-not-covered", f"no page gives the answer for {path[-1]!r}")
    return PASSED


def _covers_answer(trail: Trail, sights: Sequence[Sight]) -> bool:
    rollout = trail.rollout
    forms = list_answer_forms(rollout)
    return any(
        locate_answer(sight.text, sight.words, forms, rollout.reference) is not None
        for sight in sights
        if names(sight.words, rollout.path[-1])
    )


GRAM = 4
"""Length of the word n-grams of a question that are searched for in a text."""
SHARE = 0.5
"""Share of these n-grams that marks a result with the answer as a copy of the question."""
LEFT_OUT = frozenset({"dataset-host"})
"""Flags of search results that were withheld from the model."""
LEAST_GRAMS = 3
"""Questions with fewer n-grams are not compared."""


def check_contamination(trail: Trail) -> CheckResult:
    """FAIL (``contaminated``) when an observation is flagged, would be flagged now, or holds question and answer.

    The stored text is checked again besides the recorded flags. A dataset host that was removed from search results
    does not count; a visit to one does.
    """
    for number, leg in enumerate(trail.legs):
        observation = leg.step.observation
        if observation is None:
            continue
        flags = sorted({*observation.flags, *leg.flags} - (set() if leg.step.tool == "visit" else LEFT_OUT))
        if flags:
            return CheckResult("FAIL", "contaminated", f"step {number}: {', '.join(flags)}")
        if _holds_both(trail, leg):
            return CheckResult("FAIL", "contaminated", f"step {number}: half of the question, and the answer")
    return PASSED


def _holds_both(trail: Trail, leg: Leg) -> bool:
    grams = _list_grams(trail.question)
    if len(grams) < LEAST_GRAMS:
        return False
    texts = [(sight.text, sight.words) for sight in leg.sights] or [(leg.shown, leg.seen)]
    for text, words in texts:
        if sum(gram in words for gram in grams) >= SHARE * len(grams):
            forms = list_answer_forms(trail.rollout)
            if locate_answer(text, words, forms, trail.rollout.reference) is not None:
                return True
    return False


@lru_cache(maxsize=256)
def _list_grams(question: str) -> tuple[str, ...]:
    words = question.split()
    grams = (f" {' '.join(words[start : start + GRAM])} " for start in range(len(words) - GRAM + 1))
    return tuple(dict.fromkeys(grams))


NEVER = 1 << 30
"""Step number of an event that does not happen."""
_SMALL = 100
"""Smaller numbers without a unit are too common to show knowledge of the answer."""
_BARE = re.compile(r"[\d\W]+")


def find_support(trail: Trail, before: int | None = None) -> tuple[int, Span] | None:
    """Return the first step whose observation holds the answer, and where; None when none does.

    The first that has it in one of its writings is preferred to an earlier one that has it in another.
    """
    forms, reference = list_answer_forms(trail.rollout), trail.rollout.reference
    shown = [(number, leg) for number, leg in enumerate(trail.legs[:before]) if leg.told]
    for number, leg in shown:
        span = locate_form(leg.told, leg.seen, forms)
        if span is not None:
            return number, span
    for number, leg in shown:
        span = locate_value(leg.told, reference)
        if span is not None:
            return number, span
    return None


def check_support(trail: Trail) -> CheckResult:
    """FAIL (``unsupported``) when the answer stands in no observation of a call that went well."""
    if find_support(trail) is not None:
        return PASSED
    return CheckResult("FAIL", "unsupported", f"{trail.rollout.answer!r} is right but stands in no observation")


def check_sought(trail: Trail) -> CheckResult:
    """FAIL (``from-memory``) when no tool was called, or the answer was said before an observation held it.

    Said is what the thought or the call of a step before the last one holds. What the question says itself counts for
    nothing, nor do small numbers and ordinary words.
    """
    if not trail.calls:
        return CheckResult("FAIL", "from-memory", "answered without a tool")
    said = _find_said(trail)
    if said is None:
        return PASSED
    if find_support(trail, said) is None:
        return CheckResult("FAIL", "from-memory", f"step {said} says the answer before a tool has shown it")
    return PASSED


def _find_said(trail: Trail) -> int | None:
    rollout = trail.rollout
    telling = tuple(form for form in list_answer_forms(rollout) if _is_telling(form, rollout.reference))
    if not telling:
        return None
    if _says(rollout.question, trail.question, telling, rollout.reference):
        return None
    for number, leg in enumerate(trail.legs):
        if not leg.step.tool:
            continue
        texts = [(leg.step.thought, leg.thought)]
        texts += [(str(value), leg.used) for name, value in leg.arguments.items() if name in ("query", "goal", "url")]
        if any(_says(text, words, telling, rollout.reference) for text, words in texts):
            return number
    return None


def _says(text: str, words: str, telling: tuple[str, ...], reference: Answer) -> bool:
    return locate_form(text, words, telling) is not None or locate_value(text, reference, bare=False) is not None


def _is_telling(form: str, reference: Answer) -> bool:
    if reference.type == "number":
        whole = reference.value.lstrip("-").partition(".")[0]
        small = whole.isdigit() and len(whole) <= 9 and int(whole) < _SMALL
        return not small or (bool(reference.unit) and _BARE.fullmatch(form) is None)
    acronym = form.isupper() and len(form) > 1
    return reference.type == "date" or acronym or len(form.split()) > 1 or bool(read_title(form).telling)


def check_jumps(trail: Trail) -> CheckResult:
    """FAIL (``memory-jump``) when a name of the chain is used before an observation has shown it.

    A name is used in a query, a goal or an address, or in the thought of the answer. Checked are all titles of the path
    and of the bridges, except names in the question and titles of ordinary words, which occur by chance. The anchor may
    be recognised by sight: a call that names it and shows it has tested that.
    """
    rollout = trail.rollout
    anchor = next((title for title in rollout.path[:1] if title not in rollout.bridges), None)
    for title in dict.fromkeys((*rollout.path, *rollout.bridges)):
        read = read_title(title)
        if not read.telling or names(trail.question, title):
            continue
        used = _find_use(trail, title, by_sight=title == anchor)
        if used is not None and _find_seen(read, trail.question, (leg.seen for leg in trail.legs[:used])) == NEVER:
            return CheckResult("FAIL", "memory-jump", f"step {used} uses {title!r}, which nothing had shown")
    return PASSED


def _find_use(trail: Trail, title: str, *, by_sight: bool) -> int | None:
    for number, leg in enumerate(trail.legs):
        if names(leg.used if leg.step.tool else leg.thought, title) and not (by_sight and names(leg.seen, title)):
            return number
    return None


def _find_seen(read: NameWords, question: str, texts: Iterable[str]) -> int:
    missing = {word for word in read.telling if word not in question}
    for number, words in enumerate(texts):
        missing = {word for word in missing if word not in words}
        if not missing or read.whole in words:
            return number
    return NEVER


_NAME_WORD = re.compile(r"[^\W_]+(?:['’&.-][^\W_]+)*")
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
    """Yield the proper names of a text that occur in none of some folded texts.

    A name is a run of capitalised words. A single word that begins a sentence does not count, since every sentence
    begins with a capital; ordinary words at the ends of a run may be titles (``Engineer``) and need no backing.
    """
    said = _LEFT_OUT.sub(" ; ", said)
    for run in _list_runs(said):
        if not _is_backed(said, run, backing) and not (
            _begins_sentence(said, run[0]) and (len(run) == 1 or _is_backed(said, run[1:], backing))
        ):
            yield said[run[0].start() : run[-1].end()]


def _list_runs(said: str) -> Iterator[Run]:
    run: Run = []
    joints: Run = []
    start = end = 0
    for match in _NAME_WORD.finditer(said):
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


LEAST = 10
"""Whole numbers below count steps, sources and hops."""
MAX_PAIRED = 40
"""Backed numbers of one thought of which sums and differences are taken."""
_NUMERAL = re.compile(r"\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d{1,20})?(?!\d)|\d{1,20}(?:\.\d{1,20})?")
_GROUPING = re.compile("[,\u00a0\u202f]")
_NO_CLAIMS = re.compile(
    r"\bimg_\d+\b|https?://\S+"
    r"|\d{1,3}(?:\.\d{1,4})?\s?(?:%|per\s?cent)\s(?:sure|certain|confident|confidence|convinced|positive)\b"
    r"|\bconfiden(?:t|ce)\W{1,3}(?:(?:is|of|at|level)\W{1,2}){0,2}\d{1,3}(?:\.\d{1,4})?\s?(?:%|per\s?cent)",
    re.IGNORECASE,
)
"""Pictures, addresses, and how sure one is."""
_DECADE, _CENTURY = re.compile(r"['’]?s\b"), re.compile(r"(?:st|nd|rd|th)[ -]centur", re.IGNORECASE)


def find_unbacked_numbers(said: str, backing: Sequence[str]) -> Iterator[str]:
    """Yield the numbers and dates of a text that occur in none of some texts.

    Small whole numbers are skipped. A number is also backed in another unit, in words, as the decade or century of a
    shown date, and as the sum or difference of two other backed numbers of the text.
    """
    said = _NO_CLAIMS.sub(" ; ", said)
    if not any(map(str.isdigit, said)):
        return
    dates = [spot for spot in find_dates(said) if spot.value.precision != "year"]
    yield from (said[spot.start : spot.end] for spot in dates if not _is_date_backed(said, spot, backing))
    numerals = [
        match for match in _NUMERAL.finditer(said) if not any(spot.start <= match.start() < spot.end for spot in dates)
    ]
    values = {match[0]: _read(match[0]) for match in numerals}
    telling = [numeral for numeral, value in values.items() if value >= LEAST or value != value.to_integral_value()]
    unbacked = [
        numeral
        for numeral in telling
        if not any(numeral in text and _compile(numeral).search(text) for text in backing)
    ]
    if unbacked:
        backed = [value for numeral, value in values.items() if numeral not in unbacked]
        yield from _sift(said, [match for match in numerals if match[0] in unbacked], backed, backing)


@lru_cache(maxsize=4096)
def _compile(numeral: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\d)(?<!\d[.,]){re.escape(numeral)}(?!\d)(?![.,]\d)")


def _read(numeral: str) -> Decimal:
    return Decimal(_GROUPING.sub("", numeral))


def _is_date_backed(said: str, spot: Spot[Date], backing: Sequence[str]) -> bool:
    written = said[spot.start : spot.end]
    if any(written in text for text in backing):
        return True
    year = str(abs(spot.value.year))
    return any(spot.value.covers(other.value) for text in backing if year in text for other in find_dates(text))


def _sift(
    said: str, unbacked: Sequence[re.Match[str]], backed: Sequence[Decimal], backing: Sequence[str]
) -> Iterator[str]:
    shown = {_read(match[0]) for text in backing for match in _NUMERAL.finditer(text)}
    pairs = list(combinations(dict.fromkeys(backed[:MAX_PAIRED]), 2))
    known = shown | {abs(first - second) for first, second in pairs} | {first + second for first, second in pairs}
    left = [match for match in unbacked if _read(match[0]) not in known and not _is_period(said, match, shown)]
    if not left:
        return
    spelled = set[Decimal]().union(*map(find_numbers, backing))
    measures = [spot.value for text in backing for spot in find_measures(text) if spot.value.unit in KNOWN_UNITS]
    claimed = find_measures(said)
    for match in left:
        spots = [spot.value for spot in claimed if spot.start <= match.start() < spot.end]
        if _read(match[0]) not in spelled and not any(_is_measured(spot, spelled, measures) for spot in spots):
            yield match[0]


def _is_measured(spot: Number, spelled: set[Decimal], measures: Sequence[Number]) -> bool:
    if Decimal(spot.value).copy_abs() in spelled:
        return True
    return spot.unit in KNOWN_UNITS and any(compare_measures(spot, other) == "same" for other in measures)


def _is_period(said: str, match: re.Match[str], shown: set[Decimal]) -> bool:
    value = _read(match[0])
    if _DECADE.match(said, match.end()) and value % 10 == 0:
        return any(value <= year < value + (100 if value % 100 == 0 else 10) for year in shown)
    if _CENTURY.match(said, match.end()):
        return any((value - 1) * 100 < year <= value * 100 for year in shown)
    return False


LONGEST_END = 20_000
"""Most characters of a last thought and answer that are checked."""
SHOWN = 3


def check_claims(trail: Trail, right: bool = False) -> CheckResult:
    """FAIL (``unseen-claim``) when the last thought or the answer claims what nothing backs.

    A correct answer (``right``) backs itself, as it may be another name of what was seen. UNKNOWN when the text is too
    long to check.
    """
    if not trail.answered:
        return PASSED
    said = POSSESSIVE.sub(" ,", f"{trail.legs[-1].step.thought}\n{trail.rollout.answer}")
    if len(said) > LONGEST_END:
        return CheckResult("UNKNOWN", "unseen-claim", f"the end has {len(said):,} characters, read are {LONGEST_END:,}")
    forms = [form for form in list_answer_forms(trail.rollout) if right or form != trail.rollout.answer.strip()]
    texts = (trail.rollout.question, *(leg.shown for leg in trail.legs if leg.shown), *forms)
    words = (trail.question, *(leg.seen for leg in trail.legs), *map(fold_words, forms))
    unseen = [*find_unbacked_names(said, words), *find_unbacked_numbers(said, texts)]
    if not unseen:
        return PASSED
    shown = ", ".join(map(repr, dict.fromkeys(unseen[:SHOWN])))
    return CheckResult("FAIL", "unseen-claim", f"nothing shows {shown}")
