"""A MediaWiki that answers ``prop=imageinfo`` and hands out files on loopback."""

import csv
import hashlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from pipelines.names import normalise_file
from tests.pipelines.services.clients.live_servers import Answer, LiveServer, run_handler, say

SAFE = "!$'()*,;:@/"
"""What addresses of files leave as it is."""
JPEG = {"url": "https://u/A.jpg", "width": 800, "height": 600, "size": 1234, "mime": "image/jpeg", "sha1": "a" * 40}


def make_image(**changes) -> dict:
    """Return one entry of ``imageinfo``: extmetadata fields in capitals, others as they are."""
    said = {"LicenseShortName": "CC BY-SA 4.0", "LicenseUrl": "https://l", "Artist": "<a href='//u'>A. Uthor</a>"}
    said |= {name: value for name, value in changes.items() if name[0].isupper()}
    fields = {name: value for name, value in changes.items() if not name[0].isupper()}
    extended = {name: {"value": value, "source": "commons-desc-page"} for name, value in said.items()}
    return JPEG | {"descriptionurl": "https://c/File:A.jpg", "extmetadata": extended} | fields


@dataclass
class CommonsServer(LiveServer):
    """What it holds, and what it was asked."""

    images: dict = field(default_factory=dict)
    """Title to its ``imageinfo``, None for a file page without a file."""
    moved: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    """What a GET of a path brings: bytes, or another answer."""
    found: dict = field(default_factory=dict)
    """Search to the titles it finds, best first."""
    kind: str = "image/png"
    """Media type of all files."""
    answer: Callable[["CommonsServer", dict], dict] | None = None
    """Makes the reply in place of :meth:`reply`."""
    at_once: int = 50
    """Files whose images fit one reply."""
    delay: float = 0.0
    """Seconds before each reply."""

    def __post_init__(self):
        self.respond = self.serve_late

    def serve_late(self, asked):
        """Answer after the delay."""
        return replace(self.serve(asked), hang=self.delay)

    @property
    def fetches(self):
        """The requests for files."""
        return [asked for asked in self.asked if asked.method == "GET"]

    @property
    def url(self):
        """The address of the API."""
        return f"http://127.0.0.1:{self.port}/w/api.php"

    def serve(self, asked):
        """Answer the API or hand out a file."""
        if asked.method == "POST":
            return say(self.answer(self, asked.form) if self.answer else self.reply(asked.form))
        found = self.files.get(asked.path, Answer(404))
        is_file = isinstance(found, bytes)
        if asked.method == "HEAD":
            return Answer(200 if is_file else 503, kind=self.kind)
        return Answer(body=found, kind=self.kind) if is_file else found

    def reply(self, form: dict) -> dict:
        """Answer as MediaWiki does, ``formatversion=2``."""
        if "generator" in form:
            return self.search(form)
        asked = form["titles"].split("|")
        normal = {title: title.replace("_", " ") for title in asked}
        start = int(form.get("iistart", "0"))
        titles = [self.moved.get(normal[title], normal[title]) for title in asked]
        pages = []
        for place, title in enumerate(dict.fromkeys(titles)):
            page = {"ns": 6, "title": title}
            if title in self.images:
                page |= {"pageid": place + 1, "imagerepository": "local" if self.images[title] else ""}
                if self.images[title] and start <= place < start + self.at_once:
                    page["imageinfo"] = self.images[title]
            else:
                page["missing"] = True
            pages.append(page)
        query = {"pages": pages}
        changed = [{"fromencoded": False, "from": old, "to": new} for old, new in normal.items() if old != new]
        if changed:
            query["normalized"] = changed
        renamed = [{"from": old, "to": new} for old, new in self.moved.items() if old in normal.values()]
        if renamed:
            query["redirects"] = renamed
        more = {"continue": {"iistart": str(start + self.at_once), "continue": "||"}}
        return {"query": query} | (more if start + self.at_once < len(pages) else {"batchcomplete": True})

    def search(self, form: dict) -> dict:
        """Answer ``generator=search``: pages in the order of their ids, each with its rank; no query for no hits."""
        titles = self.found.get(form["gsrsearch"], [])[: int(form["gsrlimit"])]
        start = int(form.get("iistart", "0"))
        pages = []
        for place, title in enumerate(titles):
            page = {"pageid": 100 - place, "ns": 6, "title": title, "index": place + 1, "imagerepository": "local"}
            if start <= place < start + self.at_once:
                page["imageinfo"] = self.images[title]
            pages.insert(0, page)
        more = {"continue": {"iistart": str(start + self.at_once), "continue": "||"}}
        done = {"batchcomplete": True, "continue": {"gsroffset": len(titles), "continue": "gsroffset||"}}
        if not titles:
            return {"batchcomplete": True}
        return {"query": {"pages": pages}} | (more if start + self.at_once < len(pages) else done)


@contextmanager
def run_commons(**settings):
    """Run a server until the block ends."""
    with run_handler(CommonsServer(**settings)) as server:
        yield server


@contextmanager
def run_commons_of(folder: Path, **settings):
    """Run a server that has the pictures of a generated world, as its ``images.tsv`` describes them."""
    with run_commons(kind="image/jpeg", **settings) as server:
        with (folder / "images.tsv").open(encoding="utf-8", newline="") as table:
            for row in csv.DictReader(table, delimiter="\t"):
                data = (folder / row["file"]).read_bytes()
                path = f"/wikipedia/commons/{row['sha256'][0]}/{row['sha256'][:2]}/{quote(row['file'], safe=SAFE)}"
                said = {"LicenseShortName": row["licence"], "LicenseUrl": row["licence_url"], "Artist": row["author"]}
                server.files[path] = data
                server.images[f"File:{normalise_file(row['file'])}"] = [
                    make_image(
                        url=f"http://127.0.0.1:{server.port}{path}",
                        width=int(row["width"]),
                        height=int(row["height"]),
                        size=len(data),
                        sha1=hashlib.sha1(data).hexdigest(),
                        descriptionurl=row["source_url"],
                        **said,
                    )
                ]
        yield server
