"""Defects of the wiki around a question, of its answer, and of a question beside others.

Each operator takes a clean question and returns twins, or None when the question does not admit the defect. The clean
twin changes the wiki too, harmlessly, so that a check that notices any change gains nothing.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random

from pipelines.checks.agreement import is_volatile
from pipelines.checks.descriptors import offer_facts, stands_in
from pipelines.checks.limits import Limits
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.config.settings import ReleasesConfig
from pipelines.corpus.store import Fact
from pipelines.graph.answers import derive_answer
from pipelines.graph.facts import read_attributes, read_relations, type_value
from pipelines.graph.proofs import cite_fact, make_query
from pipelines.graph.query import (
    TYPE,
    count_anchor_answers,
    follow_chain,
    follow_hop,
    list_constraints_of,
    matches,
    read_answers,
)
from pipelines.graph.salience import is_generic
from pipelines.graph.values import parse_date
from pipelines.names import fold_name
from pipelines.stages.difficulty import MeasuredDifficulty
from pipelines.stages.releases import Releases
from schemas.base import Rejection
from schemas.datasets import Enhancement, Grounding
from schemas.proofs import Answer, Constraint, Hop
from schemas.tasks import SUBJECT
from tests.planted.disguises import draw_sentence, link, state_fact
from tests.planted.scenes import (
    MANY,
    Case,
    Pool,
    Scene,
    Twins,
    add_sentence,
    copy_infobox,
    edit_elsewhere,
    find_facts,
    invent_name,
    is_far,
    note_page,
    rank_by_words,
    set_field,
)
from tests.planted.words import Pair, Vocabulary


def plant_twin(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D06: another entity whose infobox fits the descriptor; the clean twin differs in one fact.

    The clean twin's fact names an entity that leads to none or several, since another anchor must keep its answer.
    """
    hop = _draw_hop(case, rng, backward=True)
    other = None if hop is None else _find_other_object(case, hop, rng)
    if hop is None or other is None or _count_fitting(case, hop, other) == 1:
        return None
    node = case.find_subject(hop)
    name = invent_name(case.corpus, case.question.proof.nodes[hop.index].type, words, rng)
    changes = _vary_answer(case, hop, rng)
    same = copy_infobox(case, node, name, changes)
    different = copy_infobox(case, node, name, changes | {hop.relation: link(case.corpus, other)})
    return _add_twins(case, f"{name} fits node {hop.index}", (name, different), (name, same), ("not-unique",))


