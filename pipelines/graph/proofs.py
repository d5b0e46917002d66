"""A proof as a query, as input of a writer, as a graph, and its growth backwards (VSearcher, section 2.1).

Hiding the outermost entity behind ``born in Ostrel`` puts Ostrel in front; the next round hides Ostrel. A fact is
offered only if a walk of the remaining length reaches an article that may be an anchor.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pipelines.config.settings import GroundingsConfig, InjectionsConfig, RewritesConfig
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.facts import Attribute, read_relations
from pipelines.graph.prose import generalise_clause, list_prose, mask_names
from pipelines.graph.query import Indexes, Query, Side, find_article, locate_nodes
from pipelines.graph.titles import asks_name
from pipelines.ids import choose_weighted, digest_value, draw_unit, make_record_id
from pipelines.names import digest_aliases
from pipelines.splits import SplitRule
from schemas.datasets import Certificate, Question, Rewrite, Split
from schemas.proofs import Answer, Evidence, Hop, PathNode, Proof, Role, Thresholds
from schemas.tasks import HopView, OfferedFact, WriteQuestionInputs

NO_PROOF = Proof(
    corpus="",
    snapshot="",
    nodes=(),
    hops=(),
    answer_relation="",
    answer_evidence=Evidence(
        page_id=-1, title="", revision=-1, kind="sentence", key="", start=-1, end=-1, text="", link_start=-1
    ),
    constraints=(),
    counts=(),
    alias_digest="",
)
"""The empty proof, of a question that no path through a wiki leads to."""
LEAD_WORDS = 60
"""Words of an article's first sentence that are shown; a failed split makes sentences of any length."""


def list_names(corpus: Corpus, nodes: Sequence[PathNode]) -> tuple[tuple[str, ...], ...]:
    """Return the names of each node of a path: the title, then redirects and other names of the corpus."""
    numbers = locate_nodes(corpus, nodes)
    return tuple((node.title, *corpus.aliases(number)) for node, number in zip(nodes, numbers, strict=True))


