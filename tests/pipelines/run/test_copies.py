"""A host's own copy of a corpus: found by name and digest, with the pictures of the workspace."""

import shutil
import socket
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.run.corpora import open_copy
from pipelines.run.workspace import Workspace
from schemas.manifest import InputEntry
from tests.conftest import DemoRun


@pytest.fixture
def wanted(demo_corpus: Corpus) -> InputEntry:
    return InputEntry(name="corpus", key=demo_corpus.folder.name, digest=demo_corpus.digest)


def test_without_copies_the_corpus_of_the_workspace_is_opened(demo: DemoRun, wanted: InputEntry) -> None:
    corpus = open_copy(wanted, Workspace(demo.root), "")
    assert corpus.folder == demo.root / "corpus" / wanted.key
    corpus.close()


def test_a_copy_is_read_and_its_pictures_are_those_of_the_workspace(
    demo: DemoRun, demo_corpus: Corpus, wanted: InputEntry, tmp_path: Path
) -> None:
    shutil.copytree(demo_corpus.folder, tmp_path / wanted.key)
    corpus = open_copy(wanted, Workspace(demo.root), str(tmp_path))
    images = pq.read_table(demo_corpus.folder / "images.parquet", columns=["file", "path"]).to_pylist()
    picture = next(image["file"] for image in images if image["path"])
    assert corpus.folder == tmp_path / wanted.key
    assert corpus.text(0) == demo_corpus.text(0)
    assert corpus.image_path(picture) == demo_corpus.image_path(picture)
    corpus.close()


def test_a_missing_copy_is_named_with_the_host_that_lacks_it_and_how_it_gets_it(
    demo: DemoRun, wanted: InputEntry, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        open_copy(wanted, Workspace(demo.root), str(tmp_path))
    assert f"host {socket.gethostname()}: corpus {tmp_path / wanted.key} is missing" in str(refused.value)
    assert f"rsync -a --delete {demo.root / 'corpus' / wanted.key}/" in str(refused.value)


def test_a_copy_of_another_digest_is_never_opened(
    demo: DemoRun, demo_corpus: Corpus, wanted: InputEntry, tmp_path: Path
) -> None:
    shutil.copytree(demo_corpus.folder, tmp_path / wanted.key)
    with pytest.raises(ConfigError, match=f"has the digest {wanted.digest[:12]}, and the run needs 0000"):
        open_copy(wanted.model_copy(update={"digest": "0" * 64}), Workspace(demo.root), str(tmp_path))
