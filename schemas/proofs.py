"""The proof that travels with every question: the conjunctive query, its evidence and its counts.

A question is the query ``anchor -r1-> v1 -r2-> ... -> vh . attribute``. Every edge and the attribute point at a span
of one revision of one page, or at a statement of Wikidata on what the page is about; every count can be made again from
the corpus. An edge is stated on the page of the node it leaves, or, when it is backward, on the page of the node it
leads to. Offsets count Unicode code points of the page's wikitext as the dump has it.
"""

from typing import Literal

from schemas.base import Nested

Role = Literal["anchor", "bridge", "answer", "branch"]
EvidenceKind = Literal["infobox", "sentence", "statement"]
AnswerType = Literal["date", "number", "name", "string"]


class Evidence(Nested):
    """A span of a page that supports a hop or the answer, or Wikidata's statement about what the page is about.

    A statement has no span: its offsets are -1.
    """

    page_id: int
    title: str
    revision: int
    kind: EvidenceKind
    key: str
    """Infobox key, Wikidata's property for a statement (``P84``), empty for a sentence."""
    start: int
    end: int
    text: str
    """The wikitext of the span, byte for byte: ``page[start:end]``; the id of a statement (``Q42$...``)."""
    link_start: int
    """Offset in the page of the ``[[`` that makes the hop; -1 for a literal value."""


class PathNode(Nested):
    """An entity of the path and its part in the question."""

    page_id: int
    title: str
    role: Role
    type: str
    """The noun a question may use for it, such as ``bridge``."""
    in_degree: int
    """Distinct articles that link here; the popularity that scripted models go by."""


class Hop(Nested):
    """One edge of the path used as one reasoning step; picture to anchor is not counted."""

    index: int
    """1 for the hop that leaves the anchor."""
    relation: str
    """Infobox key, of a statement the one that means the same, or ``mentions`` for a sentence."""
    subject_id: int
    """Page that states the relation: of the node the hop leaves, and of the node it leads to when it is backward."""
    object_id: int
    clause: str
    """For a sentence: its plain text with the object's name blanked as ``____``; empty for an infobox."""
    evidence: Evidence
    backward: bool = False
    """Whether the relation leads against the path: ``the painter born in [subject]`` goes from the town to the painter,
    whose page says where. Several entities may fit, so that further constraints and near misses decide (VSearcher's
    injection makes such hops)."""
    gloss: str = ""
    """The relation of a sentence in plain words, as a model read it from the subject to the object (``was designed
    by``); empty for an infobox and for a sentence that nobody read."""
    field: str = ""
    """Infobox key that means the same as the gloss, by which a sentence's relation is counted; empty for none."""


class Answer(Nested):
    """A typed short answer."""

    type: AnswerType
    value: str
    """Canonical: ISO 8601 for dates, a plain decimal for numbers, the text itself otherwise."""
    precision: Literal["", "day", "month", "year"]
    unit: str
    surface: str
    """As the page shows it, cleaned of markup; what the question's reader should say."""
    aliases: tuple[str, ...]
    """Other accepted forms: any one of them is right."""
    key: str
    """Folded form by which splits and duplicates compare answers."""


class Branch(Nested):
    """A further fact of an entity of the question: one that leads to an entity beside the chain.

    A branch has a number by which others, and constraints, name its entity: those of the chain come first, then the
    branches in their order. A branch is about an entity with a smaller number, so that the facts make a tree whose one
    sink is the answer node.
    """

    host: int
    """Number of the entity that the fact is about, 1 or more: the anchor is shown and nothing is said of it."""
    relation: str
    """Infobox key on the host's page."""
    node: PathNode
    named: bool
    """Whether the question names the entity; else it is hidden behind branches of its own."""
    evidence: Evidence
    """Of the host's page."""
    quote: Evidence | None = None
    """Sentence of the host's page that says it, too, with other facts of the question perhaps; None without one."""
    descriptor: str = ""
    """Phrase that hides the entity, the entity of its first own branch in its slot; empty while it is named."""


class Constraint(Nested):
    """A descriptor fact: what the descriptor says of a bridge beside its place in the chain."""

    node: int
    """Index into the path's nodes."""
    relation: str
    """``type``, or an infobox key."""
    value: str
    """As the page shows it, or coarser for a date: a decade (``1870s``) or a century (``19th century``)."""


class Count(Nested):
    """How many entities or answers fit a part of the query, counted in the corpus."""

    name: Literal["chain", "alone", "anchors", "answers", "gold"]
    """``chain``: entities at this node given the chain. ``alone``: entities matching its descriptor without the chain.

    ``anchors``: entities of the anchor's type from which the whole query has one answer, of a large type a sample.
    ``answers``: distinct answers over them (N_img). ``gold``: how many of them have the question's own answer; none
    where a step is a sentence that other pages cannot be asked for.
    """
    node: int
    value: int
    capped: bool
    """True when counting stopped: ``alone`` at its threshold, the counts of anchors when enough were tried."""


