"""Full-text search over the corpus, and a page reader for it."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from pipelines.corpus.store import Corpus
from pipelines.corpus.wikitext import lead_paragraph, plain_text
from pipelines.services.protocols import PageNotFound, PageText, TextHit

VERSION = 2
MEDIA_FILE = re.compile(r"\.(?:jpe?g|png|svg|gif|webp|tiff?|ogg|oga|webm)$", re.IGNORECASE)
"""A fact that is a file name says where the picture is, nothing about the subject."""


@dataclass(frozen=True, slots=True)
class LocalPages:
    """Reads pages of the corpus: infobox facts as ``Key: value`` lines, then plain text.

    Attributes:
        corpus: the open corpus.
        limit: characters of a page's text; a longer page is cut at white space and ends in an ellipsis. The
            caller chooses what of it to show.
    """

    corpus: Corpus
    limit: int = 200_000

    @property
    def identity(self) -> str:
        """Name, version, limit and corpus digest."""
        return f"local-pages@{VERSION}:{self.limit}:{self.corpus.digest}"

    async def read_page(self, url: str) -> PageText:
        """Return a page by its address; a redirect is followed and the page comes under its own title."""
        return await asyncio.to_thread(self._read, url)

    def _read(self, url: str) -> PageText:
        node = self.corpus.find_url(url)
        if node is None:
            raise PageNotFound(url)
        page = self.corpus.page(node)
        facts = "\n".join(self._render_facts(node))
        text = "\n\n".join(part for part in (facts, plain_text(self.corpus.text(node))) if part)
        return PageText(self.corpus.page_url(page.title), page.title, self._cut(text))

    def _cut(self, text: str) -> str:
        if len(text) <= self.limit:
            return text
        return text[: self.limit].rsplit(maxsplit=1)[0] + " …"

    def _render_facts(self, node: int) -> Iterator[str]:
        boxed = (fact for fact in self.corpus.facts(node) if not fact.statement)
        for key, facts in groupby(boxed, key=lambda fact: fact.key):
            values = "; ".join(fact.text for fact in facts if fact.text and not MEDIA_FILE.search(fact.text))
            if values:
                yield f"{key.replace('_', ' ').capitalize()}: {values}"


LOCAL_SEARCH_VERSION = 3
PASSAGES_A_PAGE = 8
"""Passages asked for per page wanted: long pages hold many that fit the same words."""


@dataclass(frozen=True, slots=True)
class LocalTextSearch:
    """Searches the corpus's passages by words; a page is one hit, shown by its best passage."""

    corpus: Corpus

    @property
    def identity(self) -> str:
        """Name, version and corpus digest."""
        return f"local-text-search@{LOCAL_SEARCH_VERSION}:{self.corpus.digest}"

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return at most ``count`` pages, best passage first; a page whose exact name is the query comes before all.

        Without that rule a page loses to the many that bear its name in theirs: ``Tarn`` to ``Tarn Stadium``.
        """
        # Beside the loop: the index is searched without the interpreter's lock, and requests under way go on.
        return await asyncio.to_thread(self._search, query, count)

    def _search(self, query: str, count: int) -> tuple[TextHit, ...]:
        found = self.corpus.search(query, count * PASSAGES_A_PAGE, count)
        best = {passage.node: passage for passage in found}
        hits = [TextHit(self.corpus.page_url(page.title), page.title, page.text) for page in best.values()]
        named = self.corpus.find(query)
        if named is None:
            return tuple(hits[:count])
        title = self.corpus.page(named).title
        snippet = best[named].text if named in best else lead_paragraph(self.corpus.text(named))
        first = TextHit(self.corpus.page_url(title), title, snippet)
        return (first, *(hit for hit in hits if hit.title != title))[:count]
