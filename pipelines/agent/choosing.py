"""Choose the anchor's picture: rank the candidates and take the first that passes every check.

OpenSearch-VL, section 3.1 (anchor-aware grounding), with the checks I3 to I8 of research/quality.md.

Pictures at hand are ranked together. Where some must be fetched, the metadata of their files orders the candidates, and
they are fetched one after another until one passes: most anchors need the first alone.
"""

import asyncio
import hashlib
import math
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from pipelines.agent.depicting import (
    CandidateLister,
    Dropped,
    Listed,
    MetadataRanker,
    PictureCandidate,
    Ranked,
    Ranker,
    RemoteCandidate,
    check_depiction,
    check_points,
    choose_distractors,
    find_depicts,
    weigh_file,
)
from pipelines.agent.observations import credit_picture
from pipelines.agent.picture_search import LocalImageSearch
from pipelines.agent.pictures import Reader, Reading
from pipelines.checks.legibility import check_readable
from pipelines.checks.pictures import (
    check_copies,
    check_parts,
    check_picture,
    check_simple,
    check_size,
    check_use,
    rate_ease,
)
from pipelines.checks.verdicts import Check, CheckResult, run_checks
from pipelines.config.settings import GroundingsConfig
from pipelines.corpus.images import describe_image
from pipelines.errors import RecordFailed, Unavailable
from pipelines.ids import digest_value
from pipelines.pictures import (
    MAX_BYTES,
    TRAINING_PIXELS,
    PictureStore,
    Probe,
    encode_picture,
    open_pixels,
    probe_picture,
)
from pipelines.services.protocols import ImageSearch, PictureFile
from schemas.datasets import Depiction, Ease, FetchedPicture, Picture
from schemas.proofs import Answer

VERSION = 2
"""Version of the order of the checks and of their inputs; part of the choice's identity."""
FETCHED_OTHERS = 2
"""Lead pictures of others of the anchor's type that are fetched with each question's, to be searched among."""
HITS = 5
"""Results of the search by picture that says how easily the anchor is found."""
OPEN = 16
"""Pictures examined in one event loop at once: files of many megabytes wait for OCR in memory."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a picture has to show, and what may not be read in it."""

    node: int
    path: tuple[int, ...]
    """The other nodes of the question."""
    title: str
    qid: str
    lead: str
    """File name of the article's lead picture, empty without one."""
    names: Sequence[Sequence[str]]
    """Of every node, the anchor's first."""
    answer: Answer
    words: frozenset[str]
    """That tell nothing: the types of the nodes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen picture with its depiction, or the faults of the best candidate."""

    picture: Picture | None = None
    depiction: Depiction | None = None
    refused: tuple[CheckResult, ...] = ()
    fetched: tuple[FetchedPicture, ...] = ()
    """What was fetched on the way and stands on the anchor's page or was chosen."""


@dataclass(frozen=True, slots=True)
class EaseRater:
    """Says how easily a search by picture finds an anchor, with its picture and with that at training resolution.

    Attributes:
        search: as the agent will search.
        pictures: where the pictures lie.
        near: distance up to which it found the very picture, in the search's own measure.
    """

    search: ImageSearch
    pictures: PictureStore
    near: float = 4.0

    @property
    def identity(self) -> str:
        return digest_value([HITS, self.near, TRAINING_PIXELS, self.search.identity])

    async def rate(self, picture: Picture, title: str) -> tuple[Ease, Ease]:
        """Return the ease of a picture in the store, and of what is left of it for training."""
        whole = PictureFile(picture.sha256, self.pictures.path(picture.sha256, picture.extension))
        ease, shrink = await self._rate(whole, title), find_shrink(picture, TRAINING_PIXELS)
        if shrink >= 1.0:
            return ease, ease
        data = await asyncio.to_thread(self.pictures.read, picture)
        small = await asyncio.to_thread(_shrink_picture, data, shrink)
        # The small copy lives only as long as the search.
        with tempfile.TemporaryDirectory(prefix="synth-") as folder:
            file = PictureFile(hashlib.sha256(small).hexdigest(), Path(folder) / "small.jpg")
            await asyncio.to_thread(file.path.write_bytes, small)
            return ease, await self._rate(file, title)

    async def _rate(self, file: PictureFile, title: str) -> Ease:
        return rate_ease(await self.search.search_image(file, HITS), title, self.near)[0]


