"""What a question shares with others: skeletons and their shares, variety, duplicates, and splits.

A skeleton is a question whose names, types, values, numbers and dates became slots, so that two questions of one
template have one skeleton (research/quality.md D1). All is exact and linear in the number of words.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from pipelines.checks.copies import PictureDescription, PictureIndex
from pipelines.checks.near import shingle_text
from pipelines.errors import ConfigError
from pipelines.graph.facts import stem_key
from pipelines.graph.odds import read_gold_share
from pipelines.graph.titles import asks_name
from pipelines.graph.values import parse_spelled
from pipelines.ids import digest_value
from pipelines.names import fold_name
from schemas.base import Record, Rejection
from schemas.datasets import Dataset, Enhancement, Origin, Picture, SearchNeed, Split
from schemas.proofs import Answer, Proof, Trace
from schemas.reasons import ReleaseReason

TYPE_SLOT: Final = "TYPE"
VALUE_SLOT: Final = "VALUE"
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W_]+")
_MARK = re.compile(r"\w+|[^\w\s]")
_SENTENCE_ENDS = frozenset(".?!:\"“”‘'«(")
Gram = tuple[str, ...]


class Worded(Protocol):
    """A question with its proof."""

    @property
    def text(self) -> str:
        """The question as asked."""

    @property
    def proof(self) -> Proof:
        """What its names, types and values are read from."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A question's skeleton, or what else it shares, and the datasets whose share of it is limited."""

    skeleton: str
    datasets: tuple[str, ...]


def delexicalise(question: Worded) -> str:
    """Return a question's skeleton: lower-case words without punctuation, with ``TYPE`` and ``VALUE`` as slots.

    Types are those of the proof's nodes, unless they name a relation of this proof, as in ``the architect of``. Values
    are constraint values, names of nodes, sentences quoted for a text hop, capitalised words inside a sentence, and
    numbers in digits or words. Adjacent slots are one.
    """
    slots = _list_slots(question.proof)
    tokens: list[str] = []
    marks = _MARK.findall(question.text)
    folded = [mark.casefold() for mark in marks]
    place, begins = 0, True
    while place < len(marks):
        length, slot = _find_slot(folded, place, slots)
        if not length:
            length, slot = 1, _read_word(marks[place], begins)
        begins = marks[place] in _SENTENCE_ENDS
        if slot and not (slot == VALUE_SLOT and tokens[-1:] == [VALUE_SLOT]):
            tokens.append(slot)
        place += length
    return " ".join(tokens)


def _list_slots(proof: Proof) -> dict[str, list[tuple[list[str], str]]]:
    # Of a type and a value alike the type wins.
    relations = [proof.answer_relation, *(hop.relation for hop in proof.hops), *(b.relation for b in proof.branches)]
    spoken = {word for relation in relations for word in _PART.findall(relation.casefold())}
    types = {node.type for node in proof.entities} | {
        fact.value for fact in proof.constraints if fact.relation == "type"
    }
    values = {fact.value for fact in proof.constraints if fact.relation != "type"}
    values |= {node.title for node in proof.entities} | {hop.clause for hop in proof.hops}
    phrases: dict[tuple[str, ...], str] = {tuple(_MARK.findall(value.casefold())): VALUE_SLOT for value in values}
    for kind in types:
        words = _MARK.findall(kind.casefold())
        if words and not (len(words) == 1 and words[0] in spoken):
            phrases |= {(*words[:-1], last): TYPE_SLOT for last in _decline(words[-1])}
    found: defaultdict[str, list[tuple[list[str], str]]] = defaultdict(list)
    for phrase in sorted(phrases, key=lambda phrase: (-len(phrase), phrase)):
        if phrase:
            found[phrase[0]].append((list(phrase), phrases[phrase]))
    return found


def _decline(noun: str) -> tuple[str, ...]:
    return (noun, f"{noun}s", f"{noun}es", f"{noun[:-1]}ies") if noun.endswith("y") else (noun, f"{noun}s", f"{noun}es")