def flatten_names(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return all names of all nodes in path order."""
    return tuple(name for of_node in names for name in of_node)


def make_query(corpus: Corpus, proof: Proof) -> Query:
    """Return a proof as a query over the corpus."""
    names = flatten_names(list_names(corpus, proof.nodes))
    (anchor,) = locate_nodes(corpus, proof.nodes[:1])
    asked = (proof.answer_relation, names, proof.derivation, proof.answer_clause)
    ends = locate_nodes(corpus, [branch.node for branch in proof.branches])
    sides = tuple(
        Side(number, branch.host, state_branch(proof, number), end, branch.named)
        for number, (branch, end) in enumerate(zip(proof.branches, ends, strict=True), len(proof.nodes))
    )
    return Query(anchor, proof.hops, proof.constraints, *asked, sides, naming=asks_name(proof))


def state_branch(proof: Proof, number: int) -> Hop:
    """Return a branch as the backward hop that it is: from its entity to what it is about, whose page states it."""
    branch = proof.branches[number - len(proof.nodes)]
    return Hop(
        index=number,
        relation=branch.relation,
        subject_id=proof.entities[branch.host].page_id,
        object_id=branch.node.page_id,
        clause="",
        evidence=branch.evidence,
        backward=True,
    )


def make_question_id(text: str, sha256: str, answer: Answer, proof: Proof) -> str:
    """Return a final question's id: a digest of text, picture (its sha256 or empty), answer key and path."""
    path = [[hop.relation, node.page_id] for hop, node in zip(proof.hops, proof.nodes[1:], strict=False)]
    anchor = proof.nodes[0].page_id if proof.nodes else 0
    sides = [[[branch.host, branch.relation, branch.node.page_id] for branch in proof.branches]] * bool(proof.branches)
    return make_record_id("q", [text, sha256, answer.key, anchor, path, proof.answer_relation, *sides])


def start_proof(
    corpus: Corpus,
    nodes: Sequence[PathNode],
    hops: Sequence[Hop],
    relation: str,
    evidence: Evidence,
    limits: Thresholds,
) -> Proof:
    """Return the proof of a question that hides nothing yet."""
    return Proof(
        corpus=corpus.digest,
        snapshot=corpus.snapshot,
        nodes=tuple(nodes),
        hops=tuple(hops),
        answer_relation=relation,
        answer_evidence=evidence,
        constraints=(),
        counts=(),
        alias_digest=digest_aliases(flatten_names(list_names(corpus, nodes))),
        thresholds=limits,
    )


def make_rewrite(question: Question, text: str, proof: Proof, **changes: object) -> Rewrite:
    """Return a question in other words."""
    own = {name: value for name, value in dict(question).items() if name in Rewrite.model_fields}
    made = {"parent_id": question.record_id, "canonical": question.text, "text": text, "proof": proof}
    record_id = make_record_id("rewrite", [question.record_id, text])
    return Rewrite(**own | made | {"record_id": record_id, "certificates": ()}).model_copy(update=changes)


def view_proof(corpus: Corpus, proof: Proof, answer: Answer) -> WriteQuestionInputs:
    """Return a proof as input of a writer, quoted sentences generalised; the same path has the same ``variety``."""
    views = tuple(
        HopView(relation=hop.relation, clause=generalise_clause(corpus, hop), object_name=node.title,
                object_type=node.type, backward=hop.backward, gloss=hop.gloss)
        for hop, node in zip(proof.hops, proof.nodes[1:], strict=True)
    )  # fmt: skip
    article = find_article(corpus, locate_nodes(corpus, proof.nodes[-1:])[0], proof.answer_relation, answer)
    return WriteQuestionInputs(
        anchor_name=proof.nodes[0].title,
        anchor_type=proof.nodes[0].type,
        hops=views,
        answer_relation=proof.answer_relation,
        answer=answer,
        variety=digest_value([[node.page_id for node in proof.nodes], proof.answer_relation])[:16],
        answer_gloss=proof.answer_gloss,
        answer_type=corpus.page(article).type if article >= 0 else "",
    )


def make_node(corpus: Corpus, node: int, role: Role) -> PathNode:
    """Return the path node of a page."""
    page = corpus.page(node)
    return PathNode(page_id=page.page_id, title=page.title, role=role, type=page.type, in_degree=page.in_degree)


def cite_fact(corpus: Corpus, fact: Fact) -> Evidence:
    """Return an infobox value, or a statement of Wikidata, as evidence."""
    link_start = fact.link_start if fact.target >= 0 else -1
    cited = _cite(corpus, fact.node, (fact.start, fact.end), link_start, fact.key)
    if not fact.statement:
        return cited
    return cited.model_copy(update={"kind": "statement", "key": fact.property, "text": fact.statement})


def cite_answer(corpus: Corpus, attribute: Attribute) -> Evidence:
    """Return the value asked for as evidence: its infobox field, or the sentence that gives it."""
    fact = attribute.fact
    if attribute.clause:
        return cite_sentence(corpus, fact.node, fact.start, fact.end, fact.link_start)
    return cite_fact(corpus, fact)


def cite_sentence(corpus: Corpus, node: int, start: int, end: int, link_start: int = -1) -> Evidence:
    """Return a sentence of a page as evidence, with the offset of the link that is followed."""
    return _cite(corpus, node, (start, end), link_start, "")


def _cite(corpus: Corpus, node: int, span: tuple[int, int], link_start: int, key: str) -> Evidence:
    page, (start, end) = corpus.page(node), span
    return Evidence(
        page_id=page.page_id, title=page.title, revision=page.revision, kind="infobox" if key else "sentence", key=key,
        start=start, end=end, text=corpus.text(node)[start:end], link_start=link_start,
    )  # fmt: skip


CANDIDATES = 6
"""Descriptors tried for a bridge."""
NEAR_MISSES = 50
"""Entities a node looked up in their articles because their infoboxes leave a fact open; with more the descriptor is
refused."""
PAGE_WORDS = 400
"""Words of an article that a model is shown for one fact: its opening, which holds most facts of an infobox."""
EXPANSIONS = 400
"""Articles read to decide whether one fact leads to an anchor; after that the answer is no."""
LOOKED_AT = 60
"""Relations of an article that are read, from the top of its infobox."""
LONGEST_CHAIN = 3
"""Rounds of the chain of a question that has others beside it: longer chains are rare, and cost much to look for."""
OPEN = ""
"""Result of a test that an article passes."""

Test = Callable[[int], str]
"""Returns why an article is refused, or ``OPEN``."""


@dataclass(frozen=True, slots=True)
class InjectionRules:
    """How far a question is grown, and the thresholds of its checks."""

    settings: InjectionsConfig
    descriptors: RewritesConfig
    min_answers: int
    """Least number of distinct answers over all anchors of the type, in each round; 0 is off."""
    hub_in_degree: int
    max_answer_tokens: int
    seed: int

    def draw_rounds(self, identity: str) -> int:
        """Return the number of rounds of a question, which depends on its id alone."""
        unit = draw_unit(self.seed, "rounds", identity)
        return choose_weighted(self.settings.rounds, self.settings.draws or self.settings.weights, unit)

    def order_rounds(self, identity: str) -> tuple[int, ...]:
        """Return the numbers of rounds to be tried for a question: the one drawn, then the others, most rounds first.

        Questions of many rounds are rare, so that a question which cannot have its own number may have theirs. Those of
        the fewest are not: what is drawn for more is not spent on them.
        """
        drawn = self.draw_rounds(identity)
        others = sorted({*self.settings.rounds} - {drawn, min(self.settings.rounds)}, reverse=True)
        return (drawn, *others)

    def order_chains(self, identity: str, rounds: int) -> tuple[int, ...]:
        """Return the lengths of the chain to be tried for a question: what is left of its rounds goes to branches."""
        lengths = range(1, min(rounds, LONGEST_CHAIN + 1))
        shorter = sorted(lengths, key=lambda length: draw_unit(self.seed, "chain", identity, length))
        first = draw_unit(self.seed, "tree", identity) < self.settings.trees
        return (*shorter, rounds) if first else (rounds, *shorter)


@dataclass(frozen=True, slots=True)
class AnchorRules:
    """Requirements of an anchor: the split and the picture of a seed."""

    splits: SplitRule
    settings: GroundingsConfig

    def explain(self, corpus: Corpus, node: int, split: Split) -> str:
        """Return why an article is refused as the anchor of a question of a split, or ``OPEN``."""
        page = corpus.page(node)
        if self.splits.place("entity", page.title) != split:
            return "other-split"
        if not self.settings.require_image:
            return OPEN
        picture = corpus.image(page.image) if page.image else None
        if picture is None or not picture.path or picture.error:
            return "no-image"
        if not page.image_free:
            return "image-not-free"
        return OPEN if min(picture.width, picture.height) >= self.settings.min_side else "image-too-small"


@dataclass(frozen=True, slots=True)
class ProofDraft:
    """A question between two rounds."""

    text: str
    proof: Proof
    certificates: tuple[Certificate, ...]
    taken: tuple[int, ...]
    """Node numbers of the chain from the answer node outwards; the question names the last."""
    fact: Fact | None = None
    """The relation of the last round."""
    aside: tuple[int, ...] = ()
    """Node numbers of the entities that branches name."""


@dataclass(slots=True)
class Level:
    """A draft and the untried facts that may hide the entity it names."""

    draft: ProofDraft
    facts: list[Fact]


@dataclass(slots=True)
class ChainSearch:
    """Look-ahead of one question: which facts of an article lead to an anchor in ``rounds`` rounds.

    Each article is judged once; refusals are counted for the question's rejection.
    """

    corpus: Corpus
    hub_in_degree: int | None
    """Articles with more incoming links are refused: a fact about a country hides nothing. None: no article is."""
    pass_test: Test
    """Test of every article of the chain."""
    end_test: Test
    """Further test of the anchor."""
    draw: str
    """Seed of the order in which relations are tried."""
    keep_fact: Callable[[Fact], bool] = lambda fact: True
    """Whether a question may use a relation."""
    refused: Counter[str] = field(default_factory=Counter)
    _judged: dict[tuple[int, bool], str] = field(default_factory=dict)
    _left: int = 0

    def list_facts(self, taken: Sequence[int], rounds: int) -> tuple[Fact, ...]:
        """Return the relations of the last article taken that lead to an anchor in ``rounds`` rounds, in page order."""
        found = []
        for fact in self._read_relations(taken[-1]):
            self._left = EXPANSIONS
            if self._leads_on(fact.target, tuple(taken), rounds - 1):
                found.append(fact)
        return tuple(found)

    def open_level(self, draft: ProofDraft, rounds: int) -> Level:
        """Return a draft with the facts that lead to an anchor in ``rounds`` rounds."""
        return Level(draft, list(self.list_facts((*draft.aside, *draft.taken), rounds)))

    def _leads_on(self, node: int, taken: tuple[int, ...], left: int) -> bool:
        if node in taken or not self._is_open(node, last=left == 0):
            return False
        if left == 0:
            return True
        if self._left <= 0:
            return False
        self._left -= 1
        ahead = {fact.target for fact in self._read_relations(node)}
        ordered = sorted(ahead, key=lambda target: draw_unit("chain", self.draw, target))
        return any(self._leads_on(target, (*taken, node), left - 1) for target in ordered)

    def _read_relations(self, node: int) -> list[Fact]:
        return [fact for fact in read_relations(self.corpus, node)[:LOOKED_AT] if self.keep_fact(fact)]

    def _is_open(self, node: int, last: bool) -> bool:
        if (node, last) not in self._judged:
            found = self._judge(node) or (self.end_test(node) if last else OPEN)
            self._judged[node, last] = found
            self.refused.update([found] if found else [])
        return self._judged[node, last] == OPEN

    def _judge(self, node: int) -> str:
        page = self.corpus.page(node)
        if page.is_list or page.is_disambiguation or not page.type:
            return "no-type"
        hub = self.hub_in_degree is not None and page.in_degree > self.hub_in_degree
        return "hub" if hub else self.pass_test(node)


def retreat(levels: list[Level], fact: Fact | None) -> None:
    """Remove a failed fact, then every draft without facts and the fact that led to it."""
    if fact is not None:
        levels[-1].facts.remove(fact)
    while levels and not levels[-1].facts:
        led = levels.pop().draft.fact
        if levels and led is not None:
            levels[-1].facts.remove(led)


def offer_relation(ground: Indexes, fact: Fact) -> OfferedFact:
    """Return a relation for a model, with the first sentence that names its object beside a cue of the relation."""
    page, names = ground.corpus.page(fact.target), ground.corpus.aliases(fact.target)
    sentences = (sentence.text for sentence in list_prose(ground.corpus, fact.node))
    stating = (text for text in sentences if mask_names(text, names) != text and ground.cues.states(fact.key, text))
    return OfferedFact(relation=fact.key, object_name=page.title, object_type=page.type, sentence=next(stating, ""),
                       in_degree=page.in_degree)  # fmt: skip


def read_opening(corpus: Corpus, node: int, words: int) -> str:
    """Return the first ``words`` words of an article's prose."""
    found = (word for sentence in list_prose(corpus, node) for word in sentence.text.split())
    return " ".join(islice(found, words))


def read_lead(corpus: Corpus, node: int) -> str:
    """Return the first sentence of an article's prose, cut to a length, which says what the entity is; or ""."""
    first = next((sentence.text for sentence in list_prose(corpus, node)), "")
    return " ".join(first.split()[:LEAD_WORDS])


def grow_proof(corpus: Corpus, proof: Proof, fact: Fact) -> Proof:
    """Return a proof with one more node in front: the article that a relation of its first node links to.

    The new hop is backward: the relation is stated on the page of the node it leads to. Indexes of nodes move up by
    one. Counts of the shorter chain are dropped.
    """
    first = proof.nodes[0]
    front = make_node(corpus, fact.target, "anchor")
    hidden = first.model_copy(update={"role": "bridge" if proof.hops else "answer"})
    nodes = (front, hidden, *proof.nodes[1:])
    hop = Hop(index=1, relation=fact.key, subject_id=first.page_id, object_id=front.page_id, clause="",
              evidence=cite_fact(corpus, fact), backward=True)  # fmt: skip
    grown = {
        "nodes": nodes,
        "hops": (hop, *(old.model_copy(update={"index": old.index + 1}) for old in proof.hops)),
        "constraints": tuple(old.model_copy(update={"node": old.node + 1}) for old in proof.constraints),
        "near_misses": tuple(old.model_copy(update={"node": old.node + 1}) for old in proof.near_misses),
        "branches": tuple(old.model_copy(update={"host": old.host + 1}) for old in proof.branches),
        "descriptors": ("", *proof.descriptors),
        "counts": (),
        "alias_digest": digest_aliases(flatten_names(list_names(corpus, nodes))),
    }
    return proof.model_copy(update=grown)