def find_shrink(picture: Picture | Probe, pixels: int) -> float:
    """Return the factor by which a picture is shrunk for training; 1 or more where it is small enough."""
    return math.sqrt(pixels / (picture.width * picture.height))


@dataclass(frozen=True, slots=True)
class _Look:
    ranked: Ranked
    data: bytes
    probe: Probe
    reading: Reading | None = None
    small: tuple[str, ...] = ()
    """Lines that can be read at training resolution."""


@dataclass(frozen=True)
class PictureChooser:
    """Everything that decides which picture stands for an anchor.

    Attributes:
        rater: says how easily the anchor is found; None where the pictures to be searched are not all known yet.
        copies: finds pictures of the corpus by perceptual hash.
        reader: OCR; without one, readable names are not checked.
    """

    pictures: PictureStore
    lister: CandidateLister
    ranker: Ranker
    rater: EaseRater | None
    copies: LocalImageSearch
    reader: Reader | None
    settings: GroundingsConfig
    _slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = field(
        init=False, repr=False, compare=False, default_factory=WeakKeyDictionary
    )
    """By event loop: a semaphore belongs to one."""

    @property
    def identity(self) -> str:
        parts = [self.lister.identity, self.ranker.identity, self.copies.identity]
        parts += ["" if part is None else part.identity for part in (self.rater, self.reader)]
        return digest_value([VERSION, self.settings.min_side, TRAINING_PIXELS, *parts])

    async def choose(self, anchor: Anchor, candidates: Sequence[Listed]) -> Choice:
        """Return the best candidate that passes every check, or the faults of the best one if none passes."""
        refused: tuple[CheckResult, ...] = ()
        fetched: list[PictureCandidate] = []
        for candidate in await self._order(anchor, candidates):
            ranked = candidate if isinstance(candidate, Ranked) else await self._open(candidate, anchor, fetched)
            if isinstance(ranked, CheckResult):
                refused = refused or (ranked,)
                continue
            async with self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(OPEN)):
                look, found = await self._examine(ranked, anchor)
                if look is not None and not found:
                    choice = await self._take(look, anchor, len(candidates))
                    return replace(choice, fetched=_list_fetched(fetched, anchor, ranked.candidate))
            refused = refused or found
        refused = refused or (CheckResult("FAIL", "picture-unusable", "no candidate can be opened"),)
        return Choice(refused=refused, fetched=_list_fetched(fetched, anchor))

    async def _order(self, anchor: Anchor, candidates: Sequence[Listed]) -> Sequence[Ranked | Listed]:
        at_hand = [each for each in candidates if isinstance(each, PictureCandidate)]
        if len(at_hand) == len(candidates):
            return await self.ranker.rank(anchor.node, anchor.path, at_hand)
        points = {each.image.file: self._weigh(anchor, each)[0] for each in candidates}
        return sorted(candidates, key=lambda each: -points[each.image.file])

    def _weigh(self, anchor: Anchor, candidate: Listed) -> tuple[float, str]:
        return weigh_file(self.lister.corpus, anchor.node, candidate.image, candidate.source)

    async def _open(self, candidate: Listed, anchor: Anchor, fetched: list[PictureCandidate]) -> Ranked | CheckResult:
        if isinstance(candidate, RemoteCandidate):
            refused = run_checks(self._list_early_checks(candidate, anchor))
            found = refused[0] if refused else await self.lister.fetch_candidate(candidate)
            if isinstance(found, CheckResult):
                return found
            if isinstance(found, Dropped):
                return CheckResult("FAIL", found.reason, found.detail)
            fetched.append(found)
            candidate = found
        ranking = await self.ranker.rank(anchor.node, anchor.path, [candidate])
        return ranking[0] if ranking else CheckResult("FAIL", "picture-unusable", f"{candidate.image.file}: broken")

    def _list_early_checks(self, candidate: RemoteCandidate, anchor: Anchor) -> Iterator[Check]:
        image = candidate.image
        yield partial(check_size, image.width, image.height, self.settings.min_side)
        yield partial(check_use, image.title, anchor.title, image.depicts, anchor.qid)
        if isinstance(self.ranker, MetadataRanker):
            yield partial(check_points, *self._weigh(anchor, candidate))

    async def _examine(self, ranked: Ranked, anchor: Anchor) -> tuple[_Look | None, tuple[CheckResult, ...]]:
        opened = await asyncio.to_thread(_open_candidate, ranked.candidate)
        if isinstance(opened, CheckResult):
            return None, (opened,)
        look = _Look(ranked, *opened)
        # Decoding and counting take milliseconds that all other records would wait for.
        found = await asyncio.to_thread(run_checks, self._list_checks(look, anchor))
        if self.reader is None or found:
            return look, found
        try:
            look = replace(look, reading=await self.reader.read(look.data))
            found = await asyncio.to_thread(run_checks, self._list_late_checks(look, anchor))
            return (look, found) if found else (await self._read_small(look), found)
        except RecordFailed as error:
            # What stands in it is not known; another candidate may be read.
            detail = f"{ranked.candidate.image.file}: {error}"
            return look, (*found, CheckResult("UNKNOWN", "picture-readable", detail))

    async def _read_small(self, look: _Look) -> _Look:
        lines = look.reading.lines if look.reading else ()
        shrink = find_shrink(look.probe, TRAINING_PIXELS)
        if self.reader is not None and lines and shrink < 1.0:
            lines = (await replace(self.reader, scales=(shrink,)).read(look.data)).lines
        return replace(look, small=lines)

    def _list_checks(self, look: _Look, anchor: Anchor) -> Iterator[Check]:
        image, probe = look.ranked.candidate.image, look.probe
        yield partial(_check_file, look, self.settings.min_side)
        yield partial(check_use, image.title, anchor.title, image.depicts, anchor.qid)
        yield partial(check_depiction, look.ranked)
        yield partial(check_copies, probe.phash, image.file, anchor.title, self.copies.find_copies)
        yield partial(check_simple, look.data, (image.file, image.source_url))
        yield partial(check_parts, look.data, anchor.title, self.copies.find_copies)

    def _list_late_checks(self, look: _Look, anchor: Anchor) -> Iterator[Check]:
        if look.reading is None:
            return
        image = look.ranked.candidate.image
        yield partial(check_readable, look.reading.lines, anchor.names, anchor.answer, anchor.words)
        if look.reading.area:
            yield partial(check_simple, look.data, (image.file, image.source_url), look.reading.area)

    async def _take(self, look: _Look, anchor: Anchor, candidates: int) -> Choice:
        ranked, image = look.ranked, look.ranked.candidate.image
        picture = await asyncio.to_thread(self.pictures.add_bytes, look.data, credit_picture(image))
        eases: tuple[Ease, Ease] = ("", "") if self.rater is None else await self.rater.rate(picture, anchor.title)
        reading = look.reading
        depiction = Depiction(
            source=ranked.candidate.source,
            ranker=self.ranker.name,
            candidates=candidates,
            score=ranked.score,
            margin=ranked.margin,
            distractors=ranked.distractors,
            over_threshold=ranked.over_threshold,
            articles=len(image.title),
            depicts=find_depicts(image, anchor.qid),
            engines=reading.engines if reading else (),
            text=reading.lines if reading else (),
            text_at_training=look.small,
            ease=eases[0],
            ease_at_training=eases[1],
        )
        return Choice(picture, depiction)


