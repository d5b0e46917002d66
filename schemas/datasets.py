"""Rows of the stages' datasets, in pipeline order, and their parts.

One seed::

    {"record_id": "seed-1f0c...", "parent_id": "page:1207", "page_id": 1207, "title": "Kelm Bridge", "type": "bridge",
     "domain": "Building/Place", "in_degree": 14, "image": "Kelm Bridge.jpg", "split": "sft", "qid": "Q90001207", ...}
"""

from collections.abc import Mapping
from typing import Literal

from schemas.base import Nested, Record, Rejection
from schemas.proofs import (
    AnchorKind,
    Answer,
    ChainVerdict,
    Evidence,
    Hop,
    PathNode,
    Proof,
    Reading,
    Screening,
    Trace,
)
from schemas.tasks import Category, Condition, PathMarksReply

Split = Literal["sft", "rl", "eval"]
Knowledge = Literal["", Category]
"""What knowledge a question takes; empty where that was not asked."""


class Seed(Record):
    """An eligible anchor."""

    page_id: int
    title: str
    qid: str
    type: str
    domain: str
    in_degree: int
    sitelinks: int
    """Sitelinks of the Wikidata entity on all projects; -1 when not known."""
    statements: int
    """Statements of the Wikidata entity, identifiers included; -1 when not known."""
    identifiers: int = -1
    """Those of the statements that name the entity in another database; -1 when not known."""
    image: str
    """File name of the lead picture; empty without one, where the recipe allows that."""
    split: Split
    concept: str = ""
    """The visual concept that it was drawn as (MMSearch-R1, section 3.1); empty for a seed that was not."""
    frequency: int = -1
    """Of the concept, in its list; -1 without one."""
    band: Literal["", "head", "tail"] = ""
    """The end of the list's distribution that it was drawn from."""
    asks: Literal["", "visual", "textual"] = ""
    """Whether its name is asked for, or a fact of its page."""
    round: int = 0
    """Of drawing for target sizes, from 1; 0 without one."""
    drawn: int = 0
    """Seeds of its split that the round drew."""
    hops: int = 0
    """Length of the path that it was drawn for; 0 for any."""
    answer_type: Literal["", "date", "number", "name", "string"] = ""
    """Type of the answer that it was drawn for; empty for any."""


class PathMarks(PathMarksReply):
    """The marks of a path that is kept."""

    @property
    def least(self) -> int:
        """The lowest mark; something else that fits leaves no more than 2 for determinacy."""
        determinacy = self.determinacy if self.others.strip(" .").casefold() == "none" else min(self.determinacy, 2)
        return min(self.interest, self.naturalness, determinacy, self.need)


class Path(Record):
    """``v0 -> v1 -> ... -> vh`` and the attribute of ``vh`` that will be asked for. ``h`` is ``len(hops)``."""

    split: Split
    domain: str
    image: str
    nodes: tuple[PathNode, ...]
    hops: tuple[Hop, ...]
    answer_relation: str
    answer_text: str
    """The attribute's value, cleaned of markup."""
    answer_iso: str
    """The value's ISO date when its markup gives one (``{{birth date|...}}``), else empty."""
    answer_evidence: Evidence
    walks: int
    """How many walks this seed took, the accepted one included (at most ten)."""
    answer_gloss: str = ""
    answer_clause: str = ""
    marks: PathMarks | None = None
    """What the path judge said of it; None where none was asked."""


class Question(Record):
    """A question that still names its anchor and bridges, never its answer node."""

    split: Split
    domain: str
    image: str
    text: str
    answer: Answer
    proof: Proof
    knowledge: Knowledge = ""


class Candidate(Nested):
    """A descriptor that was tried, and what the checks said."""

    descriptor: str
    verdict: str
    """``accepted``, or the reason it was refused."""


class Certificate(Nested):
    """One rewriting step: one entity hidden, the three invariants shown to hold (OpenSearch-VL, equation 6)."""

    node: int
    """Index of the hidden bridge in the path; steps run from the farthest bridge toward the anchor."""
    name: str
    candidates: tuple[Candidate, ...]
    descriptor: str
    text_after: str
    chain_count: int
    alone_count: int
    answer_after: str
    """Canonical answer of the rewritten query: equal to the answer before."""
    near_misses: int = 0
    """Entities that were looked up in their articles because their infoboxes leave a fact open."""
    round: int = 0
    """Round of injection, 1 for the first; 0 in the path recipe."""


