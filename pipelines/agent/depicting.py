"""Candidate pictures of an anchor, and scores of how well each depicts it.

Candidates are the infobox's picture and the other pictures of the article. Use, format and size are judged by their
metadata; a candidate that is not at hand is fetched when it is wanted. Rankers score candidates by file metadata or by
an encoder, against distractors of the anchor's type.

The metadata score is the sum of these points, kept within 0 to 1; a picture passes from 0.5 on:

============================  =======  ===========================================================
what                          points   why
============================  =======  ===========================================================
in the infobox                +0.45    editors chose it to show the subject
elsewhere in the article      +0.20    shows something that the article mentions
of no article of its own      +0.10    it came from elsewhere
file named for the anchor     +0.30    the whole of one of its names, word by word
file has a word of its name   +0.10    a word of the title that is not ordinary
no other article leads        +0.05    a picture of one thing is not shown for another
``depicts`` the anchor        +0.35    stated on Commons (P180)
``depicts`` others only       -0.50    Commons states something else
file named for another        -0.30    it begins with another article's title, and no word of the anchor's follows
drawn or a part               -0.50    map, logo, flag, arms, signature, grave and the like in its name
============================  =======  ===========================================================

Distractors are chosen by a hash of the seed, the anchor's title and the distractor's title, not by node numbers, so
another entity in the corpus replaces at most one of them.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pipelines.agent.observations import credit_picture
from pipelines.checks.pictures import is_free_licence
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus import store as descriptions
from pipelines.corpus.dump import strip_qualifier
from pipelines.corpus.images import find_page_images, find_shared_leads
from pipelines.corpus.store import Corpus, describe_entity
from pipelines.errors import ConfigError, RecordFailed
from pipelines.ids import digest_value, draw_unit
from pipelines.names import fold_name, is_common_word
from pipelines.pictures import PictureStore
from pipelines.services.image_metadata import (
    MOST_FILES,
    FileFetch,
    ImageFacts,
    ImageMetadata,
    RemoteFile,
    make_row,
)
from pipelines.services.protocols import ImageEncoder, PictureFile
from schemas.corpus import CorpusImage, Page
from schemas.datasets import CandidateSource

_VERSION = 2
LISTED = 8
"""Pictures compared for an anchor (K)."""
_MISSING = "missing"


@dataclass(frozen=True, slots=True)
class PictureCandidate:
    """A candidate whose file is available."""

    image: CorpusImage
    """What is known of it; of a fetched picture with the sha256, size and hash of what was fetched, and no path."""
    source: CandidateSource
    file: PictureFile


@dataclass(frozen=True, slots=True)
class RemoteCandidate:
    """A candidate that must be fetched first."""

    image: CorpusImage
    """What the corpus or a service says of it."""
    source: CandidateSource
    remote: RemoteFile


Listed = PictureCandidate | RemoteCandidate


@dataclass(frozen=True, slots=True)
class Dropped:
    """A picture that cannot be a candidate, and why."""

    file: str
    reason: str
    """``no-picture`` (not at hand), ``picture-not-free`` or ``picture-unusable``: words of ``GroundingReason``."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CandidateList:
    """The candidates of an anchor in order, and what was dropped on the way to them."""

    found: tuple[Listed, ...]
    dropped: tuple[Dropped, ...]


class _Unfit(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(slots=True)
class _Progress:
    limit: int
    facts: dict[str, ImageFacts] = field(default_factory=dict)
    """What a service said, by file."""
    seen: set[str] = field(default_factory=set)
    found: list[Listed] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.found) >= self.limit

    def finish(self) -> CandidateList:
        return CandidateList(tuple(self.found), tuple(self.dropped))


