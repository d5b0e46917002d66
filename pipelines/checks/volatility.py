"""Do an answer and the hops to it last? Properties that change, the same fact in a later dump, words that date a text.

Research/quality.md T1. The list of properties is in ``data/volatile.toml``.
"""

import re
import tomllib
from functools import lru_cache
from pathlib import Path

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.ground import Ground
from pipelines.graph.holders import split_key
from pipelines.graph.query import MENTIONS
from pipelines.graph.relations import read_relations, type_value
from pipelines.names import fold_name
from pipelines.scoring.dates import parse_date
from pipelines.scoring.numbers import Number
from pipelines.scoring.units import compare_measures
from schemas.proofs import Answer, Hop

_LIST = Path(__file__).with_name("data") / "volatile.toml"
_DATES = frozenset(["current", "present", "latest", "last"])
"""Words that no phrase makes stable."""
_QUOTED = re.compile(r"[“\"«][^”\"»]{0,200}[”\"»]")
_DATED = re.compile(
    r"\b(?:current(?:ly)?|latest|newest|most recent(?:ly)?|recent(?:ly)?|as of|so far|to date(?! (?:from|back))"
    r"|today(?:['’]s)?|now(?:adays)?|at present|present[ -]day|presently|at the moment|still|upcoming|ongoing|incumbent"
    r"|until now|up to now|up[ -]to[ -]date|yet|th(?:is|ese) (?:year|month|week|season|decade|days)|in recent years"
    r"|(?:last|next) (?:year|month|week|season)|largest|biggest|busiest|most populous|most visited|richest|reigning)\b",
    re.IGNORECASE,
)


def is_volatile(relation: str) -> bool:
    """Say whether an infobox key names something that changes with time, by the words of the key.

    A phrase that makes a word stable cancels that word alone: ``first_mayor`` lasts, ``first_party_leader`` does not.
    """
    volatile, phrases, stable = _read_list()
    words = frozenset(split_key(relation))
    if any(phrase <= words for phrase in phrases):
        return True
    lasting = frozenset(word for phrase in stable if phrase <= words for word in phrase)
    return bool((words & volatile) - (lasting - _DATES))


def check_volatility(ground: Ground, number: int, relation: str, answer: Answer, allowed: bool) -> CheckResult:
    """FAIL (``volatile``) when an answer changes with time; UNKNOWN when the later dump cannot tell.

    Args:
        ground: with a later dump of the same wiki, or none: then only the list of properties speaks.
        number: the answer node's number in the corpus.
        relation: infobox key that is asked for.
        answer: its value, or a coarser date derived from it.
        allowed: whether such answers are wanted.
    """
    if allowed:
        return PASSED
    if is_volatile(relation):
        return CheckResult("FAIL", "volatile", f"{relation} changes with time")
    if ground.later is None:
        return PASSED
    return _compare_later(ground.corpus, ground.later, number, relation, answer)


def check_lasting_hop(ground: Ground, hop: Hop, allowed: bool) -> CheckResult:
    """FAIL (``volatile``) when the relation of a hop changes with time; UNKNOWN when the later dump cannot tell.

    Args:
        ground: with a later dump of the same wiki, or none: then only the list of properties speaks.
        hop: along a relation; a sentence about two entities is taken to last, unless its wording dates it.
        allowed: whether such hops are wanted.
    """
    if allowed or hop.relation == MENTIONS:
        return PASSED
    if is_volatile(hop.relation):
        return CheckResult("FAIL", "volatile", f"{hop.relation} changes with time")
    if ground.later is None:
        return PASSED
    later, title = ground.later, hop.evidence.title
    node = later.find(title)
    if node is None or later.page(node).page_id != hop.subject_id:
        return CheckResult("UNKNOWN", "volatile", f"{title!r} is not in the dump of {later.snapshot}")
    targets = [later.page(fact.target).page_id for fact in read_relations(later, node) if fact.key == hop.relation]
    if not targets:
        return CheckResult("UNKNOWN", "volatile", f"{hop.relation} has no single value in the dump of {later.snapshot}")
    if targets != [hop.object_id]:
        return CheckResult("FAIL", "volatile", f"{hop.relation} leads elsewhere in the dump of {later.snapshot}")
    return PASSED


def check_timeless(text: str) -> CheckResult:
    """FAIL (``volatile``) when a question says ``current``, ``latest``, ``as of``, ``largest`` and the like.

    What stands in quotation marks is a value, such as a motto, and says nothing of time.
    """
    if not text.strip():
        return CheckResult("UNKNOWN", "volatile", "the text is empty")
    found = _DATED.search(_QUOTED.sub(" ", text))
    return CheckResult("FAIL", "volatile", f"the question says {found.group()!r}") if found else PASSED


def _compare_later(corpus: Corpus, later: Corpus, number: int, relation: str, answer: Answer) -> CheckResult:
    page = corpus.page(number)
    node = later.find(page.title)
    if node is None or later.page(node).page_id != page.page_id:
        return CheckResult("UNKNOWN", "volatile", f"{page.title!r} is not in the dump of {later.snapshot}")
    facts = [fact for fact in later.facts(node) if fact.key == relation]
    values = [type_value(fact.text, fact.iso, fact.key) for fact in facts if fact.target < 0]
    if len(facts) != 1 or facts[0].value_count != 1 or not values or values[0] is None:
        return CheckResult("UNKNOWN", "volatile", f"{relation} has no single value in the dump of {later.snapshot}")
    if not _is_same(answer, values[0]):
        return CheckResult(
            "FAIL",
            "volatile",
            f"{relation} is {values[0].surface!r} in the dump of {later.snapshot}, not {answer.surface!r}",
        )
    return PASSED


def _is_same(answer: Answer, other: Answer) -> bool:
    """Say whether two answers are one value; a coarser date derived from the fact is that of any date within it."""
    if answer.key == other.key:
        return True
    if answer.type == other.type == "number":
        return compare_measures(Number(answer.value, answer.unit), Number(other.value, other.unit)) == "same"
    if answer.type == other.type == "date":
        coarse, fine = parse_date(answer.value), parse_date(other.value)
        return coarse is not None and fine is not None and coarse.covers(fine)
    forms = {fold_name(form) for form in (answer.surface, *answer.aliases)}
    return fold_name(other.surface) in forms


@lru_cache(maxsize=1)
def _read_list() -> tuple[frozenset[str], tuple[frozenset[str], ...], tuple[frozenset[str], ...]]:
    table = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    phrases, stable = (
        tuple(frozenset(line.split()) for line in table[name].strip().splitlines()) for name in ("phrases", "stable")
    )
    return frozenset(table["words"].split()), phrases, stable