class Rewrite(Record):
    """The fuzzy question: every bridge hidden, the anchor still named (the picture replaces it next)."""

    split: Split
    domain: str
    image: str
    canonical: str
    text: str
    answer: Answer
    proof: Proof
    certificates: tuple[Certificate, ...]
    knowledge: Knowledge = ""


class Picture(Nested):
    """A picture in the workspace's image store, with what its licence asks to be kept."""

    sha256: str
    extension: str
    """From the file's magic bytes, never from its name."""
    file: str
    """File name at the source."""
    width: int
    height: int
    phash: str
    author: str
    licence: str
    licence_url: str
    source_url: str


CandidateSource = Literal["infobox", "page", "search"]
"""Where a candidate picture comes from: the article's infobox, another place of the article, a search on Commons."""
Ease = Literal["", "easy", "medium", "hard"]
"""How easily a search by picture finds the anchor. ``easy``: its page comes first with the very picture; ``medium``: it
is among the results; ``hard``: it is not. Empty where it was not searched."""


class Depiction(Nested):
    """How this picture was chosen for the anchor, and how easily it gives the anchor away.

    Where pictures are fetched, the latter is known once all are: from the stage difficulty on.

    Fields that were not measured are None or empty.
    """

    source: CandidateSource
    ranker: str
    """What ordered the candidates: ``metadata`` or the encoder's name."""
    candidates: int
    """How many were compared (K at most)."""
    score: float
    """Cosine similarity to the anchor's description, or the metadata ranker's points (0..1)."""
    margin: float | None
    """Score less the best of all distractors; None with the metadata ranker."""
    distractors: int
    """Entities of the anchor's kind that it was compared with."""
    over_threshold: bool | None
    """Whether the published absolute threshold alone would let it pass; None with the metadata ranker."""
    articles: int
    """Articles that lead with this file, the anchor's included."""
    depicts: bool | None
    """Whether Commons says that the file depicts the anchor (P180); None where it says nothing."""
    engines: tuple[str, ...]
    """OCR engines that read it."""
    text: tuple[str, ...]
    """What they read, each line once."""
    text_at_training: tuple[str, ...]
    """What they read at the resolution that a student is trained at."""
    ease: Ease
    ease_at_training: Ease


class FetchedPicture(Nested):
    """A picture that was fetched, and the article that shows it."""

    title: str
    picture: Picture


class Origin(Nested):
    """Where a question from outside comes from, and under which terms."""

    pool: str
    row: str
    """Its id there."""
    entity: str
    """What the picture shows, by a name or id that its file gives; empty where it gives none."""
    licence: str
    """Of the question; empty where nobody says."""
    source: str
    """Web address of the set."""


class Grounding(Record):
    """A picture and a question about it. ``record_id`` is the question's id from here on."""

    split: Split
    domain: str
    text: str
    """The final question: anchor referred to as ``the <type> in the image``, no name of any node."""
    fuzzy: str
    canonical: str
    picture: Picture | None
    """None only in the text-only form (``groundings.require_image = false``)."""
    answer: Answer
    proof: Proof
    depiction: Depiction | None = None
    """None without a picture, and for questions from outside."""
    reading: Reading | None = None
    """What an independent reader understood the text to ask; None for questions from outside."""
    screening: Screening | None = None
    """What it found that the text gives away; None for questions from outside."""
    origin: Origin | None = None
    """Of a question from outside, whose proof is the empty one; None for any other."""
    fetched: tuple[FetchedPicture, ...] = ()
    """What was fetched for this question: pictures of the anchor, refused ones of its article too, and lead pictures of
    others of its type. Searches by picture in later stages know them."""
    knowledge: Knowledge = ""
    trace: Trace | None = None
    """What proves a question about the news, whose proof is the empty one; None for any other."""

    @property
    def shown_title(self) -> str:
        """Title of the page that a search by the picture should find; empty where none is known."""
        if self.trace is not None:
            return self.trace.links[0].evidence.title
        if self.origin is not None:
            return self.origin.entity
        return self.proof.nodes[0].title if self.proof.nodes else ""

    @property
    def hops_named(self) -> str:
        """Number of hops of what proves it, or ``none``."""
        if self.trace is not None:
            return str(self.trace.hops)
        return str(len(self.proof.hops)) if self.proof.nodes else "none"

    @property
    def anchor_type(self) -> str:
        """Type of what the picture shows, by what proves the question; or ``not known``."""
        if self.trace is not None:
            return self.trace.anchor_kind
        return self.proof.nodes[0].type if self.proof.nodes else "not known"