@dataclass(frozen=True, slots=True)
class CandidateLister:
    """Lists the pictures of an article, and fetches those that are wanted; without services it makes no request.

    Attributes:
        corpus: whose articles and pictures they are.
        pictures: store of fetched pictures.
        limit: most candidates (K).
        metadata: describes files whose metadata the corpus lacks.
        fetch: fetches files that are not in the corpus.
    """

    corpus: Corpus
    pictures: PictureStore
    limit: int = LISTED
    metadata: ImageMetadata | None = None
    fetch: FileFetch | None = None

    @property
    def identity(self) -> str:
        services = [service.identity if service else "" for service in (self.metadata, self.fetch)]
        return digest_value([_VERSION, self.limit, *services])

    async def list_candidates(self, node: int, lead: str) -> CandidateList:
        """Return an article's pictures: its lead picture, then the others in the order of the page.

        Each file counts once. Looking ends with the candidate that makes the list full.
        """
        state = _Progress(self.limit)
        page = find_page_images(self.corpus.text(node), self.corpus.manifest.language)
        sources: dict[str, CandidateSource] = {lead: "infobox"} if lead else {}
        await self._take_files(state, sources | {file: "page" for file in page if file != lead})
        return state.finish()

    async def list_files(self, files: Sequence[str]) -> CandidateList:
        """Return those of some lead pictures that can be used, in order. Raises as :meth:`list_candidates`."""
        state = _Progress(len(files))
        await self._take_files(state, dict.fromkeys(files, "infobox"))
        return state.finish()

    async def fetch_candidate(self, candidate: RemoteCandidate) -> PictureCandidate | Dropped:
        """Return a candidate with its file, or why it cannot be used."""
        assert self.fetch is not None
        image = candidate.image
        try:
            data = await self.fetch.fetch_file(candidate.remote)
            # Beside the loop: what is decoded would hold up every record under way.
            picture = await asyncio.to_thread(self.pictures.add_bytes, data, credit_picture(image))
        except RecordFailed as error:
            return Dropped(image.file, "picture-unusable", f"{image.file}: {error}")
        fetched = replace(
            image,
            sha256=picture.sha256,
            width=picture.width,
            height=picture.height,
            format=picture.extension,
            phash=picture.phash,
            bytes=len(data),
        )
        path = self.pictures.path(picture.sha256, picture.extension)
        return PictureCandidate(fetched, candidate.source, PictureFile(picture.sha256, path))

    async def _take_files(self, state: _Progress, sources: Mapping[str, CandidateSource]) -> None:
        files = [file for file in sources if file not in state.seen]
        state.seen.update(files)
        for start in range(0, len(files), MOST_FILES):
            batch = files[start : start + MOST_FILES]
            images = {file: self.corpus.image(file) for file in batch} if not state.is_full else {}
            await self._ask_about(state, images)
            shared = await self._find_shared(images)
            for file, image in images.items():
                if state.is_full:
                    return
                try:
                    described = _choose_row(file, image, state.facts.get(file), shared.get(file, ()))
                    state.found.append(self._take_file(state, file, described, sources[file]))
                except _Unfit as unfit:
                    state.dropped.append(Dropped(file, unfit.reason, f"{file}: {unfit.detail}"))

    async def _find_shared(self, images: Mapping[str, CorpusImage | None]) -> Mapping[str, tuple[str, ...]]:
        if self.fetch is None or None not in images.values():
            return {}
        # The first call takes seconds, for which no other record should wait.
        pages = self.corpus.table("pages")
        return await asyncio.to_thread(find_shared_leads, pages, self.corpus.digest)

    async def _ask_about(self, state: _Progress, images: Mapping[str, CorpusImage | None]) -> None:
        if self.metadata is None or self.fetch is None:
            return
        unknown = [file for file, image in images.items() if file not in state.facts and _is_vague(image)]
        if unknown:
            told = await self.metadata.describe_images(unknown)
            state.facts |= {file: facts for file, facts in told.items() if facts is not None}

    def _take_file(self, state: _Progress, file: str, image: CorpusImage | None, source: CandidateSource) -> Listed:
        if image is None:
            raise _Unfit("no-picture", "not at hand, and nothing is known of it")
        if _is_at_hand(image):
            _check_fit(image)
            return PictureCandidate(image, source, PictureFile(image.sha256, self.corpus.image_path(file)))
        if self.fetch is None or image.error == _MISSING:
            raise _Unfit("no-picture", "not at hand")
        _check_fit(image)
        if not (image.url and image.width and image.height):
            raise _Unfit("picture-unusable", "its address or its size is not known")
        facts = state.facts.get(file)
        sha1 = facts.sha1 if facts is not None else ""
        return RemoteCandidate(image, source, RemoteFile(file, image.url, image.width, sha1))