def _find_slot(words: Sequence[str], place: int, slots: dict[str, list[tuple[list[str], str]]]) -> tuple[int, str]:
    for phrase, slot in slots.get(words[place], ()):
        if words[place : place + len(phrase)] == phrase:
            return len(phrase), slot
    return 0, ""


def _read_word(mark: str, begins: bool) -> str:
    if not _WORD.fullmatch(mark):
        return ""
    word = mark.casefold()
    counted = word != "one" and parse_spelled(word) is not None
    if counted or any(map(str.isdigit, mark)) or (mark[0].isupper() and not begins):
        return VALUE_SLOT
    return "a" if word == "an" else word


def find_over_used(wordings: Sequence[Wording], share: float) -> list[str]:
    """Return, for each wording, the dataset in which its skeleton has used up its share; empty for one that is kept.

    A skeleton may have ``share`` of what a dataset keeps, and one question in any case. Earlier wordings come first,
    so the caller's order decides which are kept. Each dataset gets the largest quota that its kept questions bear: of
    skeletons with counts c the quota q keeps ``sum(min(c, q))`` questions, and q over that falls as q falls.
    """
    refused = [""] * len(wordings)
    while True:
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        kept = [place for place, dataset in enumerate(refused) if not dataset]
        for place in kept:
            for dataset in wordings[place].datasets:
                counts[dataset][wordings[place].skeleton] += 1
        quotas = {dataset: find_quota(list(skeletons.values()), share) for dataset, skeletons in counts.items()}
        used: Counter[tuple[str, str]] = Counter()
        for place in kept:
            marks = [(dataset, wordings[place].skeleton) for dataset in wordings[place].datasets]
            over = [dataset for dataset, skeleton in marks if used[dataset, skeleton] >= quotas[dataset]]
            if over:
                refused[place] = over[0]
            else:
                used.update(marks)
        if all(not refused[place] for place in kept):
            return refused


def find_quota(counts: Sequence[int], share: float) -> int:
    """Return the largest q of at least 1 that is at most ``share`` of ``sum(min(count, q))``, else 1."""
    low, high = 1, max(counts)
    while low < high:
        middle = (low + high + 1) // 2
        if middle <= share * sum(min(count, middle) for count in counts):
            low = middle
        else:
            high = middle - 1
    return low


def list_grams(words: Sequence[str], size: int) -> list[Gram]:
    """Return the runs of ``size`` words, from left to right; empty for a shorter text."""
    return list(zip(*(words[start:] for start in range(size)), strict=False))


NO_NODE = -1
"""In place of the page id of an answer node that there is not."""
FEW = 5
"""Questions of a relation up to which its answers say little: those of its kind are guessed by."""
SHOWN_DIGITS = 8
NAME_DIGITS = 12
RANKS: Final[Mapping[Split, int]] = {"eval": 0, "sft": 1, "rl": 2}
"""Which split keeps what two of them share: the first."""
SEARCHED: Final = 512
"""Questions whose pictures are sought at once."""
Identity = tuple[ReleaseReason, str, str]
"""The reason that questions alike in it are refused for, its name for a reader, and its value."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What duplicates and splits are compared by; a question's text and evidence are not held in memory."""

    record_id: str
    split: Split
    anchor: int
    """Digest of what :func:`name_anchor` says."""
    answer_node: int
    """Digest of the entity's name; ``NO_NODE`` where it is not known."""
    answer_key: str
    asked: str
    """Relation asked for, its key without numbers; empty for a question that nothing proves."""
    hops: tuple[str, ...]
    """Subject, relation and object of each hop."""
    edges: str
    """Digest of the set of them; empty without a hop."""
    fact: tuple[str, str]
    """The answer node's title without its qualifier, empty without a path, and the answer as its page shows it. Both
    are empty where the answer is that name itself: what says it does not tell what the picture shows."""
    sha256: str
    """Content of the picture before it was degraded; empty for a question without one."""
    phash: str
    skeleton: str
    """Digest of the wording without names, types and values."""
    shingles: bytes
    """Digests of the text's runs of words."""
    search_need: SearchNeed = ""
    """Which search its answer takes; empty where that was not measured."""
    dataset: Dataset = "vqa"
    """The dataset of all questions of its kind."""
    pages: tuple[int, ...] = ()
    """Page ids of anchor, bridges and answer node of a path."""
    entities: tuple[str, ...] = ()
    """Names of anchor, bridges and answer node, as :func:`list_entities` gives them."""
    final: str = ""
    """Name of the answer node and the relation asked for."""
    parts: tuple[str, ...] = ()
    """sha256 of the other pictures of a scene."""
    rounds: int = 0
    """Entities that rounds of injection have hidden."""
    gold_share: float | None = None
    """Its answer's share of those that its words allow without the picture; None where that cannot be counted."""
    kind: str = ""
    """Domain and answer type, as :func:`name_kind` gives them."""


