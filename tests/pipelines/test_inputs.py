import pytest

from pipelines.config.settings import CorpusConfig, GeneratedWorld
from pipelines.errors import ConfigError, CorruptInput
from pipelines.run.corpora import ensure_corpus, find_dump, name_corpus
from pipelines.run.workspace import Workspace
from tests.toy import build_toy_corpus


class Quiet:
    """A reporter that remembers what was begun."""

    def __init__(self):
        self.begun = []

    def begin(self, name, total=0, unit="rows"):
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
