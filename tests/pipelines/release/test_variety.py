from pipelines.release.quality import (
    count_bigrams,
    count_sequences,
    list_relations,
    measure_diversity,
    measure_duplicates,
    measure_reuse,
    measure_wording,
)
from tests.pipelines.release.builders import make_question


def turn(question, index):
    """Return a question with one hop made backward."""
    hops = list(question.proof.hops)
    hops[index] = hops[index].model_copy(update={"backward": True})
    return question.model_copy(update={"proof": question.proof.model_copy(update={"hops": tuple(hops)})})


def test_a_relation_against_its_direction_is_another_relation():
    question = turn(make_question(1, None), 0)
    assert list_relations(question) == ["<-architect", "birth place", "founded"]
    assert measure_diversity([question, make_question(2, None)])["relations"] == 4


def test_diversity_tells_skeletons_and_effective_numbers():
    texts = ["what is the alpha?", "what is the beta?", "what is the beta?"]
    questions = [make_question(number, None, text=text) for number, text in enumerate(texts)]
    found = measure_diversity(questions)
    assert (found["skeletons"], found["top skeleton share"]) == (2, 0.6667)
    assert (found["effective relation bigrams"], found["top 10 bigrams share"]) == (2.0, 1.0)
    assert (found["type sequences"], found["effective type sequences"]) == (1, 1.0)


def test_bigrams_and_type_sequences_are_listed_with_shares():
    questions = [make_question(1, None), make_question(2, None)]
    assert count_bigrams(questions) == {
        "architect birth place": {"rows": 2, "share": 0.5},
        "birth place founded": {"rows": 2, "share": 0.5},
    }
    assert count_sequences(questions) == {"bridge > architect > town": {"rows": 2, "share": 1.0}}


def test_repeated_wording_is_measured_on_texts_and_on_skeletons():
    questions = [make_question(n, None, text=f"Who was born in {1800 + n} to the old king?") for n in range(4)]
    found = measure_wording(questions)
    assert found["text"]["near duplicates"] < found["skeleton"]["near duplicates"] == 0.75
    assert found["skeleton"]["self-BLEU"] == 1.0
    assert found["text"]["distinct-1"] > found["skeleton"]["distinct-1"]


def test_entity_use_is_told_by_role():
    first, second = make_question(1, None), make_question(2, None)
    nodes = (*second.proof.nodes[:2], first.proof.nodes[2])
    second = second.model_copy(update={"proof": second.proof.model_copy(update={"nodes": nodes})})
    found = measure_reuse([first, second])
    assert (found["anchor"]["entities"], found["anchor"]["most uses"]) == (2, 1)
    assert (found["answer"]["entities"], found["answer"]["most uses"]) == (1, 2)


def test_duplicates_left_in_a_release_are_counted_by_kind():
    first = make_question(1, None)
    assert set(measure_duplicates([first, make_question(2, None)]).values()) == {0}
    again = make_question(2, None).model_copy(update={"proof": first.proof})
    assert measure_duplicates([first, again])["duplicate-path"] == 1


def test_nothing_has_no_variety():
    assert measure_diversity([])["top skeleton share"] == 0.0
    assert measure_wording([])["text"]["compression ratio"] == 0.0
    assert measure_reuse([])["bridge"]["gini"] == 0.0
