"""PictureCandidate sets for the rankers, over a wiki of drawn buildings that the trained model never saw.

Each entity's article leads with one view of it and says in words how it looks; the candidates are other views, so that
no set holds a picture that the corpus has. Everything goes the product's way: pages, descriptions, distractors, ranker,
check.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from pipelines.agent.depicting import ClipRanker, PictureCandidate, Ranked, check_depiction
from pipelines.corpus.store import Corpus
from pipelines.services.protocols import ImageEncoder, PictureFile
from schemas.corpus import CorpusImage
from tests.clip.buildings import KINDS, Look, draw_jpeg, list_looks, make_name
from tests.toy import box, build_toy_corpus

EACH = 60
"""Entities of each kind; 51 at least, so that there are fifty others."""
CANDIDATES = 8
SEED = 7
"""Decides who is drawn to be compared with."""
Set = tuple[str, tuple[str, ...]]
"""An anchor's title and the titles of those whose views are its candidates."""


@dataclass(frozen=True, slots=True)
class Town:
    """A wiki of drawn buildings."""

    corpus: Corpus
    looks: Mapping[str, Look]
    """By title."""
    strangers: Mapping[str, Look]
    """Of whom no article is about."""
    views: Mapping[str, PictureCandidate]
    """A view that no article shows, by the title of whom it shows."""


@dataclass(frozen=True, slots=True)
class Sets:
    """PictureCandidate sets."""

    right: list[Set]
    """One view is the anchor's, the others are of others in the wiki."""
    wrong: list[Set]
    """All views are of others in the wiki."""
    strange: list[Set]
    """All views are of strangers."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one candidate set."""

    ranked: tuple[Ranked, ...]
    shown: tuple[str, ...]
    """Whom each shows."""

    def find_taken(self) -> str:
        """Return whom the picture shows that the stage would take, the first to pass; empty for a refused set."""
        passing = (who for who, each in zip(self.shown, self.ranked, strict=True) if check_depiction(each).passed)
        return next(passing, "")


def choose_looks(seed: int = 99) -> tuple[dict[str, Look], dict[str, Look]]:
    """Return the entities of the wiki and as many strangers: names and looks, all of them different."""
    rng = Random(seed)
    known: dict[str, Look] = {}
    strangers: dict[str, Look] = {}
    for kind in KINDS:
        for number, look in enumerate(rng.sample(list_looks(kind), 2 * EACH)):
            name = make_name(rng, kind)
            while name in known or name in strangers:
                name = make_name(rng, kind)
            (known if number % 2 else strangers)[name] = look
    return known, strangers


def build_town(folder: Path, looks: Mapping[str, Look], strangers: Mapping[str, Look], seed: int = 1) -> Town:
    """Draw the pictures and build the corpus; the views are drawn with other numbers than the lead pictures."""
    images, others = folder / "images", folder / "views"
    images.mkdir(parents=True)
    others.mkdir()
    rows = ["file\tauthor\tlicence\tlicence_url\tsource_url"]
    pages = {}
    for title, look in looks.items():
        (images / f"{title}.jpg").write_bytes(draw_jpeg(look, Random(f"{seed}:lead:{title}")))
        rows.append(f"{title}.jpg\tA\tCC0\t\t")
        pages[title] = box(look.kind, f"'''{title}''' is {look.caption()}.", f"image = {title}.jpg")
    (images / "images.tsv").write_text("\n".join(rows) + "\n")
    corpus = build_toy_corpus(folder, pages, {})
    everybody = dict(looks) | dict(strangers)
    views = {title: _draw_view(others, title, look, seed) for title, look in everybody.items()}
    return Town(corpus, looks, strangers, views)


def list_sets(town: Town, seed: int = 3) -> Sets:
    """Return three sets for each entity, all views of its kind."""
    rng = Random(seed)
    sets = Sets([], [], [])
    for title, look in town.looks.items():
        same = [other for other, seen in town.looks.items() if seen.kind == look.kind and other != title]
        mixed = [*rng.sample(same, CANDIDATES - 1), title]
        rng.shuffle(mixed)
        sets.right.append((title, tuple(mixed)))
        sets.wrong.append((title, tuple(rng.sample(same, CANDIDATES))))
        unknown = [other for other, seen in town.strangers.items() if seen.kind == look.kind]
        sets.strange.append((title, tuple(rng.sample(unknown, CANDIDATES))))
    return sets


async def run_sets(town: Town, encoder: ImageEncoder, sets: Sequence[Set]) -> list[Outcome]:
    """Rank every set."""
    ranker = ClipRanker(town.corpus, encoder, SEED)
    shows = {candidate.file.sha256: title for title, candidate in town.views.items()}
    outcomes = []
    for anchor, titles in sets:
        node = town.corpus.find(anchor)
        if node is None:
            raise LookupError(anchor)
        ranked = await ranker.rank(node, [node], [town.views[title] for title in titles])
        outcomes.append(Outcome(ranked, tuple(shows[each.candidate.file.sha256] for each in ranked)))
    return outcomes


def rank_sets(town: Town, encoder: ImageEncoder, sets: Sequence[Set]) -> list[Outcome]:
    """As :func:`run_sets`, from outside an event loop."""
    return asyncio.run(run_sets(town, encoder, sets))


def share(claims: Iterable[bool]) -> float:
    """Return the share of claims that hold."""
    return fmean(claims)


def _draw_view(folder: Path, title: str, look: Look, seed: int) -> PictureCandidate:
    data = draw_jpeg(look, Random(f"{seed}:view:{title}"))
    sha256 = hashlib.sha256(data).hexdigest()
    path = folder / f"{sha256}.jpg"
    path.write_bytes(data)
    image = CorpusImage(
        file=f"{sha256[:12]}.jpg", title=(), path=path.name, sha256=sha256, width=0, height=0, format="jpg", author="A",
        licence="CC0", licence_url="", source_url="", phash="", error="",
    )  # fmt: skip
    return PictureCandidate(image, "page", PictureFile(sha256, path))
