import asyncio
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.backends.protocols import ChatRequest, Message
from pipelines.backends.templates import (
    TemplatesModel,
    propose_descriptors,
    refer_to_anchor,
    rewrite_question,
    write_question,
)
from pipelines.errors import ConfigError
from pipelines.world.subtypes import SUBTYPES
from schemas.tasks import (
    SUBJECT,
    Descriptor,
    DescriptorsReply,
    FactView,
    HopView,
    ProposeDescriptorsInputs,
    QuestionReply,
    ReferToAnchorInputs,
    RewriteQuestionInputs,
    WriteQuestionInputs,
)
from tests.pipelines.backends.question_paths import ANCHOR, BRIDGES, draw_path, read_path

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


def hide(path: WriteQuestionInputs, nodes, choice: int = 0) -> tuple[str, tuple[str, ...]]:
    """Hide nodes from the farthest one on, as the rewrites stage does; return the question and all descriptors."""
    question, hidden = write_question(path), [""] * len(path.hops)
    for node in sorted(nodes, reverse=True):
        options = describe(path, node)
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
    assert not re.search(r",[^ ”]", question), question


@pytest.mark.parametrize(("spec", "expected"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_golden_questions_read_as_they_were_approved(spec, expected):
    number = next(n for n, case in enumerate(CASES) if case[0] == spec)
    mode, _, line = spec.partition(" ")
    path = read_path(line, str(number))
    bridges = range(1, len(path.hops))
    question, hidden = hide(path, {"C": [], "H": list(bridges)[-1:], "F": bridges}[mode], number)
    assert (ground(path, question, hidden) if mode == "F" else question) == expected.strip()
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


def test_a_named_bridge_is_set_between_commas_and_a_hidden_one_is_not():
    path = read_path(
        "bridge Kelm Bridge > architect = architect Ana Kovač > birth_place = town Lenta > motto ? string", "1"
    )
    assert re.search(r"Ana Kovač, the [^,]* Kelm Bridge\?", write_question(path))
    assert not re.search(r"Ana|Kovač|,", hide(path, [1])[0])


def test_the_rewritten_question_differs_only_where_the_name_was():
    path = read_path(
        "bridge Kelm Bridge > architect = architect Ana Kovač > birth_place = town Lenta > motto ? string", "4"
    )
    before, (after, hidden) = write_question(path), hide(path, [1])
    head, _, _ = before.partition("Ana Kovač")
    assert after == f"{head}{hidden[0].replace(SUBJECT, 'Kelm Bridge')}?"


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


def test_no_question_skeleton_is_common():
    rng, kinds = random.Random(11), sorted((subtype.name for subtype in SUBTYPES), key=len, reverse=True)
    names, types = re.compile("|".join([ANCHOR, *BRIDGES])), re.compile(rf"\b({'|'.join(kinds)})\b")
    skeletons = Counter(types.sub("T", names.sub("E", write_question(draw_path(rng)))) for _ in range(1000))
    assert skeletons.most_common(1)[0][1] < 50


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


def test_the_identity_covers_the_source_of_every_word():
    folder = Path(__file__).parents[3] / "pipelines" / "backends"
    sources = {path.stem for path in folder.glob("phrases*.py")} | {"templates"}
    text = (folder / "templates.py").read_text()
    assert all(f'"{name}"' in text for name in sources)
    assert TemplatesModel().identity == TemplatesModel().identity
    assert re.fullmatch(r"templates:[0-9a-f]{16}", TemplatesModel().identity)
