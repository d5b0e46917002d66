from functools import partial

import pytest

from pipelines.corpus.store import Corpus
from pipelines.graph.caps import Balance
from pipelines.graph.facts import read_attributes
from pipelines.graph.prose import blank_sentence
from pipelines.graph.query import Indexes
from pipelines.graph.salience import (
    find_generic,
    is_generic,
    is_telling,
    rate_attribute,
    rate_hop,
    weigh_attribute,
)
from tests.toy import box, build_toy_corpus

BRIDGES = [f"Bridge {number}" for number in range(12)]


@pytest.fixture(scope="module")
def ground(tmp_path_factory) -> Indexes:
    """Twelve bridges in a country, two by one architect, of whom another bridge's text speaks at its end."""
    pages = {
        "Valdonia": box("country", "'''Valdonia''' is a country.", "capital = Ostrel", "area_km2 = 5000"),
        "Mira Tolland": box("architect", "'''Mira Tolland''' was an architect.", "birth_date = 1 May 1900"),
        "Hallow Creek": box("river", "'''Hallow Creek''' is a river."),
        "1945": "'''1945''' was a year.",
        "Brazil": "'''Brazil''' is the largest state of its continent.",
        "Tarsk language": "'''Tarsk''' is spoken in [[Valdonia]].",
    }
    for number, bridge in enumerate(BRIDGES):
        told = ["country = [[Valdonia]]", "obscure_trait = deep"]
        told += ["architect = [[Mira Tolland]]"] if number < 2 else []
        pages[bridge] = box("bridge", f"'''{bridge}''' is a bridge.", *told)
    far = "Its stones are of many kinds. " * 400
    pages[BRIDGES[2]] += f"\n\nIt leads over the [[Hallow Creek]]. {far}It was opened with [[Mira Tolland]] and a band."
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("salience"), pages, {}))


def find(corpus: Corpus, title: str) -> int:
    node = corpus.find(title)
    assert node is not None
    return node


@pytest.mark.parametrize("title", ["Valdonia", "1945", "Brazil", "Tarsk language"])
def test_a_country_a_year_or_a_language_is_generic_by_noun_or_title(ground, title):
    assert is_generic(ground.corpus, find(ground.corpus, title))


def test_a_hop_that_few_share_rates_above_one_that_many_share(ground):
    bridge, architect, country = (find(ground.corpus, title) for title in ("Bridge 1", "Mira Tolland", "Valdonia"))
    rates = rate_hop(ground, bridge, "architect", architect), rate_hop(ground, bridge, "country", country)
    assert 1 >= rates[0] > 5 * rates[1] > 0


def test_an_early_link_rates_above_a_late_one(ground):
    source = find(ground.corpus, BRIDGES[2])
    early, late = (
        rate_hop(ground, source, "mentions", find(ground.corpus, title)) for title in ("Hallow Creek", "Mira Tolland")
    )
    assert early > 2 * late > 0


def test_a_person_asks_for_a_founder_before_a_length_and_for_neither_a_code_nor_a_volume(ground):
    rates = [
        rate_attribute(ground, "bridge", key) for key in ("architect", "opened", "length", "grid_code", "volume", "dst")
    ]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 1.0
    assert rates[3] < 0.1


def test_all_articles_at_once_give_what_each_gives(ground, demo_corpus):
    for corpus in (ground.corpus, demo_corpus):
        assert find_generic(corpus).tolist() == [is_generic(corpus, node) for node in corpus.article_nodes()]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Mira Tolland moved to the town of [[Bridge 1]] as a young girl.", True),
        ("In 1920, she moved to the town of [[Bridge 1]] with her friends.", True),
        ("After the war ended there, work began on [[Bridge 1]] by other hands.", False),
        ("* Mira Tolland moved to the town of [[Bridge 1]] as a young girl.", False),
        ("| Mira Tolland moved to the town of [[Bridge 1]] as a young girl.", False),
        ("Mira Tolland Country [[Bridge 1]] Language English Genre Novel Publisher Hall", False),
        ("It is said that the people of [[Bridge 1]] were never told of this.", False),
        ("== See also ==\nMira Tolland moved to the town of [[Bridge 1]] as a young girl.", False),
        ("== Life ==\nMira Tolland moved to the town of [[Bridge 1]] as a young girl.", True),
    ],
)
def test_a_sentence_tells_of_its_subject_unless_it_is_a_list_an_afterword_or_about_something_else(tmp_path, text, told):
    page = f"'''Mira Tolland''' was an architect of the old school.\n\n{text}"
    corpus = build_toy_corpus(tmp_path, {"Mira Tolland": page, "Bridge 1": "'''Bridge 1''' is a bridge."}, {})
    node = find(corpus, "Mira Tolland")
    (link,) = corpus.links(node)
    clause = blank_sentence(corpus.text(node), link)
    assert (clause is not None and is_telling(corpus, node, link, clause.text)) == told


def test_names_are_asked_for_before_numbers_and_what_nobody_asks_for_never(tmp_path):
    fields = ("architect = Jon Vask", "length = 320 m", "area_code = 77 881")
    corpus = build_toy_corpus(tmp_path, {"Kelm Bridge": box("bridge", "'''Kelm Bridge''' is a bridge.", *fields)}, {})
    ground = Indexes(corpus)
    attributes = read_attributes(corpus, find(corpus, "Kelm Bridge"))
    balance, weigh = Balance({"name": 0.6, "number": 0.2}), partial(weigh_attribute, ground)
    orders = [[a.fact.key for a in balance.order(attributes, number, weigh)] for number in range(300)]
    assert {tuple(sorted(order)) for order in orders} == {("architect", "length")}
    assert 240 < sum(order[0] == "architect" for order in orders) < 300
