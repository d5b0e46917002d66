from collections import Counter
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.sets import (
    Wording,
    delexicalise,
    find_over_used,
)
from schemas.proofs import Constraint
from tests.pipelines.release.builders import make_question

SKELETONS = st.lists(
    st.tuples(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), st.sampled_from([(), ("rl",), ("sft",)])), max_size=150
)


def ask(text, *constraints):
    """Return a question with facts about its bridge; its nodes are bridge, architect and town."""
    facts = tuple(Constraint(node=1, relation=relation, value=value) for relation, value in constraints)
    proof = make_question(1, None).proof
    return SimpleNamespace(text=text, proof=proof.model_copy(update={"constraints": facts}))


def test_questions_that_differ_in_types_names_and_numbers_have_one_skeleton():
    first = ask("Which town, once of Ostrel, had 1,901 people?")
    second = ask("Which bridge, once of Old Kelm, had twelve people?")
    assert delexicalise(first) == delexicalise(second) == "which TYPE once of VALUE had VALUE people"


def test_questions_that_differ_in_what_a_constraint_says_have_one_skeleton():
    first = ask("Who was born in the 1870s near the old mill?", ("birth_date", "1870s"), ("home", "the old mill"))
    second = ask("Who was born in the 19th century near a lake?", ("birth_date", "19th century"), ("home", "a lake"))
    assert delexicalise(first) == delexicalise(second) == "who was born in the VALUE near VALUE"


def choose(rows, share):
    wordings = [Wording(skeleton, ("vqa", *datasets)) for skeleton, datasets in rows]
    over = find_over_used(wordings, share)
    return [wording for wording, dataset in zip(wordings, over, strict=True) if not dataset]


@given(SKELETONS, st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.5, 0.999]))
def test_no_skeleton_has_more_than_its_share_of_what_any_dataset_keeps(rows, share):
    kept = choose(rows, share)
    for dataset in ("vqa", "rl", "sft"):
        counts = Counter(wording.skeleton for wording in kept if dataset in wording.datasets)
        most, size = max(counts.values(), default=0), counts.total()
        assert most <= max(1, share * size + 1e-9)
        assert size < 1 / share or most <= share * size + 1e-9
