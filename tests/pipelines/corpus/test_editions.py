import gzip

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.boxes import Boxes, Survey, choose_boxes, read_template_page, survey_pages
from pipelines.corpus.build import build_corpus
from pipelines.corpus.dump import cover_file, plan_ranges, read_blocks, read_range, read_site
from pipelines.corpus.store import Corpus
from pipelines.errors import CorruptInput
from tests.pipelines.corpus.editions import ITALIAN

TEMPLATES = (
    ("Template:Divisione", "{{#invoke:Infobox|show}}", 10),
    ("Template:Comune", "{{Divisione|nome={{{Nome}}} }}", 10),
    ("Template:Città", "#REDIRECT [[Template:Comune]]", 10, "Template:Comune"),
    ("Template:Navigazione", '{| class="navbox"\n|}', 10),
    ("Template:Disambigua", "<includeonly>__BEGRIFFSKLÄRUNG__</includeonly>", 10),
)
ARTICLES = (
    ("Alba", "{{Città\n|Nome = Alba\n|Panorama = Alba.jpg\n|Superficie = 12.5\n}}\n'''Alba''' è un comune."),
    ("Bra", "{{Navigazione}}\n'''Bra''' è un comune. {{Comune|Nome=Bra}}"),
    ("Cuneo", "{{Navigazione|Nome=Cuneo}}\n'''Cuneo''' è altro."),
    ("Mercurio", "* [[Alba]]\n* [[Bra]]\n{{disambigua}}"),
)


@pytest.fixture
def write_italian(write_dump):
    return lambda *pages, name="itwiki-20260101-pages-articles.xml.bz2": write_dump(*pages, name=name, header=ITALIAN)


def read_pages(corpus: Corpus) -> list[tuple]:
    rows = pq.read_table(corpus.table("pages"), columns=["title", "infobox", "image", "is_disambiguation"])
    return [tuple(row.values()) for row in rows.to_pylist()]


def choose(dump) -> Boxes:
    """Survey a dump range by range, as workers do, through the files that they leave."""
    site, whole = read_site(dump), Survey()
    for piece in plan_ranges(dump, 300):
        whole.add(Survey.load(survey_pages(read_range(dump, piece), site).dump()))
    return choose_boxes(whole, site)


def test_infoboxes_and_disambiguation_pages_of_another_edition_are_found(write_italian, tmp_path):
    dump = write_italian(*TEMPLATES, *ARTICLES)
    build_corpus(dump, tmp_path / "one")
    build_corpus(dump, tmp_path / "two", workers=2, range_bytes=300)
    corpus = Corpus.open(tmp_path / "one")
    assert read_pages(corpus) == read_pages(Corpus.open(tmp_path / "two")) == [
        ("Alba", "Comune", "Alba.jpg", False),
        ("Bra", "Comune", "", False),
        ("Cuneo", "", "", False),
        ("Mercurio", "", "", True),
    ]  # fmt: skip
    assert {(fact.key, fact.text) for fact in corpus.facts(corpus.find("Alba"))} == {
        ("Nome", "Alba"),
        ("Panorama", "Alba.jpg"),
        ("Superficie", "12.5"),
    }


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("{{#invoke:Infobox|show}}", True),
        ('<includeonly><table class="wikitable sinottico"></table></includeonly>', True),
        ('<noinclude>{{Infobox esempio}}</noinclude>{| class="navbox"\n|}', False),
        ("{{#invoke:Message box|ambox}}", False),
    ],
)
def test_a_template_is_an_infobox_by_what_its_page_shows(write_italian, page, expected):
    dump = write_italian(("Template:Scheda", page, 10), ("Voce", "{{scheda|nome=A}}\n'''A''' è B."))
    assert set(choose(dump).infoboxes) == ({"Scheda"} if expected else set())


def test_the_magic_word_of_any_language_and_the_message_of_a_wiki_name_disambiguation_templates(write_italian):
    dump = write_italian(
        ("Template:Uno", "<includeonly>__BEGRIFFSKLÄRUNG__</includeonly>", 10),
        ("Template:Due", "{{Uno}}", 10),
        ("Template:Tre", "#REDIRECT [[Template:Due]]", 10, "Template:Due"),
        ("Template:Altro", "<noinclude>__DISAMBIG__</noinclude>Altro.", 10),
        ("MediaWiki:Disambiguationspage", "* [[Template:Quattro]]", 8),
    )
    assert choose(dump).disambiguations == {"Uno", "Due", "Tre", "Quattro"}


@pytest.mark.parametrize("piece", ["{{a" + " " * 99, "class=", "[[a:[[b]]", "<noinclude>", "<!--", "{{a|b=[[", "__"])
def test_hostile_wikitext_names_no_box_and_takes_no_time_beyond_its_length(piece):
    text = piece * ((1 << 20) // len(piece))  # quadratic work on a megabyte would not end
    page = read_template_page(text, frozenset())
    assert (page.shows, page.disambiguation) == ("", False)
    assert not Boxes({"X": "X"}, frozenset({"Y"})).marks_disambiguation(text)


def test_a_gzip_dump_gives_the_corpus_of_the_bz2_dump(write_italian, tmp_path):
    plain = write_italian(*TEMPLATES, *ARTICLES, name="itwiki-20260101-pages-articles.xml")
    dump = tmp_path / "gz" / "itwiki-20260101-pages-articles.xml.gz"
    dump.parent.mkdir()
    dump.write_bytes(b"".join(map(gzip.compress, plain.read_bytes().splitlines(keepends=True))))
    assert len(plan_ranges(dump, 1000)) == 1
    for name, source in {"gz": dump, "plain": plain}.items():
        build_corpus(source, tmp_path / f"{name}-corpus", range_bytes=1000)
    assert read_pages(Corpus.open(tmp_path / "gz-corpus")) == read_pages(Corpus.open(tmp_path / "plain-corpus"))


def test_a_damaged_gzip_dump_is_refused(write_italian, tmp_path):
    plain = write_italian(*ARTICLES, name="itwiki-20260101-pages-articles.xml").read_bytes()
    dump, whole = tmp_path / "itwiki-20260101-pages-articles.xml.gz", gzip.compress(plain)
    flipped = bytes([*whole[:300], whole[300] ^ 255, *whole[301:]])
    for broken in (whole[:-9], flipped, whole + b"more", plain):
        dump.write_bytes(broken)
        with pytest.raises(CorruptInput, match=dump.name):
            list(read_range(dump, cover_file(dump)))


def test_a_gzip_bomb_is_read_in_blocks(tmp_path):
    dump = tmp_path / "itwiki-20260101-pages-articles.xml.gz"
    dump.write_bytes(gzip.compress(b"<mediawiki><page>" + b"a" * (80 << 20) + b"</page></mediawiki>"))
    assert max(map(len, read_blocks(dump, cover_file(dump)))) <= 4 << 20