class Sourced(Protocol):
    """A question and where it comes from."""

    @property
    def proof(self) -> Proof:
        """Its path, if it has one."""

    @property
    def trace(self) -> Trace | None:
        """What proves it, if it is about the news."""

    @property
    def origin(self) -> Origin | None:
        """Its pool, if it has one."""


class Pictured(Sourced, Protocol):
    """A question with its picture and where it comes from."""

    @property
    def record_id(self) -> str:
        """Its id."""

    @property
    def picture(self) -> Picture | None:
        """As it is shown."""

    @property
    def original(self) -> Picture | None:
        """Before it was degraded, where it was."""


def name_anchor(row: Pictured) -> str:
    """Return what splits keep apart as the thing in the picture: an entity's name, else the picture.

    Names are compared and not page ids, so that one entity is one however a question was made.
    """
    if entities := list_entities(row):
        return f"entity:{entities[0]}"
    # Degraded in two ways a picture is still one picture.
    picture = row.original or row.picture
    return f"picture:{picture.sha256}" if picture else f"question:{row.record_id}"


def name_answer_node(row: Pictured) -> str:
    """Return what splits keep apart as the thing whose fact is asked for; empty where that is not known."""
    known = row.trace is not None or row.proof.nodes
    return f"entity:{list_entities(row)[-1]}" if known else ""


def list_entities(row: Sourced) -> tuple[str, ...]:
    """Return the folded names of what lies between picture and answer, the anchor first; empty if unknown."""
    if row.trace is not None:
        names = [row.trace.anchor, row.trace.bridge]
    elif row.proof.nodes:
        names = [node.title for node in row.proof.nodes]
    else:
        names = [row.origin.entity] if row.origin and row.origin.entity else []
    return tuple(map(fold_name, names))


def list_edges(row: Pictured) -> list[tuple[object, str, object]]:
    """Return subject, relation and object of each fact between picture and answer, each once, in order."""
    if row.trace is not None:
        return [(link.subject, link.relation, link.object) for link in row.trace.links]
    told = {(hop.subject_id, hop.relation, hop.object_id) for hop in row.proof.hops}
    entities = [node.page_id for node in row.proof.entities]
    return sorted(told | {(entities[each.host], each.relation, each.node.page_id) for each in row.proof.branches})


def name_final(row: Sourced) -> tuple[str, ...]:
    """Return the final fact of a question, by the answer node's name and the relation; empty if unknown."""
    relation = read_relation(row)
    return (f"{list_entities(row)[-1]} {relation}",) if relation else ()


def read_relation(row: Sourced) -> str:
    """Return the key or the words of the relation that a question asks for; empty where it is not known."""
    return row.proof.answer_relation if row.trace is None else row.trace.links[-1].relation


def _number(name: str) -> int:
    return int(digest_value(name)[:NAME_DIGITS], 16) if name else NO_NODE


def _name_told(row: Sourced) -> str:
    if row.trace is not None:
        return row.trace.bridge
    return row.proof.nodes[-1].title.partition(" (")[0] if row.proof.nodes else ""


