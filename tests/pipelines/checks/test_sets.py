import random
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks import sets
from pipelines.checks.sets import (
    Wording,
    count_near_duplicates,
    delexicalise,
    find_over_used,
    list_grams,
    measure_compression,
    measure_distinct,
    measure_self_bleu,
    split_words,
)
from schemas.proofs import Constraint
from tests.pipelines.release.builders import make_question

TEXTS = st.lists(st.text("ab ", max_size=12), max_size=12)

SENTENCES = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=30).map(" ".join), max_size=14)
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


def test_a_type_that_is_a_relation_of_the_path_stays_a_word():
    assert delexicalise(ask("When did the architect of the bridge die?")) == "when did the architect of the TYPE die"


@pytest.mark.parametrize(
    ("told", "skeleton"),
    [
        ("a town or an art", "a TYPE or a art"),
        ("all towns, or a town's own", "all TYPE or a TYPE s own"),
        ("THE TOWN", "the TYPE"),
        ("one town and two", "one TYPE and VALUE"),
        ("Is it? Was it so", "is it was it so"),
        ("born on 12 March 1870", "born on VALUE"),
        ("by the Saint-Jean river", "by the VALUE river"),
        ("near Mira Tolland 1 and such", "near VALUE and such"),
        ("the shanty townsfolk", "the shanty townsfolk"),
        ("", ""),
        ("\x00 ¿?", ""),
    ],
)
def test_a_skeleton_keeps_words_and_blanks_what_is_the_questions_own(told, skeleton):
    assert delexicalise(ask(told)) == skeleton


def test_a_longer_value_is_blanked_before_a_shorter_one_in_it():
    facts = (("birth_date", "3"), ("birth_date", "the 3 old kings"))
    assert delexicalise(ask("by the 3 old kings or 3", *facts)) == "by VALUE or VALUE"


def test_a_sentence_quoted_for_a_text_hop_is_a_value():
    question = make_question(1, None)
    hop = question.proof.hops[0].model_copy(update={"relation": "mentions", "clause": "the money came from ____."})
    proof = question.proof.model_copy(update={"hops": (hop, question.proof.hops[1])})
    text = "Who is the ____ of “the money came from ____.” in the image?"
    assert delexicalise(SimpleNamespace(text=text, proof=proof)) == "who is the ____ of VALUE in the image"


@given(st.text(max_size=200))
def test_any_text_has_a_skeleton_without_capitals_but_its_slots(text):
    words = delexicalise(ask(text)).split()
    assert all(word in ("TYPE", "VALUE") or word == word.casefold() for word in words)
    assert ("VALUE", "VALUE") not in list_grams(words, 2)


def choose(rows, share):
    wordings = [Wording(skeleton, ("bridgevqa", *datasets)) for skeleton, datasets in rows]
    over = find_over_used(wordings, share)
    return [wording for wording, dataset in zip(wordings, over, strict=True) if not dataset]


@given(SKELETONS, st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.5, 0.999]))
def test_no_skeleton_has_more_than_its_share_of_what_any_dataset_keeps(rows, share):
    kept = choose(rows, share)
    for dataset in ("bridgevqa", "rl", "sft"):
        counts = Counter(wording.skeleton for wording in kept if dataset in wording.datasets)
        most, size = max(counts.values(), default=0), counts.total()
        assert most <= max(1, share * size + 1e-9)
        assert size < 1 / share or most <= share * size + 1e-9


@given(SKELETONS, st.sampled_from([0.05, 0.2, 0.5]))
def test_every_skeleton_keeps_a_question_where_no_smaller_dataset_limits_it(rows, share):
    whole = [(skeleton, ()) for skeleton, _ in rows]
    assert {wording.skeleton for wording in choose(whole, share)} == {skeleton for skeleton, _ in rows}


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.sampled_from([0.05, 0.2, 0.5, 0.9]))
def test_one_dataset_keeps_as_many_questions_as_any_quota_allows(counts, share):
    rows = [(str(skeleton), ()) for skeleton, count in enumerate(counts) for _ in range(count)]
    kept = [sum(min(count, quota) for count in counts) for quota in range(1, max(counts) + 1)]
    allowed = [size for quota, size in enumerate(kept, 1) if quota == 1 or quota <= share * size]
    assert len(choose(rows, share)) == max(allowed)


def test_a_share_of_one_refuses_nothing():
    assert len(choose([("a", ("rl",))] * 30, 1.0)) == 30


def test_fewer_skeletons_than_fit_keep_one_question_each():
    assert len(choose([(skeleton, ()) for skeleton in "abc" * 50], 0.05)) == 3


