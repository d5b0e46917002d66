"""Concepts: seeds drawn from the head and the tail of a list of visual concepts (MMSearch-R1, section 3.1).

The paper draws from the metadata of MetaCLIP, entities of WordNet and Wikipedia with how often captions name them, and
takes the best page and picture of a web search. Here a concept is the one article that bears its name, with its lead
picture; what has no article, or several meanings, is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.checks.pictures import find_lead_fault
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.graph.seeds import JUDGED, SeedGate, judge_pages
from pipelines.ids import digest_value, draw_unit, make_record_id
from pipelines.services.image_metadata import ImageMetadata, look_up_images
from pipelines.services.prompting import WithoutModels
from pipelines.splits import SplitRule
from schemas.base import Failure, Record, Rejection
from schemas.corpus import CorpusImage
from schemas.datasets import Seed
from schemas.reasons import SeedReason

BATCH_ROWS = 65_536
DRAWS = 10_000
"""Concepts drawn without a limit of seeds, half from the head and half from the tail (MMSearch-R1, 3.1)."""
HEAD = 0.2
"""Share of the list, the most frequent, that is its head; the paper leaves open where head and tail end."""
TAIL = 0.5
"""Share of the list, the rarest, that is its tail."""
TEXTUAL = 0.54
"""Share of the concepts of which a fact is asked, not the name: 7 of 13, as the paper's two sources stand."""
_SHOWN = ["node", "page_id", "title", "image", "image_free"]


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept that was drawn."""

    name: str
    frequency: int
    band: Literal["head", "tail"]

    @property
    def identity(self) -> str:
        return f"concept:{self.name}"


@dataclass(frozen=True)
class Concepts(WithoutModels):
    """The stage: seeds out, with every concept drawn either kept or refused."""

    corpus: Corpus
    gate: SeedGate
    splits: SplitRule
    seed: int
    metadata: ImageMetadata | None = None
    """Looks up pictures that the corpus does not know."""
    name: str = "seeds"
    version: int = 1
    output: ClassVar[type[Record]] = Seed

    def fingerprint(self) -> str:
        listed = digest_value(_read_text(Path(self.gate.concepts))) if self.gate.concepts else ""
        gate = self.gate.model_dump(mode="json", exclude={"endpoint", "concepts", "hub_share"})
        asked = self.metadata.identity if self.metadata else ""
        return digest_value(["concepts", listed, DRAWS, gate, repr(self.splits), self.seed, asked])

    def count_candidates(self) -> int:
        return len(self.drawn)

    @cached_property
    def drawn(self) -> tuple[Concept, ...]:
        """The concepts drawn, as many from the head as from the tail, in the order of their draws."""
        names, counts = read_list(Path(self.gate.concepts)) if self.gate.concepts else self._list_articles()
        # By frequency, then by place in the list: a draw does not depend on how a sort breaks ties.
        order = np.lexsort((np.arange(len(counts)), -counts))
        head, tail = (ceil(share * len(order)) for share in (HEAD, TAIL))
        draws = self.gate.limit or DRAWS
        each = min(draws // 2, head, tail, len(order) // 2)
        if not each:
            raise ConfigError(f"concepts: {len(order)} in the list and {draws} draws; wanted are 2 of each or more")
        bands: tuple[tuple[Literal["head", "tail"], Any], ...]
        bands = (("head", order[:head]), ("tail", order[max(head, len(order) - tail) :]))
        return tuple(
            Concept(names[place], int(counts[place]), band)
            for band, places in bands
            for place in sorted(places.tolist(), key=lambda place: self._draw(names[place]))[:each]
        )

    def _draw(self, name: str) -> tuple[float, str]:
        return draw_unit(self.seed, "concept", name), name

    def _list_articles(self) -> tuple[Sequence[str], Any]:
        with pq.ParquetFile(self.corpus.table("pages")) as pages:
            rows = pages.read(columns=["title", "in_degree"])
        return rows["title"].to_pylist(), rows["in_degree"].to_numpy().astype(np.int64)

    def __call__(self) -> Iterator[Seed | Rejection | Failure]:
        found: dict[int, Concept] = {}
        for concept in self.drawn:
            node = self._find(concept.name)
            if node is None:
                yield _reject(concept, "not-in-corpus", concept.name)
            elif node in found:
                yield _reject(concept, "same-article", f"{found[node].name} is the same article")
            else:
                found[node] = concept
        judged = list(self._judge(found))
        pictures = self._look_up([row["image"] for row, reason, _ in judged if reason is None and row["image"]])
        for row, reason, detail in judged:
            concept = found[row["node"]]
            if reason is None and self.gate.require_image:
                image, named = pictures.get(row["image"]), row["image"] or row["title"]
                reason, detail = find_lead_fault(image, named, row["image_free"])
            yield self._make_seed(row["node"], concept) if reason is None else _reject(concept, reason, detail)

    def _find(self, name: str) -> int | None:
        node = self.corpus.find(name)
        return self.corpus.find(name[:1].upper() + name[1:]) if node is None else node

    def _judge(self, found: dict[int, Concept]) -> Iterator[tuple[dict[str, Any], SeedReason | None, str]]:
        nodes = pa.array(sorted(found), pa.uint32())
        with pq.ParquetFile(self.corpus.table("pages")) as pages:
            for batch in pages.iter_batches(batch_size=BATCH_ROWS, columns=list({*_SHOWN, *JUDGED})):
                table = pa.Table.from_batches([batch])
                table = table.filter(pc.is_in(table["node"], value_set=nodes.cast(table["node"].type)))
                rows = zip(table.select(_SHOWN).to_pylist(), judge_pages(self.gate, table), strict=True)
                yield from ((row, reason, detail) for row, (reason, detail) in rows)

    def _look_up(self, files: Sequence[str]) -> dict[str, CorpusImage]:
        known = {file: image for file in files if (image := self.corpus.image(file)) is not None}
        far = [file for file in dict.fromkeys(files) if file not in known]
        return known | (look_up_images(self.metadata, far) if far and self.metadata else {})

    def _make_seed(self, node: int, concept: Concept) -> Seed:
        page = self.corpus.page(node)
        textual = draw_unit(self.seed, "asks", concept.name) < TEXTUAL
        return Seed(
            record_id=make_record_id("seed", [page.page_id, page.revision, concept.name]),
            parent_id=concept.identity,
            page_id=page.page_id,
            title=page.title,
            qid=page.qid,
            type=page.type,
            domain=page.domain,
            in_degree=page.in_degree,
            sitelinks=page.sitelinks,
            statements=page.statements,
            identifiers=page.identifiers,
            image=page.image if page.image_free else "",
            split=self.splits.place("entity", page.title),
            concept=concept.name,
            frequency=concept.frequency,
            band=concept.band,
            asks="textual" if textual else "visual",
        )


def read_list(path: Path) -> tuple[list[str], Any]:
    """Return the concepts of a file and their frequencies."""
    found: dict[str, int] = {}
    for number, line in enumerate(_read_text(path).splitlines(), 1):
        name, tab, count = line.partition("\t")
        if not name.strip() or not tab or not count.strip().isdecimal() or name.strip() in found:
            raise ConfigError(
                f"seeds.concepts {path}, line {number}: {line[:80]!r}; a line holds a concept that no other line has, "
                "a tab, and a whole number"
            )
        found[name.strip()] = int(count)
    return list(found), np.array(list(found.values()), dtype=np.int64)


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"seeds.concepts {path}: {error}") from error


def _reject(concept: Concept, reason: SeedReason, detail: str) -> Rejection:
    return Rejection(record_id=concept.identity, reason=reason, detail=detail)