Resolution = Literal["absent", "stated", "unclear"]
"""What an article says of a fact its infobox leaves open: no mention of the value, a sentence that states it, or a
mention that may or may not. Only ``absent`` refutes a near miss."""


class NearMiss(Nested):
    """An entity that would fit a node too, were a fact true that its infobox does not show (research/quality.md U2)."""

    node: int
    """Index of the node it competes for."""
    page_id: int
    title: str
    unknown: tuple[str, ...]
    """Relations that its infobox leaves open, ``type`` among them; all others match."""
    resolution: Resolution


Agreement = Literal["required", "uncontradicted", "off"]
"""What a sentence of the page must say of the answer beside the infobox: the same, nothing else, or anything."""


class Thresholds(Nested):
    """What the counts had to reach. Counting stops there, so a threshold is also the cap of a recount."""

    alone_first: int
    """Entities that the first hidden node's descriptor must fit without the chain."""
    alone: int
    """The same for every later node."""
    answers: int
    """Distinct answers over the anchors of the type; 0 when they were not counted."""
    near_misses: int = 0
    """Entities a node that may be looked up in their articles; with more the question is refused. 0: not looked for."""
    answer_share: float = 1.0
    """Largest share that one answer may have among all answers of its relation; 1.0: not looked at."""
    retrieval_rank: int = 0
    """The answer's page may not be among so many first results of one search for the question; 0: not searched."""
    agreement: Agreement = "off"
    volatile: bool = True
    """Whether facts that change with time were allowed."""
    read_pages: bool = False
    """Whether the evaluator read the prose for the answer and for second values of every hop that names a field."""

    def require_alone(self, node: int) -> int:
        """Return how many entities the descriptor of a node (1 is the first hidden one) must fit without the chain."""
        return self.alone_first if node == 1 else self.alone


UNCOUNTED = Thresholds(alone_first=0, alone=0, answers=0)


Derivation = Literal["", "month", "year"]
"""The part of a fuller date that the question asks for: month and year, or year (answer obfuscation)."""


class ReadHop(Nested):
    """One step as a reader understood it."""

    statement: str
    """Offered statement that the words were taken for; empty for none."""
    backward: bool
    words: str


class ReadFact(Nested):
    """A condition as a reader understood it."""

    node: int
    """Index into the path's nodes."""
    statement: str
    """Offered statement; empty for a type, and for words that state none."""
    value: str
    words: str
    entity: int = 0
    """Number of the entity that it leads to, where the text describes that one instead of naming it; those of the
    chain come first. 0 for a value or a name."""


class Reading(Nested):
    """What a text asks, as a reader understood it that saw the text and a list of relations, nothing else."""

    reader: str
    """Identity of the model or grammar that read."""
    text: str
    """sha256 of the text."""
    offered: tuple[str, ...]
    """Statements that the reader could choose from."""
    hops: tuple[ReadHop, ...]
    asked: str
    """Statement of the attribute asked for; empty for none of those offered."""
    form: Literal["", "day", "month", "year"]
    unit: str
    facts: tuple[ReadFact, ...]
    questions: int
    instruction: str
    unsure: str


class OtherEntity(Nested):
    """An entity that a search for the words of a step found beside the proof's (OpenSearch-VL, section 3.1)."""

    node: int
    """Index of the hidden node it competes for."""
    page_id: int
    title: str
    sentences: str
    """sha256 of the sentences of its page that were shown: those that name the entity the step begins at."""


class Screening(Nested):
    """What a reader who knew the hidden names and the answer found wrong with a text: nothing, if it passed."""

    reader: str
    """Identity of the model that read."""
    text: str
    """sha256 of the text."""
    hidden: tuple[str, ...]
    """The names and the answer that it was shown."""
    leaks: tuple[str, ...]
    """Hidden things that the text gives away, each with the words that do."""
    others: tuple[OtherEntity, ...]
    """Entities that were shown as ones the steps may lead to."""
    fitting: tuple[str, ...]
    """Titles of those that a step leads to as well, each with the words of its page that say so."""
    several: str
    """Why the text has no answer or several; empty if it has one."""
    unsure: str


Likeness = Literal["same", "close", "other", "unclear"]
"""How a value compares with the proof's: ``close`` is coarser, finer or rounded; ``unclear`` no rule can compare."""


class ReadProposition(Nested):
    """One value that a sentence gives for a field, as a reader understood it, compared with the proof's."""

    start: int
    """Span of the sentence in the page's wikitext."""
    end: int
    words: str
    """Those of the sentence that state it."""
    value: str
    when: str
    """Time or limits that the sentence sets; empty for none."""
    only: bool
    """Whether the sentence says that there is no other value."""
    likeness: Likeness


