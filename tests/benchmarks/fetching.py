"""Measures what fetching from Commons costs, and whether a run whose pictures are all fetched is as good as another.

A fake Commons answers after a delay, as a far server does. What one request at a time for every candidate would take
(as synth did before) is measured beside it, over few articles, because it is slow.
"""

import asyncio
import json
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duckdb

from pipelines.agent.choosing import Anchor, PictureChooser
from pipelines.agent.depicting import CandidateLister, MetadataRanker, RemoteCandidate
from pipelines.agent.picture_search import LocalImageSearch
from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import GroundingsConfig
from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.pictures import PictureStore, encode_picture
from pipelines.run.models import make_commons_api, make_file_fetch
from pipelines.services.clients.commons import CommonsApi, CommonsFiles, JoinedMetadata, make_client
from pipelines.services.clients.http import RateLimiter
from pipelines.toy.drawing import paint_landscape, plant_trees
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from schemas.proofs import Answer
from tests.benchmarks.demo import time_command
from tests.benchmarks.measured import Measured
from tests.pipelines.corpus.conftest import HEADER, render_page
from tests.pipelines.services.clients.commons_server import CommonsServer, make_image, run_commons, run_commons_of

ARTICLES = 60
CANDIDATES = 8
FEW = 3
"""Articles whose candidates are all fetched, one request at a time."""
DELAYS = (0.05, 0.5)
ENTITIES = 2_000
CONTACT = "bench@example.org"
SIZE = (640, 520)
PAUSE = 0.5
ANSWER = Answer(surface="9", value="9", type="number", key="number:9", aliases=(), unit="", precision="")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What fetching came to."""

    pictures: int
    seconds: float
    requests: int

    def tell(self, how: str) -> str:
        """Return pictures a minute and requests a picture."""
        return f"{60 * self.pictures / self.seconds:,.0f} a minute, {self.requests / self.pictures:.2f} requests {how}"


def build_articles(folder: Path) -> Corpus:
    """Build a corpus of articles with eight pictures each, of which none is at hand."""
    names = [[f"Bridge {n} view {k}.jpg" for k in range(CANDIDATES)] for n in range(ARTICLES)]
    texts = [
        f"{{{{Infobox bridge|image={lead}}}}} A bridge. " + " ".join(f"[[File:{file}]]" for file in rest)
        for lead, *rest in names
    ]
    pages = [render_page(1 + n, f"Bridge {n}", text, 0, None) for n, text in enumerate(texts)]
    dump = folder / "benchwiki-20250131-pages-articles.xml"
    dump.write_text(HEADER + "".join(pages) + "</mediawiki>\n")
    build_corpus(dump, folder / "corpus")
    return Corpus.open(folder / "corpus")


def draw(seed: int) -> bytes:
    """Return a picture that passes every check."""
    rng = Random(seed)
    picture, canvas, ground, _ = paint_landscape(SIZE, rng)
    plant_trees(canvas, SIZE, rng, ground)
    return encode_picture(picture, "jpg")


def hold_pictures(server: CommonsServer) -> None:
    """Give a server the pictures of all articles; a view of each is the same for all."""
    views = [draw(seed) for seed in range(CANDIDATES)]
    for number in range(ARTICLES):
        for view, data in enumerate(views):
            path = f"/wikipedia/commons/a/ab/Bridge_{number}_view_{view}.jpg"
            server.files[path] = data
            image = make_image(url=f"http://127.0.0.1:{server.port}{path}", width=SIZE[0], height=SIZE[1], sha1="")
            server.images[f"File:Bridge {number} view {view}.jpg"] = [image]


async def choose_all(corpus: Corpus, lister: CandidateLister) -> int:
    """Choose a picture for each article, all at once; return how many were found."""
    settings = GroundingsConfig(ocr=())
    chooser = PictureChooser(
        lister.pictures, lister, MetadataRanker(corpus), None, LocalImageSearch(corpus), None, settings
    )

    async def choose(node: int) -> bool:
        page = corpus.page(node)
        anchor = Anchor(node, (), page.title, "", page.image, ((page.title,),), ANSWER, frozenset())
        listed = await lister.list_candidates(node, anchor.lead)
        return (await chooser.choose(anchor, listed.found)).picture is not None

    return sum(await asyncio.gather(*map(choose, corpus.article_nodes())))


async def fetch_serially(corpus: Corpus, lister: CandidateLister) -> int:
    """Fetch all candidates of a few articles, one after another; return how many articles have one."""
    found = 0
    for node in corpus.article_nodes()[:FEW]:
        listed = await lister.list_candidates(node, corpus.page(node).image)
        fetched = [await lister.fetch_candidate(each) for each in listed.found if isinstance(each, RemoteCandidate)]
        found += bool(fetched)
    return found


def time_fetching(folder: Path, server: CommonsServer, run: Callable[[], Awaitable[int]], articles: int) -> Fetched:
    """Time some fetching, which must find a picture for every article."""
    del server.asked[:]
    started = time.perf_counter()
    pictures = asyncio.run(run())
    seconds = time.perf_counter() - started
    if pictures != articles:
        raise RuntimeError(f"{pictures} of {articles} articles have a picture; see {folder}")
    return Fetched(pictures, seconds, len(server.asked))


def measure_fetching(folder: Path) -> list[Measured]:
    """Measure both ways of fetching at each delay."""
    corpus, measured = build_articles(folder), []
    for delay in DELAYS:
        with run_commons(kind="image/jpeg", delay=delay) as server:
            hold_pictures(server)
            config = make_config(
                read_recipe("demo"), [f"commons.api={server.url}", f"contact={CONTACT}", "commons.fetch=true"]
            )
            alone = make_client(RateLimiter("fake", pause=PAUSE))
            before = CandidateLister(
                corpus, PictureStore(folder / f"before-{delay}"), CANDIDATES,
                CommonsApi(server.url, CONTACT, alone), None, CommonsFiles(server.url, CONTACT, alone),
            )  # fmt: skip
            after = CandidateLister(
                corpus, PictureStore(folder / f"after-{delay}"), CANDIDATES,
                JoinedMetadata(make_commons_api(config)), None, make_file_fetch(config),
            )  # fmt: skip
            serial = time_fetching(folder, server, lambda each=before: fetch_serially(corpus, each), FEW)
            queued = time_fetching(folder, server, lambda each=after: choose_all(corpus, each), ARTICLES)
        place = f"{delay * 1000:.0f} ms, {CANDIDATES} candidates an article"
        measured += [
            Measured(f"pictures, all candidates one after another ({place})", serial.tell("a picture")),
            Measured(f"pictures, as synth fetches ({place})", queued.tell("a picture")),
        ]
    return measured


@dataclass(frozen=True, slots=True)
class Sought:
    """What the searches by picture and the rollouts of a run came to."""

    searches: int
    named: int
    """Searches by the question's own picture that name the anchor's page."""
    rollouts: int
    answered: int
    refused: int
    """Questions that one search by picture answers."""

    @classmethod
    def read(cls, workspace: Path, stages: list[dict[str, object]]) -> "Sought":
        """Read a finished run."""
        (place,) = (workspace / "stages" / "rollouts").iterdir()
        rows = f"read_parquet('{place}/part-*.parquet')"
        step = "step.tool = 'image_search' and json_extract_string(step.arguments, '$.image') = 'img_1'"
        titles = "list_transform(step.observation.results, lambda found: found.title)"
        searched = (
            f"from (select path, unnest(steps) as step from {rows}) where {step} and step.observation is not null"
        )
        searches, named = _ask(f"select count(*), count(*) filter (list_contains({titles}, path[1])) {searched}")
        rollouts, answered = _ask(f"select count(*), count(*) filter (answer <> '') from {rows}")
        rejected = {stage["stage"]: stage["rejected"] for stage in stages}["difficulty"]
        assert isinstance(rejected, dict)
        return cls(searches, named, rollouts, answered, rejected.get("solved-by-one-image-search", 0))


def _ask(query: str) -> tuple[int, int]:
    ((one, other),) = duckdb.sql(query).fetchall()
    return int(one), int(other)


def run_demo(workspace: Path, *settings: str) -> Sought:
    """Run the demo's recipe over a world."""
    given = [part for setting in settings for part in ("--set", setting)]
    document = json.loads(time_command("run", "--workspace", workspace, *given, "--json").out)
    return Sought.read(workspace, document["stages"])


