import asyncio
import itertools
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import ConfigError
from pipelines.services.protocols import ChatRequest
from pipelines.toy.ontology import ATTRIBUTES as WORLD_ATTRIBUTES
from pipelines.toy.ontology import RELATIONS as WORLD_RELATIONS
from pipelines.toy.phrases import (
    digest_tables,
    find_attribute,
    find_relation,
    list_attributes,
    list_relations,
    normalise_key,
    qualify_fact,
    split_key,
)
from pipelines.toy.writer import (
    VERSION,
    TemplatesModel,
    cut_clause,
    list_frames,
    propose_descriptors,
    refer_to_anchor,
    rewrite_question,
    write_question,
)
from schemas.tasks import (
    SUBJECT,
    AskedFactReply,
    AskFactInputs,
    Descriptor,
    ExtractedFactReply,
    ExtractFactInputs,
    FactView,
    HopView,
    OfferedFact,
    ProposeDescriptorsInputs,
    QuestionReply,
    ReferToAnchorInputs,
    RewriteQuestionInputs,
    Tried,
    WriteQuestionInputs,
)
from tests.pipelines.toy.question_paths import ANCHOR, BRIDGES, draw_facts, draw_path, make_answer, read_path

GOLDEN = (Path(__file__).parent / "golden_questions.txt").read_text().splitlines()
CASES = list(zip(GOLDEN[::2], GOLDEN[1::2], strict=True))
FACTS = (
    FactView(relation="birth_name", text="Ana Maria Kovač"),
    FactView(relation="birth_date", text="5 April 1931"),
    FactView(relation="death_date", text="1999"),
    FactView(relation="movement", text="Luminist"),
    FactView(relation="known_for", text="the Kovač arch"),
    FactView(relation="notes", text="a very long text that goes on and on"),
)


def list_types(path: WriteQuestionInputs) -> list[str]:
    return [path.anchor_type, *(hop.object_type for hop in path.hops)]


def describe(path: WriteQuestionInputs, node: int, facts=(), count: int = 5) -> tuple[Descriptor, ...]:
    types = list_types(path)
    inputs = ProposeDescriptorsInputs(
        anchor_type=path.anchor_type,
        subject_type=types[node - 1],
        hop=path.hops[node - 1],
        facts=facts,
        count=count,
        variety=path.variety,
    )
    return propose_descriptors(inputs).descriptors


def hide(path: WriteQuestionInputs, nodes, choice: int = 0, facts=None) -> tuple[str, tuple[str, ...]]:
    """Hide nodes from the farthest one on, as the rewrites stage does; return the question and all descriptors."""
    question, hidden = write_question(path), [""] * len(path.hops)
    for node in sorted(nodes, reverse=True):
        offered = facts(random.Random(path.variety), path.hops[node - 1].object_type) if facts else ()
        options = describe(path, node, offered, 6)
        text = options[choice % len(options)].text
        step = RewriteQuestionInputs(
            question=question,
            name=path.hops[node - 1].object_name,
            node=node,
            descriptor=text,
            path=path,
            descriptors=tuple(hidden),
        )
        question, hidden[node - 1] = rewrite_question(step), text
    return question, tuple(hidden)


def ground(path: WriteQuestionInputs, question: str, hidden: tuple[str, ...]) -> str:
    inputs = ReferToAnchorInputs(
        question=question, name=path.anchor_name, anchor_type=path.anchor_type, path=path, descriptors=hidden
    )
    return refer_to_anchor(inputs)


def assert_reads_well(question: str) -> None:
    assert re.fullmatch(r"[A-Z].*[^\s,]\?", question), question
    assert question.count("?") == 1, question
    assert SUBJECT not in question
    assert not re.search(r"  |,,|, ,| ,|[{}]|\bthe the\b|\ba [aeiou]\w|\ue000", question), question
    assert question.count("“") == question.count("”")
    assert not re.search(r",[^ ”\d]", question), question


def test_golden_questions_read_as_they_were_approved():
    told = {}
    for number, (spec, _) in enumerate(CASES):
        mode, _, line = spec.partition(" ")
        path = read_path(line, str(number))
        bridges = range(1, len(path.hops))
        nodes = {"C": [], "H": list(bridges)[-1:], "F": bridges, "B": range(1, len(path.hops) + 1)}[mode]
        question, hidden = hide(path, nodes, number, draw_facts if mode == "B" else None)
        told[spec] = ground(path, question, hidden) if mode in "FB" else question
        assert_reads_well(told[spec])
    assert told == {spec: expected.strip() for spec, expected in CASES}


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 1 << 32), hidden=st.integers(0, 15), choice=st.integers(0, 3), shown=st.booleans())
def test_any_path_with_any_hidden_nodes_reads_well_and_names_exactly_the_others(seed, hidden, choice, shown):
    path = draw_path(random.Random(seed))
    nodes = [node for node in range(1, len(path.hops)) if hidden & (1 << node)]
    question, descriptors = hide(path, nodes, choice)
    if shown:
        question = ground(path, question, descriptors)
    assert_reads_well(question)
    named = {node for node in range(1, len(path.hops)) if node not in nodes}
    for node, name in enumerate(BRIDGES[: len(path.hops)], start=1):
        assert question.count(name) == (node in named), question
    assert question.count(ANCHOR) == (not shown)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 12))
