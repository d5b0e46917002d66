import hashlib
from types import SimpleNamespace

import pytest

from pipelines.errors import ConfigError, GateNotMet, Unavailable
from pipelines.release.publish import publish_releases
from pipelines.release.push import push_release


class FakeHub:
    """One repository in memory; ``lose`` drops a file from every commit, ``fail`` answers commits with an error."""

    def __init__(self, lose="", fail=False):
        self.files, self.tags, self.commits, self.lose, self.fail = {".gitattributes": b""}, {}, [], lose, fail

    def create_repo(self, repo_id, *, repo_type, private, exist_ok):
        assert repo_type == "dataset"

    def repo_info(self, repo_id, *, repo_type):
        return SimpleNamespace(sha=f"commit-{len(self.commits)}")

    def list_repo_files(self, repo_id, *, repo_type):
        return sorted(self.files)

    def create_commit(self, repo_id, operations, *, commit_message, repo_type, parent_commit):
        if self.fail:
            raise OSError("503")
        assert parent_commit == f"commit-{len(self.commits)}"
        for operation in operations:
            if type(operation).__name__ == "CommitOperationDelete":
                del self.files[operation.path_in_repo]
            elif operation.path_in_repo != self.lose:
                with operation.as_file() as source:
                    self.files[operation.path_in_repo] = source.read()
        self.commits.append(commit_message)
        return SimpleNamespace(oid=f"commit-{len(self.commits)}")

    def list_repo_tree(self, repo_id, *, recursive, revision, repo_type):
        yield SimpleNamespace(path="data", tree_id="x")
        for path, content in self.files.items():
            lfs = SimpleNamespace(sha256=hashlib.sha256(content).hexdigest()) if path.endswith(".parquet") else None
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            yield SimpleNamespace(path=path, size=len(content), blob_id=blob, lfs=lfs)

    def create_tag(self, repo_id, *, tag, tag_message, revision, repo_type):
        self.tags[tag] = revision

    def list_repo_refs(self, repo_id, *, repo_type):
        return SimpleNamespace(tags=[SimpleNamespace(name=n, target_commit=c) for n, c in self.tags.items()])


@pytest.fixture
def folder(tmp_path, material, context):
    return publish_releases(tmp_path, *material, context)[1].path


def test_a_push_is_one_commit_and_a_tag(folder):
    hub = FakeHub()
    receipt = push_release(folder, "org/name", hub)
    assert len(hub.commits) == 1
    assert hub.tags == {receipt.tag: receipt.commit}
    assert receipt.tag == f"v{folder.name}"
    assert hub.files.keys() == {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} | {
        ".gitattributes"
    }


def test_pushing_again_commits_nothing(folder):
    hub = FakeHub()
    first = push_release(folder, "org/name", hub)
    assert push_release(folder, "org/name", hub) == first
    assert len(hub.commits) == 1


def test_files_of_an_older_version_are_removed(folder):
    hub = FakeHub()
    hub.files["data/train-00000-of-00009.parquet"] = b"old"
    push_release(folder, "org/name", hub)
    assert "data/train-00000-of-00009.parquet" not in hub.files


def test_a_file_lost_on_the_way_is_noticed_and_not_tagged(folder):
    hub = FakeHub(lose="README.md")
    with pytest.raises(GateNotMet, match=r"README\.md is missing"):
        push_release(folder, "org/name", hub)
    assert not hub.tags


def test_a_hub_that_refuses_is_away_not_broken(folder):
    with pytest.raises(Unavailable, match="run the same command again"):
        push_release(folder, "org/name", FakeHub(fail=True))


def test_a_tag_never_moves(folder):
    hub = FakeHub()
    hub.tags[f"v{folder.name}"] = "elsewhere"
    with pytest.raises(ConfigError, match="never moves"):
        push_release(folder, "org/name", hub)


def test_a_changed_folder_is_not_pushed(folder):
    path = folder / "README.md"
    path.chmod(0o644)
    path.write_text("changed")
    hub = FakeHub()
    with pytest.raises(GateNotMet, match="has changed"):
        push_release(folder, "org/name", hub)
    assert not hub.commits


@pytest.mark.parametrize("repo", ["name", "a/b/c", "/b"])
def test_a_repository_needs_an_owner_and_a_name(folder, repo):
    with pytest.raises(ConfigError, match="org/name"):
        push_release(folder, repo, FakeHub())
