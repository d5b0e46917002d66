import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.answers import type_answer
from pipelines.graph.cues import name_cues
from pipelines.graph.prose import Sentence
from pipelines.graph.statements import read_sentence

STYLES = frozenset({"art deco", "gothic revival", "baroque"})


def read(text, value, relation, lead=False, values=STYLES):
    answer = type_answer(value, "", relation)
    assert answer is not None
    readings = read_sentence(Sentence(text, 0, len(text), lead), answer, name_cues(relation), values)
    return [(reading.text, reading.likeness, reading.strength) for reading in readings]


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("Tolland was born on 2 April 1880.", [("2 April 1880", "same", "stated")]),
        ("Tolland was born on April 2nd, 1880.", [("April 2nd, 1880", "same", "stated")]),
        ("Tolland was born on 3 April 1880.", [("3 April 1880", "other", "stated")]),
        ("Tolland was born in 1880.", [("1880", "close", "stated")]),
        ("On 2 April 1880 the bridge was closed.", [("2 April 1880", "same", "held")]),
        (
            "She was born on 2 April 1880 and died on 9 May 1931.",
            [("2 April 1880", "same", "stated"), ("9 May 1931", "other", "held")],
        ),
    ],
)
def test_a_cue_states_the_date_next_to_it(text, readings):
    assert read(text, "2 April 1880", "birth_date") == readings


@pytest.mark.parametrize(
    ("relation", "value", "strengths"),
    [("birth_date", "2 April 1880", ["stated", "held"]), ("death_date", "9 May 1931", ["held", "stated"])],
)
@pytest.mark.parametrize("span", ["(2 April 1880 – 9 May 1931)", "(born 2 April 1880 – died 9 May 1931)"])
def test_a_life_span_states_birth_and_death_by_their_places(span, relation, value, strengths):
    readings = read(f"Mira Tolland {span} was an architect.", value, relation, lead=True)
    assert [strength for _, _, strength in readings] == strengths


@pytest.mark.parametrize(
    ("span", "relation", "strength"),
    [
        ("(born 2 April 1880)", "birth_date", "stated"),
        ("(born 2 April 1880)", "death_date", "held"),
        ("(died 2 April 1880)", "death_date", "stated"),
        ("(; – 2 April 1880)", "death_date", "stated"),
        ("(2 April 1880 – )", "birth_date", "stated"),
    ],
)
def test_half_a_life_span_states_one_of_them(span, relation, strength):
    readings = read(f"Mira Tolland {span} was an architect.", "2 April 1880", relation, lead=True)
    assert readings == [("2 April 1880", "same", strength)]


@pytest.mark.parametrize(
    ("text", "likeness"),
    [
        ("The bridge is 320 m long.", "same"), ("The bridge is 0.32 km long.", "same"),
        ("The bridge is 1,050 ft long.", "same"), ("The bridge is 321 m long.", "other"),
        ("The bridge is about 300 m long.", "close"), ("The bridge is 300 m long.", "other"),
        ("The bridge has a length of 320 feet.", "other"),
    ],
)  # fmt: skip
def test_a_length_is_compared_with_its_unit(text, likeness):
    assert [found for _, found, _ in read(text, "320 m", "length")] == [likeness]


def test_years_and_other_measures_are_no_lengths():
    assert read("Since 1931 it weighs 320 kg and is long.", "320 m", "length") == []


def test_a_conversion_in_parentheses_disputes_nothing():
    assert [found for _, found, _ in read("It is 320 m (1,060 ft) long.", "320 m", "length")] == ["same", "close"]


@pytest.mark.parametrize(
    ("value", "text", "likeness"),
    [("467.63 km2", "468 km2", "close"), ("467.63 km2", "467.64 km2", "other"), ("467 km2", "468 km2", "other")],
)
def test_fewer_decimals_are_no_other_number(value, text, likeness):
    assert [found for _, found, _ in read(f"Its area is {text}.", value, "area")] == [likeness]


@pytest.mark.parametrize(
    ("text", "likeness"), [("1.2 million people", "close"), ("1,234,567 people", "same"), ("1,234,568 people", "other")]
)
def test_a_scaled_number_is_a_rounding(text, likeness):
    assert [found for _, found, _ in read(f"The city has {text}.", "1,234,567", "population")] == [likeness]


def test_text_is_found_folded_and_other_known_values_dispute():
    assert read("It is built in the art déco style.", "Art Deco", "architectural_style") == [
        ("art déco", "same", "stated")
    ]
    assert read("It is built in the Gothic Revival style.", "Art Deco", "architectural_style") == [
        ("Gothic Revival", "other", "stated")
    ]
    assert read("It is built in the brutalist style.", "Art Deco", "architectural_style") == []


@given(st.text(max_size=120), st.sampled_from([("1931", "opened"), ("320 m", "length"), ("Art Deco", "style")]))
def test_any_sentence_can_be_read(text, wanted):
    for shown, _, _ in read(text, *wanted, lead=True):
        assert shown in text
