"""What checks stand on: a corpus, and the indexes that counting over it needs, each built when first asked for."""

from dataclasses import dataclass
from functools import cached_property

from pipelines.corpus.store import Corpus
from pipelines.graph.cues import CueIndex
from pipelines.graph.facts import AnswerShares, FactIndex, RelationIndex


@dataclass(frozen=True)
class Indexes:
    """A corpus to prove questions in."""

    corpus: Corpus
    later: Corpus | None = None
    """The same wiki from another dump, at least a year away: a fact that differs there is volatile."""

    @cached_property
    def relations(self) -> RelationIndex:
        """Every relation that a walk may take."""
        return RelationIndex(self.corpus)

    @cached_property
    def facts(self) -> FactIndex:
        """Every fact that infoboxes show, also those with several values, by value."""
        return FactIndex(self.corpus)

    @cached_property
    def cues(self) -> CueIndex:
        """Words by which sentences state a relation."""
        return CueIndex(self.corpus, self.facts)

    @cached_property
    def shares(self) -> AnswerShares:
        """How often each answer of a relation occurs."""
        return AnswerShares(self.corpus, self.facts)