def plant_hidden_twin(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D07: another entity that fits, with one fact in prose only; the prose of the clean twin has another fact."""
    hop = _draw_hop(case, rng, backward=True)
    other = None if hop is None else _find_other_object(case, hop, rng)
    if hop is None or other is None:
        return None
    node, kept = case.find_subject(hop), case.find_object(hop)
    name = invent_name(case.corpus, case.question.proof.nodes[hop.index].type, words, rng)
    said, unsaid = (state_fact(case.corpus, hop.relation, name, target, rng) for target in (kept, other))
    if said is None or unsaid is None:
        return None
    page = copy_infobox(case, node, name, _vary_answer(case, hop, rng) | {hop.relation: ""})
    plant = f"{name} fits node {hop.index}: {said}"
    return _add_twins(case, plant, (name, f"{page} {unsaid}"), (name, f"{page} {said}"), ("near-miss",))


def plant_hidden_value(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D07: a second value of a forward hop, stated in prose; the clean twin's page mentions it in passing."""
    hop = _draw_hop(case, rng, backward=False)
    other = _find_other_object(case, hop, rng) if hop is not None else None
    if hop is None or other is None:
        return None
    node = case.find_subject(hop)
    name = case.corpus.page(node).title.partition(" (")[0]
    said = state_fact(case.corpus, hop.relation, name, other, rng)
    if said is None:
        return None
    passing = draw_sentence("passing", words, rng).format(subject=name, object=link(case.corpus, other))
    text = case.corpus.text(node)
    return _make_twins(
        case, said, {node: add_sentence(text, passing)}, {node: add_sentence(text, said)}, "multi-valued"
    )


def _draw_hop(case: Case, rng: Random, backward: bool) -> Hop | None:
    """Return a hop of an infobox in one direction."""
    hops = [hop for hop in case.question.proof.hops if hop.backward == backward and hop.relation != "mentions"]
    return rng.choice(hops) if hops else None


def plant_second_value(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D08: a second value in the field of a hop: after a break, in a list, or in a numbered twin of the field."""
    hop = _draw_hop(case, rng, backward=False)
    if hop is None:
        return None
    other, node = _find_other_object(case, hop, rng), case.find_subject(hop)
    facts = find_facts(case.corpus, node, hop.relation)
    if other is None or len(facts) != 1:
        return None
    text, fact = case.corpus.text(node), facts[0]
    raw, second = text[fact.field_start : fact.field_end], link(case.corpus, other)
    stem = hop.relation.rstrip("0123456789")
    values = (
        f"{raw}<br />{second}",
        f"{second}<br>{raw}",
        f"{{{{ubl|{raw}|{second}}}}}" if "|" not in raw.replace("[[", "").partition("]]")[0] else f"{raw}<br/>{second}",
        f"{{{{plainlist|\n* {raw}\n* {second}\n}}}}",
        f"{raw}\n| {stem}{rng.randint(7, 9)} = {second}",
    )
    value = rng.choice(values)
    note = rng.choice(("<!-- {} -->", "<ref>See {} too.</ref>")).format(second)
    return _make_twins(
        case,
        f"{hop.relation} = {value}",
        {node: set_field(text, fact, raw + note)},
        {node: set_field(text, fact, value)},
        "multi-valued",
        "not-unique",
    )


def plant_shortcut(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D10: a direct link from anchor to answer node, or the answer on a page before its own."""
    numbers, corpus = case.numbers, case.corpus
    far = [other for other in corpus.article_nodes() if other not in numbers and corpus.page(other).infobox]
    if len(numbers) > 3 and rng.random() < 0.5:
        text = corpus.text(numbers[0])
        frame, ends = draw_sentence("mentions", words, rng), (_find_dead_end(case, far, rng), numbers[-1])
        clean, bad = (frame.format(object=link(corpus, end)) for end in ends)
        edits = [{numbers[0]: add_sentence(text, said)} for said in (clean, bad)]
        return _make_twins(case, bad, *edits, "shorter-path")
    page = rng.choice(numbers[:-1])
    answer = case.question.answer
    form = rng.choice((answer.surface, *answer.aliases[:3]))
    clean_word = rng.choice([word for word in words.words if word.casefold() not in form.casefold()])
    frame, named = draw_sentence("asides", words, rng), corpus.find(answer.value)
    if named is not None and is_generic(corpus, named):
        # A country is mentioned everywhere: its name says the answer only beside that of what is asked about.
        clean_word, form = (f"{corpus.page(numbers[-1]).title}, {said}" for said in (clean_word, form))
    edits = [{page: add_sentence(corpus.text(page), frame.format(value=said))} for said in (clean_word, form)]
    return _make_twins(case, frame.format(value=form), *edits, "answer-on-earlier-page")


def _find_dead_end(case: Case, nodes: Sequence[int], rng: Random) -> int:
    """Return an article too far from the answer node for a shortcut."""
    near = _list_near(case)
    return rng.choice([node for node in nodes if node not in near] or [case.numbers[1]])


def _list_near(case: Case) -> set[int]:
    """Return the articles so near the answer node that a link to one is a shortcut."""
    graph, goal = case.corpus.graph, case.numbers[-1]
    near, ring = {goal}, {goal}
    for _ in range(len(case.numbers) - 3):
        ring = {int(source) for node in ring for source in graph.sources_of(node)} - near
        near |= ring
    return near


def plant_idle_picture(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D11: every other anchor of the type leads to the same answer or to none; the clean twin gets comments."""
    proof = case.question.proof
    if proof.thresholds.answers < 2:
        return None
    ground, query, hop = case.pool.ground, make_query(case.corpus, proof), proof.hops[0]
    pages: dict[int, str] = {}
    for anchor in case.corpus.nodes_of_type(proof.nodes[0].type).tolist():
        sets = follow_chain(ground, query, anchor)
        whole = len(sets) == len(proof.hops) + 1
        if not whole or not set(read_answers(case.corpus, query, sets[-1])) - {case.question.answer.key}:
            continue
        subjects = follow_hop(ground, anchor, hop, query.names) if hop.backward else {anchor}
        for page in sorted(subjects):
            pages.update(_blank(case, page, hop.relation))
    if not pages or len(pages) > MANY or case.find_subject(hop) in pages:
        return None
    noted = {page: note_page(case.corpus.text(page)) for page in list(pages)[:3]}
    return _make_twins(case, f"{len(pages)} pages lose {hop.relation}", noted, pages, "picture-not-needed")


def _blank(case: Case, page: int, key: str) -> dict[int, str]:
    facts = find_facts(case.corpus, page, key)
    return {page: set_field(case.corpus.text(page), facts[0], "")} if facts else {}


def _find_other_object(case: Case, hop: Hop, rng: Random) -> int | None:
    """Return another object of a hop's relation with the same type, off the path and no shortcut."""
    kind, near = case.corpus.page(case.find_object(hop)).type, _list_near(case)
    found = [
        other for other in case.pool.ground.relations.find_objects(hop.relation).tolist()
        if other not in case.numbers and other not in near and case.corpus.page(other).type == kind
    ]  # fmt: skip
    return rng.choice(found) if found else None


def _count_fitting(case: Case, hop: Hop, value: int) -> int:
    """Count the entities that a backward hop leads to from a node and that fit its descriptor."""
    query = make_query(case.corpus, case.question.proof)
    here = list_constraints_of(query, hop.index)
    ahead = follow_hop(case.pool.ground, value, hop, query.names)
    return sum(matches(case.corpus, node, here) for node in ahead)


def _vary_answer(case: Case, hop: Hop, rng: Random) -> dict[str, str]:
    """Return another raw value of the asked field for a twin of the answer node: its question has two answers."""
    if hop.index != len(case.question.proof.hops):
        return {}
    key = case.question.proof.answer_relation
    said = {each.relation for each in list_constraints_of(make_query(case.corpus, case.question.proof), hop.index)}
    values = [
        fact.text
        for node in case.corpus.nodes_of_type(case.question.proof.nodes[-1].type).tolist()
        for fact in find_facts(case.corpus, node, key)
        if fact.text != case.question.answer.surface
    ]
    return {key: rng.choice(values)} if values and key not in said else {}


def _make_twins(case: Case, plant: str, clean: dict[int, str], defective: dict[int, str], *codes: str) -> Twins:
    return Twins(plant, Scene(case.claim, clean), Scene(case.claim, defective), codes)


def _add_twins(
    case: Case, plant: str, clean: tuple[str, str], defective: tuple[str, str], codes: tuple[str, ...]
) -> Twins:
    return Twins(plant, Scene(case.claim, added=(clean,)), Scene(case.claim, added=(defective,)), codes)


def plant_lone_descriptor(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D09: a descriptor that fits one entity of the whole wiki, by an added fact or by changes of the others."""
    proof = case.question.proof
    nodes = [node for node in range(1, len(case.numbers)) if proof.descriptors[node - 1].strip()]
    if not nodes:
        return None
    node = rng.choice(nodes)
    return (_add_telling_fact if rng.random() < 0.6 else _change_others)(case, node, rng)


def _add_telling_fact(case: Case, node: int, rng: Random) -> Twins | None:
    """Return twins with one more fact in a descriptor: a unique one, or one that several entities share."""
    proof, limits = case.question.proof, case.question.proof.thresholds
    least = limits.alone_first if node == 1 else limits.alone
    answer = case.question.answer
    telling, common = [], []
    for offered in offer_facts(case.corpus, case.numbers[node], 4):
        constraint = Constraint(node=node, relation=offered.relation, value=offered.text)
        asked = node == len(case.numbers) - 1 and offered.relation == proof.answer_relation
        said = constraint in proof.constraints or stands_in(offered.text, case.question.text)
        if asked or said or _may_mean_other(case, constraint):
            continue
        count = _count_holders(case, (*proof.constraints, constraint), node, proof.hops[node - 1])
        if count == 1:
            telling.append(constraint)
        elif count >= least and offered.text.casefold() not in answer.surface.casefold():
            common.append(constraint)
    common = [constraint for constraint in common if _needs_picture(case, constraint)]
    if not telling or not common or least < 2:
        return None
    first, second = rng.choice(telling), rng.choice(common)
    clean, defective = _say_more(case, second), _say_more(case, first)
    if clean is None or defective is None or not case.pool.is_hidden(case.question, clean.claim.text):
        return None
    return Twins(f"node {node}: {first.relation} {first.value}", clean, defective, ("stands-alone",))


def _may_mean_other(case: Case, constraint: Constraint) -> bool:
    """Say whether another field of the entity has this value too, such as its other date."""
    facts = case.corpus.facts(case.numbers[constraint.node])
    return any(fact.key != constraint.relation and _says(fact, constraint.value) for fact in facts)


def _needs_picture(case: Case, constraint: Constraint) -> bool:
    """Say whether a question with one constraint more still has several answers over all anchors."""
    proof = case.question.proof
    query = replace(make_query(case.corpus, proof), constraints=(*proof.constraints, constraint))
    least = proof.thresholds.answers
    return count_anchor_answers(case.pool.ground, query, proof.nodes[0].type, least)[1] >= least


def _count_holders(case: Case, constraints: Sequence[Constraint], node: int, hop: Hop) -> int:
    """Count the entities that fit a descriptor without the chain, page by page, without the checks' code."""
    corpus = case.corpus
    here = [constraint for constraint in constraints if constraint.node == node]
    targets = {fact.target for other in corpus.article_nodes() for fact in read_relations(corpus, other)
               if fact.key == hop.relation}  # fmt: skip
    count = 0
    for other in corpus.article_nodes():
        facts = corpus.facts(other)
        fits = any(fact.key == hop.relation for fact in facts) if hop.backward else other in targets
        count += fits and all(
            corpus.page(other).type == each.value
            if each.relation == TYPE
            else any(fact.key == each.relation and _says(fact, each.value) for fact in facts)
            for each in here
        )
    return count


def _says(fact: Fact, value: str) -> bool:
    """Say whether a fact has a value, or a date of that year, decade or century."""
    if fact.text == value:
        return True
    digits = "".join(character for character in value if character.isdigit())
    year = fact.iso[:4] if fact.iso else fact.text if fact.text.isdigit() and len(fact.text) == 4 else ""
    if not year or not digits:
        return False
    if value.endswith("0s"):
        return year[:3] == digits[:3]
    if value.endswith("century"):
        return (int(year) - 1) // 100 + 1 == int(digits)
    return value == year


def _say_more(case: Case, constraint: Constraint) -> Scene | None:
    """Return the question with one more fact in a descriptor: in its text and proof."""
    proof = case.question.proof
    descriptor = proof.descriptors[constraint.node - 1]
    head = descriptor.split(SUBJECT)[0]
    place = case.question.text.casefold().find(head.casefold())
    if not head.casefold().startswith("the ") or place < 0:
        return None
    longer = f"{head[:3]} ({constraint.value}) {head[4:]}"
    text = case.question.text[:place] + longer + case.question.text[place + len(head) :]
    descriptors = list(proof.descriptors)
    descriptors[constraint.node - 1] = longer + descriptor[len(head) :]
    changed = {"descriptors": tuple(descriptors), "constraints": (*proof.constraints, constraint)}
    return Scene(replace(case.claim, text=text, proof=proof.model_copy(update=changed)))


def _change_others(case: Case, node: int, rng: Random) -> Twins | None:
    """Return twins in whose wikis other entities no longer show the relation of a descriptor."""
    proof, limits = case.question.proof, case.question.proof.thresholds
    least = limits.alone_first if node == 1 else limits.alone
    hop = proof.hops[node - 1]
    if hop.relation == "mentions" or least < 2:
        return None
    kept = {case.numbers[node]}
    pages = list(_list_rivals(case, hop, kept))
    # The relation may be another hop of this path, which must stay.
    if not pages or len(pages) > MANY or any(page in case.numbers for page, _ in pages):
        return None
    edits = {page: set_field(case.corpus.text(page), fact, "") for page, fact in pages}
    noted = {page: note_page(case.corpus.text(page)) for page, _ in pages[:3]}
    return _make_twins(case, f"only {proof.nodes[node].title} has {hop.relation}", noted, edits, "stands-alone")


def _list_rivals(case: Case, hop: Hop, kept: set[int]) -> Iterator[tuple[int, Fact]]:
    """Yield one field per page that makes another entity than the kept one fit the relation."""
    for page in case.corpus.article_nodes():
        facts = find_facts(case.corpus, page, hop.relation)
        if not facts or page == case.find_subject(hop):
            continue
        if (page not in kept) if hop.backward else any(fact.target not in kept for fact in facts):
            yield page, facts[0]


COLLAPSED = 0.3
"""Share of a dataset that one skeleton gets."""
LEAST_ROWS = 10


def plant_parametric(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D17: a solver that knows every fact of the question; the clean twin has one with a higher threshold.

    The scripted solver knows a path if the in-degrees of all its nodes reach its popularity threshold.
    """
    if case.question.picture is None:
        return None
    known = min(int(case.corpus.graph.in_degree[number]) for number in case.numbers)
    least = max(known - rng.randint(0, 2), 0)
    clean, bad = (_filter(case, popularity) for popularity in (known + rng.randint(1, 4), least))
    return Pair(f"all nodes have {known} links, the solver knows {least}", clean, bad, ("solved-without-tools",))


def _filter(case: Case, popularity: int) -> CheckResult:
    outcome = asyncio.run(_build_filter(case.pool, popularity)(case.question))
    if isinstance(outcome, Rejection):
        return CheckResult("FAIL", outcome.reason, outcome.detail or "")
    return PASSED


@lru_cache(maxsize=1024)
def _build_filter(pool: Pool, popularity: int) -> MeasuredDifficulty:
    """Return the stage with a solver of this popularity threshold that neither guesses nor slips."""
    settings = f"fact_popularity={popularity}, sight_popularity={popularity}, guess_rate=0.0, slip_rate=0.0"
    assembly = pool.assemble("difficulty.attempts=1", f"models.solver.extra_body={{{settings}}}")
    stage = assembly.build_stage("difficulty")
    assert isinstance(stage, MeasuredDifficulty)
    return stage


def plant_repeat(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D19: a question twice in other words, or one wording for three in ten questions of a dataset."""
    rows = list(_list_distinct(case.pool))
    if len(rows) < LEAST_ROWS:
        return None
    chosen = rng.sample(rows, min(len(rows), 40))
    if rng.random() < 0.5:
        return _repeat(chosen, rng)
    count = max(2, round(COLLAPSED * len(chosen)))
    text = draw_sentence("collapsed", words, rng)
    same = [row.model_copy(update={"text": text}) for row in chosen[:count]]
    bad = [*same, *chosen[count:]]
    # Where two of them follow one fact, the same words make them near duplicates before their share is counted.
    codes = ("skeleton-over-used", "near-duplicate")
    return Pair(f"{count} of {len(bad)}: {text}", _release(chosen), _release(bad), codes)


def _repeat(rows: list[Grounding], rng: Random) -> Pair:
    """Return twins of which one has a question again: the same, with another path, or with another answer."""
    row, shape = rng.choice(rows), rng.choice(("again", "again", "other path", "other answer"))
    update = {"record_id": f"{row.record_id}-again", "text": f"Say, {row.text[:1].lower()}{row.text[1:]}"}
    copy, code = row.model_copy(update=update), "duplicate-question"
    if shape == "other path":
        other = row.proof.hops[0].model_copy(update={"relation": "somewhere_else"})
        copy = copy.model_copy(update={"proof": row.proof.model_copy(update={"hops": (other, *row.proof.hops[1:])})})
    elif shape == "other answer":
        code, answer = "duplicate-path", row.answer.model_copy(update={"key": f"{row.answer.key} again"})
        copy = copy.model_copy(update={"answer": answer})
    return Pair(f"{shape}: {row.text[:80]}", _release(rows), _release([*rows, copy]), (code,))


REPEATS = Limits(ReleasesConfig(max_answer_share=1.0, max_gold_share=1.0))
"""What may repeat, whatever guessing scores: a sample has other shares than the whole."""


def _release(rows: list[Grounding]) -> CheckResult:
    """FAIL with the reason of the first row that the releases stage refuses."""
    for outcome in Releases(REPEATS)([[_measure(row) for row in rows], []]):
        if isinstance(outcome, Rejection):
            return CheckResult("FAIL", outcome.reason, outcome.detail or "")
    return PASSED


@lru_cache(maxsize=16)
def _list_distinct(pool: Pool) -> tuple[Grounding, ...]:
    """Return the questions of one pass of a pool that fit into one release."""
    refused = {
        outcome.record_id
        for outcome in Releases(REPEATS)([[_measure(row) for row in pool.first], []])
        if isinstance(outcome, Rejection)
    }
    return tuple(row for row in pool.first if row.record_id not in refused)


def _measure(row: Grounding) -> Enhancement:
    return Enhancement(**dict(row), cells=())


def plant_gold(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D14: another gold answer than the page's, or another value in the infobox than in prose.

    If the prose is not understood, the edited infobox is refused as UNKNOWN, and the pair is undecided.
    """
    return (_claim_other if rng.random() < 0.5 else _edit_infobox)(case, rng)


def _claim_other(case: Case, rng: Random) -> Twins | None:
    """Return twins of which one claims a near or a sibling's value; both pages write the true value in another form."""
    wrong = draw_wrong(case, rng)
    if wrong is None:
        return None
    node = case.numbers[-1]
    text, facts = case.corpus.text(node), find_facts(case.corpus, node, case.question.proof.answer_relation)
    alone = len(facts) == 1
    page = set_field(text, facts[0], _write_alike(facts[0], case.question.answer)) if alone else note_page(text)
    claims = (case.claim, replace(case.claim, answer=wrong))
    clean, bad = (Scene(claim, {node: page}) for claim in claims)
    return Twins(f"gold {wrong.surface}", clean, bad, ("answer-changed",))


def _edit_infobox(case: Case, rng: Random) -> Twins | None:
    """Return twins of which one has another value in infobox and gold than in prose."""
    node, key = case.numbers[-1], case.question.proof.answer_relation
    facts = find_facts(case.corpus, node, key)
    wrong = draw_wrong(case, rng)
    if len(facts) != 1 or wrong is None or case.question.proof.derivation:
        return None
    text = case.corpus.text(node)
    bad = set_field(text, facts[0], wrong.surface)
    written = set_field(text, facts[0], _write_alike(facts[0], case.question.answer))
    claim = replace(case.claim, answer=wrong)
    plant = f"infobox says {wrong.surface}"
    clean, defective = Scene(case.claim, {node: written}), Scene(claim, {node: bad})
    return Twins(plant, clean, defective, ("answer-disputed",), read=True)


def _write_alike(fact: Fact, answer: Answer) -> str:
    """Return the same value in another form."""
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is not None and date.day:
        return f"{{{{start date|{date.year}|{date.month}|{date.day}|df=y}}}}"
    return f"{fact.text}<!-- checked -->"


def draw_wrong(case: Case, rng: Random) -> Answer | None:
    """Return a wrong answer of the same type: a near date, or the value of a sibling."""
    answer, key = case.question.answer, case.question.proof.answer_relation
    if answer.type == "date" and rng.random() < 0.7:
        year = int(answer.value[:4]) + rng.choice((-1, 1))
        shown = answer.surface.replace(answer.value[:4], str(year))
        return type_value(shown, f"{year:04}{answer.value[4:]}", key) if shown != answer.surface else None
    siblings = []
    for node in case.corpus.nodes_of_type(case.question.proof.nodes[-1].type).tolist():
        for attribute in read_attributes(case.corpus, node):
            if attribute.fact.key == key:
                other = derive_answer(attribute.answer, case.question.proof.derivation)
                if other is not None and other.type == answer.type and not _overlap(other, answer):
                    siblings.append(other)
    return rng.choice(siblings) if siblings else None


def _overlap(answer: Answer, other: Answer) -> bool:
    forms = {fold_name(form) for form in (answer.surface, answer.value, *answer.aliases)}
    return bool(forms & {fold_name(form) for form in (other.surface, other.value, *other.aliases)})


def plant_volatile(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D15: a fact that is known to change."""
    found = [each for each in read_attributes(case.corpus, case.numbers[-1]) if is_volatile(each.fact.key)]
    if not found:
        return None
    attribute = rng.choice(found)
    asked = {"answer_relation": attribute.fact.key, "answer_evidence": cite_fact(case.corpus, attribute.fact)}
    proof = case.claim.proof.model_copy(update=asked)
    edits = edit_elsewhere(case, draw_sentence("asides", words, rng).format(value=rng.choice(words.words)), rng)
    claim = replace(case.claim, answer=attribute.answer, proof=proof)
    plant = f"{attribute.fact.key} of {case.corpus.page(case.numbers[-1]).title}"
    return Twins(plant, Scene(case.claim, edits), Scene(claim, edits), ("volatile",))


def plant_searchable(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D18: the words of the question on the answer's own page; findable by the bench's own ranking."""
    rank = case.question.proof.thresholds.retrieval_rank
    if not rank:
        return None
    node = case.numbers[-1]
    text, question = case.corpus.text(node), case.question.text
    if not is_far(case.corpus, question, node, text, rank):
        return None
    # Names and years are left out: with them the page might fit an earlier node.
    stranger = " ".join(word for word in rng.choice(case.pool.questions).text.split() if word.islower())
    clean, bad = (add_sentence(text, said) for said in (_shuffle(stranger, rng)[:60], _shuffle(question, rng)))
    if rank_by_words(case.corpus, question, node, bad) != 1:
        return None
    if not is_far(case.corpus, question, node, clean, rank):
        return None
    return _make_twins(
        case,
        f"the words of the question on {case.corpus.page(node).title}",
        {node: clean},
        {node: bad},
        "one-retrieval",
    )


def _shuffle(text: str, rng: Random) -> str:
    """Return the words of a text in random order: a search finds them, and nothing is quoted."""
    words = text.rstrip("?.!").split()
    rng.shuffle(words)
    return " ".join(words) + "."