class Article(Record):
    """An article of the news with a picture, fit for questions. ``parent_id`` is its page."""

    page_id: int
    title: str
    url: str
    source: str
    published: str
    """Day, ``2026-11-22``."""
    caption: str
    image: str
    """File name of its picture in the corpus."""


class Anchor(Article):
    """Something that an article's picture shows, and that the article names."""

    split: Split
    picture: Picture
    name: str
    kind: AnchorKind
    evidence: Evidence
    """The span of the article that says so."""


class Bridge(Record):
    """A question A -R-> B -> C about a picture of the news, with what a model says of its reasoning."""

    split: Split
    text: str
    picture: Picture
    answer: Answer
    trace: Trace
    verdict: ChainVerdict
    remark: str
    """Why, in the model's words."""


SearchNeed = Literal["", "search-free", "image", "text", "mixed"]
"""What has to be searched (MMSearch-R1, section 3.1, search balancing); empty where it was not measured."""
Standing = Literal["solved", "proved", "quoted", "unproved"]
"""Why a question counts as one that can be solved. ``solved``: some attempt was right. ``proved``: none was, and the
proof holds. ``quoted``: none was; every fact is quoted byte for byte, and that the question asks for them was judged by
who is named. ``unproved``: none was and there is no proof, so it may be hard or defective."""


class Cell(Nested):
    """``correct`` of ``attempts`` under one condition by one solver, with a 95% Wilson interval."""

    condition: Condition
    """What was given, or what the solver itself searched, where it had the choice (preset ``fvqa``)."""
    role: str = "solver"
    """The solver's name in the configuration."""
    solver: str
    """The model's name."""
    prompt: str
    day: str = ""
    """Latest day of its replies, ``2026-11-22``; empty for scripted players."""
    planned: int = 0
    """Attempts that were to be made; fewer were made where no further one could change the decision."""
    attempts: int
    correct: int
    unscored: int
    low: float
    """Of correct among the scored. After an early stop the interval is that of the attempts made, and leans towards
    what stopped them."""
    high: float


class Alternative(Nested):
    """A wrong answer that different attempts gave and the corpus refutes; any other refuses the question."""

    text: str
    times: int


class Difficulty(Grounding):
    """A grounded question with its measured difficulty. ``record_id`` stays the question's id."""

    cells: tuple[Cell, ...]
    search_need: SearchNeed = ""
    standing: Standing = "proved"
    alternatives: tuple[Alternative, ...] = ()
    left_out: tuple[str, ...] = ()
    """What the preset wants and could not be done: conditions without a picture to show, ``picture-too-simple`` without
    a judge."""
    tools: tuple[str, ...] = ()
    """Searches by words and by picture that attempts were given the results of, each with its version."""


class SearchResult(Nested):
    """One page that a search found; a search by picture also keeps a thumbnail of what that page shows."""

    url: str
    title: str
    thumbnail: Picture | None = None
    """Small copy of the picture that was found, in the workspace's image store; None without one."""
    image: str = ""
    """Id (``img_3``) under which the thumbnail was shown; empty where it was only kept."""


Degradation = Literal["blur", "downsample", "perspective"]
"""Controlled degradations of OpenSearch-VL, section 3.2."""
Repair = Literal["sharpen", "super_resolution", "perspective_correct"]
"""The tool that each is paired with, in the same order."""
RepairTest = Literal["text", "image-search", "detail"]
"""How a picture is tested: its words can be read, a search by picture finds the anchor, or its fine structure shows."""


