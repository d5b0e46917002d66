import pytest

from pipelines.graph.facts import Match
from pipelines.graph.query import match_literal, match_relation, match_type
from tests.pipelines.painters import add_pages, paint
from tests.toy import box


def add_vera(painters, *fields, **options):
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", *fields, **options))
    return corpus, corpus.find("Vera Wick")


@pytest.mark.parametrize(
    ("field", "result"),
    [
        ("movement = Luminist", Match.YES), ("movement = Tonalist", Match.NO),
        ("movement = {{ubl|Tonalist|Luminist}}", Match.YES), ("movement = {{ubl|Tonalist|Symbolist}}", Match.NO),
        ("movement1 = Luminist", Match.YES), ("movement = {{unknown template|Luminist}}", Match.OPEN),
        ("movement = {{ubl|Tonalist|{{unknown template|x}}}}", Match.OPEN), ("school = Luminist", Match.OPEN),
    ],
)  # fmt: skip
def test_a_field_shows_a_value_or_another_or_leaves_it_open(painters, field, result):
    assert match_literal(*add_vera(painters, field), "movement", "Luminist") is result


@pytest.mark.parametrize(
    ("field", "result"),
    [
        ("birth_place = [[Ostrel]]", Match.YES), ("birth_place = [[Old Ostrel]]", Match.YES),
        ("birth_place = Ostrel", Match.YES), ("birth_place = [[Lumby]]", Match.NO), ("birth_place = Lumby", Match.NO),
        ("birth_place = near Ostrel", Match.OPEN), ("birth_place = New Ostrelburg", Match.NO),
        ("birth_place = {{unknown template|x}}", Match.OPEN), ("birth_place = <br>", Match.OPEN),
        ("death_place = [[Ostrel]]", Match.OPEN),
    ],
)  # fmt: skip
def test_a_field_relates_to_an_entity_or_another_or_leaves_it_open(painters, field, result):
    corpus, vera = add_vera(painters, field)
    assert match_relation(corpus, vera, "birth_place", corpus.find("Ostrel")) is result


def test_a_type_is_shown_or_told_by_the_lead_or_missing(painters):
    ada = painters.find("Ada Brill")
    assert match_type(painters, ada, "painter") is Match.YES
    assert match_type(painters, ada, "sculptor") is Match.NO
    corpus = add_pages(painters, Vera_Wick=box("person", "'''Vera Wick''' was a painter."), Nobody="'''Nobody''' came.")
    assert match_type(corpus, corpus.find("Vera Wick"), "painter") is Match.OPEN
    assert match_type(corpus, corpus.find("Nobody"), "painter") is Match.OPEN


@pytest.mark.parametrize(
    ("kind", "lead", "wanted", "result"),
    [
        ("painter", "painter", "painter", Match.YES), ("painter", "painter", "person", Match.OPEN),
        ("person", "person", "painter", Match.OPEN), ("artist", "artist", "painter", Match.OPEN),
        ("politician", "politician", "painter", Match.OPEN), ("painter", "painter", "politician", Match.NO),
        ("judge", "judge", "politician", Match.OPEN), ("painter", "teacher", "sculptor", Match.OPEN),
        ("painter", "painter", "sculptor", Match.NO), ("town", "town", "city", Match.OPEN),
        ("river", "river", "town", Match.NO), ("river", "river", "place", Match.OPEN),
        ("bridge", "bridge", "structure", Match.OPEN), ("bridge", "bridge", "person", Match.NO),
        ("organisation", "organisation", "company", Match.OPEN), ("company", "company", "bridge", Match.NO),
        ("surname", "surname", "painter", Match.NO), ("theatre", "playhouse", "bridge", Match.NO),
    ],
)  # fmt: skip
def test_nouns_of_one_domain_may_name_one_thing_where_either_is_broad(painters, kind, lead, wanted, result):
    corpus = add_pages(painters, Vera_Wick=box(kind, f"'''Vera Wick''' was a {lead}."))
    assert match_type(corpus, corpus.find("Vera Wick"), wanted) is result
