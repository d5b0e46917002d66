"""Questions: canonical question, typed answer and proof. The canonical question names its bridges; it is no target."""

from schemas.base import Record
from schemas.proofs import Answer, Proof
from schemas.seeds import Split


class Question(Record):
    """A question that still names its anchor and bridges, never its answer node."""

    split: Split
    domain: str
    image: str
    text: str
    answer: Answer
    proof: Proof
