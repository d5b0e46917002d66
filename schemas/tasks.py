"""Inputs and replies of chat models: one inputs model and one reply model for each task.

Inputs are what prompts are rendered from. Those named ``oracle`` are for scripted players only: they hold the truth,
no prompt may name them (a test renders every prompt and looks), and adapters to real models never see them.
"""

from typing import Literal

from pydantic import Field

from schemas.base import Nested
from schemas.proofs import AnchorKind, Answer

SUBJECT = "[subject]"
"""Slot in a descriptor for whatever refers to the previous node of the chain."""


class Tried(Nested):
    """A reply that was refused before, and why, in words that its writer may read."""

    text: str
    problem: str


NOTHING: tuple[Tried, ...] = ()
"""Left out of a first request's inputs."""
NO_BOX: tuple[int, ...] = ()
"""Left out of a plan without a scene."""


class HopView(Nested):
    """A hop as a writer sees it: ``subject -relation-> object``."""

    relation: str
    """Infobox key, or ``mentions``."""
    clause: str
    """Blanked sentence for ``mentions``, else empty."""
    object_name: str
    """Name of the entity that the hop leads to."""
    object_type: str
    backward: bool = False
    """Whether the relation is stated by the entity the hop leads to: ``object -relation-> subject``."""
    gloss: str = Field("", exclude_if=lambda gloss: not gloss)
    """The relation in plain words, as read in the sentence, from the source to the entity: ``was designed by``."""


class FactView(Nested):
    """An infobox fact of an entity."""

    relation: str
    text: str
    type: str = Field("", exclude_if=lambda type: not type)
    """Of a name that an article bears: what that is, such as ``painter``."""


class WriteQuestionInputs(Nested):
    """The path to be put into words."""

    anchor_name: str
    anchor_type: str
    hops: tuple[HopView, ...]
    answer_relation: str
    answer: Answer
    variety: str
    """Any text; wording is chosen by its hash, so the same path reads the same and different paths differ."""
    answer_gloss: str = Field("", exclude_if=lambda gloss: not gloss)
    """What is asked for in plain words, as it was read in a sentence: ``was opened on``."""
    answer_type: str = Field("", exclude_if=lambda type: not type)
    """Of an answer that is the name of an article: what that is, such as ``painter``."""
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


class QuestionReply(Nested):
    """A question."""

    question: str


class WrittenQuestionReply(QuestionReply):
    """A question about a path, or why there is none."""

    declined: str = "none"
    """Why the path makes no honest question; ``none`` when it does."""


class ProposeDescriptorsInputs(Nested):
    """One bridge to be described without its name."""

    anchor_type: str
    subject_type: str
    """Type of the previous node."""
    hop: HopView
    """The hop that ends at this bridge."""
    facts: tuple[FactView, ...]
    """Literal facts of the bridge that a descriptor may add, in page order; dates also as decade and century."""
    count: int
    """How many candidates to propose at most."""
    variety: str
    lead: str = ""
    """First sentence of the bridge's article, which says what it is; empty where it tells the answer."""
    entities: tuple[FactView, ...] = Field((), exclude_if=lambda facts: not facts)
    """Facts that lead to further articles, by their titles: every descriptor tells them and declares them."""
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


class Descriptor(Nested):
    """A phrase such as ``the architect of [subject]`` with the facts it adds to the chain."""

    text: str
    facts: tuple[FactView, ...] = ()


class DescriptorsReply(Nested):
    """Candidates, weakest first: the first that passes every check is kept."""

    descriptors: tuple[Descriptor, ...]


class InLanguageInputs(Nested):
    """What is added to a prompt that words or reads questions of an encyclopedia in another language than English."""

    language: str
    """Code such as ``it``."""


class AskFactInputs(Nested):
    """One entity, and facts of its page; the question asks for one of them (VSearcher, section 2.1: the initial QA)."""

    name: str
    type: str
    facts: tuple[FactView, ...]
    page: str
    """Beginning of the article as plain text."""
    variety: str
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


class AskedFactReply(Nested):
    """A question about one of the facts offered."""

    relation: str
    """Relation of the fact that the question asks for, as given."""
    question: str


class AskConceptInputs(Nested):
    """A concept, what its article calls it, and the article; the answer will be its name (MMSearch-R1, table 2)."""

    concept: str
    type: str
    page: str
    """Beginning of the article as plain text."""
    variety: str
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


