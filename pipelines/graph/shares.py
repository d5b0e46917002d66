"""How often each answer of a relation occurs: what somebody could guess who knows nothing but the question's form."""

from collections import Counter

from pipelines.corpus.store import Corpus
from pipelines.graph.facts import FactIndex
from pipelines.graph.holders import draw_nodes
from pipelines.graph.relations import stem_key, type_value

MAX_SUBJECTS = 5_000
"""Subjects of a relation whose answers are typed; of more a sample is drawn."""
_DATE = "date:"
_TEXT = "text:"


class AnswerShares:
    """The answers of every relation, counted when a relation is first asked for."""

    def __init__(self, corpus: Corpus, facts: FactIndex) -> None:
        self._corpus = corpus
        self._facts = facts
        self._counts: dict[str, Counter[str]] = {}
        self._values: dict[str, frozenset[str]] = {}

    def share(self, relation: str, answer_key: str) -> tuple[float, int]:
        """Return the share of one answer among all observed answers of a relation, and how many these are.

        An answer counts once for each subject that shows it. A month or year counts every date within it, because a
        question may ask for no more.

        Args:
            relation: infobox key; keys that differ in their numbers alone are one relation.
            answer_key: the ``key`` of a typed answer.

        Returns:
            (0.0, 0) when no subject shows the relation.
        """
        counts = self._count(stem_key(relation))
        total = counts[""]
        return (counts[answer_key] / total if total else 0.0), total

    def values(self, relation: str) -> frozenset[str]:
        """Return a relation's answers that are names or words, folded (:func:`pipelines.names.fold_name`)."""
        stem = stem_key(relation)
        if stem not in self._values:
            texts = (key for key in self._count(stem) if key.startswith(_TEXT))
            self._values[stem] = frozenset(key.removeprefix(_TEXT) for key in texts)
        return self._values[stem]

    def _count(self, stem: str) -> Counter[str]:
        if stem not in self._counts:
            nodes = draw_nodes(self._facts.having(stem), MAX_SUBJECTS, "shares", stem)
            self._counts[stem] = Counter(key for node in nodes for key in self._list_keys(node, stem))
        return self._counts[stem]

    def _list_keys(self, node: int, stem: str) -> list[str]:
        """Return the keys of a subject's answers, each once, and an empty key for every answer."""
        answers = {}
        for fact in self._corpus.facts(node):
            answer = type_value(fact.text, fact.iso, fact.key) if stem_key(fact.key) == stem else None
            if answer is not None:
                answers[answer.key] = answer
        keys = {part for key in answers for part in _widen(key)}
        return [*sorted(keys), *[""] * len(answers)]


def _widen(key: str) -> tuple[str, ...]:
    """Return an answer's key, and for a date those of its month and year."""
    if not key.startswith(_DATE):
        return (key,)
    year, *rest = key.removeprefix(_DATE).lstrip("-").split("-")
    start = _DATE + "-" * key.removeprefix(_DATE).startswith("-") + year
    return tuple("-".join([start, *rest[:count]]) for count in range(len(rest) + 1))
