"""Seeds: which articles may be anchors, spread over the domains.

Candidates come from one of two sources that give the same seeds on the same data: every article of the corpus, with
Wikidata's counts from its dumps; or the entities a SPARQL endpoint has of some classes, with the endpoint's counts.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.checks.pictures import find_lead_fault
from pipelines.checks.quotas import Aim, Draw
from pipelines.corpus.store import Corpus, CorpusImage
from pipelines.errors import ConfigError
from pipelines.graph.seeds import (
    JUDGED,
    MAX_SITELINKS,
    MIN_STATEMENTS,
    Drawing,
    SeedCandidate,
    SeedGate,
    Slice,
    Span,
    draw_candidates,
    join_candidates,
    judge_pages,
)
from pipelines.ids import digest_value, draw_unit, make_record_id
from pipelines.services.image_metadata import MOST_FILES, ImageMetadata, look_up_images
from pipelines.services.prompting import WithoutModels
from pipelines.services.protocols import Sparql
from pipelines.splits import SplitRule
from schemas.base import Failure, Record, Rejection
from schemas.datasets import Seed, Split
from schemas.reasons import SeedReason

BATCH_ROWS = 65_536
_SHOWN = ["node", "page_id", "title", "domain", "image", "image_free"]


@dataclass(frozen=True, slots=True)
class WikidataSource:
    """The SPARQL endpoint that candidates are drawn from."""

    sparql: Sparql
    site: str
    """Address of the wiki whose articles count, such as ``https://en.wikipedia.org/``."""
    page_rows: int
    """Most rows of one query; changes how the work is cut, never a seed."""


class _Eligible(NamedTuple):
    draw: float
    page_id: int
    node: int
    file: str = ""
    """Picture that must be looked up at the service."""


Place = tuple[str, str]
"""A domain, and the split where seeds are drawn for aims; else no split, as all are drawn alike."""
Verdict = tuple[SeedReason | None, str]
"""Why a candidate is no seed, None for one that is, and the detail."""


@dataclass(slots=True)
class _FarPictures:
    metadata: ImageMetadata
    ahead: Iterator[str]
    """Files that will probably be needed, soonest first."""
    known: dict[str, CorpusImage | None] = field(default_factory=dict)
    """By file; None if the service does not have it."""

    def find(self, file: str) -> CorpusImage | None:
        if file not in self.known:
            others = (name for name in self.ahead if name != file and name not in self.known)
            batch = dict.fromkeys([file, *islice(others, MOST_FILES - 1)])
            self.known |= batch | look_up_images(self.metadata, list(batch))
        return self.known[file]


