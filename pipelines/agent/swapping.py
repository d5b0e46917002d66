"""Pictures to be shown in place of the true one: of another entity of its type, that leads to another answer or none.

Who answers right all the same did not need the picture (research/quality.md, section 3, advance 6).
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.errors import RecordFailed, Unavailable
from pipelines.graph.ground import Ground
from pipelines.graph.proofs import make_query
from pipelines.graph.query import answer_query, locate_nodes
from pipelines.ids import draw_unit
from pipelines.pictures import PictureSource, PictureStore
from schemas.groundings import Grounding, Picture

VERSION = 2
"""Of the choice, which decides what a swapped picture shows."""
ALIKE = 10
"""Bits of 64 by which the hashes of one picture may differ, as in a search by picture: that would name the anchor."""
TRIES = 32
"""Entities that are looked at for one question."""
_COLUMNS = ["node", "type", "image"]


@dataclass(frozen=True, slots=True)
class Swap:
    """A picture that is not the question's."""

    title: str
    """Of the entity that it shows."""
    picture: Picture


@dataclass(frozen=True)
class PictureSwaps:
    """Chooses a picture to be swapped in; the same one for a question in every run, however the work is cut."""

    ground: Ground
    pictures: PictureStore

    @property
    def identity(self) -> str:
        """Version of the choice and digest of the corpus."""
        return f"picture-swaps@{VERSION}:{TRIES}:{self.ground.corpus.digest}"

    def choose(self, record: Grounding) -> Swap | None:
        """Return another picture for a question, None when there is none to be had.

        It shows an entity of the anchor's type that is no node of the path and from which the path does not lead to
        the same answer.

        Raises:
            LookupError: if the proof is not about this corpus.
            Unavailable: if the corpus's pictures are not at hand any more.
        """
        if record.picture is None or not record.proof.nodes:
            return None
        found = self._pictured.get(record.proof.nodes[0].type)
        if found is None:
            return None
        corpus, start = self.ground.corpus, int(draw_unit(record.record_id, "swap") * len(found))
        own, query = set(locate_nodes(corpus, record.proof.nodes)), make_query(corpus, record.proof)
        for step in range(min(TRIES, len(found))):
            node = int(found[(start + step) % len(found)])
            if node in own or record.answer.key in answer_query(self.ground, replace(query, anchor=node)):
                continue
            picture = self._take(corpus.page(node).image, record.picture)
            if picture is not None:
                return Swap(corpus.page(node).title, picture)
        return None

    def _take(self, file: str, shown: Picture) -> Picture | None:
        """Return an entity's picture as the workspace keeps it; None for one that cannot be shown or is the same."""
        image = self.ground.corpus.image(file)
        if image is None or shown.sha256 == image.sha256 or _look_alike(shown.phash, image.phash):
            return None
        source = PictureSource(image.file, image.author, image.licence, image.licence_url, image.source_url)
        try:
            picture = self.pictures.add_file(self.ground.corpus.image_path(file), source)
        except RecordFailed as error:
            if error.error == "picture-missing":
                raise Unavailable(f"picture {file}: {error.detail}; bring it back and run again") from error
            return None
        return picture if picture.sha256 == image.sha256 else None

    @cached_property
    def _pictured(self) -> dict[str, NDArray[np.uint32]]:
        """Nodes whose page shows a picture that is at hand and can be read, ascending, by type."""
        folder = self.ground.corpus.folder
        images = pq.read_table(folder / "images.parquet", columns=["file", "path", "phash", "error"])
        usable = pc.and_(pc.and_(pc.not_equal(images["path"], ""), pc.not_equal(images["phash"], "")),
                         pc.equal(images["error"], ""))  # fmt: skip
        files = images["file"].filter(usable).combine_chunks()
        nodes: defaultdict[str, list[int]] = defaultdict(list)
        with pq.ParquetFile(folder / "pages.parquet") as pages:
            for batch in pages.iter_batches(columns=_COLUMNS):
                kept = batch.filter(pc.is_in(batch.column("image"), value_set=files))
                for node, kind, _ in zip(*(column.to_pylist() for column in kept.columns), strict=True):
                    nodes[kind].append(node)
        return {kind: np.array(sorted(found), dtype=np.uint32) for kind, found in nodes.items() if kind}


def _look_alike(one: str, other: str) -> bool:
    """Say whether two perceptual hashes (16 hex digits) are of one picture, cropped, scaled or saved again."""
    return bool(one and other) and (int(one, 16) ^ int(other, 16)).bit_count() <= ALIKE