class PageReading(Nested):
    """What the prose of a page says of one field, as a reader understood it that did not see the infobox."""

    page_id: int
    relation: str
    """Infobox key."""
    reader: str
    """Identity of the model or grammar that read; empty where the page has no sentence to be read."""
    sentences: str
    """sha256 of the sentences that it was given."""
    propositions: tuple[ReadProposition, ...]


class Proof(Nested):
    """Everything a stranger needs to derive the answer again from the corpus, with no model."""

    corpus: str
    """Content digest of the corpus the offsets refer to."""
    snapshot: str
    nodes: tuple[PathNode, ...]
    hops: tuple[Hop, ...]
    answer_relation: str
    """Infobox key; for an answer that a sentence gives, the key that means the same or the words of its gloss."""
    answer_evidence: Evidence
    constraints: tuple[Constraint, ...]
    counts: tuple[Count, ...]
    alias_digest: str
    """sha256 over the folded names of all nodes that the leak check looked for."""
    descriptors: tuple[str, ...] = ()
    """Accepted descriptor of each node after the anchor, empty for the answer node; none before the rewrites."""
    thresholds: Thresholds = UNCOUNTED
    shortcuts_checked: bool = False
    """Whether shorter link paths and the answer on earlier pages were looked for, and are ruled out."""
    hub_in_degree: int = 0
    """Articles with more incoming links do not make a shorter path."""
    near_misses: tuple[NearMiss, ...] = ()
    """Entities that were looked up in their articles and refuted."""
    corroboration: Evidence | None = None
    """Sentence of the answer node's page that says the answer too."""
    derivation: Derivation = ""
    redundant: tuple[Constraint, ...] = ()
    """Constraints without which the query has the same one answer: they narrow nothing."""
    page_readings: tuple[PageReading, ...] = ()
    """What the prose says of the answer's field and of the field of each hop that names one."""
    answer_gloss: str = ""
    """What the answer is to the answer node, in plain words, where a sentence gives it (``was opened on``)."""
    answer_clause: str = ""
    """Plain text of that sentence with the answer blanked as ``____``; empty for an infobox."""
    branches: tuple[Branch, ...] = ()
    """Facts that lead to entities beside the chain: with them the question is a tree."""

    @property
    def entities(self) -> tuple[PathNode, ...]:
        """All entities by their numbers: those of the chain, then those of the branches."""
        return (*self.nodes, *(branch.node for branch in self.branches))

    @property
    def rounds(self) -> int:
        """Entities that rounds of injection have hidden; 0 for a question that walks led to."""
        return sum(hop.backward for hop in self.hops) + sum(not branch.named for branch in self.branches)

    @property
    def hidden(self) -> tuple[PathNode, ...]:
        """The entities that the finished question must not name: all but those of named branches."""
        return (*self.nodes, *(branch.node for branch in self.branches if not branch.named))


AnchorKind = Literal["event", "person", "object"]
"""What a picture of the news shows (BridgeVQA, section 3.3)."""


ChainVerdict = Literal["yes", "no", "unsure"]
"""What a model says of a chain of reasoning; ``unsure`` is for people to decide."""


class TraceLink(Nested):
    """One fact of a trace: ``subject -relation-> object``, quoted from an article."""

    subject: str
    relation: str
    """In a few words from the subject to the object: ``was designed by``."""
    object: str
    evidence: Evidence
    """The quoted span; it names subject and object."""
    url: str
    """Address of the article."""
    source: str
    """Who published it."""
    published: str
    """Its day, ``2026-11-22``."""


class Trace(Nested):
    """Why a question about a picture of the news has its answer: picture -> A -R-> B -> C (BridgeVQA, section 3.3)."""

    corpus: str
    """Content digest of the corpus of articles."""
    snapshot: str
    anchor: str
    """A, what the picture shows."""
    anchor_kind: AnchorKind
    anchor_evidence: Evidence
    """A span of the article that shows the picture: it names A."""
    links: tuple[TraceLink, ...]
    """A -R-> B, from the article that shows the picture, then B -> C, from any article."""
    steps: tuple[str, ...]
    """The reasoning in numbered steps: the picture, a search for each link, the conclusion."""
    decided_by: str
    """Who found the reasoning sound: the identity of a model, or a person's name."""
    decided_on: str = ""
    """Day of a person's decision; empty for a model's."""
    judged: str = ""
    """sha256 of the question's text that was found to ask for these facts: words are judged, not read back."""
    verdict: ChainVerdict = "unsure"
    """What the model said of it; a person decided where it is ``unsure``, or overruled it."""

    @property
    def bridge(self) -> str:
        """B, between picture and answer."""
        return self.links[0].object

    @property
    def hops(self) -> int:
        """Steps as the paper counts them: from the picture to A is the first."""
        return len(self.links) + 1
