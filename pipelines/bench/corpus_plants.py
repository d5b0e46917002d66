"""Defects that lie in the wiki: another entity that fits, a second value, a shorter way, a picture nobody needs.

Each operator takes a clean question and returns twins, or None when the question admits no such defect. The clean twin
changes the wiki too, in a way that must not matter, so that a check is not paid for noticing any change.
"""

from collections.abc import Sequence
from random import Random

from pipelines.bench.scenes import (
    MANY,
    Case,
    Scene,
    Twins,
    add_sentence,
    copy_infobox,
    find_facts,
    invent_name,
    note_page,
    set_field,
)
from pipelines.bench.statements import draw_sentence, link, state_fact
from pipelines.bench.vocabulary import Vocabulary
from pipelines.graph.proofs import make_query
from pipelines.graph.query import (
    follow_chain,
    follow_hop,
    list_constraints_of,
    matches,
    read_answers,
)
from schemas.proofs import Hop


def plant_twin(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D06: another entity whose infobox shows all that the descriptor says; the clean twin differs in one fact.

    What the clean twin's fact names has no single entity that fits: it would no longer be single, and the question of
    another anchor no longer one.
    """
    hops = [hop for hop in case.question.proof.hops if hop.backward]
    if not hops:
        return None
    hop = rng.choice(hops)
    other = _find_other_object(case, hop, rng)
    if other is None or _count_fitting(case, hop, other) == 1:
        return None
    node = case.find_subject(hop)
    name = invent_name(case.corpus, case.question.proof.nodes[hop.index].type, words, rng)
    changes = _vary_answer(case, hop, rng)
    same = copy_infobox(case, node, name, changes)
    different = copy_infobox(case, node, name, changes | {hop.relation: link(case.corpus, other)})
    return _add_twins(case, f"{name} fits node {hop.index}", (name, different), (name, same), ("not-unique",))


def plant_hidden_twin(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D07: another entity that fits, one of its facts in prose only; of the clean twin the prose says another fact."""
    hops = [hop for hop in case.question.proof.hops if hop.backward]
    if not hops:
        return None
    hop = rng.choice(hops)
    node, kept, other = case.find_subject(hop), case.find_object(hop), _find_other_object(case, hop, rng)
    if other is None:
        return None
    name = invent_name(case.corpus, case.question.proof.nodes[hop.index].type, words, rng)
    said, unsaid = (state_fact(case.corpus, hop.relation, name, target, rng) for target in (kept, other))
    if said is None or unsaid is None:
        return None
    page = copy_infobox(case, node, name, _vary_answer(case, hop, rng) | {hop.relation: ""})
    plant = f"{name} fits node {hop.index}: {said}"
    return _add_twins(case, plant, (name, f"{page} {unsaid}"), (name, f"{page} {said}"), ("near-miss",))


def plant_hidden_value(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D07: a second value of a forward hop, stated in prose; the clean twin's page names it in passing."""
    hops = [hop for hop in case.question.proof.hops if not hop.backward and hop.relation != "mentions"]
    hop = rng.choice(hops) if hops else None
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
    return Twins(
        said,
        Scene(case.claim, {node: add_sentence(text, passing)}),
        Scene(case.claim, {node: add_sentence(text, said)}),
        ("multi-valued",),
    )


def plant_second_value(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D08: a second value in the field of a hop: after a break, in a list, or in a numbered twin of the field."""
    hops = [hop for hop in case.question.proof.hops if not hop.backward and hop.relation != "mentions"]
    if not hops:
        return None
    hop = rng.choice(hops)
    other = _find_other_object(case, hop, rng)
    node = case.find_subject(hop)
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
    return Twins(
        f"{hop.relation} = {value}",
        Scene(case.claim, {node: set_field(text, fact, raw + note)}),
        Scene(case.claim, {node: set_field(text, fact, value)}),
        ("multi-valued", "not-unique"),
    )


def plant_shortcut(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D10: a direct link from anchor to answer node, or the answer on a page before its own."""
    numbers, corpus = case.numbers, case.corpus
    far = [other for other in corpus.article_nodes() if other not in numbers and corpus.page(other).infobox]
    if len(numbers) > 3 and rng.random() < 0.5:
        text = corpus.text(numbers[0])
        frame, ends = draw_sentence("mentions", words, rng), (_find_dead_end(case, far, rng), numbers[-1])
        clean, bad = (frame.format(object=link(corpus, end)) for end in ends)
        scenes = [Scene(case.claim, {numbers[0]: add_sentence(text, said)}) for said in (clean, bad)]
        return Twins(bad, scenes[0], scenes[1], ("shorter-path",))
    page = rng.choice(numbers[:-1])
    answer = case.question.answer
    form = rng.choice((answer.surface, *answer.aliases[:3]))
    clean_word = rng.choice([word for word in words.words if word.casefold() not in form.casefold()])
    frame = draw_sentence("asides", words, rng)
    scenes = [
        Scene(case.claim, {page: add_sentence(corpus.text(page), frame.format(value=said))})
        for said in (clean_word, form)
    ]
    return Twins(frame.format(value=form), scenes[0], scenes[1], ("answer-on-earlier-page",))


def _find_dead_end(case: Case, nodes: Sequence[int], rng: Random) -> int:
    """Return an article that no way leads on from to the answer node in as many steps as there are hops."""
    near = _list_near(case)
    return rng.choice([node for node in nodes if node not in near] or [case.numbers[1]])


def _list_near(case: Case) -> set[int]:
    """Return the articles from which so few links lead to the answer node that a link to one is a shorter way."""
    graph, goal = case.corpus.graph, case.numbers[-1]
    near, ring = {goal}, {goal}
    for _ in range(len(case.numbers) - 3):
        ring = {int(source) for node in ring for source in graph.sources_of(node)} - near
        near |= ring
    return near


def plant_idle_picture(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D11: every other anchor of the type leads to the same answer or to none; the clean twin is merely annotated."""
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
    return Twins(
        f"{len(pages)} pages lose {hop.relation}",
        Scene(case.claim, noted),
        Scene(case.claim, pages),
        ("picture-not-needed",),
    )


def _blank(case: Case, page: int, key: str) -> dict[int, str]:
    facts = find_facts(case.corpus, page, key)
    return {page: set_field(case.corpus.text(page), facts[0], "")} if facts else {}


def _find_other_object(case: Case, hop: Hop, rng: Random) -> int | None:
    """Return another object of a hop's relation, of the kind of its own, off the path and no shorter way."""
    kind, near = case.corpus.page(case.find_object(hop)).type, _list_near(case)
    found = [
        other for other in case.pool.ground.relations.objects_of(hop.relation)
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


def _add_twins(
    case: Case, plant: str, clean: tuple[str, str], defective: tuple[str, str], codes: tuple[str, ...]
) -> Twins:
    return Twins(plant, Scene(case.claim, added=(clean,)), Scene(case.claim, added=(defective,)), codes)
