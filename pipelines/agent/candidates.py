"""The pictures that may stand for an anchor: its infobox's, the others of its article, and what a search finds.

Who may use a file, its format and its size are judged by its row before anything is fetched.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipelines.checks.pictures import is_free_licence
from pipelines.corpus.images import find_page_images
from pipelines.corpus.store import Corpus, CorpusImage
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.pictures import PictureSource, PictureStore
from pipelines.services.image_metadata import (
    MOST_FILES,
    FileFetch,
    FileSearch,
    ImageFacts,
    ImageMetadata,
    RemoteFile,
    make_row,
)
from pipelines.services.protocols import PictureFile
from schemas.datasets import CandidateSource

_VERSION = 1
_MISSING = "missing"
_SEARCHED = 3
"""Files asked of a search for each candidate wanted: many are of no use."""


@dataclass(frozen=True, slots=True)
class PictureCandidate:
    """A picture that can be looked at."""

    image: CorpusImage
    """What is known of it; of a fetched picture with the sha256, size and hash of what was fetched, and no path."""
    source: CandidateSource
    file: PictureFile


@dataclass(frozen=True, slots=True)
class Dropped:
    """A picture that is none, and why."""

    file: str
    reason: str
    """``no-picture`` (not at hand), ``picture-not-free`` or ``picture-unusable``: words of ``GroundingReason``."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CandidateList:
    """The candidates of an anchor in order, and what was dropped on the way to them."""

    found: tuple[PictureCandidate, ...]
    dropped: tuple[Dropped, ...]


class _Unfit(Exception):
    """A file cannot be a candidate."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(slots=True)
class _Progress:
    """A list in the making."""

    limit: int
    facts: dict[str, ImageFacts] = field(default_factory=dict)
    """What a service said, by file."""
    seen: set[str] = field(default_factory=set)
    found: list[PictureCandidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.found) >= self.limit


@dataclass(frozen=True, slots=True)
class CandidateLister:
    """Lists the pictures of an article; nothing is asked of a network unless a service is given.

    Attributes:
        corpus: whose articles and pictures they are.
        pictures: where fetched pictures are kept.
        limit: candidates at most (K).
        metadata: describes files of which the corpus knows too little.
        search: finds further files where the article has fewer than ``limit`` of use.
        fetch: fetches what is not at hand.
    """

    corpus: Corpus
    pictures: PictureStore
    limit: int = 8
    metadata: ImageMetadata | None = None
    search: FileSearch | None = None
    fetch: FileFetch | None = None

    @property
    def identity(self) -> str:
        """All that decides a list beside the corpus."""
        services = [service.identity if service else "" for service in (self.metadata, self.search, self.fetch)]
        return digest_value([_VERSION, self.limit, *services])

    async def list_candidates(self, node: int, lead: str) -> CandidateList:
        """Return an article's pictures: its lead picture, the others in the order of the page, then search results.

        Each file counts once. Looking ends with the candidate that makes the list full.

        Args:
            node: of the article.
            lead: file name of its lead picture with spaces, empty when it has none.

        Raises:
            RateLimited, Unavailable: of the services.
            ConfigError: a service's address is none, or a picture's path leads out of the corpus's folder.
        """
        state = _Progress(self.limit)
        page = find_page_images(self.corpus.text(node), self.corpus.manifest.language)
        sources: dict[str, CandidateSource] = {lead: "infobox"} if lead else {}
        await self._take_files(state, sources | {file: "page" for file in page if file != lead})
        if not state.is_full and self.search is not None:
            results = await self.search.search_files(self.corpus.page(node).title, self.limit * _SEARCHED)
            state.facts = dict(results) | state.facts
            await self._take_files(state, {file: "search" for file, _ in results})
        return CandidateList(tuple(state.found), tuple(state.dropped))

    async def _take_files(self, state: _Progress, sources: Mapping[str, CandidateSource]) -> None:
        files = [file for file in sources if file not in state.seen]
        state.seen.update(files)
        for start in range(0, len(files), MOST_FILES):
            batch = files[start : start + MOST_FILES]
            images = {file: self.corpus.image(file) for file in batch} if not state.is_full else {}
            await self._ask_about(state, images)
            for file, image in images.items():
                if state.is_full:
                    return
                try:
                    described = _choose_row(file, image, state.facts.get(file))
                    state.found.append(await self._take_file(state, file, described, sources[file]))
                except _Unfit as unfit:
                    state.dropped.append(Dropped(file, unfit.reason, f"{file}: {unfit.detail}"))

    async def _ask_about(self, state: _Progress, images: Mapping[str, CorpusImage | None]) -> None:
        """Ask what is known of the files that could be fetched if more were known."""
        if self.metadata is None or self.fetch is None:
            return
        unknown = [file for file, image in images.items() if file not in state.facts and _is_vague(image)]
        if unknown:
            told = await self.metadata.describe_images(unknown)
            state.facts |= {file: facts for file, facts in told.items() if facts is not None}

    async def _take_file(
        self, state: _Progress, file: str, image: CorpusImage | None, source: CandidateSource
    ) -> PictureCandidate:
        """Return a file as a candidate, fetched if it is not at hand.

        Raises:
            _Unfit: if it cannot be one.
        """
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
        remote = RemoteFile(file, image.url, image.width, facts.sha1 if facts is not None else "")
        return await self._fetch(self.fetch, remote, image, source)

    async def _fetch(
        self, fetch: FileFetch, remote: RemoteFile, image: CorpusImage, source: CandidateSource
    ) -> PictureCandidate:
        credit = PictureSource(image.file, image.author, image.licence, image.licence_url, image.source_url)
        try:
            data = await fetch.fetch_file(remote)
            # Beside the loop: what is decoded would hold up every record under way.
            picture = await asyncio.to_thread(self.pictures.add_bytes, data, credit)
        except RecordFailed as error:
            raise _Unfit("picture-unusable", str(error)) from error
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
        return PictureCandidate(fetched, source, PictureFile(picture.sha256, path))


def _is_at_hand(image: CorpusImage) -> bool:
    return bool(image.path) and image.error != _MISSING


def _check_fit(image: CorpusImage) -> None:
    if image.error:
        raise _Unfit("picture-unusable", image.error)
    if not is_free_licence(image.licence):
        raise _Unfit("picture-not-free", f"licence {image.licence!r}")


def _is_vague(image: CorpusImage | None) -> bool:
    """Say whether more must be known of a picture before it is fetched."""
    if image is None or image.error == _MISSING:
        return True
    return not image.path and not image.error and not (image.url and image.width and image.height and image.licence)


def _choose_row(file: str, image: CorpusImage | None, facts: ImageFacts | None) -> CorpusImage | None:
    """Return the corpus's row of a picture that is at hand, else what the service says of it."""
    if facts is None or (image is not None and _is_at_hand(image)):
        return image
    row = make_row(file, facts)
    return row if image is None else replace(row, title=image.title, depicts=image.depicts)
