"""The second snapshot: which facts have changed is known, and nothing else has."""

import bz2
import hashlib
import json
import re

import pytest

from pipelines.toy.knowledge import WorldConfig
from pipelines.toy.publishing import write_world

CONFIG = WorldConfig(entities=150, seed=5, missing=0.1)
PAGE = re.compile(
    r"<title>(.*?)</title>.*?<id>(\d+)</id>.*?<revision>\s*<id>(\d+)</id>.*?<timestamp>(.*?)</timestamp>"
    r".*?<text[^>]*>(.*?)</text>",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds")
    write_world(folder / "first", CONFIG)
    write_world(folder / "later", CONFIG, later=True)
    return folder / "first", folder / "later"


def read_truth(world, name):
    return [json.loads(line) for line in (world / "truth" / f"{name}.jsonl").read_text("utf-8").splitlines()]


def read_pages(world):
    (dump,) = world.glob("*-pages-articles-multistream.xml.bz2")
    text = bz2.decompress(dump.read_bytes()).decode()
    return {title: tuple(rest) for title, *rest in PAGE.findall(text)}


def strip(fact):
    return {key: value for key, value in fact.items() if key != "sentence"}


def test_the_list_of_changes_is_the_difference_of_the_facts(worlds):
    before, after = (read_truth(world, "facts") for world in worlds)
    different = [(strip(old), strip(new)) for old, new in zip(before, after, strict=True) if strip(old) != strip(new)]
    changes = read_truth(worlds[1], "changes")
    assert [(strip(change["before"]), strip(change["after"])) for change in changes] == different
    assert all(old["subject"] == new["subject"] and old["key"] == new["key"] for old, new in different)


def test_counts_and_offices_change_and_a_few_other_facts(worlds):
    changed = {change["after"]["relation"] for change in read_truth(worlds[1], "changes")}
    assert {"population", "leader"} <= changed
    assert changed - {"population", "leader", "head", "attendance", "visitors", "employees", "students", "circulation"}


def test_an_office_still_has_one_holder_each(worlds):
    holders = [fact["object"] for fact in read_truth(worlds[1], "facts") if fact["relation"] == "leader"]
    assert len(holders) == len(set(holders))


def test_only_pages_whose_facts_changed_differ_and_they_have_a_later_revision(worlds):
    first, later = map(read_pages, worlds)
    subjects = {change["after"]["subject"] for change in read_truth(worlds[1], "changes")}
    assert first.keys() == later.keys()
    differing = {title for title in first if first[title] != later[title]}
    assert differing
    assert differing <= subjects
    for title in differing:
        (page_id, revision, stamp, _), (other_id, other_revision, other_stamp, _) = first[title], later[title]
        assert page_id == other_id
        assert int(other_revision) > int(revision)
        assert other_stamp >= stamp


def test_the_later_dump_is_dated_a_year_on(worlds):
    dumps = [next(world.glob("toywiki-*-multistream.xml.bz2")).name[8:16] for world in worlds]
    assert dumps == ["20260101", "20270101"]
    assert json.loads((worlds[1] / "world.json").read_text())["later"] == "20270101"
    assert "later" not in json.loads((worlds[0] / "world.json").read_text())


def test_pictures_are_the_same(worlds):
    def digest(world):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (world / "images").iterdir()}

    assert digest(worlds[0]) == digest(worlds[1])


def test_the_first_snapshot_has_no_list_of_changes(worlds):
    assert not (worlds[0] / "truth" / "changes.jsonl").exists()
