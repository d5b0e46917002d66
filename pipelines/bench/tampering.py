"""D24: one field of an accepted question and its proof changed; whoever verifies the question must notice.

A demand that was lowered makes another claim, not a false one, and nobody can notice it from the row alone. So these
are not planted: the agreement that was demanded, changing facts allowed, a larger share of one answer, fewer results of
a search, near misses no longer looked for where there were none, shortcuts no longer looked for, another limit of hubs,
and another date of a dump that is not at hand. What verification does not speak for (seed, split, attempts, difficulty,
where a picture came from) is not planted either.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from pydantic import BaseModel

from pipelines.bench.overlay import relocate
from pipelines.bench.plants import Pair
from pipelines.bench.scenes import Case, Scene, edit_elsewhere, lay
from pipelines.bench.statements import draw_sentence
from pipelines.bench.vocabulary import Vocabulary
from pipelines.checks.proofs import Claim, find_problems
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.ground import Ground
from pipelines.graph.proofs import make_question_id
from schemas.groundings import Grounding
from schemas.proofs import Constraint, NearMiss, Proof

UNVERIFIED = "unverified"
VERIFIED_FIELDS = ("record_id", "text", "answer", "proof")
RULES = (("proof", "thresholds"), ("proof", "hub_in_degree"), ("proof", "shortcuts_checked"))
"""What was demanded: changed only where the counts no longer go with it."""
UNORDERED = (("proof", "counts"),)
"""Where the order of the parts says nothing."""
FILLED: dict[str, Any] = {
    "unit": "m",
    "precision": "day",
    "constraints": (Constraint(node=1, relation="nothing", value="nothing"),),
    "redundant": (Constraint(node=1, relation="nothing", value="nothing"),),
    "near_misses": (NearMiss(node=1, page_id=1, title="Nothing", unknown=("type",), resolution="absent"),),
}
"""What stands in a field that was empty; a letter where nothing is said."""

Place = tuple[str | int, ...]


def plant_tampering(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D24: a number beside itself, a text with a letter changed, a part left out, repeated or put elsewhere.

    Both twins are verified after an edit of an article that the question does not rest on.
    """
    aside = draw_sentence("asides", words, rng).format(value=rng.choice(words.words))
    with lay(case.pool, Scene(case.claim, edit_elsewhere(case, aside, rng))) as ground:
        question = case.question.model_copy(update={"proof": relocate(case.question.proof, ground.corpus)})
        place, changed = _draw_change(question, rng)
        clean, bad = (verify(ground, row) for row in (question, change_at(question, place, changed)))
    return Pair(f"{'.'.join(map(str, place))} = {changed!r}"[:160], clean, bad, (UNVERIFIED,))


def _draw_change(row: Grounding, rng: Random) -> tuple[Place, Any]:
    """Return one change; a class of fields is drawn before a field, as a proof has many spans and one digest."""
    groups: dict[tuple[str, ...], list[tuple[Place, Any]]] = {}
    for place, changed in list_changes(row, rng):
        groups.setdefault(tuple(part for part in place if isinstance(part, str)), []).append((place, changed))
    return rng.choice(groups[rng.choice(sorted(groups))])


def verify(ground: Ground, row: Grounding) -> CheckResult:
    """FAIL when a question, its id, its answer or its proof does not hold."""
    problems = find_problems(ground, Claim(row.text, row.answer, row.proof))
    sha256 = row.picture.sha256 if row.picture else ""
    if row.record_id != make_question_id(row.text, sha256, row.answer, row.proof):
        problems = [*problems, "id: the question, its picture, its answer or its path has changed"]
    return CheckResult("FAIL", UNVERIFIED, problems[0]) if problems else PASSED


def list_changes(row: Grounding, rng: Random) -> Iterator[tuple[Place, Any]]:
    """Yield a change of each field that verification speaks for, with the place of the field."""
    for name in VERIFIED_FIELDS:
        yield from _list_changes(getattr(row, name), (name,), rng)
    yield from ((("proof", *place), changed) for place, changed in _list_demands(row.proof, rng))
    if row.picture is not None:
        yield ("picture", "sha256"), _change_text(row.picture.sha256, rng)


def _list_changes(value: Any, place: Place, rng: Random) -> Iterator[tuple[Place, Any]]:  # noqa: ANN401 - any field
    if place[:2] in RULES:
        return
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _list_changes(getattr(value, name), (*place, name), rng)
    elif value is None or value in ("", ()):
        yield place, _fill(place, rng)
    elif isinstance(value, tuple):
        yield from ((place, changed) for changed in _change_parts(value, place not in UNORDERED))
        for number, part in enumerate(value):
            yield from _list_changes(part, (*place, number), rng)
    elif isinstance(value, bool):
        yield place, not value
    elif isinstance(value, int):
        yield place, value + rng.choice((-1, 1))
    elif isinstance(value, str):
        yield place, _change_text(value, rng)


def _list_demands(proof: Proof, rng: Random) -> Iterator[tuple[Place, Any]]:
    """Yield demands that the proof's own counts and look-ups no longer go with: lower ones, and higher ones."""
    limits = proof.thresholds
    yield ("thresholds", "alone_first"), limits.alone_first + rng.choice((-1, 1))
    if len(proof.hops) > 1:
        yield ("thresholds", "alone"), limits.alone + rng.choice((-1, 1))
    if limits.answers:
        yield ("thresholds", "answers"), rng.choice((0, limits.answers - 1, limits.answers + 1))
    if proof.near_misses:
        yield ("thresholds", "near_misses"), 0
    yield ("thresholds", "answer_share"), 0.0


def _fill(place: Place, rng: Random) -> Any:  # noqa: ANN401 - any field
    """Return what stands in a field that was empty."""
    name = place[-1]
    if name == "derivation":
        return rng.choice(("month", "year"))
    return FILLED.get(str(name), ("a",) if name in ("aliases", "unknown") else "a")


def _change_parts(parts: tuple[Any, ...], ordered: bool) -> Iterator[tuple[Any, ...]]:
    """Yield several parts with the last one left out, with it twice, and turned round."""
    if parts:
        yield parts[:-1]
        yield (*parts, parts[-1])
    if ordered and len(set(parts)) > 1:
        yield tuple(reversed(parts))


def _change_text(text: str, rng: Random) -> str:
    """Return a text with one letter or digit replaced by another one."""
    spots = [place for place, letter in enumerate(text) if letter.isalnum()] or [0]
    spot = rng.choice(spots)
    other = rng.choice([letter for letter in "abcdef0123456789" if letter != text[spot].casefold()])
    return text[:spot] + other + text[spot + 1 :]


def change_at(value: Any, place: Place, changed: Any) -> Any:  # noqa: ANN401 - any field
    """Return a record with the value at one place replaced, unvalidated, as a tampered file may have it."""
    if not place:
        return changed
    first, rest = place[0], place[1:]
    if isinstance(first, int):
        return (*value[:first], change_at(value[first], rest, changed), *value[first + 1 :])
    return value.model_copy(update={first: change_at(getattr(value, first), rest, changed)})
