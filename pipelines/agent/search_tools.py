"""The tools that search and read: by words, by picture, and one page by its address."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pipelines.addresses import ForbiddenAddress, check_address
from pipelines.agent.contamination import is_blocked
from pipelines.agent.cropping import cut_picture
from pipelines.agent.layout import Shown, cut_text, render_hits, render_page
from pipelines.agent.observing import (
    LONGEST_DETAIL,
    ImageStore,
    Outcome,
    credit_picture,
    refuse_call,
    show_results,
    show_text,
)
from pipelines.agent.passages import choose_passages
from pipelines.agent.results import LONGEST_URL, keep_result, keep_results
from pipelines.agent.summarising import LONGEST, Summariser
from pipelines.agent.toolspecs import ImageSearchArguments, TextSearchArguments, VisitArguments
from pipelines.backends.protocols import (
    ImageHit,
    ImageSearch,
    PageNotFound,
    PageReader,
    PageText,
    PictureFile,
    TextHit,
    TextSearch,
)
from schemas.groundings import Picture
from schemas.rollouts import Observation, RolloutImage

IMAGE_HITS = 5
LEAST_SHOWN = 28
"""Pixels of the shorter side of a thumbnail that is shown: models refuse a conversation for a sliver of a banner."""
NO_SUMMARY = "no-summary"
HitT = TypeVar("HitT", TextHit, ImageHit)


@dataclass(frozen=True, slots=True)
class Read:
    """What is shown of one page."""

    text: str
    source: str = ""
    """The whole page, where something else than its beginning is shown."""
    whole: bool = True
    """False where a summary was wanted and there is none."""


@dataclass(frozen=True, slots=True)
class SearchTools:
    """The tools over a tool box's backends; its attributes are described there."""

    text_search: TextSearch
    image_search: ImageSearch
    pages: PageReader
    store: ImageStore
    summariser: Summariser | None
    blocked_hosts: tuple[str, ...]
    snippet_limit: int
    page_limit: int
    pages_read: int
    thumbnails: int
    online: bool

    async def search_text(self, arguments: TextSearchArguments) -> Outcome:
        """Return pages found by words; the best ones are read and summed up where there is a summariser."""
        found = await self.text_search.search_text(arguments.query, arguments.top_k)
        hits = self._leave_out(found)
        reads = [Read(cut_text(" ".join(hit.snippet.split()), self.snippet_limit)) for hit in hits]
        if self.summariser is not None:
            best = zip(hits[: self.pages_read], reads, strict=False)
            summed = await asyncio.gather(*(self._sum_up(hit, read, arguments.query) for hit, read in best))
            reads[: len(summed)] = summed
        shown = [Shown(hit.url, hit.title, read.text) for hit, read in zip(hits, reads, strict=True)]
        text = render_hits(shown, max(self.snippet_limit, LONGEST)) or "No page was found for these words."
        warning = "" if all(read.whole for read in reads) else NO_SUMMARY
        outcome = show_results(text, keep_results(hits), (), warning)
        raw = "\n".join((text, *(read.source for read in reads)))
        return _mark(replace(outcome, raw=raw), found, self.blocked_hosts)

    async def _sum_up(self, hit: TextHit, passage: Read, query: str) -> Read:
        """Return a page that was found, summed up for the query; its passage where the page cannot be read."""
        try:
            page = await self.pages.read_page(hit.url)
        except (PageNotFound, ForbiddenAddress):
            return passage
        if is_blocked(page.url, self.blocked_hosts):
            return passage
        read = await self._read(page, query, self.snippet_limit)
        return read if read.whole else replace(passage, source=read.source, whole=False)

    async def search_image(self, arguments: ImageSearchArguments, image: RolloutImage, known: int) -> Outcome:
        """Return pages that show a picture like one of the rollout's, or like a part of it.

        Args:
            arguments: the part, if any.
            image: the picture.
            known: how many pictures the rollout has; a thumbnail that is shown takes the next number.
        """
        what, picture = image.id, image.picture
        if arguments.box:
            picture = await asyncio.to_thread(self._cut, arguments, image.picture)
            what = f"this part of {image.id}"
        file = PictureFile(picture.sha256, self.store.path(picture.sha256, picture.extension))
        found = await self.image_search.search_image(file, IMAGE_HITS)
        hits = self._leave_out(found)
        names = _name_thumbnails(hits, self.thumbnails, known)
        results = tuple(keep_result(hit, names.get(_find_sha(hit), "")) for hit in hits)
        shown = [
            Shown(hit.url, hit.title, cut_text(" ".join(hit.snippet.split()), self.snippet_limit), result.image)
            for hit, result in zip(hits, results, strict=True)
        ]
        text = render_hits(shown, self.snippet_limit) or f"No page shows a picture like {what}."
        pictures = {hit.thumbnail.sha256: hit.thumbnail for hit in hits if hit.thumbnail is not None}
        images = tuple(RolloutImage(id=name, picture=pictures[sha256]) for sha256, name in names.items())
        return _mark(show_results(text, results, images), found, self.blocked_hosts)

    def _cut(self, arguments: ImageSearchArguments, picture: Picture) -> Picture:
        """Return a part of a picture, stored; it has no name among the rollout's pictures."""
        data = cut_picture(self.store.read(picture), arguments.box, arguments.unit)
        return self.store.add_bytes(data, credit_picture(picture))

    async def visit(self, arguments: VisitArguments) -> Outcome:
        """Return one page: summed up for the goal where there is a summariser, else as much of it as is allowed."""
        url = arguments.url
        try:
            if self.online:
                check_address(url)
            if is_blocked(url, self.blocked_hosts):
                return _refuse_host(url)
            page = await self.pages.read_page(url)
        except PageNotFound:
            return refuse_call(
                "unknown-page", f"No page can be read at {url}; use another address that a search returned."
            )
        except ForbiddenAddress as error:
            # Of the address itself, of one that it redirects to, or of what its name resolves to.
            return refuse_call("forbidden-address", cut_text(f"{error}.", LONGEST_DETAIL))
        if is_blocked(page.url, self.blocked_hosts):
            return _refuse_host(page.url)
        read = await self._read(page, arguments.goal, self.page_limit)
        text = render_page(Shown(page.url, page.title, read.text), self.page_limit)
        outcome = show_text(text, "" if read.whole else NO_SUMMARY)
        return replace(outcome, raw=f"{text}\n{read.source}")

    async def _read(self, page: PageText, goal: str, limit: int) -> Read:
        if self.summariser is None or not goal.strip():
            return Read(choose_passages(page.text, goal, limit))
        summary = await self.summariser.summarise(goal, page.title, page.text, limit)
        return Read(summary.text, page.text, summary.whole)

    def _leave_out(self, hits: Sequence[HitT]) -> tuple[HitT, ...]:
        """Return the hits without those on blocked hosts, and those that nobody could visit."""
        hosts = self.blocked_hosts
        return tuple(hit for hit in hits if len(hit.url) <= LONGEST_URL and not is_blocked(hit.url, hosts))