@dataclass(frozen=True)
class Seeds(WithoutModels):
    """The stage: seeds out, with every candidate either kept or refused."""

    corpus: Corpus
    gate: SeedGate
    splits: SplitRule
    seed: int
    source: WikidataSource | None = None
    """None draws candidates from the corpus's own articles."""
    metadata: ImageMetadata | None = None
    """Looks up pictures that the corpus does not know, of otherwise eligible candidates, until the limit."""
    draws: tuple[tuple[Draw, ...], ...] = ()
    """Seeds that are drawn for target sizes, round after round; () draws up to the limit, the domains in turn."""
    reach: Callable[[int, Split], Collection[int]] | None = None
    """Returns the lengths of path that can be walked from a node."""
    walks: str = ""
    """The rules of these walks."""
    cut: int = 0
    """Seeds a shard: the walks of one shard keep to shares together, so the cut decides what is drawn."""
    name: str = "seeds"
    version: int = 6
    output: ClassVar[type[Record]] = Seed

    def fingerprint(self) -> str:
        asked = [self.source.sparql.identity, self.source.site] if self.source else []
        asked += [self.metadata.identity] if self.metadata else []
        gate = self.gate.model_dump(mode="json", exclude={"endpoint", "concepts", "hub_share"})
        draws = [repr(self.draws), self.walks] if self.draws else []
        return digest_value([gate, repr(self.splits), self.seed, self.cut, asked, *draws])

    def count_candidates(self) -> int:
        if self.source is None:
            return len(self.corpus.article_nodes())
        return len(self.drawing.candidates) + len(self.drawing.failed)

    @cached_property
    def drawing(self) -> Drawing:
        """The endpoint's candidates, requested once."""
        assert self.source is not None
        gate, source = self.gate, self.source
        rare = gate.rule == "vsearcher"
        statements = Span(MIN_STATEMENTS if rare else 0)
        sitelinks = Span(0, MAX_SITELINKS if rare else None)
        slices = [Slice(qid, statements, sitelinks) for qid in dict.fromkeys(gate.classes)]
        drawing = asyncio.run(draw_candidates(source.sparql, slices, source.site, source.page_rows))
        if not drawing.candidates and not drawing.failed:
            raise ConfigError(
                f"{source.sparql.identity}: no entity of {', '.join(gate.classes)} with an article on {source.site}; "
                "expected the counts on the entity, as the Wikidata Query Service has them and the raw RDF dump has not"
            )
        return drawing

    def __call__(self) -> Iterator[Seed | Rejection | Failure]:
        joined: dict[int, SeedCandidate] = {}
        if self.source is not None:
            joined, left_out = join_candidates(self._read_pages(["node", "title", "qid"]), self.drawing.candidates)
            yield from self.drawing.failed
            yield from left_out
        elif self.gate.classes:
            self._check_classes()
        eligible: dict[Place, list[_Eligible]] = defaultdict(list)
        for row, reason, detail in self._judge(joined):
            if reason is None:
                draw = draw_unit(self.seed, "seed", row["page_id"])
                file = row["image"] if self._is_far(row) else ""
                split = self.splits.place("entity", row["title"]) if self.draws else ""
                eligible[row["domain"], split].append(_Eligible(draw, row["page_id"], row["node"], file))
            else:
                yield Rejection(record_id=f"page:{row['page_id']}", reason=reason, detail=detail)
        chosen: list[tuple[_Eligible, int, Aim | None]] = []
        drawn = self._draw_rounds(eligible) if self.draws else ((*each, 0, None) for each in self._spread(eligible))
        for page, reason, detail, number, aim in drawn:
            if reason is None:
                chosen.append((page, number, aim))
            else:
                yield Rejection(record_id=f"page:{page.page_id}", reason=reason, detail=detail)
        sizes = Counter((number, aim.split) for _, number, aim in chosen if aim)
        for page, number, aim in chosen:
            seed = self._make_seed(page.node, joined.get(page.node))
            if aim is not None:
                drawn_for = {"hops": aim.hops, "answer_type": aim.answer_type}
                seed = seed.model_copy(update=drawn_for | {"round": number, "drawn": sizes[number, aim.split]})
            yield seed

    def _read_pages(self, columns: list[str]) -> Iterator[pa.Table]:
        with pq.ParquetFile(self.corpus.table("pages")) as pages:
            for batch in pages.iter_batches(batch_size=BATCH_ROWS, columns=columns):
                yield pa.Table.from_batches([batch])

    def _check_classes(self) -> None:
        counts = (pc.list_value_length(pages["classes"]) for pages in self._read_pages(["classes"]))
        if not any(pc.any(pc.greater(count, 0)).as_py() for count in counts):
            raise ConfigError(
                f"seeds.classes {', '.join(self.gate.classes)}: the corpus knows no classes; put Wikidata's JSON dump "
                "beside the dump, or name seeds.endpoint"
            )

    def _judge(self, joined: Mapping[int, SeedCandidate]) -> Iterator[tuple[dict[str, Any], SeedReason | None, str]]:
        gate = self.gate if self.source is None else self.gate.model_copy(update={"classes": ()})
        for batch in self._read_pages(list({*_SHOWN, *JUDGED})):
            pages = batch if self.source is None else _take_joined(batch, joined)
            verdicts = list(zip(pages.select(_SHOWN).to_pylist(), judge_pages(gate, pages), strict=True))
            for row, (reason, detail) in verdicts:
                if reason is None and gate.require_image and not self._is_far(row):
                    image = self.corpus.image(row["image"]) if row["image"] else None
                    reason, detail = find_lead_fault(image, row["image"] or row["title"], row["image_free"])
                yield row, reason, detail

    def _is_far(self, row: Mapping[str, Any]) -> bool:
        if self.metadata is None or not self.gate.require_image or not row["image"] or not row["image_free"]:
            return False
        return self.corpus.image(row["image"]) is None

    def _draw_rounds(
        self, eligible: Mapping[Place, list[_Eligible]]
    ) -> Iterator[tuple[_Eligible, SeedReason | None, str, int, Aim | None]]:
        queues = {place: sorted(pages) for place, pages in sorted(eligible.items())}
        pictures = _FarPictures(self.metadata, _list_far_files([*queues.values()])) if self.metadata else None
        seen: set[int] = set()
        walks: dict[Aim, Iterator[_Eligible]] = {}
        for number, draws in enumerate(self.draws, start=1):
            for draw in draws:
                left = draw.seeds
                if draw.aim not in walks:
                    walks[draw.aim] = iter(_list_for(draw.aim, queues))
                while left and (page := self._find_next(walks[draw.aim], draw.aim, seen)):
                    seen.add(page.node)
                    reason, detail = self._settle(page, pictures)
                    left -= reason is None
                    yield page, reason, detail, number, draw.aim
        for (domain, _), pages in queues.items():
            yield from ((page, "over-quota", domain, 0, None) for page in pages if page.node not in seen)

    def _find_next(self, pages: Iterator[_Eligible], aim: Aim, seen: Collection[int]) -> _Eligible | None:
        for page in pages:
            if page.node in seen:
                continue
            if not aim.hops or self.reach is None or aim.hops in self.reach(page.node, aim.split):
                return page
        return None

    def _spread(self, eligible: Mapping[Place, list[_Eligible]]) -> Iterator[tuple[_Eligible, SeedReason | None, str]]:
        queues = [(domain, sorted(pages)) for (domain, _), pages in sorted(eligible.items())]
        pictures = None
        if self.metadata is not None:
            pictures = _FarPictures(self.metadata, _list_far_files([pages for _, pages in queues]))
        waiting = [(domain, iter(pages)) for domain, pages in queues]
        left = self.gate.limit or sum(len(pages) for _, pages in queues)
        while waiting:
            going = []
            for domain, pages in waiting:
                for page in pages:
                    reason, detail = self._settle(page, pictures) if left else ("over-quota", domain)
                    yield page, reason, detail
                    if reason is None or not left:
                        left -= reason is None
                        going.append((domain, pages))
                        break
            waiting = going

    def _settle(self, page: _Eligible, pictures: _FarPictures | None) -> tuple[SeedReason | None, str]:
        if not page.file or pictures is None:
            return None, ""
        return find_lead_fault(pictures.find(page.file), page.file, free=True)

    def _make_seed(self, node: int, candidate: SeedCandidate | None) -> Seed:
        page = self.corpus.page(node)
        known = candidate or page
        return Seed(
            record_id=make_record_id("seed", [page.page_id, page.revision]),
            parent_id=f"page:{page.page_id}",
            page_id=page.page_id,
            title=page.title,
            qid=known.qid,
            type=page.type,
            domain=page.domain,
            in_degree=page.in_degree,
            sitelinks=known.sitelinks,
            statements=known.statements,
            identifiers=known.identifiers,
            image=page.image if page.image_free else "",
            split=self.splits.place("entity", page.title),
        )


def _list_for(aim: Aim, queues: Mapping[Place, Sequence[_Eligible]]) -> Sequence[_Eligible]:
    own = [pages for (domain, split), pages in queues.items() if split == aim.split and aim.domain in ("", domain)]
    return own[0] if len(own) == 1 else [page for page in chain.from_iterable(zip_longest(*own)) if page is not None]


def _list_far_files(queues: list[list[_Eligible]]) -> Iterator[str]:
    for rank in range(max(map(len, queues), default=0)):
        for pages in queues:
            if rank < len(pages) and pages[rank].file:
                yield pages[rank].file


def _take_joined(pages: pa.Table, joined: Mapping[int, SeedCandidate]) -> pa.Table:
    nodes = pages["node"].to_pylist()
    places = [place for place, node in enumerate(nodes) if node in joined]
    taken = pages.take(pa.array(places, pa.int64()))
    found = [joined[nodes[place]] for place in places]
    for name in ("sitelinks", "statements", "identifiers"):
        counts = pa.array([getattr(candidate, name) for candidate in found], pa.int32())
        taken = taken.set_column(taken.column_names.index(name), name, counts)
    return taken
