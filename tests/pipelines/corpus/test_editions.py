import gzip
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.corpus.boxes import (
    Boxes,
    Survey,
    choose_boxes,
    list_usages,
    needs_survey,
    read_template_page,
    survey_pages,
)
from pipelines.corpus.build import build_corpus
from pipelines.corpus.dump import cover_file, plan_ranges, read_blocks, read_range, read_site
from pipelines.corpus.store import Corpus
from pipelines.errors import CorruptInput
from tests.pipelines.corpus.editions import Edition, make_itwiki, make_ltgwiki

EDITIONS = {"ltg": make_ltgwiki(), "it": make_itwiki()}
DUMP = "{}wiki-20260101-pages-articles.xml.bz2"


def read_pages(corpus: Corpus) -> list[dict]:
    columns = ["title", "infobox", "is_disambiguation", "image", "type"]
    return pq.read_table(corpus.table("pages"), columns=columns).to_pylist()


@pytest.fixture(scope="module")
def corpora(tmp_path_factory) -> dict[str, Corpus]:
    folder = tmp_path_factory.mktemp("editions")
    found = {}
    for language, wiki in EDITIONS.items():
        build_corpus(wiki.write(folder / language / DUMP.format(language)), folder / f"{language}-corpus")
        found[language] = Corpus.open(folder / f"{language}-corpus")
    return found


@pytest.mark.parametrize("language", EDITIONS)
def test_infoboxes_of_other_editions_are_found_and_little_else(corpora, language):
    wiki, pages = EDITIONS[language], read_pages(corpora[language])
    boxed = [page for page in pages if wiki.boxes[page["title"]]]
    found = [page for page in boxed if page["infobox"] == wiki.boxes[page["title"]]]
    false = [page for page in pages if page["infobox"] and not wiki.boxes[page["title"]]]
    assert len(boxed) >= 200
    assert len(found) >= 0.95 * len(boxed)
    assert len(false) <= 0.02 * (len(pages) - len(boxed))


@pytest.mark.parametrize("language", EDITIONS)
def test_disambiguation_pages_of_other_editions_are_found(corpora, language):
    wiki, pages = EDITIONS[language], read_pages(corpora[language])
    found = {page["title"] for page in pages if page["is_disambiguation"]}
    assert len(found & wiki.disambiguations) >= 0.95 * len(wiki.disambiguations)
    assert found <= wiki.disambiguations


def survey(wiki: Edition, folder: Path, seed: int | None, range_bytes: int) -> Survey:
    """Survey a dump range by range, as workers do, through the files that they leave."""
    dump = wiki.write(folder / DUMP.format(wiki.language), seed)
    site, whole = read_site(dump), Survey()
    for piece in plan_ranges(dump, range_bytes):
        whole.add(Survey.load(survey_pages(read_range(dump, piece), site).dump()))
    return whole


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    language=st.sampled_from(list(EDITIONS)), seed=st.integers(0, 99), range_bytes=st.sampled_from([900, 4000, 1 << 20])
)
def test_neither_the_order_of_articles_nor_the_cut_of_the_dump_decides_what_is_an_infobox(
    tmp_path, language, seed, range_bytes
):
    wiki = EDITIONS[language]
    site = read_site(wiki.write(tmp_path / DUMP.format(language)))
    plain = choose_boxes(survey(wiki, tmp_path, None, 1 << 30), site)
    assert plain.infoboxes
    assert choose_boxes(survey(wiki, tmp_path, seed, range_bytes), site) == plain


def test_two_processes_build_the_corpus_that_one_builds(corpora, tmp_path):
    dump = EDITIONS["it"].write(tmp_path / DUMP.format("it"))
    assert len(plan_ranges(dump, 9000)) > 1
    build_corpus(dump, tmp_path / "two", workers=2, range_bytes=9000)
    assert read_pages(Corpus.open(tmp_path / "two")) == read_pages(corpora["it"])


def test_the_values_and_pictures_of_such_infoboxes_are_read(corpora):
    corpus = corpora["it"]
    pages = {page["title"]: page for page in read_pages(corpus)}
    pictured = [title for title, page in pages.items() if page["image"] == f"{title}.jpg"]
    assert {title.split()[0] for title in pictured} == {"Comune", "Persona", "Felis"}
    facts = {(fact.key, fact.text) for fact in corpus.facts(corpus.find("Comune 3"))}
    assert facts <= {("Nome", "Comune 3"), ("Panorama", "Comune 3.jpg"), ("Stato", "ITA"), ("Superficie", "12.5")} | {
        ("Grado amministrativo", "3"),
        ("Abitanti", "2003"),
        ("Amministratore locale", "Persona 3"),
    }
    assert len(facts) >= 3


@pytest.mark.parametrize("members", ["one", "many"])
def test_a_gzip_dump_gives_the_corpus_of_the_bz2_dump(corpora, tmp_path, members):
    wiki = EDITIONS["it"]
    dump = wiki.write(tmp_path / "itwiki-20260101-pages-articles.xml.gz", packed=gzip.compress)
    if members == "one":
        dump.write_bytes(gzip.compress(gzip.decompress(dump.read_bytes())))
    assert len(plan_ranges(dump, 1000)) == 1
    build_corpus(dump, tmp_path / "corpus", range_bytes=1000)
    assert read_pages(Corpus.open(tmp_path / "corpus")) == read_pages(corpora["it"])


def read_titles(dump: Path) -> list[str]:
    return [page.title for page in read_range(dump, cover_file(dump))]


