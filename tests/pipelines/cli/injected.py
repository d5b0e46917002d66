"""A question of the injection recipe with every part that a proof may have, and the rewrite it was made from."""

from schemas.datasets import Candidate, Certificate, Rewrite
from schemas.proofs import Constraint, NearMiss, Thresholds
from tests.pipelines.release.builders import make_evidence, make_question

REFUTED = 12


def make_injected(picture):
    question = make_question(1, picture, text="When was the town founded?", parent_id="rewrite-0000000000000001")
    proof = question.proof
    born = Constraint(node=1, relation="birth_date", value="1870s")
    told = (*proof.constraints, born, Constraint(node=2, relation="type", value="town"))
    hop = proof.hops[1].model_copy(
        update={"backward": True, "subject_id": proof.nodes[2].page_id, "object_id": proof.nodes[1].page_id}
    )
    misses = tuple(
        NearMiss(node=1, page_id=500 + n, title=f"Jon Vask {n}", unknown=("birth_date", "type"), resolution="absent")
        for n in range(REFUTED)
    )
    thresholds = Thresholds(
        alone_first=5,
        alone=2,
        answers=6,
        near_misses=50,
        answer_share=0.05,
        retrieval_rank=10,
        agreement="required",
        volatile=False,
    )
    changes = {
        "hops": (proof.hops[0], hop),
        "constraints": told,
        "redundant": (born,),
        "near_misses": misses,
        "thresholds": thresholds,
        "corroboration": make_evidence(13, "Ostrava 1").model_copy(update={"text": "The town was founded in 1201."}),
        "derivation": "year",
        "shortcuts_checked": True,
    }
    return question.model_copy(update={"proof": proof.model_copy(update=changes)})


def make_rewrite(question, *rounds):
    """Return the rewrite of a question, one certificate for each round; 0 is a step of the path recipe."""
    certificates = tuple(
        Certificate(
            node=1,
            name=f"Mira Tolland {number}",
            candidates=(Candidate(descriptor="the architect", verdict="accepted"),),
            descriptor="the architect",
            text_after="When was the town of the architect founded?",
            chain_count=1,
            alone_count=7,
            answer_after="1201",
            near_misses=3 * number,
            round=number,
        )
        for number in rounds
    )
    return Rewrite(
        record_id=question.parent_id,
        parent_id="question-canonical",
        split=question.split,
        domain=question.domain,
        image="Kelm Bridge 1.png",
        canonical=question.canonical,
        text=question.fuzzy,
        answer=question.answer,
        proof=question.proof,
        certificates=certificates,
    )
