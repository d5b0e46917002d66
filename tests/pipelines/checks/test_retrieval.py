import pytest

from pipelines.checks.shortcuts import check_retrieval, rank_page
from tests.toy import build_toy_corpus

COUNT = 220


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    pages = {
        f"Page {number}": f"'''Page {number}''' is about zebras and lions.\n\n" + "Zebras graze in the plain. " * 5
        for number in range(COUNT)
    }
    pages["Kelm"] = (
        "'''Kelm''' is a lighthouse of granite. " + "Zebras and lions are painted on its quartz walls. " * 40
    )
    return build_toy_corpus(tmp_path_factory.mktemp("retrieval"), pages, {})


@pytest.fixture(scope="module")
def kelm(wiki):
    return wiki.find("Kelm")


def test_a_page_that_the_words_name_is_first(wiki, kelm):
    assert rank_page(wiki, "Which lighthouse is of granite?", kelm, 10) == 1


@pytest.mark.parametrize(
    ("text", "rank", "outcome"),
    [
        ("Which lighthouse is of granite?", 10, "FAIL"), ("Which lighthouse is of granite?", 0, "PASS"),
        ("Who grazes in the plain?", 10, "PASS"), ("", 10, "UNKNOWN"), ("  ", 10, "UNKNOWN"),
    ],
)  # fmt: skip
def test_one_search_must_not_find_the_page(wiki, kelm, text, rank, outcome):
    result = check_retrieval(wiki, text, kelm, rank)
    assert result.outcome == outcome
    assert result.code == ("" if outcome == "PASS" else "one-retrieval")


def test_no_clause_of_some_length_may_find_it_by_itself(wiki, kelm):
    text = "Who grazes in the plain?"
    assert check_retrieval(wiki, text, kelm, 10, ("the lighthouse made of granite",)).code == "one-retrieval"
    assert check_retrieval(wiki, text, kelm, 10, ("of granite",)).passed
    assert check_retrieval(wiki, text, kelm, 10, ("zebras that graze in plains",)).passed


def test_a_small_corpus_is_searched_to_a_rank_in_proportion(wiki):
    # 221 articles: two ranks are looked at, however many are asked for.
    text = "quartz lighthouse"
    third = [passage.node for passage in wiki.search("zebras and lions plain", 50)]
    beyond = list(dict.fromkeys(third))[4]
    assert rank_page(wiki, "zebras and lions plain", beyond, 10) == 5
    assert check_retrieval(wiki, "zebras and lions plain", beyond, 10).passed
    assert check_retrieval(wiki, text, wiki.find("Kelm"), 10).outcome == "FAIL"