Category = Literal["Arts", "Place", "People", "Industry", "Science", "Nature", "Entities", "Events"]
"""What knowledge a question takes: the first level of FVQA's taxonomy (MMSearch-R1, figure 7)."""


class ClassifyQuestionInputs(Nested):
    """A question, and what kind of thing it is about."""

    question: str
    type: str


class ClassifiedReply(Nested):
    """The knowledge that a question takes, and whether a person would ask it."""

    knowledge: Category
    curious: int = Field(ge=1, le=5)
    """5: what a curious person who knows nothing of the picture asks on seeing it; 1: what nobody asks."""


class OfferedFact(Nested):
    """A fact of the entity's page that leads to another article."""

    relation: str
    object_name: str
    object_type: str
    sentence: str
    """A sentence of the page that says it, empty when only the infobox does."""
    in_degree: int
    """Articles that link to the object: the fewer, the less known."""


class ExtractFactInputs(Nested):
    """An entity and the facts of its page behind which it may be hidden (VSearcher, section 2.1: rarely known ones)."""

    name: str
    type: str
    page: str
    """Beginning of the article as plain text."""
    facts: tuple[OfferedFact, ...]
    variety: str
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


class ExtractedFactReply(Nested):
    """The fact to hide the entity behind, as given."""

    relation: str
    object_name: str


class RewriteQuestionInputs(Nested):
    """One entity to be hidden in a question."""

    question: str
    name: str
    node: int
    """Index of the entity in the path: 0 is the anchor, ``len(hops)`` the answer node, which is never named."""
    descriptor: str
    path: WriteQuestionInputs
    descriptors: tuple[str, ...]
    """For every node after the anchor (index 0 is node 1): its accepted descriptor, empty while it is still named.

    A question without hops names the entity it is about: the anchor is the answer node.
    """
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


class ReferToAnchorInputs(Nested):
    """The anchor's name to be replaced by a reference to the picture."""

    question: str
    name: str
    anchor_type: str
    path: WriteQuestionInputs
    descriptors: tuple[str, ...]
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


Condition = Literal[
    "clause", "text", "text+text-search", "image", "image+text-search", "image+image-search", "image+both",
]  # fmt: skip
"""What an attempt is given. ``clause``: an end of the question, from a bridge on that is called by its type. ``text``:
the question alone. ``image``: the anchor's picture, too. After the plus, what one search brings: the question's words
as the query, the picture as the query, or both, one after the other."""


class SolverOracle(Nested):
    """The truth about a question, for the scripted Knower."""

    question_id: str
    answer: Answer
    popularity: tuple[int, ...]
    """In-degree of every node of the path, anchor first: a Knower knows facts of popular subjects."""
    alone_count: int
    """Entities that match the first hidden bridge's descriptor without the chain; 1 means the picture is not needed."""
    guesses: tuple[str, ...]
    """Wrong answers of the same type, for guessing."""
    seen_titles: tuple[str, ...]
    """Titles the image search returned, best first."""
    anchor_title: str


class AnswerQuestionInputs(Nested):
    """One attempt at a question under one condition."""

    question: str
    condition: Condition
    pictured: bool
    """Whether a picture is shown."""
    image_results: str
    """What one image search returned, empty in the other conditions."""
    search_results: str
    """What one text search returned, empty in the other conditions."""
    oracle: SolverOracle


class AnswerReply(Nested):
    """A short answer, or ``unknown``."""

    answer: str


class JudgeOracle(Nested):
    """The truth about an answer, for the scripted judge."""

    trial: str
    """Any text; the scripted judge's luck is drawn from it, so that two judges can err together."""
    truth: Literal["correct", "incorrect", "unknown"]
    """``unknown`` in a run; then the scripted judge compares the letters of both texts."""


class JudgeAnswerInputs(Nested):
    """One short answer to compare with the reference. The judge sees no reasoning and no other answer."""

    question: str
    reference: str
    aliases: tuple[str, ...]
    """Other names of the reference, each as good as it."""
    answer_type: str
    """``date``, ``number``, ``name`` or ``string``."""
    given: str
    oracle: JudgeOracle


class JudgePictureInputs(Nested):
    """A picture shown to a judge: is it too simple (VSearcher, section 2.1, filter 3)?"""

    anchor_type: str


class PictureReply(Nested):
    """Whether the picture is too simple."""

    simple: bool


