import pytest

from pipelines.graph.facts import AnswerShares, FactIndex
from tests.toy import box, build_toy_corpus

STONES = ["granite"] * 5 + ["[[Marble]]"] * 2 + ["slate"]


@pytest.fixture(scope="module")
def towers(tmp_path_factory):
    pages = {
        f"Tower {number}": box("tower", f"'''Tower {number}''' is a tower.", f"material = {stone}",
                               f"opened = {{{{start date|19{number:02d}|4|{number + 1}}}}}")
        for number, stone in enumerate(STONES)
    }  # fmt: skip
    pages["Marble"] = "'''Marble''' is a rock."
    pages["Twin Tower"] = box("tower", "'''Twin Tower''' is a tower.", "material1 = granite", "material2 = slate")
    corpus = build_toy_corpus(tmp_path_factory.mktemp("towers"), pages, {})
    return AnswerShares(corpus, FactIndex(corpus))


@pytest.mark.parametrize(
    ("key", "count"), [("text:granite", 6), ("text:marble", 2), ("text:slate", 2), ("text:brick", 0)]
)
def test_the_share_of_an_answer_counts_each_subject_linked_or_not(towers, key, count):
    assert towers.share("material", key) == (count / 10, 10)


def test_numbered_fields_are_one_relation(towers):
    assert towers.share("material7", "text:granite") == towers.share("material", "text:granite")


def test_a_year_counts_every_day_within_it(towers):
    assert towers.share("opened", "date:1903-04-04") == (1 / 8, 8)
    assert towers.share("opened", "date:1903-04") == (1 / 8, 8)
    assert towers.share("opened", "date:1903") == (1 / 8, 8)
    assert towers.share("opened", "date:1999") == (0.0, 8)
