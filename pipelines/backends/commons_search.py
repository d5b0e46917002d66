"""Find pictures on Wikimedia Commons by words: MediaWiki's ``generator=search`` among files, with ``imageinfo``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.backends.commons_api import IMAGEINFO, CommonsApi, is_answered, merge_reply, read_page
from pipelines.backends.image_metadata import MOST_FILES, ImageFacts
from pipelines.corpus.images import normalise_file
from pipelines.errors import Unavailable

VERSION = 1
_KIND = "filetype:bitmap"
_MAX_QUERY = 250
"""Characters; the service refuses queries of more than 300."""
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


@dataclass(frozen=True, slots=True)
class CommonsSearch:
    """The search of a MediaWiki with CirrusSearch, asked as politely as its API."""

    api: CommonsApi

    @property
    def identity(self) -> str:
        """Address."""
        return f"commons-search@{VERSION}:{self.api.url}"

    async def search_files(self, query: str, count: int) -> tuple[tuple[str, ImageFacts], ...]:
        """Return pictures for some words; see :class:`pipelines.backends.image_metadata.FileSearch`."""
        words = plain_query(query)
        if not words or count < 1:
            return ()
        form = IMAGEINFO | {
            "generator": "search",
            "gsrsearch": f"{words} {_KIND}",
            "gsrnamespace": "6",
            "gsrlimit": str(min(count, MOST_FILES)),
        }
        pages: dict[str, Mapping[str, Any]] = {}
        further: dict[str, str] = {}
        async with self.api.open_client() as client:
            # Each continuation brings at least one picture.
            for _ in range(min(count, MOST_FILES) + 1):
                reply = await self.api.ask(client, form | further)
                further = self._merge(reply, pages)
                if not further:
                    break
        try:
            return self._read(pages)[:count]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise Unavailable(f"{self.api.url}: a reply of another form ({error!r}); expected imageinfo") from error

    def _merge(self, reply: Mapping[str, Any], pages: dict[str, Mapping[str, Any]]) -> dict[str, str]:
        """Take a reply's pages and return how the pictures of the same pages go on, not the search itself."""
        try:
            further = merge_reply(reply, pages, {}) if "query" in reply else {}
        except (KeyError, TypeError, AttributeError) as error:
            raise Unavailable(f"{self.api.url}: a reply of another form ({error!r}); expected imageinfo") from error
        return further if "iistart" in further else {}

    def _read(self, pages: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, ImageFacts], ...]:
        ranked = sorted(pages.values(), key=lambda page: int(page["index"]))
        left_out = [page["title"] for page in ranked if not is_answered(page, is_last=True)]
        if left_out:
            raise Unavailable(f"{self.api.url} left {len(left_out)} of {len(ranked)} files out, first {left_out[0]!r}")
        found = ((normalise_file(page["title"].partition(":")[2]), read_page(page)) for page in ranked)
        return tuple((file, facts) for file, facts in found if facts is not None)


def plain_query(query: str) -> str:
    """Return the words of a query without anything that the search takes for an operator, at most 250 characters."""
    words = ""
    for match in _WORD.finditer(query[: 4 * _MAX_QUERY]):
        if len(words) + len(match.group()) >= _MAX_QUERY:
            break
        words += f" {match.group()}" if words else match.group()
    return words