class LocateObjectInputs(Nested):
    """A large picture and the question about something in it (SenseNova-MARS, 3.4)."""

    question: str


class BoxReply(Nested):
    """Where the asked-for thing lies in a picture."""

    found: bool
    box: tuple[int, ...]
    """Left, top, right, bottom in thousandths of the picture's sides; empty where it is not found."""


class TeacherHop(Nested):
    """One step of the proof as the scripted teacher plans it."""

    relation: str
    clause: str
    object_title: str
    page: str = Field("", exclude_if=lambda page: not page)
    """Title of the page on which the next step is read, where it is not the object's own."""


class TeacherOracle(Nested):
    """The proof as a plan, for the scripted teacher."""

    question_id: str
    attempt: int
    anchor_title: str
    hops: tuple[TeacherHop, ...]
    answer_relation: str
    answer: Answer
    wrong_answer: str
    repair: str = ""
    """Tool that repairs the picture, where it was degraded or is a scene."""
    box: tuple[int, ...] = Field(NO_BOX, exclude_if=lambda box: not box)
    """What ``crop`` cuts out of a scene, in thousandths of its sides; empty for other repairs."""
    popularity: tuple[int, ...] = Field((), exclude_if=lambda counts: not counts)
    """In-degree of every node of the path, for a Knower that chooses its searches; empty for a teacher."""


class ActInputs(Nested):
    """One turn of a rollout. The messages hold everything a real teacher sees."""

    question: str
    tools: str
    """JSON schemas of the tools."""
    offered: tuple[str, ...] = ()
    """The names in them: a prompt tells of a tool only where it is there."""
    turns_left: int
    oracle: TeacherOracle
    dialect: str = "synth"
    """Protocol in which the reply is read."""


class SummariseInputs(Nested):
    """A page, and the goal that it is read for."""

    goal: str
    title: str
    text: str


class JudgeProcessInputs(Nested):
    """A transcript shown to the process judge. It sees no reference: whether the answer is right was judged before."""

    question: str
    answer: str
    steps: str
    """Numbered steps: thought, call, and what came back, cut to a length."""
    pictures: int
    """How many pictures the transcript names; ``img_1`` is shown."""
    trial: str
    """Names this transcript to a scripted judge, for its luck; real models never see it."""


class VerifyTrajectoryInputs(JudgeProcessInputs):
    """The same transcript, shown to be verified (SenseNova-MARS, 3.3)."""


class VerificationReply(Nested):
    """Whether a transcript holds together and makes sense."""

    coherent: bool
    """Thoughts follow from what was seen and lead to the actions."""
    plausible: bool
    """Tools are called for a purpose, and no claim is out of nowhere."""
    step: int
    """The first step that is not so, from 1; 0 where both are true."""


class ProcessReply(Nested):
    """Four marks from 1 to 5."""

    relevance: int
    progression: int
    evidence: int
    cross_modal: int


class OfferedRelation(Nested):
    """A relation that a reader may find in a text, under a name that says nothing of whether it is meant."""

    id: str
    """``r1``, ``r2``, ...: the order is drawn by hash."""
    kind: Literal["entity", "value"]
    """What it leads to: another entity, or a literal value."""
    statement: str
    """Words of an infobox key, or a sentence with a blank, ``____``."""
    gloss: str = ""
    """What the field's value is to the page's subject; empty where no gloss is known."""


class ReadQuestionInputs(Nested):
    """A text that is read back as a query (OpenSearch-VL, section 3.1: evaluator). No proof, no names, no answer."""

    text: str
    relations: tuple[OfferedRelation, ...]


class LinkedObject(Nested):
    """An article that a sentence links to."""

    id: str
    """``l1``, ``l2``, ...: counted over the whole page."""
    name: str
    type: str


class PassageLine(Nested):
    """One sentence of a page as plain text, with what it links to."""

    text: str
    objects: tuple[LinkedObject, ...]


class ExtractRelationsInputs(Nested):
    """The beginning of a page, from which a model writes down what it states of the page's own subject."""

    name: str
    type: str
    lines: tuple[PassageLine, ...]


class StatedRelation(Nested):
    """What one sentence states of the page's subject: it has one such object, for good."""

    sentence: int
    """Number of the line, from 1."""
    object: str
    """Id of the linked object; ``value`` for a date, a number or a name without a link."""
    value: str = "none"
    """The date, number or name as the sentence writes it; ``none`` for a linked object."""
    relation: str
    """In a few words from the subject to the object: ``was designed by``."""
    words: str
    """Those of the sentence that state it, copied."""