def _mark(outcome: Outcome, found: Sequence[TextHit | ImageHit], hosts: tuple[str, ...]) -> Outcome:
    """Return a search's outcome with the flag of what was left out of it."""
    if not any(is_blocked(hit.url, hosts) for hit in found):
        return outcome
    return replace(outcome, observation=_flag_host(outcome.observation))


def _refuse_host(url: str) -> Outcome:
    refused = refuse_call("blocked-host", f"Pages at {url} may not be read: their host publishes datasets.")
    return replace(refused, observation=_flag_host(refused.observation))


def _flag_host(observation: Observation) -> Observation:
    return observation.model_copy(update={"flags": ("dataset-host",)})


def _name_thumbnails(hits: Sequence[ImageHit], most: int, known: int) -> dict[str, str]:
    """Return the names of the thumbnails that are shown, by sha256, best hit first; a picture has one name."""
    pictures = [hit.thumbnail for hit in hits if hit.thumbnail is not None]
    found = dict.fromkeys(each.sha256 for each in pictures if min(each.width, each.height) >= LEAST_SHOWN)
    return {sha256: f"img_{known + number}" for number, sha256 in enumerate(list(found)[:most], start=1)}


def _find_sha(hit: ImageHit) -> str:
    return "" if hit.thumbnail is None else hit.thumbnail.sha256
