"""A question in an overlay: how a defect is set up, and what the checks say of it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from pipelines.bench.overlay import OverlayCorpus, relocate
from pipelines.bench.plants import Pair
from pipelines.bench.pools import Pool
from pipelines.bench.vocabulary import Vocabulary, invent_person, invent_title, invent_word
from pipelines.checks.examination import examine
from pipelines.checks.proofs import Claim
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.infobox import read_infobox
from pipelines.corpus.store import Corpus, Fact
from pipelines.errors import ConfigError
from pipelines.graph.ground import Ground
from pipelines.graph.query import locate_nodes
from schemas.groundings import Grounding
from schemas.proofs import Hop

MAX_TOKENS = 6
MANY = 60
"""Pages that one plant may change."""
TRIES = 400
"""Clean questions looked at for one pair: most defects need a question of some kind."""


@dataclass(frozen=True, slots=True)
class Case:
    """A clean question with the pool it comes from."""

    pool: Pool
    question: Grounding
    numbers: tuple[int, ...]
    """Nodes of its path in the corpus."""

    @property
    def corpus(self) -> Corpus:
        """The world as the pipeline saw it."""
        return self.pool.corpus

    @property
    def claim(self) -> Claim:
        """The question as it was accepted."""
        return Claim(self.question.text, self.question.answer, self.question.proof)

    def find_subject(self, hop: Hop) -> int:
        """Return the node on whose page a hop is stated."""
        return self.numbers[hop.index if hop.backward else hop.index - 1]

    def find_object(self, hop: Hop) -> int:
        """Return the node that a hop's relation leads to."""
        return self.numbers[hop.index - 1 if hop.backward else hop.index]


@dataclass(frozen=True, slots=True)
class Scene:
    """A claim, and what the world looks like around it."""

    claim: Claim
    edits: Mapping[int, str] = field(default_factory=dict)
    added: Sequence[tuple[str, str]] = ()
    later: Mapping[int, str] | None = None
    """Pages as they are in another dump of the same wiki, where it differs; None when there is no other dump."""
    other: Corpus | None = None
    """The other dump itself, in place of ``later``."""


@dataclass(frozen=True, slots=True)
class Twins:
    """A clean scene, the same scene with a defect, and the codes that recognise it."""

    plant: str
    clean: Scene
    defective: Scene
    codes: tuple[str, ...]


def draw_case(pools: Sequence[Pool], rng: Random) -> Case:
    """Return a clean question: first a pool, so that every missing rate has its share.

    Raises:
        ConfigError: if no pool has a question to plant in.
    """
    steady = [pool for pool in pools if pool.steady]
    if not steady:
        raise ConfigError(
            f"bench planted: {len(pools)} worlds have no question that a text search is far from answering; "
            "take another seed or more pairs, which are planted in larger worlds"
        )
    pool = rng.choice(steady)
    question = pool.draw(rng)
    return Case(pool, question, tuple(locate_nodes(pool.corpus, question.proof.nodes)))


def judge(pool: Pool, scene: Scene) -> tuple[CheckResult, ...]:
    """Return everything that the checks find in a scene; nothing when they accept it."""
    with lay(pool, scene) as ground:
        claim = replace(scene.claim, proof=relocate(scene.claim.proof, ground.corpus))
        return examine(ground, claim, MAX_TOKENS, audit=True)


@contextmanager
def lay(pool: Pool, scene: Scene) -> Iterator[Ground]:
    """Give the ground of a scene.

    What sentences state a relation by, and how frequent an answer is, is learnt from the whole wiki: a page more or
    less does not change it, and the base's is taken.
    """
    overlay = OverlayCorpus(pool.corpus, scene.edits, scene.added)
    later = scene.other if scene.later is None else OverlayCorpus(pool.corpus, scene.later)
    ground = Ground(overlay, later)
    ground.__dict__["cues"], ground.__dict__["shares"] = pool.ground.cues, pool.ground.shares
    try:
        yield ground
    finally:
        overlay.close()


def make_pair(pool: Pool, twins: Twins) -> Pair:
    """Judge both twins."""
    clean, defective = judge(pool, twins.clean), judge(pool, twins.defective)
    returned = tuple(result.code for result in defective)
    return Pair(twins.plant, pick_result(clean, ()), pick_result(defective, twins.codes), twins.codes, returned)


def pick_result(found: Sequence[CheckResult], codes: Sequence[str]) -> CheckResult:
    """Return one of several findings: one with a wanted code, else an UNKNOWN, else any; a pass when there is none."""
    ranked = sorted(found, key=lambda result: (result.code not in codes, result.outcome != "UNKNOWN"))
    return ranked[0] if ranked else PASSED


def invent_name(corpus: Corpus, kind: str, words: Vocabulary, rng: Random) -> str:
    """Return a name that the wiki does not have."""
    while True:
        name = invent_person(words, rng) if kind == "person" else invent_title(words, rng).partition(" (")[0]
        if corpus.find(name) is None:
            return name
        name = f"{name} {invent_word(words, rng)}"


def find_facts(corpus: Corpus, node: int, key: str) -> tuple[Fact, ...]:
    """Return the values of a field of a page."""
    return tuple(fact for fact in corpus.facts(node) if fact.key == key)


def set_field(text: str, fact: Fact, value: str) -> str:
    """Return a page with the raw value of a fact's whole field replaced."""
    return text[: fact.field_start] + value + text[fact.field_end :]


def note_page(text: str) -> str:
    """Return a page with an editor's note that no reader sees."""
    return f"{text}\n<!-- checked -->"


def edit_elsewhere(case: Case, sentence: str, rng: Random) -> dict[int, str]:
    """Return an edit of an article off the path, which must not matter: a sentence more."""
    node = rng.choice([node for node in case.corpus.article_nodes() if node not in case.numbers])
    return {node: add_sentence(case.corpus.text(node), sentence)}


def add_sentence(text: str, sentence: str) -> str:
    """Return a page with a sentence more, at the end of its first section of prose."""
    infobox = read_infobox(text)
    start = infobox.end if infobox else 0
    place = text.find("\n\n", start + 2)
    place = len(text) if place < 0 else place
    return f"{text[:place]} {sentence}{text[place:]}"


def copy_infobox(case: Case, node: int, name: str, changes: Mapping[str, str]) -> str:
    """Return the article of an entity like another one: the same infobox but for some fields, and a lead sentence.

    Args:
        case: whose corpus has the model.
        node: the model.
        name: of the new entity.
        changes: raw values by key; an empty one leaves the field out.
    """
    corpus = case.corpus
    text = corpus.text(node)
    infobox = read_infobox(text)
    if infobox is None:
        raise AssertionError(f"{corpus.page(node).title} has no infobox; only nodes with facts are copied")
    box = text[infobox.start : infobox.end]
    for each in sorted(infobox.fields, key=lambda each: -each.start):
        if each.key in changes:
            box = box[: each.start - infobox.start] + changes[each.key] + box[each.end - infobox.start :]
    page = corpus.page(node)
    box = box.replace(page.title, name).replace(page.title.partition(" (")[0], name)
    noun = page.lead_type or page.type or "thing"
    return f"{box}\n'''{name}''' is {'an' if noun[0] in 'aeiou' else 'a'} {noun}."