def _list_fetched(
    fetched: Sequence[PictureCandidate], anchor: Anchor, taken: PictureCandidate | None = None
) -> tuple[FetchedPicture, ...]:
    return tuple(FetchedPicture(title=anchor.title, picture=describe_fetched(each)) for each in fetched)


def describe_fetched(candidate: PictureCandidate) -> Picture:
    """Return a fetched candidate as the picture that it is in the store."""
    return describe_image(candidate.image)


def _open_candidate(candidate: PictureCandidate) -> tuple[bytes, Probe] | CheckResult:
    image = candidate.image
    try:
        if candidate.file.path.stat().st_size > MAX_BYTES:
            return CheckResult("FAIL", "picture-unusable", f"{image.file}: over {MAX_BYTES} bytes")
        data = candidate.file.path.read_bytes()
    except OSError as error:
        # The corpus had it: a folder that was moved or is not mounted is no property of the row.
        detail = f"picture {image.file}: {candidate.file.path}: {error.strerror}"
        raise Unavailable(f"{detail}; restore it and run again") from error
    if hashlib.sha256(data).hexdigest() != candidate.file.sha256:
        return CheckResult("FAIL", "picture-unusable", f"{image.file}: other bytes than when the corpus was built")
    try:
        return data, probe_picture(data)
    except RecordFailed as error:
        return CheckResult("FAIL", "picture-unusable", f"{image.file}: {error}")


