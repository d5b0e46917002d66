"""Defects of what a question says, and of prose about its facts, as the evaluator of runs without a model reads them.

The toy writer words a query that differs from the proof in one point (D25 to D29), or one more thing is said (D30,
D31); a page says something else of the answer (D32) or of a hop (D33). The clean twin of a wording is the same query in
another wording of the writer; that of a page is an edit of another page. Wordings by others are in ``readers``.
"""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from random import Random

from pipelines.checks.propositions import Claim, list_claims
from pipelines.checks.readings import DIFFERS, SYMMETRIC, UNREAD, Evaluator, state_relation
from pipelines.checks.verdicts import CheckResult
from pipelines.graph.answers import derive_answer
from pipelines.graph.facts import read_attributes, read_relations, stem_key
from pipelines.graph.proofs import view_proof
from pipelines.graph.query import TYPE
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.toy.reader import GrammarReader
from pipelines.toy.writer import refer_to_anchor
from schemas.proofs import Answer, Derivation
from schemas.tasks import HopView, ReferToAnchorInputs, WriteQuestionInputs
from tests.planted.corpus_plants import draw_wrong
from tests.planted.disguises import draw_sentence, link
from tests.planted.scenes import Case, Pool, Scene, add_sentence, edit_elsewhere, lay, read_page
from tests.planted.words import Pair, Vocabulary

Query = tuple[WriteQuestionInputs, tuple[str, ...]]
"""What the writer words: a path, and the descriptor of each node after the anchor, empty where it makes one."""
COARSER: dict[str, tuple[Derivation, ...]] = {"day": ("month", "year"), "month": ("year",)}
OTHER_UNITS = {"m": "ft", "km": "mi", "km2": "sqmi", "kg": "lb", "t": "lb"}


def word_query(query: Query, variety: str) -> str:
    """Return the toy writer's wording of a query about a picture."""
    path, descriptors = query
    told = path.model_copy(update={"variety": variety})
    return refer_to_anchor(
        ReferToAnchorInputs(question="", name=path.anchor_name, anchor_type=path.anchor_type, path=told,
                            descriptors=descriptors)
    )  # fmt: skip


