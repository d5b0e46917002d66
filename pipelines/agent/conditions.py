"""What an attempt is given under each condition: the true picture, another one or none, and what one search brings.

A solver is shown a picture and texts; that a picture was swapped it is never told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.agent.layout import cut_text
from pipelines.backends.protocols import ImageHit, ImageSearch, PictureFile, TextHit, TextSearch
from pipelines.ids import digest_value
from pipelines.pictures import PictureStore
from pipelines.scoring.decoys import make_decoys
from schemas.groundings import Grounding, Picture
from schemas.tasks import AnswerQuestionInputs, Condition, SolverOracle

VERSION = 1
"""Of queries and layout: part of what decides an attempt."""
BY_PICTURE = ("image-search", "both")
BY_WORDS = ("text-search", "both")
"""Tools of a condition, after its plus, that search by picture and by words."""
SNIPPET = 1000
"""Characters kept of each result."""
GUESSES = 3
"""Wrong answers that a scripted solver chooses from, beside the right one, when it guesses."""
NOTHING_FOUND = "(nothing found)"
"""Shown where a search found nothing: without it the attempt would be the very one that was made without a search."""


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches that an attempt may be given the results of."""

    text: TextSearch
    images: ImageSearch
    pictures: PictureStore
    hits: int = 3
    """Results of one search."""

    @property
    def identity(self) -> str:
        """Digest of everything that decides what an attempt is shown."""
        return digest_value([VERSION, SNIPPET, self.hits, self.text.identity, self.images.identity])


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What an attempt under one condition is given beside the question."""

    condition: Condition
    picture: Picture | None = None
    image_hits: tuple[ImageHit, ...] = ()
    text_hits: tuple[TextHit, ...] = ()

    @property
    def images(self) -> tuple[str, ...]:
        """The sha256 of what is shown."""
        return (self.picture.sha256,) if self.picture else ()


@dataclass
class Exhibits:
    """Makes the exhibits of one question; a search is made once for all conditions and solvers that need it."""

    record: Grounding
    searches: Searches
    swapped: Picture | None = None
    _texts: dict[str, tuple[TextHit, ...]] = field(default_factory=dict)
    _images: dict[str, tuple[ImageHit, ...]] = field(default_factory=dict)

    async def show(self, condition: Condition) -> Exhibit:
        """Return what is given under a condition.

        The text query is the question. Of both searches the picture's comes first, and its best hit's title leads the
        text query.

        Raises:
            RecordFailed: if the picture cannot be searched for.
            ServiceError: if a search is away.
        """
        seen, _, tools = condition.partition("+")
        picture = {"image": self.record.picture, "swapped": self.swapped}.get(seen)
        images: tuple[ImageHit, ...] = ()
        texts: tuple[TextHit, ...] = ()
        if tools in BY_PICTURE:
            images = await self._search_image(picture)
        if tools in BY_WORDS:
            query = f"{images[0].title} {self.record.text}" if images else self.record.text
            texts = await self._search_text(query)
        return Exhibit(condition, picture, images, texts)

    async def _search_text(self, query: str) -> tuple[TextHit, ...]:
        if query not in self._texts:
            self._texts[query] = await self.searches.text.search_text(query, self.searches.hits)
        return self._texts[query]

    async def _search_image(self, picture: Picture | None) -> tuple[ImageHit, ...]:
        if picture is None:
            return ()
        if picture.sha256 not in self._images:
            path = self.searches.pictures.path(picture.sha256, picture.extension)
            file = PictureFile(picture.sha256, path)
            self._images[picture.sha256] = await self.searches.images.search_image(file, self.searches.hits)
        return self._images[picture.sha256]


def make_answer_inputs(record: Grounding, exhibit: Exhibit) -> AnswerQuestionInputs:
    """Return an attempt's inputs."""
    tools = exhibit.condition.partition("+")[2]
    return AnswerQuestionInputs(
        question=record.text,
        condition=exhibit.condition,
        pictured=exhibit.picture is not None,
        image_results=_number_hits(exhibit.image_hits) if tools in BY_PICTURE else "",
        search_results=_number_hits(exhibit.text_hits) if tools in BY_WORDS else "",
        oracle=make_oracle(record, exhibit.image_hits),
    )


def _number_hits(hits: Sequence[ImageHit | TextHit]) -> str:
    lines = (cut_text(" ".join(f"{hit.title}: {hit.snippet}".split()), SNIPPET) for hit in hits)
    return "\n".join(f"{rank}. {line}" for rank, line in enumerate(lines, start=1)) or NOTHING_FOUND


def make_oracle(record: Grounding, hits: Sequence[ImageHit] = ()) -> SolverOracle:
    """Return what the scripted Knower may know of a question; real models never see it.

    Args:
        record: the question with its proof.
        hits: of the image search.
    """
    # A capped count is a lower bound: it never says that an entity stands out by itself.
    alone = [count.value + count.capped for count in record.proof.counts if count.name == "alone"]
    nodes = record.proof.nodes
    return SolverOracle(
        question_id=record.record_id,
        answer=record.answer,
        popularity=tuple(node.in_degree for node in nodes),
        alone_count=min(alone, default=1),
        guesses=make_decoys(record.answer, GUESSES),
        seen_titles=tuple(hit.title for hit in hits),
        anchor_title=nodes[0].title if nodes else "",
    )