class RelationsReply(Nested):
    """What the lines state."""

    relations: tuple[StatedRelation, ...]


class WalkedStep(Nested):
    """One step of a path so far, or one that it may take, as a guide sees it."""

    relation: str
    """In plain words."""
    object: str
    """Name of the entity that it leads to, or the value that would be asked for."""
    type: str
    said: str
    """The sentence, empty for an infobox."""


class OfferedStep(WalkedStep):
    """A step that may be taken next."""

    id: str
    """``s1``, ``s2``, ...: the order is drawn by hash."""


class ChooseStepInputs(Nested):
    """A path so far, and the steps that it may take next, or the facts that it may ask for at its end."""

    anchor: str
    anchor_type: str
    path: tuple[WalkedStep, ...]
    ends: bool
    """Whether the steps offered are answers."""
    steps: tuple[OfferedStep, ...]


class ChosenStepsReply(Nested):
    """Ids of the steps worth asking, best first; empty for none."""

    steps: tuple[str, ...]


class JudgePathInputs(Nested):
    """A whole path with its answer, before a word is written."""

    anchor: str
    anchor_type: str
    path: tuple[WalkedStep, ...]
    asked: WalkedStep


class PathMarksReply(Nested):
    """How good a path is as the ground of a question, each mark from 1 to 5, before a word is written."""

    others: str
    """What else fits a step or the answer, ``none`` if nothing does; first, so that it is sought before a mark."""
    interest: int = Field(ge=1, le=5)
    """Whether a person would want to know."""
    naturalness: int = Field(ge=1, le=5)
    """Whether a person could ask for it in a sentence."""
    determinacy: int = Field(ge=1, le=5)
    """Whether every step and the answer are the only ones."""
    need: int = Field(ge=1, le=5)
    """Whether nobody can tell the answer from an ending of the question, without the picture."""
    reason: str = "none"
    """For the lowest mark."""


class ReadStep(Nested):
    """One step of a question from the thing in the picture toward the answer."""

    relation: str
    """Id of the offered relation that the words state; ``none`` when they state none of them for certain."""
    backward: bool
    """Whether the entity reached is the one that has the relation: ``the bridge designed by [earlier]``."""
    words: str
    """As they stand in the text."""


class ReadCondition(Nested):
    """Something that a text says of an entity beside the step that leads to it."""

    step: int
    """0 for the thing in the picture, 1 for the entity that the first step reaches."""
    words: str = ""
    """As they stand in the text; models that get no schema leave them out, and the condition counts all the same."""
    relation: str = "none"
    """Id of the offered relation; ``none`` for a type or when it is none of them."""
    value: str = "none"
    """Value that the text gives, such as ``19th century``; for a type the noun."""
    entity: int = 0
    """Where it leads to an entity that the text describes instead of naming it: that one's number, by which ``step`` of
    its own conditions names it. The chain's entities come first. 0 for a value or a name."""


class ReadingReply(Nested):
    """What a text asks."""

    steps: tuple[ReadStep, ...]
    asked: str
    """Id of the offered relation whose value is asked for; ``none`` when it is none of them."""
    form: Literal["none", "day", "month", "year"] = "none"
    """For a date: the precision that is asked for; ``none`` when the text leaves it open."""
    unit: str = "none"
    """Unit that the answer is to be given in; ``none`` when the text names none."""
    conditions: tuple[ReadCondition, ...] = ()
    questions: int
    """Number of separate things that are asked."""
    instruction: str = "none"
    """Words that order the reader to do something else than answer, or ``none``."""
    unsure: str = "none"
    """What cannot be decided from the text, or ``none`` when everything can."""


class HiddenThing(Nested):
    """What a question must not give away."""

    id: str
    """``h1``, ``h2``, ..."""
    kind: Literal["name", "answer"]
    text: str


class FoundEntity(Nested):
    """An entity found by a search for a step's words, with what its page says of where the step begins."""

    id: str
    """``e1``, ``e2``, ...: counted over all steps of a question."""
    name: str
    type: str
    sentences: tuple[str, ...]


