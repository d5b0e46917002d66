import pytest

from pipelines.corpus.build import build_corpus, place_unfinished
from pipelines.corpus.manifest import find_side_files
from pipelines.corpus.properties import make_once
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput
from tests.pipelines.corpus import entity_lines

PREFIX = "enwiki-20250131"
PROPS = ["pp_page", "pp_propname", "pp_value"]
PAGES = [("Kelm", "See [[Ost]]."), ("Ost", "See [[Kelm]]."), ("Kelm (surname)", "Names: [[Kelm]]")]


@pytest.fixture
def build(write_dump, tmp_path):
    """Build the corpus of PAGES with whatever the test has put beside the dump."""

    def make():
        build_corpus(write_dump(*PAGES, name=f"{PREFIX}-pages-articles.xml"), tmp_path / "out")
        return Corpus.open(tmp_path / "out")

    return make


def write_entities(tmp_path, *entities):
    lines = [entity_lines.render_line(entity) for entity in entities]
    entity_lines.write_dump(tmp_path / "wikidata-20250131-all.json.gz", lines)


def read_counts(page):
    return page.qid, page.sitelinks, page.statements, page.identifiers, page.classes


def test_without_files_beside_a_dump_nothing_is_known(build):
    page = build().page(0)
    assert (*read_counts(page), page.image) == ("", -1, -1, -1, (), "")


def test_an_entity_is_found_by_its_title_where_no_qid_is_known(build, tmp_path):
    write_entities(tmp_path, entity_lines.make_entity(7, 3, 9, 2, (100, 200), "Ost"))
    corpus = build()
    assert read_counts(corpus.page(1)) == ("Q7", 3, 9, 2, ("Q100", "Q200"))
    assert corpus.page(0).qid == ""


def test_the_qid_of_page_props_goes_before_the_title(build, write_sql, tmp_path):
    write_sql(f"{PREFIX}-page_props.sql.gz", "page_props", PROPS, "(1,'wikibase_item','Q9')")
    by_qid = entity_lines.make_entity(9, 5, 12, 1, (300,), "An older name")
    by_title = entity_lines.make_entity(8, 2, 4, 0, (400,), "Kelm")
    write_entities(tmp_path, by_title, by_qid)
    assert read_counts(build().page(0)) == ("Q9", 5, 12, 1, ("Q300",))


def test_of_two_entities_with_one_title_the_lower_qid_is_taken(build, tmp_path):
    write_entities(tmp_path, *(entity_lines.make_entity(number, title="Kelm") for number in (10, 9)))
    assert build().page(0).qid == "Q9"


def test_a_set_index_by_category_counts_as_a_list(build, write_sql):
    columns = ["cl_from", "cl_to", "cl_type"]
    write_sql(f"{PREFIX}-categorylinks.sql.gz", "categorylinks", columns, "(3,'All_set_index_articles','page')")
    corpus = build()
    assert [corpus.page(node).is_list for node in range(3)] == [False, False, True]


def test_a_mistake_in_a_file_beside_the_dump_does_not_make_the_dump_be_read_again(write_dump, tmp_path):
    dump, out = write_dump(*PAGES, name=f"{PREFIX}-pages-articles.xml"), tmp_path / "out"
    write_entities(tmp_path, entity_lines.make_entity(7, title="Ost"))
    entities = tmp_path / "wikidata-20250131-all.json.gz"
    whole = entities.read_bytes()
    entities.write_bytes(whole[:-30])
    with pytest.raises(CorruptInput):
        build_corpus(dump, out)
    (part,) = place_unfinished(tmp_path).glob("*/00000/texts.zst")
    read = part.stat().st_ino
    entities.write_bytes(whole)
    build_corpus(dump, out)
    corpus = Corpus.open(out)
    assert (corpus.folder / "store" / "texts-00000.zst").stat().st_ino == read
    assert corpus.page(1).qid == "Q7"
    assert corpus.manifest.counts.side["entities"] == {"lines": 1, "kept": 1, "without_article": 0, "failed": 0}


def test_a_dump_that_does_not_say_of_which_wiki_it_is_gets_no_entities(write_dump, tmp_path):
    write_entities(tmp_path, entity_lines.make_entity(7, title="Ost"))
    bare = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    dump = write_dump(*PAGES, name=f"{PREFIX}-pages-articles.xml", header=bare)
    with pytest.raises(ConfigError, match="siteinfo"):
        build_corpus(dump, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("commons-20250106-mediainfo.ttl.gz", "media"),
        ("latest-mediainfo.nt.bz2", "media"),
        ("latest-all.json.bz2", "wikidata_entities"),
        ("wikidata-20250106-all.json.gz", "wikidata_entities"),
        ("wikidatawiki-20250101-page.sql.gz", "wikidata_page"),
        ("enwiki-20250131-categorylinks.sql.gz", "categorylinks"),
    ],
)
def test_files_are_found_by_the_names_they_are_published_under(tmp_path, name, role):
    (tmp_path / name).touch()
    dump = tmp_path / f"{PREFIX}-pages-articles-multistream.xml.bz2"
    assert find_side_files(dump).list_files() == [(role, tmp_path / name)]


def test_two_snapshots_of_one_file_are_refused(tmp_path):
    for date in ("20250106", "20250113"):
        (tmp_path / f"commons-{date}-mediainfo.ttl.gz").touch()
    with pytest.raises(ConfigError, match="expected one"):
        find_side_files(tmp_path / f"{PREFIX}-pages-articles.xml")


def test_a_kept_table_is_made_again_only_when_one_of_its_files_has_changed(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("1")
    second.write_text("2")
    made = []

    def make(place):
        made.append(place)
        (place / "toy.parquet").touch()
        return {"rows": len(made)}

    def ask():
        return make_once(tmp_path / "kept", "toy", [first, None, second], make)[1]

    assert [ask(), ask()] == [{"rows": 1}, {"rows": 1}]
    second.write_text("other")
    assert [ask(), ask()] == [{"rows": 2}, {"rows": 2}]
