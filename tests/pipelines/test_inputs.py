import json
import shutil
from pathlib import Path

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import CorpusConfig, GeneratedWorld
from pipelines.errors import ConfigError, CorruptInput
from pipelines.files import write_bytes
from pipelines.ids import digest_value
from pipelines.run.corpora import ensure_corpus, find_dump, name_corpus, settle_source
from pipelines.run.integrity import find_damage
from pipelines.run.workspace import Workspace
from tests.toy import build_toy_corpus

PICTURE = "http://127.0.0.1/a.jpg"


class Quiet:
    """A reporter that remembers what was begun."""

    def __init__(self):
        self.begun = []

    def begin(self, name, total, unit):
        self.begun.append(name)

    def advance(self, done):
        return

    def note(self, text, passing=False):
        self.begun.append(text)

    def finish(self, summary):
        return


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    (tmp_path / "w").mkdir()
    return Workspace(tmp_path / "w")


@pytest.fixture
def dump(tmp_path):
    build_toy_corpus(tmp_path / "toy")
    return tmp_path / "toy" / "toywiki-20260101-pages-articles.xml"


def test_a_dump_is_taken_by_its_name(dump, workspace):
    assert find_dump(CorpusConfig(dump=str(dump)), workspace, Quiet()) == dump


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (CorpusConfig(dump="nowhere.xml"), r"corpus\.dump nowhere\.xml: no such file"),
        (CorpusConfig(world="nowhere"), r"corpus\.world nowhere: no such folder"),
        (CorpusConfig(), "none of dump, world and generate"),
    ],
)
def test_a_source_that_is_missing_is_named(workspace, config, message):
    with pytest.raises(ConfigError, match=message):
        find_dump(config, workspace, Quiet())


def test_a_world_has_one_dump(tmp_path, dump, workspace):
    config = CorpusConfig(world=str(dump.parent))
    assert find_dump(config, workspace, Quiet()) == dump
    (dump.parent / "other-20260101-pages-articles.xml").write_text("")
    with pytest.raises(ConfigError, match="2 files match"):
        find_dump(config, workspace, Quiet())


def test_an_index_beside_a_dump_is_no_dump(dump, workspace):
    (dump.parent / "toywiki-20260101-pages-articles-index.xml.txt").write_text("")
    assert find_dump(CorpusConfig(world=str(dump.parent)), workspace, Quiet()) == dump


def test_a_world_is_generated_once(workspace):
    config, reporter = CorpusConfig(generate=GeneratedWorld(entities=60)), Quiet()
    first = find_dump(config, workspace, reporter)
    assert find_dump(config, workspace, reporter) == first
    assert reporter.begun == ["world"]
    other = find_dump(CorpusConfig(generate=GeneratedWorld(entities=60, seed=8)), workspace, reporter)
    assert other.parent != first.parent


def test_a_corpus_is_built_once_for_each_content_of_the_dump(dump, workspace):
    config, reporter = CorpusConfig(dump=str(dump)), Quiet()
    (corpus, built), (again, rebuilt) = (ensure_corpus(config, workspace, reporter) for _ in range(2))
    assert (built, rebuilt, corpus.folder) == (True, False, again.folder)
    dump.write_text(dump.read_text().replace("1204", "1205"))
    changed, built = ensure_corpus(config, workspace, reporter)
    assert built
    assert changed.folder != corpus.folder


def test_a_dump_that_moved_has_the_same_corpus(tmp_path, dump, workspace):
    name = name_corpus(dump, workspace)
    moved = tmp_path / "elsewhere" / dump.name
    moved.parent.mkdir()
    moved.write_bytes(dump.read_bytes())
    assert name_corpus(moved, workspace) == name
    assert name.startswith("toywiki-20260101-")


def test_a_picture_more_beside_the_dump_is_another_corpus(dump, workspace):
    images = dump.parent / "images"
    images.mkdir()
    (images / "images.tsv").write_text("file\n")
    name = name_corpus(dump, workspace)
    (images / "Kelm.jpg").write_bytes(b"x")
    assert name_corpus(dump, workspace) != name


def test_a_dump_that_ends_too_early_leaves_no_corpus(dump, workspace):
    dump.write_text(dump.read_text()[:900])
    with pytest.raises(CorruptInput):
        ensure_corpus(CorpusConfig(dump=str(dump)), workspace, Quiet())
    assert [path for path in workspace.corpora.glob("*/manifest.json")] == []


@pytest.fixture
def articles(tmp_path):
    """A source of one article, whose picture lies at an address that no run connects to."""
    source = tmp_path / "news.jsonl"
    article = {
        "url": "https://a.example/1",
        "title": "A bridge opens",
        "text": "A bridge was opened.",
        "licence": "CC0",
        "picture": PICTURE,
    }
    source.write_text(json.dumps(article) + "\n")
    return source


def test_articles_of_an_older_version_are_not_named_and_one_that_a_run_uses_is_written_again(articles, workspace):
    config = make_config(read_recipe("bridgevqa"), [f"news.source={articles}"])
    export = Path(settle_source(config, workspace, Quiet()).dump)
    (export.parent / "checksums.bin").unlink()
    assert list(find_damage(workspace.root)) == []
    reporter = Quiet()
    settle_source(config, workspace, reporter)
    assert "checksums.bin: is missing; the articles are written again" in reporter.begun.pop()
    export.write_text("damaged")
    (finding,) = find_damage(workspace.root)
    assert finding.remedy.endswith("where no run uses that, remove the folder")
    shutil.rmtree(export.parent)
    assert list(find_damage(workspace.root)) == []


def test_a_damaged_picture_that_is_not_to_be_had_any_more_is_told_of(articles, workspace):
    picture = workspace.news / "pictures" / digest_value(PICTURE)
    write_bytes(picture, b"flipped")
    write_bytes(picture.with_name(f"{picture.name}.xxh3"), b"0" * 16)
    settings = [f"news.source={articles}", "news.fetch=true", "news.contact=ana@example.org"]
    reporter = Quiet()
    settle_source(make_config(read_recipe("bridgevqa"), settings), workspace, reporter)
    (told,) = [line for line in reporter.begun if str(picture) in line]
    assert told.endswith(f"its host gives it no more: articles go on without it ({PICTURE})")
    assert list(find_damage(workspace.root)) == []


def test_articles_with_a_flipped_byte_are_named_and_written_again_from_their_source(articles, workspace):
    config, reporter = make_config(read_recipe("bridgevqa"), [f"news.source={articles}"]), Quiet()
    export = Path(settle_source(config, workspace, reporter).dump).parent
    files = {path: path.read_bytes() for path in export.rglob("*") if path.is_file()}
    assert (len(files) > 3, reporter.begun) == (True, [])
    for path, whole in files.items():
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        assert path in [finding.path for finding in find_damage(workspace.root)]
        settle_source(config, workspace, reporter)
        assert reporter.begun.pop().startswith(f"{path}: has other bytes")
        assert {each: each.read_bytes() for each in files} == files
    assert [each.name for each in export.parent.iterdir()] == [export.name]