def _is_at_hand(image: CorpusImage) -> bool:
    return bool(image.path) and image.error != _MISSING


def _check_fit(image: CorpusImage) -> None:
    if image.error:
        raise _Unfit("picture-unusable", image.error)
    if not is_free_licence(image.licence):
        raise _Unfit("picture-not-free", f"licence {image.licence!r}")


def _is_vague(image: CorpusImage | None) -> bool:
    return image is None or not _is_at_hand(image)


def _choose_row(
    file: str, image: CorpusImage | None, facts: ImageFacts | None, titles: tuple[str, ...]
) -> CorpusImage | None:
    if facts is None or (image is not None and _is_at_hand(image)):
        return image
    row = make_row(file, facts)
    if image is None:
        return replace(row, title=titles)
    return replace(row, title=image.title, depicts=image.depicts)


FILE_EVIDENCE_VERSION = 1
"""Of the table."""
Named = Literal["anchor", "partly", "not", "another"]
"""What a file is named for."""
_SOURCES: dict[CandidateSource, float] = {"infobox": 0.45, "page": 0.20, "search": 0.10}
_NAMED: dict[Named, float] = {"anchor": 0.30, "partly": 0.10, "not": 0.0, "another": -0.30}
_NAMED_WORDS = {"anchor": "it", "partly": "part of its name", "not": "nothing known", "another": "another article"}
_DEPICTS = {True: 0.35, None: 0.0, False: -0.50}
_ONE_ARTICLE = 0.05
_NOT_IT = -0.50
_NOT_IT_WORDS = frozenset(
    "map maps karte carte mapa locator location logo logotype wordmark flag flagge drapeau bandera banner coat arms coa"
    " wappen blason blazon escudo crest emblem seal insignia badge icon signature autograph diagram chart graph plan"
    " scheme schema stamp coin banknote grave gravestone tombstone birthplace plaque".split()
)
_LONGEST_TITLE = 8
"""Words of a file name that are looked up as a title."""
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_SHORTEST_WORD = 3
_PARTICLES = frozenset("a an and at by for from in of on or the to with".split())


def find_depicts(image: CorpusImage, qid: str) -> bool | None:
    """Return whether Commons says that a picture depicts an entity; None where it says nothing."""
    return qid in image.depicts if image.depicts and qid else None


def weigh_file(corpus: Corpus, node: int, image: CorpusImage, source: CandidateSource) -> tuple[float, str]:
    """Return the points, 0..1, of a candidate for an anchor's picture, by the table of this module, and why."""
    page = corpus.page(node)
    stem = _EXTENSION.sub("", image.file)
    names = fold_own_names(corpus, node)
    owned = {word for name in (*names, fold_name(page.title), fold_name(page.type)) for word in name.split()}
    contrary = [word for word in fold_name(stem).split() if word in _NOT_IT_WORDS and word not in owned]
    named, single = _find_named(corpus, node, stem, names), not set(image.title) - {page.title}
    depicts = find_depicts(image, page.qid)
    points = _SOURCES[source] + _NAMED[named] + _DEPICTS[depicts] + _ONE_ARTICLE * single + _NOT_IT * bool(contrary)
    parts = [f"source {source}", f"file named for {_NAMED_WORDS[named]}"]
    parts += [] if single else ["leads other articles"]
    if depicts is not None:
        parts.append("depicts it" if depicts else "depicts others")
    parts += [f"file name says {', '.join(dict.fromkeys(contrary))}"] if contrary else []
    return round(min(max(points, 0.0), 1.0), 2), ", ".join(parts)


@lru_cache(maxsize=1 << 14)
def fold_own_names(corpus: Corpus, node: int) -> frozenset[str]:
    """Return an entity's names, folded, its title without qualifier among them; not those that could be anything's."""
    given = (*corpus.aliases(node), strip_qualifier(corpus.page(node).title))
    names = {fold_name(name) for name in given}
    return frozenset(name for name in names if _is_specific(name))