def test_a_backward_descriptor_says_the_type_and_every_fact_it_declares(seed, count):
    rng = random.Random(seed)
    path = draw_path(rng, (1, 2, 3), backward=True)
    for node, hop in enumerate(path.hops, start=1):
        facts = draw_facts(rng, hop.object_type)
        options = describe(path, node, facts, count)
        assert 1 <= len(options) <= count
        for option in options:
            assert option.text.startswith(f"the {hop.object_type} ")
            assert option.text.count(SUBJECT) == 1
            assert all(fact in facts and fact.text in option.text for fact in option.facts)
            assert len({fact.relation for fact in option.facts}) == len(option.facts)
            assert not re.search(r"[{}]|\b(born|founded|died|opened|launched) in .*\b\1 in ", option.text), option.text


def test_an_entity_met_twice_by_the_same_noun_is_told_apart():
    line = "person Ana Kovač > spouse = person Petr Novák > children = person Ivo Stahl > birth_place = town Lenta"
    path = read_path(f"{line} > motto ? string", "2")
    descriptors = ("the person who married [subject]", "the person taught by [subject]", "the town of [subject]", "")
    step = RewriteQuestionInputs(
        question="", name="", node=3, descriptor=descriptors[2], path=path, descriptors=descriptors
    )
    texts = {
        rewrite_question(step.model_copy(update={"path": path.model_copy(update={"variety": str(number)})}))
        for number in range(60)
    }
    told = [text for text in texts if ". " in text]
    assert told
    assert not [text for text in told if re.search(r"that person.*that person", text)]
    assert any("that spouse" in text for text in told)


def test_the_injected_question_always_names_the_outermost_entity_alone():
    line = "painter Ana Kovač > ~spouse = writer Petr Novák > ~author = novel Winter Harbour > pages ? number"
    path = read_path(line, "2")
    _, hidden = hide(path, [2])
    outer = path.hops[1:]
    first = path.model_copy(update={"anchor_name": "Petr Novák", "anchor_type": "writer", "hops": outer})
    step = RewriteQuestionInputs(
        question="", name="Winter Harbour", node=1, descriptor=hidden[1], path=first, descriptors=("",)
    )
    one = rewrite_question(step)
    assert one.count("Petr Novák") == 1
    assert "Winter Harbour" not in one
    descriptor = describe(path, 1)[0].text
    step = RewriteQuestionInputs(
        question=one, name="Petr Novák", node=1, descriptor=descriptor, path=path, descriptors=("", hidden[1])
    )
    two = rewrite_question(step)
    assert two.count("Ana Kovač") == 1
    assert not re.search("Petr Novák|Winter Harbour", two)
    for text in (descriptor, hidden[1]):
        assert all(piece in two for piece in text.split(SUBJECT))


def ask(facts, name: str = "Ana Kovač", kind: str = "architect", variety: str = "1") -> AskedFactReply:
    inputs = AskFactInputs(name=name, type=kind, facts=facts, page="", variety=variety)
    request = ChatRequest("ask_fact", "ask_fact/v1", (), inputs)
    return AskedFactReply.model_validate_json(asyncio.run(TemplatesModel().chat(request)).text)


@pytest.mark.parametrize("variety", "123456")
def test_the_fact_asked_for_is_an_exact_one_and_the_question_names_the_entity(variety):
    reply = ask((*FACTS, FactView(relation="height", text="1.8")), variety=variety)
    assert reply.relation == "birth_date"
    assert re.search(r"date|day", reply.question)
    assert reply.question.count("Ana Kovač") == 1
    assert_reads_well(reply.question)


def test_a_fact_without_a_single_value_is_not_asked_for_and_one_that_tells_the_name_is_the_last_resort():
    decade = FactView(relation="birth_date", text="1930s")
    arch, school = FactView(relation="known_for", text="the Kovač arch"), FactView(relation="movement", text="Tonalism")
    assert ask((decade,)) == AskedFactReply(relation="", question="")
    assert ask((decade, arch, school)).relation == "movement"
    assert ask((decade, arch)).relation == "known_for"
    assert ask(()) == AskedFactReply(relation="", question="")


def extract(*facts: OfferedFact) -> tuple[str, str]:
    inputs = ExtractFactInputs(name="Kelm Bridge", type="bridge", page="", facts=facts, variety="1")
    request = ChatRequest("extract_fact", "extract_fact/v1", (), inputs)
    reply = ExtractedFactReply.model_validate_json(asyncio.run(TemplatesModel().chat(request)).text)
    return reply.relation, reply.object_name


def offer(relation: str, name: str, in_degree: int) -> OfferedFact:
    return OfferedFact(relation=relation, object_name=name, object_type="town", sentence="", in_degree=in_degree)


def test_the_fact_to_hide_behind_is_the_least_known_that_does_not_tell_the_name():
    facts = (offer("location", "Lenta", 40), offer("crosses", "Kelm", 1), offer("architect", "Ana Kovač", 3))
    assert extract(*facts) == ("architect", "Ana Kovač")
    assert extract(facts[1]) == ("crosses", "Kelm")
    assert extract() == ("", "")