class Parameter(Nested):
    """One number that decided a degradation, in pixels unless its name says otherwise."""

    name: str
    value: float


class Trial(Nested):
    """One degradation of one picture, and what a test said before, after, and after the repair."""

    degradation: Degradation
    repair: Repair
    strength: float
    """0..1, as configured; ``parameters`` say what it came to in pixels."""
    parameters: tuple[Parameter, ...]
    test: RepairTest
    before: bool
    degraded: bool
    repaired: bool


class Offer(Nested):
    """One way to degrade a question's picture that its tool repairs, and what a search by the picture then finds."""

    trial: Trial
    found: tuple[SearchResult, ...] = ()


class ScenePart(Nested):
    """Another picture in a scene, the article that leads with it, and where it lies."""

    title: str
    picture: Picture
    box: tuple[int, ...]
    """As that of the scene."""


class Scene(Nested):
    """A picture of high resolution in which what the question asks about is a small part (SenseNova-MARS, 3.4).

    A search by picture says what the picture tells at two sizes: whole, scaled to what a student sees, and cut to the
    box as the tool ``crop`` cuts it.
    """

    box: tuple[int, ...]
    """Left, top, right, bottom of the part, in thousandths of the picture's sides as the tool counts them."""
    share: float
    """Of the picture's area, 0..1."""
    training_pixels: int
    """Of the picture as a student sees it."""
    whole: bool
    """Whether the whole, scaled to those pixels, finds the anchor. Verification derives it again of composed scenes."""
    cropped: bool
    """Whether the part does."""
    crop_phash: str
    """Perceptual hash of the part: its pixels, whoever decodes them."""
    parts: tuple[ScenePart, ...]
    """What else a composed scene shows: entities of other domains than the anchor's, of the same split. Empty where the
    question's own picture is of high resolution, and a model said where the thing lies in it."""


class Enhancement(Difficulty):
    """A question on its way to the teacher: as it was, with a degraded picture, or with a scene around its picture.

    A question with another picture is another question: ``record_id`` is new, ``parent_id`` is that of the question
    with the original picture.
    """

    original: Picture | None = None
    """The picture before, where it was degraded or set in a scene."""
    trial: Trial | None = None
    """How it was degraded, where it was."""
    scene: Scene | None = None
    """Where it lies in the scene, where it was set in one or is one."""
    left_whole: str = ""
    """Why a picture that was chosen is not degraded or set in a scene, a word and its reason after a colon; else
    empty."""
    found: tuple[SearchResult, ...] = ()
    """What a search by the picture finds, for trainers that replay it (SenseNova-MARS, MMSearch-R1)."""
    offers: tuple[Offer, ...] = ()
    """How its picture could be degraded; the stage selections takes one of them, or none, and keeps no other."""


StopReason = Literal["answered", "format", "tool-errors", "turn-limit", "context-limit", "time-limit", "failed"]
"""``format``: a turn that does not parse. ``tool-errors``: the fatal step. ``failed``: the model gave no reply to a
request, for a reason that lies in it. The others are limits."""
ObservationFlag = Literal["question-text", "row-id", "protocol-tags", "dataset-host"]
"""What contaminates an observation: it holds the question's own text, the row's id, tags of an agent's protocol, or
names a host that publishes datasets. The offending result is left out of what the model sees where that can be done."""


class Observation(Nested):
    """A tool's typed result: an error is a field."""

    ok: bool
    error: str
    """Error class such as ``unknown-page``; empty when ok."""
    text: str
    images: tuple[str, ...]
    """Ids (``img_2``) of the pictures this call produced."""
    warning: str = ""
    """Class of a part of the call that failed although the tool answered, such as ``no-weights``; else empty."""
    results: tuple[SearchResult, ...] = ()
    """What a search found, best first; empty for other tools."""
    flags: tuple[ObservationFlag, ...] = ()
    """What contaminates it; sorted."""


