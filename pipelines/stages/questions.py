"""Questions: the canonical question, its typed answer and its proof (OpenSearch-VL, section 3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipelines.corpus.store import Corpus
from pipelines.graph.proofs import flatten_names, list_names, make_query, view_proof
from pipelines.graph.query import answer_query
from pipelines.ids import digest_value, make_record_id
from pipelines.names import digest_aliases, fold_name
from pipelines.prompting import Asking, ask_model, make_schema
from pipelines.scoring.answers import count_tokens, type_answer
from schemas.base import Record, Rejection
from schemas.manifest import ModelEntry
from schemas.paths import Path
from schemas.proofs import Answer, Proof
from schemas.questions import Question
from schemas.tasks import QuestionReply


@dataclass(frozen=True)
class Questions:
    """Writes one canonical question a path and attaches the proof."""

    corpus: Corpus
    asking: Asking
    max_answer_tokens: int
    name: str = "questions"
    version: int = 2
    input: ClassVar[type[Record]] = Path
    output: ClassVar[type[Record]] = Question

    def fingerprint(self) -> str:
        """Digest of the writer, its prompt and the answer bound."""
        return digest_value([self.asking.identity, make_schema(QuestionReply), self.max_answer_tokens])

    def prompts(self) -> dict[str, str]:
        """The writing prompt."""
        return {self.asking.prompt.label: self.asking.prompt.digest}

    def models(self) -> tuple[ModelEntry, ...]:
        """The writer."""
        return (self.asking.describe("writer"),)

    async def __call__(self, record: Path) -> Sequence[Question] | Rejection:
        """Type the answer, derive it once more from the corpus, and put the path into words."""
        answer = type_answer(record.answer_text, record.answer_iso, record.answer_relation)
        if answer is None:
            return Rejection(record_id=record.record_id, reason="answer-untyped", detail=record.answer_text)
        refusal = self._judge_answer(record, answer)
        if refusal is not None:
            return refusal
        proof = self._make_proof(record)
        derived = answer_query(self.corpus, make_query(self.corpus, proof))
        if set(derived) != {answer.key}:
            detail = f"the query gives {sorted(derived)}, the path says {answer.key}"
            return Rejection(record_id=record.record_id, reason="not-derivable", detail=detail)
        inputs = view_proof(proof, answer)
        text = (await ask_model(self.asking, inputs, QuestionReply)).question
        return (
            Question(
                record_id=make_record_id("question", [record.record_id, text]),
                parent_id=record.record_id,
                split=record.split,
                domain=record.domain,
                image=record.image,
                text=text,
                answer=answer,
                proof=proof,
            ),
        )

    def _judge_answer(self, record: Path, answer: Answer) -> Rejection | None:
        if count_tokens(answer.surface) > self.max_answer_tokens:
            return Rejection(record_id=record.record_id, reason="answer-too-long", detail=answer.surface)
        folded = fold_name(answer.surface)
        if any(folded == fold_name(node.title) for node in record.nodes):
            return Rejection(record_id=record.record_id, reason="answer-is-bridge", detail=answer.surface)
        return None

    def _make_proof(self, record: Path) -> Proof:
        return Proof(
            corpus=self.corpus.digest,
            snapshot=self.corpus.snapshot,
            nodes=record.nodes,
            hops=record.hops,
            answer_relation=record.answer_relation,
            answer_evidence=record.answer_evidence,
            constraints=(),
            counts=(),
            alias_digest=digest_aliases(flatten_names(list_names(self.corpus, record.nodes))),
        )
