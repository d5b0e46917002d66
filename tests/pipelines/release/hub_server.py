"""The Hub's routes on loopback, as far as the real client needs them to push: large files first, then the commit."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from urllib.parse import unquote

from tests.pipelines.services.clients.live_servers import Answer, Asked

NOT_FOUND = {"X-Error-Code": "RepoNotFound"}


def answer_json(value: object, status: int = 200, headers: dict | None = None) -> Answer:
    return Answer(status, json.dumps(value).encode(), headers=headers or {})


@dataclass
class HubServer:
    """One repository; ``refuse`` says which of its requests fail from now on, by a part of their paths."""

    repo: str
    store: dict[str, bytes] = field(default_factory=dict)
    """Large files by sha256; they stay whether or not a commit names them."""
    trees: list[dict[str, str | bytes]] = field(default_factory=list)
    """Files of each commit: the bytes of a small one, the sha256 of a large one."""
    tags: dict[str, str] = field(default_factory=dict)
    uploads: list[str] = field(default_factory=list)
    refuse: str = ""
    after: int = 0
    """Requests of the refused kind that still pass."""
    url: str = ""

    @property
    def head(self) -> str:
        return f"{len(self.trees):040x}"

    def respond(self, asked: Asked) -> Answer:
        if self.refuse and self.refuse in asked.path:
            if self.after <= 0:
                return answer_json({"error": "no"}, 403)
            self.after -= 1
        if asked.method == "PUT":
            digest = asked.path.rpartition("/")[2]
            assert hashlib.sha256(asked.body).hexdigest() == digest
            self.store[digest] = asked.body
            self.uploads.append(digest)
            return Answer()
        place = (
            asked.path.removeprefix("/api/")
            .removeprefix(f"datasets/{self.repo}")
            .removeprefix(f"/datasets/{self.repo}")
        )
        name = "about" if not place else place.strip("/").partition("/")[0]
        return getattr(self, "answer_" + name.replace("-", "_").replace(".git", "lfs"))(asked, place)

    def answer_about(self, asked: Asked, place: str) -> Answer:
        if not self.trees:
            return answer_json({"error": "none"}, 404, NOT_FOUND)
        return answer_json({"id": self.repo, "sha": self.head, "private": True, "siblings": []})

    answer_revision = answer_about

    def answer_repos(self, asked: Asked, place: str) -> Answer:
        self.trees.append({".gitattributes": b""})
        return answer_json({"url": f"{self.url}/datasets/{self.repo}", "name": self.repo, "id": "1"})

    def answer_validate_yaml(self, asked: Asked, place: str) -> Answer:
        return answer_json({"errors": [], "warnings": []})

    def answer_preupload(self, asked: Asked, place: str) -> Answer:
        modes = [(each["path"], each["path"].endswith(".parquet")) for each in asked.json()["files"]]
        return answer_json({"files": [
            {"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": None}
            for path, large in modes
        ]})  # fmt: skip

    def answer_lfs(self, asked: Asked, place: str) -> Answer:
        if place.endswith("/verify"):
            return Answer()
        objects = []
        for each in asked.json()["objects"]:
            upload = {"upload": {"href": f"{self.url}/put/{each['oid']}"}}
            objects.append(each | ({} if each["oid"] in self.store else {"actions": upload}))
        return answer_json({"transfer": "basic", "objects": objects})

    def answer_commit(self, asked: Asked, place: str) -> Answer:
        tree = dict(self.trees[-1])
        for line in asked.body.decode().splitlines():
            told = json.loads(line)
            value = told["value"]
            if told["key"] == "file":
                tree[value["path"]] = base64.b64decode(value["content"])
            elif told["key"] == "lfsFile":
                assert value["oid"] in self.store
                tree[value["path"]] = value["oid"]
            elif told["key"] == "deletedFile":
                del tree[value["path"]]
        self.trees.append(tree)
        return answer_json({"commitOid": self.head, "commitUrl": f"{self.url}/datasets/{self.repo}/commit/{self.head}"})

    def answer_tree(self, asked: Asked, place: str) -> Answer:
        folder = "".join(f"{part}/" for part in unquote(place).split("/")[3:])
        below = {path.removeprefix(folder): path for path in sorted(self.trees[-1]) if path.startswith(folder)}
        if asked.query.get("recursive") == "true":
            return answer_json([self.describe(path, self.trees[-1][path]) for path in below.values()])
        files = [self.describe(path, self.trees[-1][path]) for name, path in below.items() if "/" not in name]
        folders = {name.partition("/")[0]: "directory" for name in below if "/" in name}
        told = [{"type": kind, "path": folder + name, "oid": "0" * 40} for name, kind in folders.items()]
        return answer_json([*files, *told])

    def describe(self, path: str, content: str | bytes) -> dict:
        small = content if isinstance(content, bytes) else b"pointer to " + content.encode()
        told = {"type": "file", "path": path, "oid": hashlib.sha1(b"blob %d\0" % len(small) + small).hexdigest()}
        if isinstance(content, bytes):
            return told | {"size": len(content)}
        size = len(self.store[content])
        return told | {"size": size, "lfs": {"oid": content, "size": size, "pointerSize": 134}}

    def answer_refs(self, asked: Asked, place: str) -> Answer:
        tags = [
            {"name": name, "ref": f"refs/tags/{name}", "targetCommit": commit} for name, commit in self.tags.items()
        ]
        return answer_json({"branches": [], "converts": [], "tags": tags})

    def answer_tag(self, asked: Asked, place: str) -> Answer:
        self.tags[asked.json()["tag"]] = place.rpartition("/")[2]
        return Answer()

    def answer_resolve(self, asked: Asked, place: str) -> Answer:
        path = place.split("/", 3)[3]
        if path not in self.trees[-1]:
            return answer_json({"error": "none"}, 404, {"X-Error-Code": "EntryNotFound"})
        content = self.trees[-1][path]
        body = content if isinstance(content, bytes) else self.store[content]
        digest = hashlib.sha1(body).hexdigest()
        return Answer(body=body, headers={"X-Repo-Commit": self.head, "ETag": f'"{digest}"'})
