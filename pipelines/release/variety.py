"""How varied a release is: wording, relations, types, entities, and what its questions have in common."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from pipelines.checks.sets import (
    count_near_duplicates,
    delexicalise,
    measure_compression,
    measure_distinct,
    measure_self_bleu,
)
from pipelines.release.duplicates import count_duplicates, make_signature
from pipelines.release.statistics import (
    DIGITS,
    Number,
    Table,
    count_effective,
    count_values,
    describe_numbers,
    measure_gini,
    share,
)
from schemas.difficulty import Difficulty
from schemas.proofs import Role

TOP = 10
DUPLICATES = ("duplicate-question", "duplicate-path", "duplicate-picture")


def measure_diversity(questions: Sequence[Difficulty]) -> dict[str, Number]:
    """Return skeletons, relations and type sequences: how many, how evenly used, and the shares of the most used."""
    skeletons = Counter(map(delexicalise, questions))
    chains = [list_relations(question) for question in questions]
    bigrams = _list_bigrams(questions)
    top = sum(rows for _, rows in Counter(bigrams).most_common(TOP))
    sequences = [_name_types(question) for question in questions]
    return {
        "skeletons": len(skeletons),
        "top skeleton share": share(max(skeletons.values(), default=0), len(questions)),
        "relations": len({relation for chain in chains for relation in chain}),
        "effective relations": count_effective(relation for chain in chains for relation in chain),
        "relation bigrams": len(set(bigrams)),
        "effective relation bigrams": count_effective(bigrams),
        f"top {TOP} bigrams share": share(top, len(bigrams)),
        "type sequences": len(set(sequences)),
        "effective type sequences": count_effective(sequences),
    }


def list_relations(question: Difficulty) -> list[str]:
    """Return a question's relations in order, the one asked for last; ``<-`` is before one that leads backward."""
    proof = question.proof
    return [*(f"<-{hop.relation}" if hop.backward else hop.relation for hop in proof.hops), proof.answer_relation]


def _list_bigrams(questions: Sequence[Difficulty]) -> list[str]:
    return [f"{left} {right}" for question in questions for left, right in pairwise(list_relations(question))]


def _name_types(question: Difficulty) -> str:
    return " > ".join(node.type for node in question.proof.nodes)


def count_bigrams(questions: Sequence[Difficulty]) -> Table:
    """Return the most frequent pairs of neighbouring relations."""
    return dict(list(count_values(_list_bigrams(questions)).items())[:TOP])


def count_sequences(questions: Sequence[Difficulty]) -> Table:
    """Return the most frequent sequences of the nodes' types."""
    return dict(list(count_values(map(_name_types, questions)).items())[:TOP])


def measure_wording(questions: Sequence[Difficulty]) -> Table:
    """Return how much the questions' texts, and their skeletons, repeat each other."""
    texts = {
        "text": [question.text for question in questions],
        "skeleton": [delexicalise(question) for question in questions],
    }
    return {name: _measure_texts(of_name) for name, of_name in texts.items()}


def _measure_texts(texts: Sequence[str]) -> dict[str, Number]:
    return {
        **{f"distinct-{size}": round(measure_distinct(texts, size), DIGITS) for size in (1, 2, 3)},
        "self-BLEU": round(measure_self_bleu(texts), DIGITS),
        "compression ratio": round(measure_compression(texts), 2),
        "near duplicates": share(count_near_duplicates(texts), len(texts)),
    }


def measure_reuse(questions: Sequence[Difficulty]) -> Table:
    """Return how often entities are used in each role."""
    table: Table = {}
    roles: tuple[Role, ...] = ("anchor", "bridge", "answer")
    for role in roles:
        uses = Counter(n.page_id for question in questions for n in question.proof.nodes if n.role == role)
        numbers = describe_numbers(list(uses.values()))
        table[role] = {
            "entities": len(uses),
            "median uses": numbers.get("median", 0),
            "p95 uses": numbers.get("p95", 0),
            "most uses": numbers.get("max", 0),
            "gini": measure_gini(uses.values()),
        }
    return table


def measure_duplicates(questions: Sequence[Difficulty]) -> dict[str, Number]:
    """Return how many questions repeat another one; the releases stage leaves none."""
    found = count_duplicates(map(make_signature, questions))
    return {name: found[name] for name in DUPLICATES}
