"""D24: one field of an accepted question and its proof changed; whoever verifies the question must notice."""

from collections.abc import Iterator
from random import Random
from typing import Any

from pydantic import BaseModel

from pipelines.bench.plants import Pair
from pipelines.bench.scenes import Case
from pipelines.bench.vocabulary import Vocabulary
from pipelines.checks.proofs import Claim, find_problems
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.ground import Ground
from pipelines.graph.proofs import make_question_id
from schemas.groundings import Grounding

UNVERIFIED = "unverified"
VERIFIED_FIELDS = ("record_id", "text", "answer", "proof")
RULES = (
    ("proof", "thresholds"),
    ("proof", "hub_in_degree"),
    ("proof", "shortcuts_checked"),
    ("proof", "compared_snapshot"),
)
"""What was demanded, and of which other dump: a lower demand is another claim, not a false one."""
UNORDERED = (("proof", "counts"),)
"""Where the order of the parts says nothing."""

Place = tuple[str | int, ...]


def plant_tampering(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D24: a number beside itself, a text with a letter changed, a part left out, repeated or put elsewhere."""
    groups: dict[tuple[str, ...], list[tuple[Place, Any]]] = {}
    for place, changed in list_changes(case.question, rng):
        # A class of fields is drawn before a field: a proof has many spans and one digest.
        groups.setdefault(tuple(str(part) for part in place if isinstance(part, str)), []).append((place, changed))
    name = rng.choice(sorted(groups))
    place, changed = rng.choice(groups[name])
    row = change_at(case.question, place, changed)
    ground = case.pool.ground
    plant = f"{'.'.join(map(str, place))} = {changed!r}"[:160]
    return Pair(plant, verify(ground, case.question), verify(ground, row), (UNVERIFIED,))


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
    if row.picture is not None:
        yield ("picture", "sha256"), _change_text(row.picture.sha256, rng)


def _list_changes(value: Any, place: Place, rng: Random) -> Iterator[tuple[Place, Any]]:  # noqa: ANN401 - any field
    if place[:2] in RULES:
        return
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _list_changes(getattr(value, name), (*place, name), rng)
    elif isinstance(value, tuple):
        yield from ((place, changed) for changed in _change_parts(value, place not in UNORDERED))
        for number, part in enumerate(value):
            yield from _list_changes(part, (*place, number), rng)
    elif isinstance(value, bool):
        yield place, not value
    elif isinstance(value, int):
        yield place, value + rng.choice((-1, 1))
    elif isinstance(value, str) and value:
        yield place, _change_text(value, rng)


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