@pytest.mark.parametrize("damage", ["cut", "flipped", "trailing", "no-gzip"])
def test_a_damaged_gzip_dump_is_refused(tmp_path, damage):
    dump = EDITIONS["ltg"].write(tmp_path / "ltgwiki-20260101-pages-articles.xml.gz", packed=gzip.compress)
    whole = dump.read_bytes()
    flipped = bytes([*whole[:3000], whole[3000] ^ 255, *whole[3001:]])
    broken = {"cut": whole[:-9], "flipped": flipped, "trailing": whole + b"more", "no-gzip": gzip.decompress(whole)}
    assert len(read_titles(dump)) == len(EDITIONS["ltg"].pages)
    dump.write_bytes(broken[damage])
    with pytest.raises(CorruptInput, match=r"ltgwiki-20260101-pages-articles.xml.gz"):
        read_titles(dump)


def test_a_gzip_bomb_is_read_in_blocks(tmp_path):
    page = "<page><title>{}</title><ns>0</ns><id>{}</id><revision><id>1</id><text>{}</text></revision></page>\n"
    pages = page.format("A", 1, "a") + page.format("Bomb", 2, "a" * (80 << 20)) + page.format("B", 3, "b")
    header = '<mediawiki version="0.11" xml:lang="it"><siteinfo><dbname>itwiki</dbname></siteinfo>\n'
    dump = tmp_path / "itwiki-20260101-pages-articles.xml.gz"
    dump.write_bytes(gzip.compress(f"{header}{pages}</mediawiki>".encode()))
    assert max(map(len, read_blocks(dump, cover_file(dump)))) <= 4 << 20


def test_a_real_dump_of_another_edition_has_infoboxes(shared_data, tmp_path):
    dumps = [path for path in shared_data.rglob("*-pages-articles*.xml*") if "-index" not in path.name]
    foreign = [path for path in dumps if needs_survey(read_site(path))]
    if not foreign:
        pytest.skip("no dump of another edition is at hand")
    for dump in foreign:
        build_corpus(dump, tmp_path / dump.name)
        pages = read_pages(Corpus.open(tmp_path / dump.name))
        assert sum(bool(page["infobox"]) for page in pages) >= 0.05 * len(pages)
        assert any(page["is_disambiguation"] for page in pages)


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        ("{{Scheda|nome=A|anno=1999|luogo=[[B]]|autore=C}}\n'''A''' è C.", True),
        ("'''A''' è C.\n{{Scheda|nome=A|anno=1999|luogo=[[B]]|autore=C}}\n", False),
        ("A è {{Scheda|nome=A|anno=1999|luogo=[[B]]|autore=C}} C.", False),
        ("<ref>{{Scheda|nome=A|anno=1999|luogo=[[B]]|autore=C}}</ref>", False),
        ("== Vita ==\n{{Scheda|nome=A|anno=1999|luogo=[[B]]|autore=C}}\n", False),
        ("{{Scheda|A|1999|[[B]]|C}}\nA è C.", False),
        ("{{Scheda|nome=A|anno=1999|luogo=|autore=}}\nA è C.", False),
        ("{{Scheda|foto1=A.jpg|foto2=B.jpg|testo1=C|testo2=D|nota=E|fonte=F}}\nA è C.", False),
    ],
)
def test_a_template_is_an_infobox_by_where_it_stands_and_what_it_says(tmp_path, lead, expected):
    wiki = Edition("it")
    for number in range(3):
        wiki.add_article(f"Voce {number}", lead)
    found = choose_boxes(survey(wiki, tmp_path, None, 9**9), read_site(tmp_path / DUMP.format("it")))
    assert bool(found.infoboxes) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("{{#invoke:Infobox|show}}", True),
        ('<includeonly><table class="wikitable sinottico"></table></includeonly>', True),
        ('<noinclude>{{Infobox esempio}}</noinclude>{| class="navbox"\n|}', False),
        ("{{#invoke:Message box|ambox}}", False),
    ],
)
def test_a_template_is_an_infobox_by_what_its_page_shows(tmp_path, page, expected):
    wiki = Edition("it")
    wiki.add_template("Scheda", page)
    wiki.add_article("Voce", "{{scheda|nome=A}}\n'''A''' è B.")
    found = choose_boxes(survey(wiki, tmp_path, None, 9**9), read_site(tmp_path / DUMP.format("it")))
    assert set(found.infoboxes) == ({"Scheda"} if expected else set())


def test_the_magic_word_of_any_language_and_the_message_of_a_wiki_name_disambiguation_templates(tmp_path):
    wiki = Edition("it")
    wiki.add_template("Uno", "<includeonly>__BEGRIFFSKLÄRUNG__</includeonly>")
    wiki.add_template("Due", "{{Uno}}")
    wiki.add_template("Tre", redirect="Due")
    wiki.add_template("Altro", "<noinclude>__DISAMBIG__</noinclude>Altro.")
    wiki.pages.append(("MediaWiki:Disambiguationspage", 8, "* [[Template:Quattro]]", ""))
    found = choose_boxes(survey(wiki, tmp_path, None, 9**9), read_site(tmp_path / DUMP.format("it")))
    assert found.disambiguations == {"Uno", "Due", "Tre", "Quattro"}


@pytest.mark.parametrize(
    "piece",
    [
        "{{a" + " " * 99,
        "<templatedata>",
        "class=",
        "[[a:",
        "[[a:[[b]]",
        "<noinclude>",
        "<!--",
        "{{a|b=[[",
        "__",
        "|x=1",
    ],
)
def test_hostile_wikitext_names_no_box_and_takes_no_time_beyond_its_length(piece):
    text = piece * ((1 << 20) // len(piece))  # quadratic work on a megabyte would not end
    page = read_template_page(text, frozenset())
    assert (page.shows, page.pictured, page.disambiguation) == ("", False, False)
    assert sum(usage.told for _, usage in list_usages(text, frozenset())) == 0
    assert not Boxes({"X": "X"}, frozenset({"Y"})).marks_disambiguation(text)