def make_signature(row: Record, exam: bool = False) -> Signature:
    """Return a question's signature."""
    if not isinstance(row, Enhancement):
        raise ConfigError(f"the first input holds {type(row).__name__} rows; the stage takes Enhancement rows")
    kind: Dataset = "vqa" if row.trace is None else "bridgevqa"
    picture = row.original or row.picture
    edges = list_edges(row)
    hops = tuple(f"{subject} {relation} {value}" for subject, relation, value in edges)
    return Signature(
        record_id=row.record_id,
        split=row.split,
        anchor=_number(name_anchor(row)),
        answer_node=_number(name_answer_node(row)),
        answer_key=row.answer.key,
        asked=stem_key(read_relation(row)),
        hops=hops,
        edges=digest_value(edges) if edges else "",
        fact=("", "") if asks_name(row.proof) else (_name_told(row), row.answer.surface),
        sha256=picture.sha256 if picture else "",
        phash=picture.phash if picture else "",
        skeleton=digest_value(delexicalise(row)),
        shingles=shingle_text(row.text),
        search_need=row.search_need,
        dataset="exam" if exam and row.split == "eval" else kind,
        pages=tuple(node.page_id for node in row.proof.nodes),
        entities=list_entities(row),
        final=" ".join(name_final(row)),
        rounds=row.proof.rounds,
        gold_share=read_gold_share(row.proof),
        kind=name_kind(row.domain, row.answer),
        parts=tuple(part.picture.sha256 for part in row.scene.parts) if row.scene else (),
    )


def refuse_duplicates(signatures: Iterable[Signature]) -> tuple[list[Signature], dict[str, Rejection]]:
    """Return the kept signatures and a rejection for every duplicate of an earlier one."""
    kept: list[Signature] = []
    refused: dict[str, Rejection] = {}
    questions: dict[Identity, str] = {}
    pictures: dict[str, Signature] = {}
    for signature in signatures:
        found = _find_duplicate(signature, questions, pictures)
        if found:
            _refuse(refused, signature, *found)
            continue
        kept.append(signature)
        for identity in _list_identities(signature):
            questions[identity] = signature.record_id
        for mark in _list_marks(signature):
            pictures.setdefault(mark, signature)
    return kept, refused


def _refuse(refused: dict[str, Rejection], signature: Signature, reason: ReleaseReason, detail: str) -> None:
    refused[signature.record_id] = Rejection(record_id=signature.record_id, reason=reason, detail=detail)


def refuse_anchors(signatures: Iterable[Signature], cap: int) -> dict[str, Rejection]:
    """Refuse questions beyond the first ``cap`` of a split that share an anchor (research: D3)."""
    return _refuse_beyond(signatures, cap, "anchor-over-used", lambda signature: {"anchor": str(signature.anchor)})


def refuse_answers(signatures: Iterable[Signature], cap: int) -> dict[str, Rejection]:
    """Refuse questions beyond the first ``cap`` of a split that share an answer, or an answer node.

    A split in which one answer is right every third time is passed by guessing (research: S7, D3).
    """
    return _refuse_beyond(
        signatures,
        cap,
        "answer-over-used",
        lambda signature: {"answer": signature.answer_key, "answer node": _name_node(signature)},
    )


def refuse_facts(signatures: Iterable[Signature], cap: int) -> dict[str, Rejection]:
    """Refuse questions beyond the first ``cap`` of a split that ask for one final fact, by whatever path."""
    return _refuse_beyond(signatures, cap, "fact-over-used", lambda signature: {"final fact": signature.final})


def _refuse_beyond(
    signatures: Iterable[Signature], cap: int, reason: ReleaseReason, read: Callable[[Signature], dict[str, str]]
) -> dict[str, Rejection]:
    refused: dict[str, Rejection] = {}
    used: Counter[tuple[Split, str, str]] = Counter()
    for signature in signatures:
        marks = [(signature.split, name, value) for name, value in read(signature).items() if value]
        over = [mark for mark in marks if used[mark] >= cap]
        if over:
            split, name, value = over[0]
            detail = f"{cap} questions of {split} have the {name} {value} already"
            _refuse(refused, signature, reason, detail)
        else:
            used.update(marks)
    return refused