def _find_named(corpus: Corpus, node: int, stem: str, names: frozenset[str]) -> Named:
    folded = f" {fold_name(stem)} "
    held = max((name for name in names if f" {name} " in folded), key=len, default="")
    title = fold_name(strip_qualifier(corpus.page(node).title))
    own = {word for word in title.split() if _is_telling(word)}
    other, rest = _split_other_title(corpus, node, stem)
    # "Greenland Albedo Change" says where the albedo is; what comes first in a name is not always what is shown.
    if len(other) > len(held) and not own & set(rest.split()):
        return "another"
    if held:
        return "anchor"
    return "partly" if own & set(folded.split()) else "not"


def _split_other_title(corpus: Corpus, node: int, stem: str) -> tuple[str, str]:
    words = stem.replace("_", " ").split()
    for count in range(min(len(words), _LONGEST_TITLE), 0, -1):
        name = " ".join(words[:count]).rstrip(",;")
        found = corpus.find(name)
        if found == node:
            break
        if found is not None and not corpus.page(found).is_disambiguation and _is_specific(fold_name(name)):
            return fold_name(strip_qualifier(name)), fold_name(" ".join(words[count:]))
    return "", ""


def _is_specific(name: str) -> bool:
    words = name.split()
    return any(map(_is_telling, words)) or sum(word not in _PARTICLES for word in words) > 1


def _is_telling(word: str) -> bool:
    return len(word) >= _SHORTEST_WORD and not word.isdigit() and not is_common_word(word)


MAX_SCANNED = 8_192
"""Articles looked at for a type or a domain; of more, so many at equal distances, which do move when some are added."""
KEPT_POOLS = 512
_SPARE = 64
"""Drawn for a whole type beyond those asked for, in place of the anchor, its path and who shares its picture. The draw
is one for all anchors of the type, so that they share what was encoded."""
_SHOWN_POOLS = 1 << 14


def choose_distractors(corpus: Corpus, node: int, avoid: Collection[int], count: int, seed: int) -> tuple[int, ...]:
    """Return entities of an anchor's type, those whose picture is at hand before others; then of its domain.

    The anchor, lists, disambiguation pages and entities that share the anchor's lead picture are never chosen.
    """
    page = corpus.page(node)
    chosen: list[int] = []
    for kind, name, wanted in (("type", page.type, REACH * count), ("domain", page.domain, count)):
        if not name or len(chosen) >= wanted:
            continue
        taken = {node, *avoid, *chosen}
        pool = _list_pool(corpus, kind, name, wanted + _SPARE, seed)
        fitting = [other for other in pool if other not in taken and not _shares_picture(corpus, node, other)]
        fitting.sort(key=lambda other: _rank(corpus, page, other, seed))
        chosen += fitting[: wanted - len(chosen)]
    return tuple(chosen)


@lru_cache(maxsize=_SHOWN_POOLS)
def find_lead_picture(corpus: Corpus, node: int) -> PictureFile | None:
    """Return an article's lead picture where it is at hand and can be used, else None."""
    file = corpus.page(node).image
    image = corpus.image(file) if file else None
    if image is None or image.error or not image.path:
        return None
    try:
        return PictureFile(image.sha256, corpus.image_path(file))
    except ConfigError:  # its path leads outside the folder
        return None


def _rank(corpus: Corpus, page: Page, other: int, seed: int) -> tuple[bool, float]:
    title = corpus.page(other).title
    return find_lead_picture(corpus, other) is None, draw_unit("distractor", seed, page.title, title)


def _shares_picture(corpus: Corpus, node: int, other: int) -> bool:
    file = corpus.page(node).image
    if file and corpus.page(other).image == file:
        return True
    own, shown = find_lead_picture(corpus, node), find_lead_picture(corpus, other)
    return own is not None and shown is not None and own.sha256 == shown.sha256