def plant_other_relation(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D25: another relation of the same page in place of one hop."""
    options = []
    for place in _list_free(case):
        hop, node = case.question.proof.hops[place], case.find_subject(case.question.proof.hops[place])
        for fact in read_relations(case.corpus, node):
            # Two fields that lead to one entity ask for the same.
            if hop.backward or fact.target == case.numbers[hop.index]:
                continue
            if stem_key(fact.key) != stem_key(hop.relation):
                options.append((place, fact.key, case.corpus.page(fact.target).type))
    if not options:
        return None
    place, relation, kind = rng.choice(options)
    return _plant(case, rng, _change_hop(case, place, relation=relation, object_type=kind))


def plant_vague_relation(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D26: one hop in words that many relations fit."""
    return _describe(case, "vague", words, rng)


def plant_reversal(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D27: one hop goes the other way."""
    hops = case.question.proof.hops
    free = [place for place in _list_free(case) if state_relation(hops[place].relation) not in SYMMETRIC]
    if not free:
        return None
    place = rng.choice(free)
    return _plant(case, rng, _change_hop(case, place, backward=not hops[place].backward))


def plant_lost_hop(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D28: one hop is left out, its neighbours are joined."""
    path, descriptors = make_query(case)
    if len(path.hops) < 2:
        return None
    place = rng.randrange(len(path.hops))
    hops = (*path.hops[:place], *path.hops[place + 1 :])
    return _plant(
        case, rng, (path.model_copy(update={"hops": hops}), (*descriptors[:place], *descriptors[place + 1 :]))
    )


def plant_doubled_hop(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D28: one hop is gone twice."""
    free = _list_free(case)
    if not free:
        return None
    path, descriptors = make_query(case)
    place = rng.choice(free) + 1
    hops = (*path.hops[:place], path.hops[place - 1], *path.hops[place:])
    return _plant(case, rng, (path.model_copy(update={"hops": hops}), (*descriptors[:place], "", *descriptors[place:])))


def plant_other_form(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D29: another unit, precision or attribute is asked for."""
    path, descriptors = make_query(case)
    answer = case.question.answer
    options = [(path.answer_relation, derive_answer(answer, form)) for form in COARSER.get(answer.precision, ())]
    if answer.unit in OTHER_UNITS:
        options.append((path.answer_relation, answer.model_copy(update={"unit": OTHER_UNITS[answer.unit]})))
    form = case.question.proof.derivation
    for other in read_attributes(case.corpus, case.numbers[-1]):
        if other.answer.type == answer.type and stem_key(other.fact.key) != stem_key(path.answer_relation):
            options.append((other.fact.key, derive_answer(other.answer, form)))
    options = [option for option in options if option[1] is not None]
    if not options:
        return None
    relation, other_answer = rng.choice(options)
    return _plant(
        case, rng, (path.model_copy(update={"answer_relation": relation, "answer": other_answer}), descriptors)
    )


def plant_condition(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D30: a condition, supposition or time that the proof does not hold."""
    return _surround(case, "conditions", words, rng)


def plant_extra(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D31: a second question, or an instruction to the reader."""
    return _surround(case, "extras", words, rng)


def plant_contradiction(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D32: the answer's page gives another value in free words."""
    wrong = draw_wrong(case, rng)
    if wrong is None:
        return None
    said = draw_sentence("denials", words, rng).format(value=wrong.surface)
    claims = list_claims(case.corpus, case.question.proof, case.question.answer)
    about = [each for each in claims if isinstance(each.value, Answer)]
    return _plant_said(case, about, said, ("answer-disputed", "answer-unconfirmed"), rng)


def plant_second_value(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D33: the page of a hop tells in free words of a second entity."""
    claims = list_claims(case.corpus, case.question.proof, case.question.answer)
    about = [each for each in claims if isinstance(each.value, int)]
    if not about:
        return None
    claim = rng.choice(about)
    assert isinstance(claim.value, int)
    kind = case.corpus.page(claim.value).type
    others = [node for node in case.corpus.nodes_of_type(kind).tolist() if node not in {claim.node, claim.value}]
    if not others:
        return None
    said = draw_sentence("seconds", words, rng).format(object=link(case.corpus, rng.choice(others)))
    return _plant_said(case, [claim], said, ("multi-valued",), rng)


def make_query(case: Case) -> Query:
    """Return what the writer was given for an accepted question."""
    proof = case.question.proof
    return view_proof(case.corpus, proof, case.question.answer), proof.descriptors or ("",) * len(proof.hops)


def _list_free(case: Case) -> list[int]:
    """Return the places of the hops by a field whose entity is described by nothing else."""
    proof = case.question.proof
    told = {each.node for each in proof.constraints if each.relation != TYPE}
    return [place for place, hop in enumerate(proof.hops) if not hop.clause and place + 1 not in told]


def _change_hop(case: Case, place: int, **changes: object) -> Query:
    """Return the query with one hop changed, whose descriptor the writer makes."""
    path, descriptors = make_query(case)
    hops: list[HopView] = list(path.hops)
    hops[place] = hops[place].model_copy(update=changes)
    return path.model_copy(update={"hops": tuple(hops)}), (*descriptors[:place], "", *descriptors[place + 1 :])


def _describe(case: Case, kind: str, words: Vocabulary, rng: Random) -> Pair | None:
    free = _list_free(case)
    if not free:
        return None
    place = rng.choice(free)
    path, descriptors = make_query(case)
    said = draw_sentence(kind, words, rng).replace("{type}", path.hops[place].object_type)
    return _plant(case, rng, (path, (*descriptors[:place], said, *descriptors[place + 1 :])))


def _surround(case: Case, kind: str, words: Vocabulary, rng: Random) -> Pair | None:
    text = word_query(make_query(case), rng.randbytes(8).hex())
    frame = draw_sentence(kind, words, rng)
    start = frame.startswith("{question}")
    said = text if start else text[0].lower() + text[1:]
    # "{question}, in 1990?" takes the place of the question mark.
    bare = said.removesuffix("?").removesuffix(".") if "{question}," in frame else said
    return _pair(case, rng, frame.replace("{question}", bare))


def _plant(case: Case, rng: Random, query: Query) -> Pair | None:
    return _pair(case, rng, word_query(query, rng.randbytes(8).hex()))


def _pair(case: Case, rng: Random, text: str) -> Pair | None:
    own = make_query(case)
    if word_query(own, own[0].variety) != case.question.text:
        # Words of an injected question come from elsewhere.
        return None
    clean = word_query(own, rng.randbytes(8).hex())
    return Pair(text, _read(case, clean), _read(case, text), (DIFFERS, UNREAD))


def _read(case: Case, text: str) -> CheckResult:
    return asyncio.run(_open_evaluator(case.pool).check(text, case.question.proof, case.question.answer))[1]


@lru_cache(maxsize=16)
def _open_evaluator(pool: Pool) -> Evaluator:
    asking = (RoleClient(GrammarReader(), load_prompt(name)) for name in ("read_question", "screen_question"))
    return Evaluator(pool.ground, *asking)


def _plant_said(case: Case, claims: Sequence[Claim], said: str, codes: tuple[str, ...], rng: Random) -> Pair | None:
    if not claims:
        return None
    claim = rng.choice(claims)
    clean = Scene(case.claim, edit_elsewhere(case, said, rng))
    bad = Scene(case.claim, {claim.node: add_sentence(case.corpus.text(claim.node), said)})
    return Pair(said, _read_page(case, clean, claim), _read_page(case, bad, claim), codes)


def _read_page(case: Case, scene: Scene, claim: Claim) -> CheckResult:
    with lay(case.pool, scene) as ground:
        return read_page(ground, claim, case.question.proof)


DEFECTS = (
    ("D25", "another relation", plant_other_relation),
    ("D26", "vaguer relation", plant_vague_relation),
    ("D27", "relation reversed", plant_reversal),
    ("D28", "hop lost", plant_lost_hop),
    ("D28", "hop doubled", plant_doubled_hop),
    ("D29", "other unit, precision or attribute", plant_other_form),
    ("D30", "added condition", plant_condition),
    ("D31", "second question or instruction", plant_extra),
    ("D32", "prose contradicts, free words", plant_contradiction),
    ("D33", "second value, free words", plant_second_value),
)
