"""A hub in memory that keeps every commit, as far as pushing needs one."""

import hashlib
from pathlib import Path
from types import SimpleNamespace

from huggingface_hub.errors import RepositoryNotFoundError

from pipelines.release.push import carry_out, plan_push


def push_release(folder, repo, api=None, options=None):
    """Plan a push and carry it out."""
    return carry_out(plan_push(folder, repo, api, options), api)


def make_missing():
    return RepositoryNotFoundError("404: no such repository", response=SimpleNamespace(headers={}, request=None))


class FakeHub:
    """One repository with the trees of all commits.

    Args:
        downloads: folder that downloads are written to.
        files: what others have put there; None for no repository.
        private: whether it is private.
        lose: a file that is dropped from every commit.
        fail: whether commits are answered with an error.
    """

    endpoint = "https://hub.example"

    def __init__(self, downloads: Path, files=None, private=True, lose="", fail=False):
        self.downloads, self.private, self.lose, self.fail = downloads, private, lose, fail
        self.trees, self.tags, self.messages, self.sent = {}, {}, [], []
        self.told = {}
        self.head = ""
        if files is not None:
            self._commit({".gitattributes": b"", **files})

    @property
    def files(self):
        return self.trees[self.head] if self.head else {}

    def change(self, **files):
        """Commit as somebody else does; None deletes a file."""
        tree = {**self.files, **files}
        self._commit({path: content for path, content in tree.items() if content is not None})

    def _commit(self, tree):
        self.head = hashlib.sha1(f"{len(self.trees)}".encode()).hexdigest()
        self.trees[self.head] = dict(tree)
        return self.head

    def create_repo(self, repo_id, *, repo_type, private, exist_ok):
        assert repo_type == "dataset"
        assert not self.head
        self.private = private
        self._commit({".gitattributes": b""})

    def repo_info(self, repo_id, *, repo_type):
        if not self.head:
            raise make_missing()
        return SimpleNamespace(sha=self.head, private=self.private)

    def hf_hub_download(self, repo_id, filename, *, repo_type, revision):
        path = self.downloads / revision / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.trees[revision][filename])
        return str(path)

    def create_commit(self, repo_id, operations, *, commit_message, repo_type, parent_commit, create_pr):
        if self.fail:
            raise OSError("503")
        assert parent_commit == self.head
        tree = dict(self.files)
        self.sent = []
        for operation in operations:
            if type(operation).__name__ == "CommitOperationDelete":
                del tree[operation.path_in_repo]
            elif operation.path_in_repo != self.lose:
                with operation.as_file() as source:
                    tree[operation.path_in_repo] = source.read()
                self.sent.append(operation.path_in_repo)
        self.messages.append(commit_message)
        if create_pr:
            self.trees["refs/pr/1"] = tree
            return SimpleNamespace(oid="f" * 40, pr_url=f"{self.endpoint}/pr/1", pr_revision="refs/pr/1")
        return SimpleNamespace(oid=self._commit(tree), pr_url=None, pr_revision=None)

    def list_repo_tree(self, repo_id, *, recursive, revision, repo_type):
        yield SimpleNamespace(path="data", tree_id="x")
        for path, content in self.trees[revision].items():
            lfs = SimpleNamespace(sha256=hashlib.sha256(content).hexdigest()) if path.endswith(".parquet") else None
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            yield SimpleNamespace(path=path, size=len(content), blob_id=blob, lfs=lfs)

    def create_tag(self, repo_id, *, tag, tag_message, revision, repo_type):
        self.tags[tag] = revision
        self.told[tag] = tag_message

    def list_repo_refs(self, repo_id, *, repo_type):
        return SimpleNamespace(tags=[SimpleNamespace(name=n, target_commit=c) for n, c in self.tags.items()])

    def write(self, folder):
        """Write what the main branch holds into a folder, as a clone does."""
        for path, content in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        return folder