def test_what_goes_beyond_its_share_is_the_last_in_order():
    assert find_over_used([Wording("a", ("rl",)), Wording("a", ("rl",)), Wording("b", ("rl",))], 0.5) == ["", "rl", ""]


def test_a_small_dataset_limits_a_skeleton_that_the_whole_would_bear():
    rows = [("a", ("rl",)), ("a", ("rl",)), *((str(number), ()) for number in range(98))]
    wordings = [Wording(skeleton, ("bridgevqa", *datasets)) for skeleton, datasets in rows]
    assert find_over_used(wordings, 0.05)[:2] == ["", "rl"]


def test_distinct_runs_are_counted_over_all_texts():
    assert measure_distinct(["a b", "a c"], 1) == 3 / 4
    assert measure_distinct(["a b", "a b"], 2) == 1 / 2
    assert measure_distinct(["a"], 2) == measure_distinct([], 1) == 0.0


def test_repeated_texts_compress_better_than_different_ones():
    different = [" ".join(random.Random(seed).choices("abcdefghij", k=40)) for seed in range(40)]
    assert measure_compression(different[:1] * 40) > 3 * measure_compression(different)
    assert measure_compression([]) == 0.0


def test_the_same_text_again_has_self_bleu_one_and_unlike_texts_have_none():
    assert measure_self_bleu(["a b c d e"] * 3) == pytest.approx(1.0)
    assert measure_self_bleu(["a b c d e", "f g h i j"]) == 0.0
    assert measure_self_bleu(["a b c d"]) == measure_self_bleu([]) == 0.0


def measure_bleu_by_definition(texts):
    """BLEU-4 of each text against all others as Papineni et al. define it, without smoothing."""
    worded, total = [split_words(text) for text in texts], 0.0
    for place, words in enumerate(worded):
        others = worded[:place] + worded[place + 1 :]
        product = 1.0
        for size in range(1, 5):
            counts = Counter(list_grams(words, size))
            highest = Counter()
            for other in others:
                highest |= Counter(list_grams(other, size))
            product *= (counts & highest).total() / counts.total() if counts else 0.0
        nearest = min((len(other) for other in others), key=lambda length: (abs(length - len(words)), length))
        penalty = 1.0 if not words or len(words) >= nearest else 2.718281828459045 ** (1 - nearest / len(words))
        total += product**0.25 * penalty
    return total / len(texts)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9).map(" ".join), min_size=2, max_size=7))
def test_self_bleu_by_two_counts_a_run_is_bleu_by_its_definition(texts):
    assert measure_self_bleu(texts) == pytest.approx(measure_bleu_by_definition(texts))


def test_self_bleu_of_a_large_set_does_not_depend_on_order():
    texts = [" ".join(random.Random(seed).choices("abcd", k=9)) for seed in range(sets.SAMPLED + 300)]
    assert measure_self_bleu(texts) == pytest.approx(measure_self_bleu(texts[::-1]))


def count_near_by_definition(texts):
    sets_of_triples = [frozenset(list_grams(split_words(t), 3) or [tuple(split_words(t))]) for t in texts]
    ordered = sorted(sets_of_triples, key=lambda triples: (len(triples), sorted(triples)))
    return sum(
        any(len(one & other) >= 0.8 * len(one | other) for other in ordered[:place])
        for place, one in enumerate(ordered)
    )


@given(SENTENCES)
def test_near_duplicates_are_those_of_all_pairs(texts):
    assert count_near_duplicates(texts) == count_near_by_definition(texts)


@given(st.integers(0, 99), st.integers(8, 40))
def test_near_duplicates_of_one_template_are_those_of_all_pairs(seed, length):
    draw = random.Random(seed)
    frame = [f"w{number}" for number in range(length)]
    texts = [" ".join([*frame[:3], draw.choice("pqrst"), *frame[3:], draw.choice("uvxyz")]) for _ in range(40)]
    assert count_near_duplicates(texts) == count_near_by_definition(texts)


@given(SENTENCES, st.randoms(use_true_random=False))
def test_near_duplicates_do_not_depend_on_order(texts, shuffler):
    assert count_near_duplicates(shuffler.sample(texts, len(texts))) == count_near_duplicates(texts)


def test_a_text_with_one_word_of_many_changed_is_a_near_duplicate():
    words = [f"word{number}" for number in range(40)]
    assert count_near_duplicates([" ".join(words), " ".join([*words[:-1], "other"]), "something else entirely"]) == 1
    assert count_near_duplicates(["a b c d", "a b c d", "a b c d"]) == 2


def test_where_comparisons_are_cut_off_the_number_is_not_too_low():
    draw = random.Random(3)
    texts = [" ".join(draw.choices("abcd", k=40)) for _ in range(3 * sets.COMPARED)]
    assert count_near_duplicates(texts) > count_near_by_definition(texts)
