import asyncio
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import ConfigError
from pipelines.services.protocols import ChatRequest, Message
from pipelines.toy.ontology import SUBTYPES
from pipelines.toy.writer import (
    TemplatesModel,
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
    DescriptorsReply,
    ExtractedFactReply,
    ExtractFactInputs,
    FactView,
    HopView,
    OfferedFact,
    ProposeDescriptorsInputs,
    QuestionReply,
    ReferToAnchorInputs,
    RewriteQuestionInputs,
    SelectedEntityReply,
    SelectEntityInputs,
    WriteQuestionInputs,
)
from tests.pipelines.backends.question_paths import ANCHOR, BRIDGES, draw_facts, draw_path, read_path

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


@pytest.mark.parametrize(("spec", "expected"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_golden_questions_read_as_they_were_approved(spec, expected):
    number = next(n for n, case in enumerate(CASES) if case[0] == spec)
    mode, _, line = spec.partition(" ")
    path = read_path(line, str(number))
    bridges = range(1, len(path.hops))
    nodes = {"C": [], "H": list(bridges)[-1:], "F": bridges, "B": range(1, len(path.hops) + 1)}[mode]
    question, hidden = hide(path, nodes, number, draw_facts if mode == "B" else None)
    assert (ground(path, question, hidden) if mode in "FB" else question) == expected.strip()
    assert_reads_well(expected.strip())


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


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_every_descriptor_holds_its_slot_once_and_its_candidates_grow_stronger(seed):
    path = draw_path(random.Random(seed))
    for node in range(1, len(path.hops) + 1):
        options = describe(path, node, FACTS)
        assert all(option.text.count(SUBJECT) == 1 and option.text.startswith("the ") for option in options)
        assert [len(option.facts) for option in options] == sorted(len(option.facts) for option in options)
        assert len({option.text for option in options}) == len(options)
        assert not any(part in option.text for option in options for part in path.hops[node - 1].object_name.split())


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


def test_backward_candidates_go_from_the_relation_alone_over_coarse_facts_to_exact_ones():
    path = read_path("town Lenta > ~birth_place = architect Ana Kovač > movement ? string", "3")
    facts = (
        FactView(relation="death_date", text="3 May 1999"),
        FactView(relation="death_date", text="1990s"),
        FactView(relation="death_date", text="20th century"),
        FactView(relation="movement", text="Luminist"),
    )
    said = [{fact.text for fact in option.facts} for option in describe(path, 1, facts, 20)]
    assert said[0] == set()
    assert sorted(map(tuple, said[1:4])) == [("1990s",), ("20th century",), ("Luminist",)]
    assert all("Luminist" in pair and len(pair) == 2 for pair in said[4:6])
    assert said[-1] == {"3 May 1999"}


def test_few_candidates_are_of_different_strengths():
    path = read_path("town Lenta > ~birth_place = architect Ana Kovač > movement ? string", "3")
    options = describe(path, 1, draw_facts(random.Random(1), "architect"), 4)
    assert len({len(option.facts) for option in options}) > 2
    assert [len(option.facts) for option in options][:2] == [0, 1]


def test_a_relation_without_words_is_told_backward_in_the_words_of_its_key():
    path = read_path("town Lenta > ~fooBarName2 = painter Ana Kovač > movement ? string", "3")
    (option,) = describe(path, 1)
    assert re.fullmatch(r"the painter (whose foo bar name is|whose .*|with .*)", option.text.replace(f" {SUBJECT}", ""))


def test_words_of_the_bridge_that_stand_in_a_fact_are_never_said():
    path = read_path("town Lenta > ~birth_place = architect Ana Kovač > movement ? string", "3")
    assert not [fact for option in describe(path, 1, FACTS, 20) for fact in option.facts if "Kovač" in fact.text]


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    choice=st.integers(0, 7),
    backward=st.booleans(),
    length=st.sampled_from((2, 3, 5, 10)),
)
def test_every_piece_of_every_descriptor_stands_in_the_question_however_it_is_told(seed, choice, backward, length):
    path = draw_path(random.Random(seed), (length,), backward)
    nodes = range(1, length + backward)
    question, descriptors = hide(path, nodes, choice, draw_facts if backward else None)
    assert_reads_well(question)
    assert question.count(ANCHOR) == 1
    assert not any(name in question for name in BRIDGES)
    for descriptor in descriptors:
        assert all(piece.strip() in question for piece in descriptor.split(SUBJECT))
    assert re.search(r"the \w+ .*(in|of) (the|this) image", ground(path, question, descriptors))


@pytest.mark.slow
def test_no_way_of_telling_takes_more_than_a_third_of_longer_questions():
    rng = random.Random(3)
    for length in (2, 3, 5, 10):
        questions = [hide(path, range(1, length))[0] for path in (draw_path(rng, (length,)) for _ in range(150))]
        styles = Counter(question.split()[0] if ". " in question else "nested" for question in questions)
        assert max(styles.values()) <= 55, styles
        assert len(styles) >= 8


def test_ten_hops_are_told_with_no_more_than_two_entities_a_sentence():
    rng = random.Random(4)
    for _ in range(30):
        path = draw_path(rng, (10,), backward=True)
        question, _ = hide(path, range(1, 11))
        steps = re.split(r"(?<=\w)\. ", question)
        assert len(steps) >= 5
        assert "that " in question


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


def test_no_question_says_that_that():
    line = "general Ana Kovač > spouse = composer Emil Roth > ~composer = opera The Bell > ~based_on = opera The Lamp"
    texts = [hide(read_path(f"{line} > pages ? number", str(number)), [1, 2])[0] for number in range(200)]
    assert not [text for text in texts if "that that" in text]
    assert any("that the spouse just" in text for text in texts)


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


def test_a_measure_is_asked_for_with_its_unit():
    reply = ask((FactView(relation="length", text="210 m"),), "Kelm Bridge", "bridge")
    assert "metres" in reply.question


def test_a_fact_without_a_single_value_is_not_asked_for_and_one_that_tells_the_name_is_the_last_resort():
    decade = FactView(relation="birth_date", text="1930s")
    arch, school = FactView(relation="known_for", text="the Kovač arch"), FactView(relation="movement", text="Tonalism")
    assert ask((decade,)) == AskedFactReply(relation="", question="")
    assert ask((decade, arch, school)).relation == "movement"
    assert ask((decade, arch)).relation == "known_for"
    assert ask(()) == AskedFactReply(relation="", question="")


def select(question: str, *entities: str) -> str:
    inputs = SelectEntityInputs(question=question, entities=entities, variety="1")
    request = ChatRequest("select_entity", "select_entity/v1", (), inputs)
    return SelectedEntityReply.model_validate_json(asyncio.run(TemplatesModel().chat(request)).text).entity


def test_only_an_entity_that_stands_in_the_question_is_selected():
    assert select("When was Ana Kovač born?", "Albert Einstein", "Ana Kovač") == "Ana Kovač"
    assert select("How long is Kelm Bridge?", "Kelm", "Kelm Bridge") == "Kelm Bridge"
    assert select("How long is it?", "Kelm", "") == ""


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


def test_a_named_bridge_is_set_between_commas_and_a_hidden_one_is_not():
    path = read_path(
        "bridge Kelm Bridge > architect = architect Ana Kovač > birth_place = town Lenta > motto ? string", ""
    )
    for number in range(20):
        told = path.model_copy(update={"variety": str(number)})
        assert re.search(r"Ana Kovač, the [^,]* Kelm Bridge(,|\.|\?)", write_question(told))
        assert not re.search(r"Ana|Kovač", hide(told, [1])[0])


def test_the_rewritten_question_differs_only_where_the_name_was():
    path = read_path(
        "bridge Kelm Bridge > architect = architect Ana Kovač > birth_place = town Lenta > motto ? string", "4"
    )
    before, (after, hidden) = write_question(path), hide(path, [1])
    head, _, _ = before.partition("Ana Kovač")
    assert after.startswith(f"{head}{hidden[0].replace(SUBJECT, 'Kelm Bridge')}")


def test_a_descriptor_without_a_slot_is_used_as_it_is():
    path = read_path(
        "bridge Kelm Bridge > architect = architect Ana Kovač > birth_place = town Lenta > motto ? string", "1"
    )
    step = RewriteQuestionInputs(
        question="", name="", node=1, descriptor="the tallest man of his day", path=path, descriptors=("", "")
    )
    assert "the tallest man of his day" in rewrite_question(step)


def test_node_zero_replaces_the_anchor():
    path = read_path("bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date year", "1")
    step = RewriteQuestionInputs(
        question="", name="Kelm Bridge", node=0, descriptor="the oldest bridge", path=path, descriptors=("",)
    )
    assert "the oldest bridge" in rewrite_question(step)


def test_facts_are_added_weakest_first_and_never_give_the_name_away():
    path = read_path("bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date year", "1")
    options = describe(path, 1, FACTS, 9)
    assert [len(option.facts) for option in options][:2] == [0, 0]
    assert [fact.relation for option in options for fact in option.facts] == ["movement", "death_date", "birth_date"]
    assert all(fact in FACTS for option in options for fact in option.facts)


def test_no_more_candidates_than_asked_for():
    path = read_path("bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date year", "1")
    assert [len(describe(path, 1, FACTS, count)) for count in (0, 1, 2, 3)] == [0, 1, 2, 3]


def test_nouns_come_from_the_types_alone():
    for kind in ("bridge", "museum", "lighthouse"):
        path = read_path(f"{kind} Kelm > location = town Lenta > elevation ? number - m", "1")
        final = ground(path, *hide(path, []))
        assert re.search(rf"the {kind} (\w+ )*(in the|in this) image", final)
        assert not [other for other in ("bridge", "museum", "lighthouse") if other != kind and other in final]


@pytest.mark.parametrize(
    ("kind", "noun"),
    [
        ("painter", "person"),
        ("species of finch", "finch"),
        ("the castle", "castle"),
        ("character", "character"),
        ("", "subject"),
    ],
)
def test_a_picture_is_referred_to_by_what_can_be_seen(kind, noun):
    path = read_path("x Kelm > birth_place = town Lenta > elevation ? number - m", "1").model_copy(
        update={"anchor_type": kind}
    )
    assert f"the {noun} " in ground(path, "", ("",))


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


def test_a_name_that_ends_with_a_question_mark_asks_once():
    path = read_path("film Quo Vadis? > director = person Ana Kovač > nationality ? string", "1")
    assert not write_question(path).endswith("??")


def test_the_same_path_reads_the_same_and_another_variety_differs():
    line = "bridge Kelm Bridge > architect = architect Ana Kovač > birth_place = town Lenta > motto ? string"
    texts = [write_question(read_path(line, str(n))) for n in range(30)]
    assert texts == [write_question(read_path(line, str(n))) for n in range(30)]
    assert len(set(texts)) > 15


@pytest.mark.slow
def test_no_question_skeleton_is_above_a_twentieth_of_500_questions():
    rng, kinds = random.Random(11), sorted((subtype.name for subtype in SUBTYPES), key=len, reverse=True)
    blank = re.compile(rf"{'|'.join([ANCHOR, *BRIDGES])}|\b({'|'.join(kinds)})\b|“[^”]*”|\b\d[\d,.]*(s|th)?\b")
    for backward in (False, True):
        paths = [draw_path(rng, (1, 2, 3), backward) for _ in range(500)]
        hidden = [hide(path, range(1, len(path.hops) + backward), facts=draw_facts) for path in paths]
        finals = [ground(path, *pair) for path, pair in zip(paths, hidden, strict=True)]
        skeletons = Counter(blank.sub("_", question) for question in finals)
        assert skeletons.most_common(1)[0][1] < 25


def test_replies_parse_as_the_replies_of_their_tasks():
    path = read_path("bridge Kelm Bridge > architect = architect Ana Kovač > birth_date ? date year", "1")
    bridge = ProposeDescriptorsInputs(
        anchor_type="bridge", subject_type="bridge", hop=path.hops[0], facts=FACTS, count=4, variety="1"
    )
    anchor = ReferToAnchorInputs(question="", name="Kelm Bridge", anchor_type="bridge", path=path, descriptors=("",))
    step = RewriteQuestionInputs(question="", name="", node=1, descriptor="the one", path=path, descriptors=("",))
    model = TemplatesModel()
    for inputs, reply in (
        (path, QuestionReply),
        (bridge, DescriptorsReply),
        (anchor, QuestionReply),
        (step, QuestionReply),
    ):
        request = ChatRequest("any", "any/v1", (Message("user", "ignored"),), inputs)
        assert reply.model_validate(json.loads(asyncio.run(model.chat(request)).text), strict=False)


def test_a_task_that_templates_cannot_do_is_refused_by_name():
    request = ChatRequest("act", "act/v1", (), FactView(relation="height", text="3 m"))
    with pytest.raises(ConfigError, match="act with FactView"):
        asyncio.run(TemplatesModel().chat(request))
