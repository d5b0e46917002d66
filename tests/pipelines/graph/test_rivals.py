import pytest

from pipelines.graph.facts import FactIndex
from pipelines.graph.indexes import Ground
from pipelines.graph.statements import list_rivals, resolve_rival
from tests.pipelines.painters import add_pages, ask_back, born, paint


class NoFacts(FactIndex):
    """An index that knows of nobody."""

    def subjects_of(self, relation, object):
        return ()


def list_found(painters, *facts, limit=50, **pages):
    corpus = add_pages(painters, **pages)
    ground = Ground(corpus)
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
    ground, query = Ground(painters), ask_back(painters, "Ostrel")
    vars(ground)["facts"] = NoFacts(painters)
    (rival,) = list_rivals(ground, query, 1, 50) or ()
    assert painters.page(rival.number).title == "Ada Brill"
    assert (rival.unknown, resolve_rival(ground, rival)) == ((), "stated")


def test_of_a_relation_that_often_has_several_values_one_shown_is_not_all(painters):
    for prose, found in (("Her residence was at [[Lumby]].", ["Vera Wick"]), ("She knew [[Lumby]].", [])):
        page = paint("Vera Wick", "residence = [[Marn]]", kind="politician", prose=prose)
        corpus = add_pages(painters, Vera_Wick=page)
        query = ask_back(corpus, "Lumby", ("type", "politician"), relation="residence")
        rivals = list_rivals(Ground(corpus), query, 1, 50)
        assert [corpus.page(rival.number).title for rival in rivals] == found


def test_with_more_rivals_than_the_limit_none_is_listed(painters):
    pages = {f"Vera_{name}": paint(f"Vera {name}", "birth_place = [[Ostrel]]") for name in ("Wick", "Holm", "Strand")}
    assert len(list_found(painters, limit=3, **pages)) == 3
    assert list_found(painters, limit=2, **pages) is None