class Step(Nested):
    """One turn: a thought and one tool call, or the answer."""

    thought: str
    tool: str
    """Tool name; empty on the last step, which answers, and on a malformed turn."""
    arguments: str
    """The call's arguments as a JSON object."""
    reply: str
    """The model's turn as it came, before parsing; of native tool calls, the same turn in the text protocol."""
    observation: Observation | None
    """None for an answer, and for a turn that ended the rollout. A malformed turn that did not end it has the error
    ``bad-turn``."""


class RolloutImage(Nested):
    """A picture that the rollout could see: ``img_1`` is the question's, each produced one takes the next number."""

    id: str
    picture: Picture


class Rollout(Record):
    """One attempt of the teacher at one question; ``parent_id`` is the question."""

    split: Split
    attempt: int
    teacher: str
    prompt: str
    system: str
    question: str
    images: tuple[RolloutImage, ...]
    steps: tuple[Step, ...]
    answer: str
    stop_reason: StopReason
    reference: Answer
    bridges: tuple[str, ...]
    """Titles of the bridges, for the checks that ask whether each was seen."""
    path: tuple[str, ...] = ()
    """Titles of all nodes of the proof, from the anchor to the answer node."""
    dialect: str = "synth"
    """Protocol in which the teacher was spoken to."""
    fatal_begins: int | None = None
    """Step at which the first run of K consecutive tool errors begins (OpenSearch-VL, 4.2: where it "commences");
    None without one."""
    fatal_reached: int | None = None
    """Step at which that run reaches K (OpenSearch-VL, appendix B, equation 20); K - 1 steps later."""
    day: str = ""
    """Latest day, UTC, of a reply of a model or a live tool; empty where all replies are scripted or local."""
    snapshot: str = ""
    """Date of the corpus that local tools search; empty for live ones."""
    failure: str = ""
    """Error class and detail of the request that the model gave no reply to; empty unless ``failed``."""


Verdict = Literal["correct", "incorrect", "unscored"]


class RefusedAttempt(Nested):
    """One attempt at a question that the stage difficulty refused."""

    condition: Condition
    role: str
    solver: str
    """The model's name."""
    sample: int
    """Number of the attempt under its condition by its solver, from 0."""
    reply: str
    """The answer that was given; empty for none."""
    verdict: Verdict
    problem: str
    """Why it is unscored; empty otherwise."""


class RefusedQuestion(Rejection):
    """A question that the stage difficulty refused, with the attempts that were made until then."""

    attempts: tuple[RefusedAttempt, ...] = ()


REFUSALS: Mapping[str, type[Rejection]] = {"difficulty": RefusedQuestion}
"""By stage, the type of its refused rows where they have more columns than others."""


class Support(Nested):
    """Where a name or the answer was seen: a step and a span of its observation's text."""

    what: str
    step: int
    start: int
    end: int


class Process(Nested):
    """A process judge's marks of the way to an answer, each from 1 (poor) to 5 (OpenSearch-VL, figure 11)."""

    relevance: int
    progression: int
    evidence: int
    cross_modal: int
    score: float
    """Their mean."""
    judge: str


Verification = Literal["coherence", "plausibility"]
"""What is verified of a trajectory beside format and answer (SenseNova-MARS, 3.3)."""


class Trajectory(Rollout):
    """An accepted rollout. ``record_id`` is the rollout's."""

    verdict: Verdict
    decided_by: str
    """``comparer`` or the judge that gave the verdict."""
    supports: tuple[Support, ...]
    process: Process | None = None
    """None where no process judge is configured."""
    verified: tuple[Verification, ...] = ()
    """What the judge verified; empty where nothing was to be verified."""
    loss: tuple[bool, ...] = ()
    """Whether a student is trained on each step; false for failed calls and malformed turns."""
    tokens: int = 0
    """Length when trained on, pictures included: an estimate from above."""
    left_out: tuple[str, ...] = ()
    """Checks that were not made, as they need the names of a path and the question has none."""


Dataset = Literal["sft", "rl", "vqa", "bridgevqa", "exam"]


class ReleaseEntry(Record):
    """One row of one released dataset. ``parent_id`` is the question."""

    dataset: Dataset
    split: str
    trajectory_id: str
    """The trajectory of an SFT row; empty in the other datasets."""