def measure_runs(folder: Path) -> list[Measured]:
    """Measure a run whose pictures are all fetched beside one that has them at hand."""
    world, bare = folder / "world", folder / "bare"
    write_world(world, WorldConfig(entities=ENTITIES, seed=7, missing=0.1))
    shutil.copytree(world, bare, ignore=shutil.ignore_patterns("images"))
    local = run_demo(folder / "local", f"corpus.world={world}")
    with run_commons_of(world / "images") as server:
        reached = (f"commons.api={server.url}", f"contact={CONTACT}", "commons.pause=0", "commons.rate=1000")
        fetched = run_demo(folder / "fetched", f"corpus.world={bare}", "commons.fetch=true", *reached)
    return tell(local, fetched)


def tell(local: Sought, fetched: Sought) -> list[Measured]:
    """Return the rows of the table."""
    place = f"demo world of {ENTITIES:,} entities"
    answered = [run.answered / run.rollouts for run in (local, fetched)]
    return [
        Measured(
            f"searches by a question's picture that name its page, all pictures fetched ({place})",
            f"{fetched.named} of {fetched.searches}, {fetched.named / fetched.searches:.1%}",
            ">= 95%",
        ),
        Measured("the same, all pictures at hand", f"{local.named} of {local.searches}"),
        Measured(
            "questions refused because one search by picture answers them, fetched and at hand",
            f"{fetched.refused}, {local.refused}",
            "equal",
        ),
        Measured(
            "rollouts with an answer, fetched and at hand",
            f"{answered[1]:.1%}, {answered[0]:.1%}",
            "within 3 points",
        ),
    ]


def measure(folder: Path) -> list[Measured]:
    """Measure fetching alone, then in a run."""
    return measure_fetching(folder) + measure_runs(folder)