def refuse_skeletons(signatures: Sequence[Signature], solved: Collection[str], share: float) -> dict[str, Rejection]:
    """Refuse questions whose skeleton already has its share of a dataset that they would go into (research: D1).

    The share is of kept rows, so anyone can count it in the release; a dataset of fewer than ``1 / share`` questions
    keeps each skeleton once.
    """
    wordings = [Wording(signature.skeleton, _list_datasets(signature, solved)) for signature in signatures]
    refused: dict[str, Rejection] = {}
    for signature, dataset in zip(signatures, find_over_used(wordings, share), strict=True):
        if dataset:
            detail = f"skeleton {signature.skeleton[:SHOWN_DIGITS]} has its {share:.1%} of {dataset} already"
            _refuse(refused, signature, "skeleton-over-used", detail)
    return refused


def name_kind(domain: str, answer: Answer) -> str:
    """Return what is guessed by where the relation that is asked for says little: domain and answer type."""
    return f"{domain}, {answer.type}"


def group_guessed(asked: Sequence[tuple[str, str]]) -> list[str]:
    """Return what each of some questions is guessed by, from its relation and kind: of a rare relation the kind."""
    asking = Counter(relation for relation, _ in asked)
    return [f"attribute {relation}" if relation and asking[relation] > FEW else kind for relation, kind in asked]


def refuse_guessed(signatures: Sequence[Signature], solved: Collection[str], share: float) -> dict[str, Rejection]:
    """Refuse questions whose answer has its share of those that a guesser knows by the same (research: S7).

    That is the relation that is asked for, and of a rare one, or of a question that nothing proves, domain and answer
    type too. So guessing the commonest answer is right in no more than that share of a dataset, and of its questions
    for training or evaluation. Of fewer than ``1 / share`` questions each answer is kept once.
    """
    refused: dict[str, Rejection] = {}
    kept, over = list(signatures) if share < 1.0 else [], True
    # What is refused of a relation may leave it rare.
    while over:
        groups = _list_guessed(kept, solved)
        wordings = [Wording(each.answer_key, groups[each.record_id]) for each in kept]
        where = find_over_used(wordings, share)
        over = any(where)
        for signature, group in zip(kept, where, strict=True):
            if group:
                detail = f"answer {signature.answer_key} has its {share:.1%} of {group} already"
                _refuse(refused, signature, "answer-over-used", detail)
        kept = [each for each, group in zip(kept, where, strict=True) if not group]
    return refused


def _list_guessed(signatures: Sequence[Signature], solved: Collection[str]) -> dict[str, tuple[str, ...]]:
    scopes: defaultdict[str, list[Signature]] = defaultdict(list)
    for each in signatures:
        part = "eval" if each.split == "eval" else "training"
        # A split is guessed by itself, whatever the questions beside it.
        for scope in (*_list_datasets(each, solved), f"{each.dataset} {part}"):
            scopes[scope].append(each)
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for scope, own in scopes.items():
        for each, group in zip(own, group_guessed([(each.asked, each.kind) for each in own]), strict=True):
            relation = [f"attribute {each.asked}"] if each.asked else []
            found[each.record_id] |= dict.fromkeys(f"{scope}: {name}" for name in (*relation, group))
    return {record_id: tuple(groups) for record_id, groups in found.items()}


def _list_datasets(signature: Signature, solved: Collection[str]) -> tuple[str, ...]:
    own = signature.split == "rl" or (signature.split == "sft" and signature.record_id in solved)
    return (signature.dataset, signature.split) if own else (signature.dataset,)


def _find_duplicate(
    signature: Signature, questions: dict[Identity, str], pictures: dict[str, Signature]
) -> tuple[ReleaseReason, str] | None:
    for identity in _list_identities(signature):
        if identity in questions:
            return identity[0], f"same {identity[1]} as {questions[identity]}"
    for mark in _list_marks(signature):
        if mark in pictures and pictures[mark].anchor != signature.anchor:
            return "duplicate-picture", f"same {mark.split(':')[0]} as {pictures[mark].record_id}, another anchor"
    return None