def _check_file(look: _Look, min_side: int) -> CheckResult:
    image = look.ranked.candidate.image
    result = check_picture(look.probe.width, look.probe.height, image.licence, min_side)
    return result if result.passed else replace(result, detail=f"{image.file}: {result.detail}")


def _shrink_picture(data: bytes, shrink: float) -> bytes:
    shown = open_pixels(data)
    size = (max(1, round(shown.width * shrink)), max(1, round(shown.height * shrink)))
    return encode_picture(shown.resize(size), "jpg")


_FETCHER_VERSION = 1


@dataclass(frozen=True, slots=True)
class DistractorFetcher:
    """Fetches lead pictures of other entities; the same ones for an anchor every time.

    Attributes:
        lister: describes pictures and fetches them.
        count: of pictures for an anchor; those that are at hand are searched anyway and count.
        seed: another one chooses others.
    """

    lister: CandidateLister
    count: int
    seed: int

    @property
    def identity(self) -> str:
        return digest_value([_FETCHER_VERSION, self.count, self.seed, self.lister.identity])

    async def fetch(self, node: int, avoid: Collection[int]) -> tuple[FetchedPicture, ...]:
        """Return the pictures that were fetched, with the articles that they lead."""
        # The first anchor of a type has hundreds of articles read, for which no other record should wait.
        leads = await asyncio.to_thread(self._list_leads, node, avoid)
        made: list[FetchedPicture] = []
        wanted = self.count
        while wanted and leads:
            # One more than is wanted, as some cannot be used; a whole type would fill requests with what nobody needs.
            batch, leads = leads[: wanted + 1], leads[wanted + 1 :]
            titles = {file: title for title, file in batch}
            for candidate in (await self.lister.list_files(list(titles))).found:
                if not wanted:
                    break
                if isinstance(candidate, RemoteCandidate):
                    found = await self.lister.fetch_candidate(candidate)
                    if isinstance(found, Dropped):
                        continue
                    made.append(FetchedPicture(title=titles[found.image.file], picture=describe_fetched(found)))
                wanted -= 1
        return tuple(made)

    def _list_leads(self, node: int, avoid: Collection[int]) -> list[tuple[str, str]]:
        corpus = self.lister.corpus
        others = choose_distractors(corpus, node, avoid, self.count, self.seed)
        pages = [corpus.page(other) for other in others]
        return [(page.title, page.image) for page in pages if page.image]
