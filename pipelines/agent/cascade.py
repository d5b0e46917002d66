"""The rejection cascade of one rollout: every reason against it, in the order in which they decide.

Format and the answer always decide; the mechanical checks (research/quality.md 1H, R1-R10) are those that the settings
name. An UNKNOWN result rejects as a FAIL does.

Lengths are in tokens, as a student is trained on messages and pictures, estimated for byte-level BPE of some 150,000
tokens such as Qwen's, with weights fitted to overestimate: transcripts of the demo by 8% to 17%, any six articles of
the English Wikipedia by 5% to 18%. One article is 11% too long on average; four of a hundred are too short, at worst by
10%. Random letters may be longer than estimated; no estimate exceeds the number of bytes.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod, sqrt
from types import MappingProxyType
from typing import get_args
from urllib.parse import unquote

from pipelines.agent.contamination import Watched, find_flags
from pipelines.agent.dialects import DIALECTS, SYNTH
from pipelines.agent.judging import Judgement
from pipelines.agent.observations import ANSWER, list_forms, read_hits, read_page
from pipelines.agent.transcript import BadTurn, parse_turn, render_observation
from pipelines.checks.rollouts import (
    Leg,
    Sight,
    Trail,
    check_claims,
    check_contamination,
    check_images,
    check_jumps,
    check_length,
    check_path,
    check_repetition,
    check_sought,
    check_support,
    check_tool_errors,
    check_turns,
    find_support,
    fold_words,
    locate_form,
)
from pipelines.checks.verdicts import CheckResult
from pipelines.config.settings import TrajectoriesConfig
from pipelines.graph.answers import compare_answers, is_no_answer
from pipelines.pictures import TRAINING_PIXELS
from schemas.datasets import Observation, Rollout, Step, Support
from schemas.reasons import TrajectoryReason

USED = ("query", "goal", "url")
"""Arguments whose words a name may stand in."""
_HITS = re.compile(r"^(?:\[\d+\] (?=.*\nURL: )|URL: \S+$|Picture: img_\d+$)", re.MULTILINE)
_LAYOUT: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "text_search": _HITS,
        "image_search": _HITS,
        "visit": re.compile(r"(?<=\n)URL: \S+(?=\n\n)"),
        "layout_parsing": re.compile(r" \[\d+, \d+, \d+, \d+\] \(\d\.\d\d\):"),
    }
)
"""By tool, the parts of its text that are layout and not content."""


def read_trail(rollout: Rollout) -> Trail:
    """Return a rollout as its checks read it. Faults become findings; no content raises."""
    watched = Watched(rollout.question, (rollout.record_id, rollout.parent_id))
    legs = tuple(_read_leg(step, rollout.dialect, watched) for step in rollout.steps)
    return Trail(rollout, fold_words(rollout.question), legs)


def _read_leg(step: Step, dialect: str, watched: Watched) -> Leg:
    problem, answer = _compare_reply(step, dialect)
    arguments = _read_arguments(step.arguments)
    observation = step.observation
    shown = observation.text if observation is not None and observation.ok else ""
    sights = tuple(_list_sights(step.tool, observation)) if observation is not None and shown else ()
    return Leg(
        step=step,
        problem=problem,
        answer=answer,
        arguments=arguments,
        thought=fold_words(step.thought),
        used=fold_words(" ; ".join(_list_used(arguments))),
        seen="".join(sight.words for sight in sights) if sights else fold_words(shown),
        told=_blank_layout(step.tool, shown),
        sights=sights,
        # A failed call says again what the model wrote into it, such as the question in a search engine's address.
        flags=_list_flags(shown, watched),
    )


def _list_flags(text: str, watched: Watched) -> tuple[str, ...]:
    plain = text.casefold()
    ids = tuple(name for name in watched.ids if name.casefold() in plain)
    return find_flags(text, Watched(watched.question, ids))


def _compare_reply(step: Step, dialect: str) -> tuple[str, str]:
    if dialect not in DIALECTS:
        return f"there is no dialect {dialect!r}", ""
    try:
        turn = parse_turn(step.reply, DIALECTS[dialect])
    except BadTurn as error:
        return str(error), ""
    if (turn.thought, turn.tool, turn.arguments) != (step.thought, step.tool, step.arguments):
        return "the step is not what its reply says", turn.answer
    return "", turn.answer


def _read_arguments(source: str) -> dict[str, object]:
    try:
        arguments = json.loads(source) if source else {}
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _list_used(arguments: dict[str, object]) -> Iterator[str]:
    for name in USED:
        value = arguments.get(name)
        if isinstance(value, str):
            yield unquote(value) if name == "url" else value


def _list_sights(tool: str, observation: Observation) -> Iterator[Sight]:
    page = read_page(observation.text) if tool == "visit" else None
    if page is not None:
        yield _make_sight(page.url, page.title, page.text, opened=True)
        return
    hits = read_hits(observation.text) if tool in ("text_search", "image_search") else ()
    yield from (_make_sight(hit.url, hit.title, hit.text, opened=False) for hit in hits)
    told = {hit.url for hit in hits}
    # A result that is kept beside the text was shown by its title at least.
    yield from (
        _make_sight(each.url, each.title, "", opened=False) for each in observation.results if each.url not in told
    )


def _blank_layout(tool: str, shown: str) -> str:
    layout = _LAYOUT.get(tool)
    return layout.sub(lambda found: "|" * len(found[0]), shown) if layout is not None else ""


def _make_sight(url: str, title: str, text: str, *, opened: bool) -> Sight:
    return Sight(url=url, title=title, text=text, words=fold_words(f"{title}\n{text}"), opened=opened)


PATCH = 28
"""Pixels of a picture's side that one token covers: Qwen2.5-VL merges patches of 14 pixels two by two. Later models
have larger ones, so that this is a count from above."""
TURN_TOKENS = 6
"""Tokens that a chat template sets around a message: its beginning, role and end with their line breaks."""
PICTURE_TOKENS = 2
"""Tokens that a chat template sets around a picture."""
ESTIMATE = "estimate:1"
"""Which estimate; part of the identity of what counts by it."""
_LETTERS = bytes(97 if chr(c).islower() and c < 128 else 65 if chr(c).isupper() and c < 128 else 32 for c in range(256))
"""Lower letters as a, upper ones as A, all else as a space."""
_MARKS = bytes(46 if 32 < c < 127 and not chr(c).isalnum() else 32 for c in range(256))
"""Punctuation as a dot, all else as a space."""
_BLANKS = bytes(
    48 if 48 <= c <= 57 else c if c in (10, 32) else 10 if c == 13 else 32 if c == 9 else 46 for c in range(256)
)
"""Digits as 0, line breaks and spaces as they are, all else as a dot."""
_LINES = re.compile(rb"\n+")
_LONG = 14
"""Letters beyond which a word is likely none."""


@lru_cache(maxsize=512)
def estimate_tokens(text: str) -> int:
    """Return an estimate of a text's tokens from above, at most its bytes."""
    size = len(text.encode("utf-8", "replace"))
    plain = text.encode("ascii", "replace")
    words, marks = plain.translate(_LETTERS).split(), plain.translate(_MARKS).split()
    blanks = plain.translate(_BLANKS)
    names = [word for word in words if word[0] == 65]
    letters, capital = sum(map(len, words)), sum(map(len, names))
    runs = sum(map(len, marks)) - len(marks)
    long = sum(len(word) for word in words if len(word) > _LONG)
    spaces = len(_LINES.findall(blanks)) + blanks.count(b"  ") + blanks.count(b" 0")
    estimate = (
        0.85 * (len(words) - len(names)) + 0.05 * (letters - capital) + 0.6 * len(names) + 0.23 * capital
        + 0.2 * long + len(marks) + 0.1 * runs + blanks.count(b"0") + spaces + (size - len(plain))
    )  # fmt: skip
    return min(max(1, ceil(estimate)), size)