def _list_identities(signature: Signature) -> tuple[Identity, ...]:
    path: Identity = ("duplicate-path", "edge set", signature.edges)
    asked: Identity = ("duplicate-question", "anchor and answer key", f"{signature.anchor}:{signature.answer_key}")
    return (asked, path) if signature.edges else (asked,)


def _name_node(signature: Signature) -> str:
    return "" if signature.answer_node == NO_NODE else str(signature.answer_node)


def _list_marks(signature: Signature) -> list[str]:
    marks = [("picture sha256", signature.sha256), ("picture phash", signature.phash)]
    return [f"{name}:{value}" for name, value in marks if value]


def count_duplicates(signatures: Iterable[Signature]) -> Counter[str]:
    """Return how many questions repeat an earlier one, by reason."""
    return Counter(rejection.reason for rejection in refuse_duplicates(signatures)[1].values())


def list_shared_values(signatures: Iterable[Signature]) -> dict[str, list[str]]:
    """Return, for anchor, answer node, answer key and picture, the values that more than one split has, sorted."""
    splits: dict[str, defaultdict[str, set[str]]] = {
        name: defaultdict(set) for name in ("anchor", "answer node", "answer key", "picture")
    }
    for signature in signatures:
        pictures = (signature.sha256, *signature.parts)
        values = ((str(signature.anchor),), (_name_node(signature),), (signature.answer_key,), pictures)
        for seen, found in zip(splits.values(), values, strict=True):
            for value in found:
                seen[value].add(signature.split)
    return {name: sorted(value for value, of in seen.items() if value and len(of) > 1) for name, seen in splits.items()}


def refuse_shared(signatures: Iterable[Signature]) -> dict[str, Rejection]:
    """Refuse questions that share with another split what splits are apart by (``shared-across-splits``).

    An anchor, answer node, answer key or picture is in one split; of two the question for training gives way to that
    for evaluation, and reinforcement learning to imitation, whose rollouts cost more. A hop of a question for
    evaluation is in no other split either: who was trained on it has half the answer.
    """
    refused: dict[str, Rejection] = {}
    owners: dict[tuple[str, str], Signature] = {}
    for signature in sorted(signatures, key=lambda each: RANKS[each.split]):
        named = [("anchor", str(signature.anchor)), ("answer node", _name_node(signature))]
        values = [each for each in named if each[1]]
        values += [("answer key", signature.answer_key), *(("hop", hop) for hop in signature.hops)]
        values += [(mark.partition(":")[0], mark) for mark in _list_marks(signature)]
        values += [("picture sha256", f"picture sha256:{part}") for part in signature.parts]
        met = (value for value in values if value in owners and owners[value].split != signature.split)
        clash = next((each for each in met if each[0] != "hop" or owners[each].split == "eval"), None)
        if clash is not None:
            detail = f"{clash[0]} {clash[1]} is in {owners[clash].split} already, {owners[clash].record_id}"
            _refuse(refused, signature, "shared-across-splits", detail)
            continue
        for value in values:
            owners.setdefault(value, signature)
    return refused


def refuse_like_pictures(
    signatures: Iterable[Signature], look: Callable[[str], PictureDescription]
) -> dict[str, Rejection]:
    """Refuse questions whose picture is a copy of another's, cut, mirrored, framed or turned.

    A copy is in no other split (``shared-across-splits``), and inside a split it shows one anchor
    (``duplicate-picture``). The question that is kept is that for evaluation, else for imitation, else the first. The
    other pictures of a scene are passed over: they are not stored.
    """
    index, kept = PictureIndex(), dict[str, Signature]()
    refused: dict[str, Rejection] = {}
    pictured = sorted((each for each in signatures if each.sha256), key=lambda each: RANKS[each.split])
    for start in range(0, len(pictured), SEARCHED):
        batch = pictured[start : start + SEARCHED]
        looks = {sha256: look(sha256) for sha256 in dict.fromkeys(each.sha256 for each in batch) if sha256 not in kept}
        likes = dict(zip(looks, index.find_all(list(looks.values())), strict=True))
        fresh = PictureIndex()
        for signature in batch:
            own = signature.sha256
            # A picture that is kept was compared: whatever is kept beside it agrees with its question.
            found = (own,) if own in kept else (*likes[own], *fresh.find(looks[own]))
            if refusal := _find_like(signature, [kept[mark] for mark in found]):
                _refuse(refused, signature, *refusal)
            elif own not in kept:
                kept[own] = signature
                fresh.add(own, looks[own])
        index.extend(fresh)
    return refused


