import pytest

from pipelines.graph.answers import type_answer
from pipelines.graph.cues import name_cues
from pipelines.graph.facts import FactIndex
from pipelines.graph.prose import Sentence
from pipelines.graph.query import Indexes
from pipelines.graph.statements import find_literal, find_object, list_rivals, read_sentence, resolve_rival
from tests.pipelines.painters import add_pages, ask_back, born, paint

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


def test_text_is_found_folded_and_other_known_values_dispute():
    assert read("It is built in the art déco style.", "Art Deco", "architectural_style") == [
        ("art déco", "same", "stated")
    ]
    assert read("It is built in the Gothic Revival style.", "Art Deco", "architectural_style") == [
        ("Gothic Revival", "other", "stated")
    ]
    assert read("It is built in the brutalist style.", "Art Deco", "architectural_style") == []


def look(painters, find, *wanted, prose="", fields=()):
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", *fields, prose=prose))
    given = [corpus.find(part) if find is find_object and place else part for place, part in enumerate(wanted)]
    return find(Indexes(corpus), corpus.find("Vera Wick"), *given)


@pytest.mark.parametrize(
    ("prose", "resolution"),
    [
        ("She liked the sea.", "absent"), ("She was born in [[Ostrel]].", "stated"),
        ("She was born in Ostrel.", "stated"), ("She was born in [[Ostrel|a small town]].", "stated"),
        ("She was born in Old Ostrel.", "stated"), ("She was born in OSTRÉL.", "stated"),
        ("She showed her work at [[Ostrel]].", "unclear"), ("She showed her work at Ostrel.", "unclear"),
        ("She was born in Ostrelby.", "absent"),
    ],
)  # fmt: skip
def test_an_article_states_a_relation_or_mentions_the_entity_or_does_not(painters, prose, resolution):
    assert look(painters, find_object, "birth_place", "Ostrel", prose=prose) == resolution


@pytest.mark.parametrize(
    ("relation", "value", "prose", "resolution"),
    [
        ("birth_date", "1870s", "She was born in 1874.", "stated"),
        ("birth_date", "1870s", "She came to town in 1874.", "unclear"),
        ("birth_date", "1870s", "She came to town in the 1870s.", "unclear"),
        ("birth_date", "1870s", "She came to town in 1884.", "absent"),
        ("birth_date", "1870s", "She was born in the 19th century.", "stated"),
        ("birth_date", "1870s", "She was born in the nineteenth century.", "stated"),
        ("birth_date", "1870s", "The 19th century forgot her.", "absent"),
        ("birth_date", "19th century", "She was born in 1900.", "stated"),
        ("birth_date", "19th century", "She was born in 1901.", "absent"),
        ("birth_date", "2 April 1871", "She was born on April 2, 1871.", "stated"),
        ("birth_date", "2 April 1871", "She was born in 1871.", "stated"),
        ("birth_date", "2 April 1871", "She was born in 1872.", "absent"),
        ("birth_date", "2 April 1871", "She was born on {{date|1871|4|2}}.", "stated"),
        ("height", "170 cm", "She was {{convert|170|cm}} tall.", "stated"),
        ("height", "1.7 m", "Her height was 17 m.", "absent"),
        ("movement", "Luminist", "She belonged to Luminism.", "unclear"),
        ("movement", "Luminist", "Her movement was luminist.", "stated"),
        ("movement", "Luminist", "She painted light.", "absent"),
        ("material", "oak timber", "It was made of oaken timbers.", "absent"),
        ("material", "oak timber", "It was made of oak timbers.", "stated"),
    ],
)
def test_an_article_states_a_value_or_mentions_it_or_does_not(painters, relation, value, prose, resolution):
    assert look(painters, find_literal, relation, value, prose=prose) == resolution


class NoFacts(FactIndex):
    """An index that knows of nobody."""

    def subjects_of(self, relation, object):
        return ()


def list_found(painters, *facts, limit=50, **pages):
    corpus = add_pages(painters, **pages)
    ground = Indexes(corpus)
    found = list_rivals(ground, ask_back(corpus, "Ostrel", *facts), 1, limit)
    if found is None:
        return None
    return [(corpus.page(rival.number).title, rival.unknown, resolve_rival(ground, rival)) for rival in found]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (paint("Vera Wick", "birth_place = [[Ostrel]]"), (("birth_date",), "absent")),
        (paint("Vera Wick", "birth_place = [[Ostrel]]", prose="Born 1874."), (("birth_date",), "stated")),
        (paint("Vera Wick", "birth_place = [[Ostrel]]", "birth_date = c. 1874"), (("birth_date",), "unclear")),
        (paint("Vera Wick", born(1874), prose="She was born in [[Ostrel]]."), (("birth_place",), "stated")),
        (paint("Vera Wick", born(1874), prose="She was born in Ostrel."), (("birth_place",), "stated")),
        (paint("Vera Wick", born(1874), prose="She left for [[Ostrel]]."), (("birth_place",), "unclear")),
        (paint("Vera Wick", born(1874), "birth_place = near Ostrel"), (("birth_place",), "unclear")),
        (paint("Vera Wick", prose="She left for [[Ostrel]]."), (("birth_place", "birth_date"), "absent")),
        (paint("Vera Wick", born(1874)), None),
        (paint("Vera Wick", born(1884), prose="She was born in [[Ostrel]]."), None),
        (paint("Vera Wick", born(1874), "birth_place = [[Lumby]]", prose="She liked [[Ostrel]]."), None),
        (paint("Vera Wick", born(1874), kind="sculptor", prose="She was born in [[Ostrel]]."), None),
        ("'''Vera Wick''' came from [[Ostrel]] in 1874.", (("birth_place", "type", "birth_date"), "unclear")),
        ("'''Vera Wick''' came from [[Ostrel]].", (("birth_place", "type", "birth_date"), "absent")),
        (paint("Vera Wick", "birth_place = [[Ostrel]]", born(1874), kind="artist"), (("type",), "unclear")),
        (paint("Vera Wick", "birth_place = [[Ostrel]]", born(1874), kind="bridge"), None),
    ],
)
def test_a_rival_has_nothing_against_it_and_something_open(painters, page, found):
    assert list_found(painters, Vera_Wick=page) == ([] if found is None else [("Vera Wick", *found)])


def test_one_that_fits_in_every_respect_and_was_not_counted_is_stated(painters):
    ground, query = Indexes(painters), ask_back(painters, "Ostrel")
    vars(ground)["facts"] = NoFacts(painters)
    (rival,) = list_rivals(ground, query, 1, 50) or ()
    assert painters.page(rival.number).title == "Ada Brill"
    assert (rival.unknown, resolve_rival(ground, rival)) == ((), "stated")
