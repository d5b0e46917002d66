"""Even samples over the taxonomy before anything is paid."""

from collections import Counter

from pipelines.stages.samples import Samples
from schemas.base import Rejection
from schemas.datasets import Question
from schemas.reasons import STAGE_REASONS
from tests.pipelines.release.builders import make_question


def classify(number, knowledge, names=False):
    row = make_question(number, None)
    proof = row.proof
    if names:
        evidence = proof.answer_evidence.model_copy(update={"kind": "sentence", "key": ""})
        changed = {"hops": (), "nodes": proof.nodes[:1], "answer_relation": "title", "answer_evidence": evidence}
        proof = proof.model_copy(update=changed)
    return Question(
        record_id=f"question-{number:03d}", parent_id=f"seed-{number}", split="rl", domain=row.domain, image="",
        text=row.text, answer=row.answer, proof=proof, knowledge=knowledge,
    )  # fmt: skip


def run(stage, rows):
    made = list(stage([rows]))
    refused = {row.record_id: row.reason for row in made if isinstance(row, Rejection)}
    return [row for row in made if not isinstance(row, Rejection)], refused


def test_a_sample_is_even_and_keeps_the_first_ids_with_their_category():
    rows = [classify(n, "Arts" if n < 30 else "Place") for n in range(40)]
    kept, refused = run(Samples(0.5, 1.0), rows[::-1])
    assert Counter(row.knowledge for row in kept) == {"Arts": 10, "Place": 10}
    assert {row.parent_id for row in kept} == {f"question-{n:03d}" for n in (*range(10), *range(30, 40))}
    assert set(refused.values()) == {"category-over-share"} <= set(STAGE_REASONS["rewrites"])
    assert len(kept) + len(refused) == len(rows)


def test_names_and_facts_are_sampled_apart():
    rows = [classify(n, "Arts", names=n % 2 == 0) for n in range(20)]
    rows += [classify(20 + n, "Place", names=False) for n in range(2)]
    kept, _ = run(Samples(1.0, 1.0), rows)
    assert Counter((row.proof.answer_relation, row.knowledge) for row in kept) == {
        ("title", "Arts"): 10, ("founded", "Arts"): 2, ("founded", "Place"): 2,
    }  # fmt: skip