def _find_like(signature: Signature, likes: Sequence[Signature]) -> tuple[ReleaseReason, str] | None:
    if other := next((each for each in likes if each.split != signature.split), None):
        return "shared-across-splits", f"its picture is a copy of that of {other.record_id} in {other.split}"
    if other := next((each for each in likes if each.anchor != signature.anchor), None):
        return "duplicate-picture", f"its picture is a copy of that of {other.record_id}, another anchor"
    return None


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The final facts of questions for evaluation: no transcript that trains may spell one out."""

    facts: Mapping[str, tuple[Signature, ...]]
    """By the first word of the answer node's title."""

    @classmethod
    def of(cls, signatures: Iterable[Signature]) -> "HeldOut":
        """Collect the facts of the questions for evaluation."""
        facts: defaultdict[str, list[Signature]] = defaultdict(list)
        for signature in signatures:
            if signature.split == "eval" and (words := _PART.findall(signature.fact[0])):
                facts[words[0]].append(signature)
        return cls({word: tuple(found) for word, found in facts.items()})

    def find_told(self, texts: Iterable[str]) -> str:
        """Return the id of the first question whose entity and answer one of the texts names, or ""."""
        for text in texts:
            for match in _PART.finditer(text):
                for signature in self.facts.get(match.group(), ()):
                    title, answer = signature.fact
                    if text.startswith(title, match.start()) and answer in text:
                        return signature.record_id
        return ""


def refuse_told(signatures: Iterable[Signature], told: Mapping[str, str]) -> dict[str, Rejection]:
    """Refuse questions one of whose transcripts states a fact that is held out (``tells-held-out-fact``)."""
    refused: dict[str, Rejection] = {}
    for signature in signatures:
        if signature.record_id in told:
            detail = f"an observation of its rollouts states the final fact of {told[signature.record_id]}"
            _refuse(refused, signature, "tells-held-out-fact", detail)
    return refused


Apart = frozenset[str]
"""What questions of other releases hold, in words."""


class _Held(NamedTuple):
    proof: Proof
    trace: Trace | None
    origin: Origin | None


def mark_question(
    proof: Proof,
    answer: Answer,
    pictures: Iterable[Picture] = (),
    trace: Trace | None = None,
    origin: Origin | None = None,
) -> Apart:
    """Return what a question holds that no other release may share: pages, entities, final fact, answer, pictures.

    Pages and entities are those from the picture to the answer, not those of branches.
    """
    row, shown = _Held(proof, trace, origin), [mark for each in pictures for mark in (each.sha256, each.phash)]
    return _mark([node.page_id for node in proof.nodes], list_entities(row), name_final(row), answer.key, shown)


def _mark(
    pages: Iterable[int], entities: Iterable[str], facts: Iterable[str], answer: str, pictures: Iterable[str]
) -> Apart:
    parts = {"page": pages, "entity": entities, "final fact": facts, "answer": [answer], "picture": pictures}
    return frozenset(f"{kind} {value}" for kind, values in parts.items() for value in values if value)


def refuse_apart(signatures: Iterable[Signature], apart: Apart) -> dict[str, Rejection]:
    """Refuse questions that share something with other releases (``in-other-release``)."""
    refused: dict[str, Rejection] = {}
    for each in signatures:
        shown = (each.sha256, each.phash, *each.parts)
        own = _mark(each.pages, each.entities, [each.final], each.answer_key, shown)
        if shared := sorted(own & apart):
            _refuse(refused, each, "in-other-release", "; ".join(shared))
    return refused