@lru_cache(maxsize=KEPT_POOLS)
def _list_pool(corpus: Corpus, kind: str, name: str, size: int, seed: int) -> tuple[int, ...]:
    if kind == "type":
        nodes: Iterable[int] = _spread(corpus.nodes_of_type(name).tolist())
    else:
        nodes = (node for node in _spread(corpus.article_nodes()) if corpus.page(node).domain == name)
    drawn = []
    for node in nodes:
        page = corpus.page(node)
        if not page.is_list and not page.is_disambiguation:
            drawn.append((not page.image, draw_unit("pool", seed, name, page.title), node))
    return tuple(node for _, _, node in sorted(drawn)[:size])


def _spread(nodes: list[int] | range) -> list[int] | range:
    return nodes[:: -(-len(nodes) // MAX_SCANNED)] if nodes else nodes


VERSION = 1
REACH = 10
"""Times as many distractors are drawn as are asked for, and those described most like the anchor are taken. Against
twenty drawn at random, one wrong set of eight in eight gets through; against the nearest of many hardly one."""
CODE = "picture-of-another"
THRESHOLD = 0.28
"""Absolute similarity from which a picture is noted as over the threshold (published); the margin decides."""
DISTRACTORS = 20
"""Entities of the anchor's type it is held against, at least: one in 21 passes by chance."""
METADATA_PASSES = 0.5
"""Points of the metadata ranker that a picture needs."""
_DIGITS = 4
"""Similarities are rounded so: another batch size moves the digits after."""
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate and how well it fits."""

    candidate: PictureCandidate
    score: float
    """Cosine similarity to the anchor's description, or points (0..1) from metadata."""
    margin: float | None
    """Score less the best of all others; None with the metadata ranker, and without distractors."""
    distractors: int
    """Entities it was compared with, those of the path not counted."""
    over_threshold: bool | None
    """Whether the score exceeds the absolute threshold; None with the metadata ranker."""
    note: str = ""
    """Who came nearest, or what speaks for and against it; for a reader."""


@dataclass(frozen=True, slots=True)
class MetadataRanker:
    """Ranks by metadata alone, by the table of :mod:`pipelines.agent.depicting`."""

    corpus: Corpus
    name: ClassVar[str] = "metadata"
    identity: ClassVar[str] = f"metadata@{FILE_EVIDENCE_VERSION}"

    async def rank(self, node: int, path: Sequence[int], candidates: Sequence[PictureCandidate]) -> tuple[Ranked, ...]:
        """Order by points; see :meth:`ClipRanker.rank`."""
        ranked = []
        for candidate in candidates:
            points, why = weigh_file(self.corpus, node, candidate.image, candidate.source)
            ranked.append(Ranked(candidate, points, None, 0, None, why))
        return _sort_best_first(ranked)


@dataclass(frozen=True, slots=True)
class ClipRanker:
    """Orders by similarity to a short description of the anchor, and measures the margin to other entities.

    The margin is the similarity of description and picture, less the best of: this picture with the description of any
    other, and any other's lead picture with this description. Others are entities of the anchor's type, those described
    most like it, and the rest of the path.
    """

    corpus: Corpus
    encoder: ImageEncoder
    seed: int
    """Decides which entities are drawn."""

    @property
    def name(self) -> str:
        """The encoder's."""
        return self.encoder.name

    @property
    def identity(self) -> str:
        rules = f"{THRESHOLD}:{DISTRACTORS}:{REACH}:{self.seed}"
        return f"clip@{VERSION}.{descriptions.VERSION}:{rules}:{self.encoder.identity}"

    async def rank(self, node: int, path: Sequence[int], candidates: Sequence[PictureCandidate]) -> tuple[Ranked, ...]:
        """Return the candidates best first, equals in the order given; those that cannot be decoded are left out."""
        if not candidates:
            return ()
        rest = [other for other in dict.fromkeys(path) if other != node]
        # The first anchor of a type has hundreds of articles read, for which no other record should wait.
        drawn, described = await asyncio.to_thread(self._describe_others, node, rest)
        anchor, texts = np.split(await self.encoder.encode_texts(described), [1])
        likeness = np.round(texts[: len(drawn)] @ anchor[0], _DIGITS)
        nearest = np.sort(np.argsort(-likeness, kind="stable")[:DISTRACTORS])
        rows = [*nearest.tolist(), *range(len(drawn), len(texts))]
        nodes = [(*drawn, *rest)[row] for row in rows]
        titles = [self.corpus.page(other).title for other in nodes]
        leads = [(title, find_lead_picture(self.corpus, other)) for title, other in zip(titles, nodes, strict=True)]
        shown = [(title, file) for title, file in leads if file is not None]
        files = [*(candidate.file for candidate in candidates), *(file for _, file in shown)]
        pictures = await encode_readable(self.encoder, files)
        lead = _find_best_lead(anchor[0], [title for title, _ in shown], pictures[len(candidates) :])
        ranked = []
        for candidate, picture in zip(candidates, pictures, strict=False):
            if picture is not None:
                best, note = max(_find_best_text(picture, titles, texts[rows]), lead, key=lambda pair: pair[0])
                score = round(float(anchor[0] @ picture), _DIGITS)
                margin = None if best == -np.inf else round(score - round(best, _DIGITS), _DIGITS)
                over = score > THRESHOLD
                ranked.append(Ranked(candidate, score, margin, len(nearest), over, f"{note}: {best:.3f}"))
        return _sort_best_first(ranked)

    def _describe_others(self, node: int, rest: Sequence[int]) -> tuple[tuple[int, ...], list[str]]:
        drawn = choose_distractors(self.corpus, node, rest, DISTRACTORS, self.seed)
        return drawn, [describe_entity(self.corpus, other) for other in (node, *drawn, *rest)]


Ranker = MetadataRanker | ClipRanker


def _find_best_lead(anchor: Vector, titles: Sequence[str], pictures: Sequence[Vector | None]) -> tuple[float, str]:
    found = [
        (float(anchor @ picture), f"lead picture of {title!r}")
        for title, picture in zip(titles, pictures, strict=True)
        if picture is not None
    ]
    return max(found, key=lambda pair: pair[0], default=(-np.inf, "nobody"))


def _find_best_text(picture: Vector, titles: Sequence[str], texts: Vector) -> tuple[float, str]:
    likeness = texts @ picture
    if not len(likeness):
        return -np.inf, "nobody"
    return float(likeness.max()), f"this picture with {titles[int(np.argmax(likeness))]!r}"


async def encode_readable(encoder: ImageEncoder, files: Sequence[PictureFile]) -> list[Vector | None]:
    """Return a vector a picture, None for one that cannot be decoded. One call, unless one cannot."""

    async def encode_alone(file: PictureFile) -> Vector | None:
        try:
            vector: Vector = (await encoder.encode_pictures([file]))[0]
        except RecordFailed:
            return None
        return vector

    try:
        return list(await encoder.encode_pictures(files))
    except RecordFailed:
        return list(await asyncio.gather(*map(encode_alone, files)))


def _sort_best_first(ranked: Sequence[Ranked]) -> tuple[Ranked, ...]:
    return tuple(sorted(ranked, key=lambda each: -each.score))


def check_depiction(ranked: Ranked) -> CheckResult:
    """Return whether a candidate shows the anchor: by its margin, or by metadata where nothing was encoded."""
    if ranked.over_threshold is None:
        return check_points(ranked.score, ranked.note)
    if ranked.margin is None or ranked.distractors < DISTRACTORS:
        detail = f"{ranked.distractors} entities to compare with, allowed from {DISTRACTORS}"
        return CheckResult("UNKNOWN", CODE, detail)
    # Written so that a margin that is not a number does not pass.
    if ranked.margin > 0.0:
        return PASSED
    return CheckResult("FAIL", CODE, f"margin {ranked.margin:+.3f}, more than 0 is allowed; {ranked.note}")


def check_points(points: float, note: str) -> CheckResult:
    """Return whether metadata alone speaks for a picture; UNKNOWN where too little does."""
    if points >= METADATA_PASSES:
        return PASSED
    return CheckResult("UNKNOWN", CODE, f"{points:.2f} points, allowed from {METADATA_PASSES}: {note}")
