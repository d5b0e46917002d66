import bz2
from collections import Counter

import pytest
from lxml import etree
from pydantic import ValidationError

from pipelines.errors import ConfigError
from pipelines.toy.publishing import write_world
from pipelines.toy.wikitext import ToyPage, list_links
from pipelines.toy.world import WorldConfig

SMALL = WorldConfig(entities=60, seed=3, missing=0.0)


def test_the_same_config_gives_the_same_bytes(world_full, tmp_path):
    write_world(tmp_path / "again", SMALL)
    files = sorted(path.relative_to(world_full.root) for path in world_full.root.rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*") if path.is_file()
    )
    for file in files:
        assert (world_full.root / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file


def test_a_non_empty_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(ConfigError, match="not an empty folder"):
        write_world(tmp_path, SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "change", [{"entities": 3}, {"missing": 1.5}, {"snapshot": "2026"}, {"signs": -0.1}, {"simple": 0.6}]
)
def test_a_config_out_of_range_is_refused(change):
    with pytest.raises(ValidationError, match=next(iter(change))):
        WorldConfig(**change)


def test_a_failed_run_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.toy.publishing.write_truth", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_world(tmp_path / "w", SMALL)
    assert not list(tmp_path.iterdir())


EXPORT = "{http://www.mediawiki.org/xml/export-0.11/}"


def test_pages_come_by_ascending_id_a_hundred_in_a_stream(world_200):
    ids = [int(page.findtext(f"{EXPORT}id")) for page in world_200.pages()]
    assert ids == sorted(set(ids))
    rest, counts = world_200.dump.read_bytes(), []
    while rest:
        stream = bz2.BZ2Decompressor()
        counts.append(stream.decompress(rest).count(b"<page>"))
        rest = stream.unused_data
    assert counts[0] == counts[-1] == 0
    assert set(counts[1:-2]) == {100}


def test_redirects_chain_fragment_lists_and_other_namespaces_are_there(world_200):
    pages = world_200.pages()
    titles = [page.findtext(f"{EXPORT}title").casefold() for page in pages]
    assert len(titles) == len(set(titles))
    redirects = world_200.redirects()
    assert any(target in redirects for target in redirects.values())
    texts = world_200.texts()
    assert any(text.startswith("#REDIRECT") and "#History]]" in text for text in texts.values())
    assert any(title.startswith("List of ") for title in texts)
    assert {"0", "10", "14", "100"} <= {page.findtext(f"{EXPORT}ns") for page in pages}
    root = etree.fromstring(bz2.decompress(world_200.dump.read_bytes()))
    assert {"Template", "Category", "Portal", "File"} <= {each.text for each in root.iter(f"{EXPORT}namespace")}


def test_tables_say_which_pages_are_linked_free_or_disambiguation(world_200):
    titles = {title.replace(" ", "_") for title in world_200.texts()}
    assert {row["lt_title"] for row in world_200.table("linktarget") if row["lt_namespace"] == "0"} <= titles
    entities, props = world_200.truth("entities"), world_200.table("page_props")
    shown = {row["pp_value"]: row["pp_propname"] for row in props}
    for entity in entities:
        if entity["picture"]:
            assert shown[entity["picture"]] == ("page_image_free" if entity["picture_free"] else "page_image")
    names = Counter(entity["name"].casefold() for entity in entities)
    pages = {row["pp_page"] for row in props if row["pp_propname"] == "disambiguation"}
    assert len(pages) == sum(count > 1 for count in names.values()) > 0


def test_links_in_comments_and_nowiki_do_not_count():
    page = ToyPage("x", "[[a b]] <!-- [[c]] --> <nowiki>[[d]]</nowiki> [[Category:E]] [[:Category:F]] [[A b#g|h]]")
    assert list_links(page)[0] == (0, "A_b")
    assert (0, "C") not in list_links(page)
    assert (14, "F") in list_links(page)
    assert (14, "E") not in list_links(page)
    assert len([link for link in list_links(page) if link[0] == 0 and link[1] == "A_b"]) == 1