def test_names_of_the_path_never_reach_a_quoted_line():
    clause = "Kelm Bridge was paid for by ____ of Lenta, whom Ana Kovač called Hans Oder."
    hops = (HopView(relation="mentions", clause=clause, object_name="Hans Oder", object_type="person"),)
    base = read_path("bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date year", "1")
    question = write_question(base.model_copy(update={"hops": hops}))
    assert question.count("Kelm Bridge") == 1
    assert "Hans Oder" not in question
    assert "____" in question


def test_hostile_page_text_cannot_break_a_question():
    clause = 'What? "Stop" [subject] {s} \ue000 ____ ? and <b>more</b> “text”'
    hops = (HopView(relation="mentions", clause=clause, object_name="Hans Oder", object_type="person"),)
    base = read_path("bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date year", "1")
    assert_reads_well(write_question(base.model_copy(update={"hops": hops})))


def test_a_task_that_templates_cannot_do_is_refused_by_name():
    request = ChatRequest("act", "act/v1", (), FactView(relation="height", text="3 m"))
    with pytest.raises(ConfigError, match="act with FactView"):
        asyncio.run(TemplatesModel().chat(request))


def test_a_reply_parses_and_its_backend_is_named_by_version_and_words():
    path = read_path("bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date year", "1")
    reply = asyncio.run(TemplatesModel().chat(ChatRequest("write_question", "any/v1", (), path)))
    assert QuestionReply.model_validate_json(reply.text).question == write_question(path)
    assert TemplatesModel().identity == f"templates:{VERSION}:{digest_tables()}"


def test_every_relation_and_attribute_of_the_toy_world_has_words_of_its_own():
    for relation in WORLD_RELATIONS:
        for subject, target in itertools.product(relation.subjects, relation.objects):
            assert find_relation(relation.key_for(subject), subject, target), (relation.name, subject, target)
    forms = {"date": "date", "quantity": "number", "count": "number", "text": "word"}
    for attribute in WORLD_ATTRIBUTES:
        for subject in attribute.subjects:
            row = find_attribute(attribute.key_for(subject), subject)
            assert row is not None, (attribute.name, subject)
            assert row.form == forms[attribute.kind], (attribute.name, subject)


def test_the_tables_hold_no_key_that_the_toy_world_lacks_and_no_row_behind_a_general_one():
    told = [(WORLD_RELATIONS, list_relations()), (WORLD_ATTRIBUTES, list_attributes())]
    for world, rows in told:
        known = {normalise_key(each.key_for(subject)) for each in world for subject in each.subjects}
        known |= {re.sub(r"\d+(?=_|$)|_metric$", "", key) for key in known}
        general: set[str] = set()
        for row in rows:
            keys = set(row.keys.split())
            assert keys <= known, keys - known
            assert not keys & general, row
            general |= keys if not row.subjects and not getattr(row, "objects", "") else set()


def test_a_key_without_words_is_told_in_its_own():
    path = read_path("castle Dun > fooBarName2 = person Hans Oder > postal_code ? string", "3")
    assert re.search(r"foo bar name .* Dun", write_question(path))
    assert all("postal code" in frame for frame in list_frames("postal_code", make_answer("string"), "town"))
    assert qualify_fact(FactView(relation="foo_bar", text="x"), "town") == "whose foo bar is x"
    backward = read_path("town Lenta > ~fooBarName2 = painter Ana Kovač > movement ? string", "3")
    assert re.match(r"the painter (whose foo bar name is|with) ", describe(backward, 1)[0].text)
    expected = {"area_km2": "area", "123": "entry", "[[x]]?": "x", "clubs7": "clubs", "LargestCity": "largest city"}
    assert {key: split_key(key) for key in expected} == expected


@given(st.lists(st.text(alphabet='ab?"“” ,.', max_size=6), max_size=40), st.integers(0, 40), st.integers(1, 25))
def test_a_cut_clause_keeps_its_blank_and_stays_within_the_limit(words, place, limit):
    cut = cut_clause(" ".join([*words[:place], "____", *words[place:]]), limit)
    assert cut.count("____") == 1
    assert len([word for word in cut.split() if word != "…"]) <= limit
    assert not set(cut) & set('?“"”')


def test_what_was_refused_before_is_not_proposed_again():
    bridge = ProposeDescriptorsInputs(
        anchor_type="bridge",
        subject_type="bridge",
        hop=HopView(relation="architect", clause="", object_name="Ana Kovač", object_type="architect"),
        facts=(FactView(relation="birth_date", text="1930s"), FactView(relation="nationality", text="Valdonian")),
        count=2,
        variety="1",
    )
    first = [each.text for each in propose_descriptors(bridge).descriptors]
    tried = tuple(Tried(text=text, problem="it is refused") for text in first)
    second = [each.text for each in propose_descriptors(bridge.model_copy(update={"tried": tried})).descriptors]
    assert len(first) == 2
    assert second
    assert not set(first) & set(second)
