import pytest

from pipelines.graph.indexes import Ground
from pipelines.graph.statements import find_literal, find_object, says_in_lead
from tests.pipelines.painters import add_pages, paint


def look(painters, find, *wanted, prose="", fields=()):
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", *fields, prose=prose))
    given = [corpus.find(part) if find is find_object and place else part for place, part in enumerate(wanted)]
    return find(Ground(corpus), corpus.find("Vera Wick"), *given)


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


@pytest.mark.parametrize(
    ("word", "said"), [("painter", True), ("Painter", True), ("sculptor", False), ("paint", False)]
)
def test_a_lead_says_a_word_or_not(painters, word, said):
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", prose="Her friend was a sculptor."))
    assert says_in_lead(corpus, corpus.find("Vera Wick"), word) is said
