"""Full-text search over the corpus."""

import asyncio
from dataclasses import dataclass

from pipelines.backends.local_pages import make_page_url
from pipelines.backends.protocols import TextHit
from pipelines.corpus.plaintext import lead_paragraph
from pipelines.corpus.store import Corpus, Passage

VERSION = 1
PASSAGES_A_PAGE = 8
"""Passages asked for per page wanted: long pages hold many that fit the same words."""


@dataclass(frozen=True, slots=True)
class LocalTextSearch:
    """Searches the corpus's passages by words; a page is one hit, shown by its best passage."""

    corpus: Corpus

    @property
    def identity(self) -> str:
        """Name, version and corpus digest."""
        return f"local-text-search@{VERSION}:{self.corpus.digest}"

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        """Return at most ``count`` pages, best passage first; a page whose exact name is the query comes before all.

        Without that rule a page loses to the many that bear its name in theirs: ``Tarn`` to ``Tarn Stadium``.
        """
        # Beside the loop: over a whole Wikipedia a search takes long enough to hold up every request under way.
        return await asyncio.to_thread(self._search, query, count)

    def _search(self, query: str, count: int) -> tuple[TextHit, ...]:
        best: dict[int, Passage] = {}
        for passage in self.corpus.search(query, count * PASSAGES_A_PAGE):
            best.setdefault(passage.node, passage)
        base = self.corpus.manifest.base_url
        hits = [TextHit(make_page_url(base, page.title), page.title, page.text) for page in best.values()]
        named = self.corpus.find(query)
        if named is None:
            return tuple(hits[:count])
        title = self.corpus.page(named).title
        snippet = best[named].text if named in best else lead_paragraph(self.corpus.text(named))
        first = TextHit(make_page_url(base, title), title, snippet)
        return (first, *(hit for hit in hits if hit.title != title))[:count]