def count_picture(width: int, height: int, pixels: int) -> int:
    """Return an upper bound of a picture's tokens."""
    scale = min(1.0, sqrt(pixels / (width * height)))
    # Trainers round each side to whole patches, some up and some down; none has less than one.
    sides = (max(1, ceil(side * scale / PATCH)) for side in (width, height))
    return PICTURE_TOKENS + prod(sides)


def measure_rollout(rollout: Rollout) -> int:
    """Return a rollout's length in tokens, from above.

    System message, question, every reply and every observation count. A release may strip markup, which makes a row
    shorter.
    """
    dialect = DIALECTS.get(rollout.dialect, SYNTH)
    texts = [rollout.system, rollout.question]
    for step in rollout.steps:
        texts.append(step.reply)
        if step.observation is not None:
            texts.append(render_observation(step.observation, dialect))
    sizes = ((image.picture.width, image.picture.height) for image in rollout.images)
    pictures = sum(count_picture(width, height, TRAINING_PIXELS) for width, height in sizes)
    return sum(map(estimate_tokens, texts)) + pictures + TURN_TOKENS * len(texts)


_ORDER: tuple[TrajectoryReason, ...] = get_args(TrajectoryReason)
_ASKED_OF_ANSWERS: tuple[TrajectoryReason, ...] = ("from-memory", "unsupported", "path-not-covered", "unseen-claim")
"""Checks of the way to an answer; a rollout without an answer skips them."""
ASKED_OF_PATHS: tuple[TrajectoryReason, ...] = ("memory-jump", "path-not-covered")
"""Checks of the names of a path; a question from outside has none."""


DEFAULTS = TrajectoriesConfig()


@dataclass(frozen=True, slots=True)
class RolloutFault:
    """One reason against a rollout."""

    reason: TrajectoryReason
    detail: str


@dataclass(frozen=True, slots=True)
class CascadeResult:
    """The result of the cascade for one rollout."""

    faults: tuple[RolloutFault, ...]
    """In the order of the cascade; empty for a rollout without faults."""
    tokens: int
    """Its length when trained on."""
    supports: tuple[Support, ...]
    """Where the bridges and the answer were seen; empty if there are faults."""


