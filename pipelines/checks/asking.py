"""Whether a question asks for what its proof answers: a cue of the attribute must stand in what the question asks.

A proof derives the answer of a relation; the text is a model's. Descriptors are held to their facts elsewhere, so what
counts here is what is left without them, without quoted sentences and without what stands for the anchor.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.cues import name_cues
from pipelines.graph.ground import Ground
from pipelines.graph.holders import split_key
from pipelines.graph.kin import GENERIC
from pipelines.graph.stems import WORD, fold_word, stem_word
from schemas.proofs import Proof
from schemas.tasks import SUBJECT

_LEFT_OUT = " \x00 "
"""Put where a part was taken out, so that what stood around it does not become one sentence or word."""
_SENTENCES = re.compile(r"(?<=[.!?])[\"'”’)]*\s+")
_ANCHOR = r"(?:in|from|of|by) (?:the|this) (?:image|picture|photo|photograph)"
_BEFORE = r"(?:the|this|that|a|an)(?: (?:last|latter|former|second|third|fourth|same))?"

_TIME = frozenset("date dates day year years time".split())
_TIME_WORDS = "when date day month year"
_WORDINGS_TEXT = """
"""
_WORDINGS: dict[str, tuple[str, ...]] = {
    line.split()[0]: tuple(line.split()[1:]) for line in _WORDINGS_TEXT.strip().splitlines()
}
"""How English asks for what a word of a key names, where no article states it so."""


def check_asked(ground: Ground, text: str, proof: Proof) -> CheckResult:
    """UNKNOWN (``attribute-unasked``) when no word of a question asks for the attribute that its proof answers.

    Args:
        ground: whose corpus has taught cues of the attribute.
        text: the question.
        proof: with its descriptors and sentences, which say nothing of what is asked.
    """
    stems = {stem_word(word) for word in _list_asking_words(text, proof)}
    relation = proof.answer_relation
    if not stems.isdisjoint(list_asking_stems(relation)) or not stems.isdisjoint(ground.cues.words(relation)):
        return PASSED
    return CheckResult("UNKNOWN", "attribute-unasked", f"no word of {text!r} asks for {relation}")


@lru_cache(maxsize=4096)
def list_asking_stems(relation: str) -> frozenset[str]:
    """Return the stems of words that ask for a relation, whatever the corpus: those of its key, their kin, wordings."""
    words = split_key(relation)
    telling = [word for word in words if word not in GENERIC] or list(words)
    more = {word for key in telling for word in (key, *_WORDINGS.get(stem_word(key), ()))}
    if set(words) & _TIME and set(telling) <= GENERIC:
        more.update(_TIME_WORDS.split())
    return name_cues(relation) | frozenset(map(stem_word, more))


def _list_asking_words(text: str, proof: Proof) -> Iterable[str]:
    """Return the folded words of the sentences that ask, without what describes or stands for an entity."""
    pieces = [piece.strip() for descriptor in proof.descriptors for piece in descriptor.split(SUBJECT)]
    left = _cut_out(text, [*pieces, *(hop.clause for hop in proof.hops), *(node.title for node in proof.nodes)])
    for node in proof.nodes:
        if node.type:
            kind = rf"(?<!\w){_BEFORE} {re.escape(node.type)}(?!\w)"
            left = re.sub(kind, _LEFT_OUT, left, flags=re.IGNORECASE)
    left = re.sub(_ANCHOR, _LEFT_OUT, left, flags=re.IGNORECASE)
    sentences = _SENTENCES.split(left)
    asking = [sentence for sentence in sentences if sentence.rstrip(" \"'”’)\x00").endswith("?")]
    return [fold_word(word) for sentence in asking or sentences for word in WORD.findall(sentence)]


def _cut_out(text: str, parts: Sequence[str]) -> str:
    """Return a text without some parts, the longest first; case and white space aside."""
    left = " ".join(text.split())
    for part in sorted({" ".join(part.split()) for part in parts} - {""}, key=lambda part: (-len(part), part)):
        left = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", _LEFT_OUT, left, flags=re.IGNORECASE)
    return left