class SearchedStep(Nested):
    """A step as it was read back, and others that it may lead to."""

    words: str
    """Those of the question."""
    statement: str
    """The relation that they were read as: words of an infobox key, or a sentence with a blank, ``____``."""
    backward: bool
    """Whether the entity reached has the relation to the one the step begins at, and not the other way round."""
    source: str
    """Name of the entity it begins at."""
    entities: tuple[FoundEntity, ...]


class ScreenQuestionInputs(Nested):
    """A finished question, what it hides, and other entities that its steps may lead to."""

    text: str
    hidden: tuple[HiddenThing, ...]
    steps: tuple[SearchedStep, ...] = ()
    """Steps for which a search found others."""


class Leak(Nested):
    """Words that give a hidden thing away."""

    hidden: str
    """Its id."""
    words: str
    """As they stand in the text."""


class FittingEntity(Nested):
    """Another entity that a step leads to as well, by its sentences."""

    entity: str
    """Its id."""
    words: str
    """Those of its sentences that say so."""


class ScreeningReply(Nested):
    """What a question gives away, and whether it has one answer."""

    leaks: tuple[Leak, ...]
    fits: tuple[FittingEntity, ...] = ()
    several: str = "none"
    """Why it has no answer or several; ``none`` if it has one."""
    unsure: str = "none"
    """What cannot be decided, or ``none``."""


class ReadPageInputs(Nested):
    """Sentences of a page that are read for one field of its infobox. The field's value is not among the inputs."""

    name: str
    type: str
    field: str
    """The words of the infobox key."""
    gloss: str = ""
    """What the field's value is to the subject; empty where no gloss is known."""
    kind: Literal["date", "number", "words", "entity"]
    """What the field holds; ``entity`` leads to an article."""
    sentences: tuple[str, ...]


class StatedValue(Nested):
    """One value that one sentence gives for the field."""

    sentence: int
    """Its number; the first is 1."""
    words: str
    """The words that state it, as they stand in the sentence."""
    value: str
    """The value alone; ``unclear`` when it cannot be written down, ``not X`` when X is denied."""
    when: str = "none"
    """Time or limits that the sentence sets; ``none`` when it sets none."""
    only: bool = False
    """Whether the sentence says that there is no other value."""


class ReadPageReply(Nested):
    """Every value of the field that the sentences give for the subject."""

    propositions: tuple[StatedValue, ...]


class NameAnchorsInputs(Nested):
    """An article whose picture is shown: what does it show (BridgeVQA, section 3.3)?"""

    title: str
    caption: str
    text: str
    count: int
    """Most things to name."""


class NamedAnchor(Nested):
    """Something that the picture shows."""

    name: str
    kind: AnchorKind
    quote: str
    """Words of caption or text that say so, copied."""


class AnchorsReply(Nested):
    """What the picture shows, the best first."""

    anchors: tuple[NamedAnchor, ...]


class FindBridgeInputs(Nested):
    """An article, and something in its picture to lead away from."""

    anchor: str
    kind: AnchorKind
    title: str
    text: str
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


class FoundBridgeReply(Nested):
    """A fact that leads from the picture to something else; ``none`` in each field where there is none."""

    bridge: str
    relation: str
    quote: str


class NewsPassage(Nested):
    """An article that a fact may be taken from."""

    id: str
    """``a1``, ``a2``, ...: ``a1`` is the article with the picture."""
    title: str
    published: str
    text: str


class AskBridgeInputs(Nested):
    """A first fact, and articles that name what it leads to."""

    anchor: str
    kind: AnchorKind
    bridge: str
    relation: str
    quote: str
    articles: tuple[NewsPassage, ...]
    tried: tuple[Tried, ...] = Field(NOTHING, exclude_if=lambda tried: not tried)


class AskedBridgeReply(QuestionReply):
    """A question for a second fact; ``none`` in each field where there is none."""

    article: str
    """Id of the article that states it."""
    relation: str
    answer: str
    quote: str


class QuotedLink(Nested):
    """A fact of a chain with the words that state it."""

    subject: str
    relation: str
    object: str
    quote: str


class JudgeChainInputs(Nested):
    """A question about a picture of the news with the chain of facts behind it."""

    question: str
    anchor: str
    kind: AnchorKind
    links: tuple[QuotedLink, ...]
    answer: str


class ChainReply(Nested):
    """Whether the chain is sound, and why."""

    verdict: Literal["yes", "no", "unsure"]
    reason: str