@dataclass(frozen=True, slots=True)
class _Case:
    trail: Trail
    judgement: Judgement | None
    """None without an answer."""
    tokens: int
    rules: TrajectoriesConfig


_CHECKS: Mapping[str, Callable[[_Case], CheckResult]] = MappingProxyType(
    {
        "tool-errors": lambda case: check_tool_errors(case.trail),
        "from-memory": lambda case: check_sought(case.trail),
        "unsupported": lambda case: check_support(case.trail),
        "memory-jump": lambda case: check_jumps(case.trail),
        "path-not-covered": lambda case: check_path(case.trail),
        "repetition": lambda case: check_repetition(case.trail),
        "contaminated": lambda case: check_contamination(case.trail),
        "unknown-image": lambda case: check_images(case.trail),
        "unseen-claim": lambda case: check_claims(
            case.trail, case.judgement is not None and case.judgement.verdict == "correct"
        ),
        "too-long": lambda case: check_length(case.tokens, case.rules.max_tokens),
    }
)


def examine_rollout(rollout: Rollout, judgement: Judgement | None, rules: TrajectoriesConfig) -> CascadeResult:
    """Return every reason against a rollout but the process judge's, with its length and its supports.

    A missing answer is not also wrong, and a wrong answer is not checked for support.
    """
    trail, tokens = read_trail(rollout), measure_rollout(rollout)
    held = None if is_unanswered(rollout) else judgement or _compare(rollout)
    case = _Case(trail, held, tokens, rules)
    found = [*_check_turns(trail), *_find_answer_faults(rollout, held)]
    found += [RolloutFault(name, result.detail) for name, result in _run(case) if not result.passed]
    faults = tuple(sorted(found, key=lambda fault: _ORDER.index(fault.reason)))
    return CascadeResult(faults, tokens, () if faults else list_supports(trail))


def is_unanswered(rollout: Rollout) -> bool:
    """Say whether a rollout gives no answer. "None" is no answer, unless it is the reference."""
    return is_no_answer(rollout.answer) and compare_answers(rollout.answer, rollout.reference) != "correct"


def _compare(rollout: Rollout) -> Judgement:
    return Judgement(compare_answers(rollout.answer, rollout.reference), "comparer")


def _check_turns(trail: Trail) -> list[RolloutFault]:
    result = check_turns(trail)
    return [] if result.passed else [RolloutFault("format", result.detail)]


def _find_answer_faults(rollout: Rollout, judgement: Judgement | None) -> list[RolloutFault]:
    if judgement is None:
        failure = f" ({rollout.failure})" if rollout.failure else ""
        return [RolloutFault("no-answer", f"stopped by {rollout.stop_reason}{failure}, answer {rollout.answer!r}")]
    if judgement.verdict == "incorrect":
        return [RolloutFault("wrong-answer", f"{rollout.answer!r} instead of {rollout.reference.surface!r}")]
    if judgement.verdict == "unscored":
        against = f"{rollout.answer!r} against {rollout.reference.surface!r}"
        return [RolloutFault("unscored", f"{against} ({judgement.detail})" if judgement.detail else against)]
    return []


def list_left_out(rules: TrajectoriesConfig, rollout: Rollout) -> tuple[TrajectoryReason, ...]:
    """Return the checks among those the rules name that a rollout cannot be held to, as its question has no path."""
    titles = (*rollout.path, *rollout.bridges)
    return () if titles else tuple(name for name in ASKED_OF_PATHS if name in rules.checks)


def _run(case: _Case) -> list[tuple[TrajectoryReason, CheckResult]]:
    left_out = set(list_left_out(case.rules, case.trail.rollout))
    left_out |= set(_ASKED_OF_ANSWERS) if case.judgement is None else set()
    if case.judgement is not None and case.judgement.verdict == "incorrect":
        left_out.add("unsupported")
    asked = [name for name in _ORDER if name in case.rules.checks and name not in left_out]
    return [(name, _CHECKS[name](case)) for name in asked]


def list_supports(trail: Trail) -> tuple[Support, ...]:
    """Return where each bridge's name and the answer were first seen; names never seen are left out.

    ``step`` counts from 0 in ``rollout.steps``; the span is in that step's observation text. Bridges come in path
    order, the answer last, under the name ``answer``.
    """
    supports = [_find_name(trail, title) for title in dict.fromkeys(trail.rollout.bridges)]
    found = find_support(trail)
    if found is not None:
        step, (start, end) = found
        supports.append(Support(what=ANSWER, step=step, start=start, end=end))
    return tuple(support for support in supports if support is not None)


def _find_name(trail: Trail, title: str) -> Support | None:
    for number, leg in enumerate(trail.legs):
        span = locate_form(leg.shown, leg.seen, list_forms(title)) if leg.shown else None
        if span is not None:
            return Support(what=title, step=number, start=span[0], end=span[1])
    return None
