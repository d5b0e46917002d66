"""Seeds: which articles may be anchors (OpenSearch-VL, appendix D.1), spread over the domains."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pipelines.checks.images import is_free_licence
from pipelines.corpus.store import Corpus, Page
from pipelines.graph.splits import SplitRule
from pipelines.ids import digest_value, draw_unit, make_record_id
from schemas.base import Record, Rejection
from schemas.manifest import ModelEntry
from schemas.reasons import SeedReason
from schemas.seeds import Seed


@dataclass(frozen=True, slots=True)
class SeedGate:
    """What an article must have to be an anchor."""

    min_in_degree: int
    hub_in_degree: int
    require_infobox: bool
    require_image: bool
    min_image_side: int
    """Pixels of the shorter side."""


@dataclass(frozen=True)
class Seeds:
    """Draws seeds from the corpus: every article is a candidate and is kept or refused once."""

    corpus: Corpus
    gate: SeedGate
    splits: SplitRule
    limit: int
    """At most this many seeds, taken from the domains in turn; 0 is no limit."""
    seed: int
    name: str = "seeds"
    version: int = 1
    output: ClassVar[type[Record]] = Seed

    def fingerprint(self) -> str:
        """Digest of the gate, the splits, the limit and the seed."""
        return digest_value([repr(self.gate), repr(self.splits), self.limit, self.seed])

    def prompts(self) -> dict[str, str]:
        """No model is asked."""
        return {}

    def models(self) -> tuple[ModelEntry, ...]:
        """No model is asked."""
        return ()

    def count_candidates(self) -> int:
        """Return the number of articles."""
        return len(self.corpus.article_nodes())

    def __call__(self) -> Iterator[Seed | Rejection]:
        """Yield each article once: as a seed or with the first rule it breaks."""
        eligible: dict[str, list[Page]] = defaultdict(list)
        for node in self.corpus.article_nodes():
            page = self.corpus.page(node)
            reason, detail = self._judge(page)
            if reason is None:
                eligible[page.domain].append(page)
            else:
                yield Rejection(record_id=f"page:{page.page_id}", reason=reason, detail=detail)
        chosen, left_over = self._spread(eligible)
        for page in left_over:
            yield Rejection(record_id=f"page:{page.page_id}", reason="over-quota", detail=page.domain)
        for page in chosen:
            yield self._make_seed(page)

    def _judge(self, page: Page) -> tuple[SeedReason | None, str]:
        gate = self.gate
        if page.is_list:
            return "list-page", page.title
        if page.is_disambiguation:
            return "disambiguation-page", page.title
        if page.in_degree > gate.hub_in_degree:
            return "hub", f"in-degree {page.in_degree} > {gate.hub_in_degree}"
        if gate.require_infobox and not page.infobox:
            return "no-infobox", page.title
        if page.in_degree < gate.min_in_degree:
            return "in-degree-low", f"in-degree {page.in_degree} < {gate.min_in_degree}"
        if not page.type:
            return "no-type", page.title
        return self._judge_image(page) if gate.require_image else (None, "")

    def _judge_image(self, page: Page) -> tuple[SeedReason | None, str]:
        image = self.corpus.image(page.image) if page.image else None
        if image is None:
            return "no-image", page.image or page.title
        if image.error:
            return "image-unusable", f"{image.file}: {image.error}"
        if not page.image_free or not is_free_licence(image.licence):
            return "image-not-free", f"{image.file}: {image.licence or 'no licence'}"
        if min(image.width, image.height) < self.gate.min_image_side:
            return "image-too-small", f"{image.file}: {image.width}x{image.height}"
        return None, ""

    def _spread(self, eligible: dict[str, list[Page]]) -> tuple[list[Page], list[Page]]:
        """Order each domain by a seeded draw and take from the domains in turn until the limit."""
        queues = [
            sorted(pages, key=lambda page: draw_unit(self.seed, "seed", page.page_id))
            for _, pages in sorted(eligible.items())
        ]
        turns = [
            page for rank in range(max(map(len, queues), default=0)) for q in queues for page in q[rank : rank + 1]
        ]
        cut = self.limit or len(turns)
        return turns[:cut], turns[cut:]

    def _make_seed(self, page: Page) -> Seed:
        return Seed(
            record_id=make_record_id("seed", [page.page_id, page.revision]),
            parent_id=f"page:{page.page_id}",
            page_id=page.page_id,
            title=page.title,
            qid=page.qid,
            type=page.type,
            domain=page.domain,
            in_degree=page.in_degree,
            sitelinks=page.sitelinks,
            statements=page.statements,
            image=page.image if page.image_free else "",
            split=self.splits.place("entity", page.title),
        )
