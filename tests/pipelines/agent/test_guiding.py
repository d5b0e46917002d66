import asyncio
from dataclasses import replace

import pytest

from pipelines.agent.guiding import Guide
from pipelines.checks.examination import Claim, PathDemands
from pipelines.checks.proofs import find_problems
from pipelines.checks.readings import compare_reading, list_offers
from pipelines.config.settings import PathsConfig, RewritesConfig
from pipelines.errors import RateLimited
from pipelines.graph.facts import RelationIndex
from pipelines.graph.query import Indexes
from pipelines.graph.relations import find_relation
from pipelines.graph.walks import WalkGraph, WalkRules
from pipelines.ids import make_record_id
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.splits import SplitRule
from pipelines.stages.paths import Paths
from pipelines.stages.questions import Questions
from pipelines.stages.rewrites import Rewrites
from pipelines.toy.writer import TemplatesModel
from schemas.base import Rejection
from schemas.datasets import Seed
from schemas.proofs import UNCOUNTED
from schemas.tasks import ChosenStepsReply, PathMarksReply, RelationsReply, StatedRelation
from tests.pipelines.stages.players import TrustingReader, make_asking, read_rightly
from tests.toy import build_toy_corpus

PAGES = {
    "Kelm Hall": "'''Kelm Hall''' is a hall in [[Valdonia]]. It was designed by [[Jon Vask]], friend of [[Otto Lang]].",
    "Jon Vask": "'''Jon Vask''' was an architect. He was born in [[Lumby]] and often spoke of [[Ostrel]].",
    "Lumby": "'''Lumby''' is a village. It was founded in 1402 by the monk [[Ulf Berg]].",
    "Ostrel": "'''Ostrel''' is a town.",
    "Otto Lang": "'''Otto Lang''' was a banker.",
    "Ulf Berg": "'''Ulf Berg''' was a monk.",
    "Valdonia": "'''Valdonia''' is a country.",
}
STATED = {
    "Kelm Hall": [
        (1, "l1", "none", "is in the country", "Kelm Hall is a hall in Valdonia"),
        (2, "l2", "none", "was designed by", "It was designed by Jon Vask"),
    ],
    "Jon Vask": [(2, "l1", "none", "was born in", "He was born in Lumby")],
    "Lumby": [
        (2, "value", "1402", "was founded in", "It was founded in 1402"),
        (2, "l1", "none", "was founded as mayor by", "It was founded in 1402 by the monk Ulf Berg"),
    ],
}


def state(inputs):
    stated = (dict(zip(StatedRelation.model_fields, row, strict=True)) for row in STATED.get(inputs.name, ()))
    return RelationsReply(relations=tuple(StatedRelation(**each) for each in stated))


def choose_all(inputs):
    return ChosenStepsReply(steps=tuple(step.id for step in inputs.steps if step.object != "Valdonia"))


def mark(*marks, others="none"):
    return lambda inputs: PathMarksReply(
        others=others, interest=marks[0], naturalness=marks[1], determinacy=marks[2], need=marks[3], reason="why"
    )


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("hall"), PAGES, {}))


GOOD = mark(4, 4, 4, 4)
LASTING = UNCOUNTED.model_copy(update={"volatile": False, "answer_share": 0.05})
"""Held to words, an office changes with time; who read its sentence said that it lasts."""


def make_guide(ground, stated=state, chosen=choose_all, marks=GOOD, **changes):
    settings = PathsConfig(hops=(2,), weights=(1.0,), guide="model", **({"walks": 3} | changes))
    rules = WalkRules(settings, 1000, 6, SplitRule({"sft": 1.0}, seed=7))
    graph = WalkGraph(ground.corpus, rules, RelationIndex(ground.corpus))
    asked = (("extract_relations", stated), ("choose_steps", chosen), ("judge_path", marks))
    return Guide(ground, graph, *(make_asking(prompt, reply) for prompt, reply in asked))


def make_seed(corpus, title="Kelm Hall"):
    page = corpus.page(corpus.find(title))
    return Seed(
        record_id=make_record_id("seed", [title]), parent_id=f"page:{page.page_id}", page_id=page.page_id, title=title,
        qid="", type=page.type, domain=page.domain, in_degree=0, sitelinks=-1, statements=-1, image="", split="sft",
    )  # fmt: skip


def walk(guide, title="Kelm Hall"):
    stage = Paths(guide.graph, 7, guide.ground, PathDemands(LASTING, 6, 1000), guide)
    return asyncio.run(stage(make_seed(guide.corpus, title)))


def list_shown(asking, place=0):
    return {step.object for step in asking.model.asked[place].inputs.steps}


def test_a_walk_goes_by_what_pages_state_of_their_own_subject(ground):
    guide = make_guide(ground)
    (path,) = walk(guide)
    assert [node.title for node in path.nodes] == ["Kelm Hall", "Jon Vask", "Lumby"]
    assert [(hop.gloss, hop.field, hop.clause) for hop in path.hops] == [
        ("was designed by", "designer", "It was designed by ____"),
        ("was born in", "birth_place", "He was born in ____"),
    ]
    assert path.answer_gloss in ("was founded in", "was founded as mayor by")
    assert path.marks.reason == "why"


def test_a_link_that_states_nothing_is_not_offered_and_a_country_is_a_bridge_at_most(ground):
    guide = make_guide(ground)
    walk(guide)
    assert list_shown(guide.choosing) == {"Jon Vask", "Valdonia"}
    assert list_shown(guide.choosing, 1) == {"Lumby"}
    assert list_shown(guide.choosing, 2) == {"1402", "Ulf Berg"}


def test_a_path_is_drawn_anew_where_nothing_is_worth_asking_and_where_a_mark_is_low(ground):
    refused = walk(make_guide(ground, chosen=lambda inputs: ChosenStepsReply(steps=("s99",))))
    assert isinstance(refused, Rejection)
    assert "nothing-worth-asking 3" in refused.detail
    refused = walk(make_guide(ground, marks=mark(5, 5, 5, 2)))
    assert "low-mark 3" in refused.detail
    assert not isinstance(walk(make_guide(ground, marks=mark(5, 5, 5, 2), least_mark=2)), Rejection)


@pytest.mark.parametrize(("limited", "backwards"), [(False, False), (False, True), (True, False), (True, True)])
def test_guided_walks_of_a_shard_keep_to_its_caps_whoever_is_called_first_or_put_off(ground, limited, backwards):
    waits = iter([limited])

    def judge(inputs):
        if next(waits, False):
            raise RateLimited("full")
        return GOOD(inputs)

    guide = make_guide(ground, marks=judge, max_answer_share=0.01)
    stage = Paths(guide.graph, 7, guide.ground, PathDemands(UNCOUNTED, 6, 1000), guide)
    seeds = [make_seed(guide.corpus).model_copy(update={"record_id": f"seed-{number}"}) for number in range(5)]

    async def ask(seed):
        try:
            return await stage(seed)
        except RateLimited:
            await asyncio.sleep(0)
            return await ask(seed)

    async def walk_all():
        stage.prepare(seeds)
        order = seeds[::-1] if backwards else seeds
        made = dict(zip([seed.record_id for seed in order], await asyncio.gather(*map(ask, order)), strict=True))
        return [made[seed.record_id] for seed in seeds]

    *kept, last = asyncio.run(walk_all())
    # Each of the two facts may be asked for twice; who comes later takes the other one, or goes without.
    answers = [path.answer_text for (path,) in kept]
    assert (answers.count("1402"), answers.count("Ulf Berg")) == (2, 2)
    assert "asked-often" in last.detail


@pytest.mark.parametrize("bands", [{"bridge": (2, 9)}, {"answer": (0, 0)}])
def test_guided_walks_keep_to_in_degrees_and_say_so(ground, bands):
    refused = walk(make_guide(ground, in_degree=bands))
    assert f"dead-end 3; in-degrees held to {bands}" in refused.detail


def test_a_reader_chooses_a_gloss_among_other_relations_in_words(ground):
    guide = make_guide(ground)
    (path,) = walk(guide)
    writing = RoleClient(TemplatesModel(), load_prompt("write_question"))
    stage = Questions(ground, writing, TrustingReader(), None, UNCOUNTED, 6, guide.graph.rules.splits)
    (question,) = asyncio.run(stage(path))
    text, proof = question.text, question.proof
    offered = [offer.statement for offer in list_offers(ground.corpus, text, proof) if offer.kind == "entity"]
    told = [hop.gloss for hop in proof.hops]
    others = list({*offered} - {*told})
    assert {*told} < {*offered}
    assert {other.split()[0] for other in others} <= {"was", "is"}
    assert not {find_relation(other) for other in others} & {hop.field for hop in proof.hops}
    right = read_rightly(text, proof, question.answer)
    assert compare_reading(ground.corpus, text, right, proof, question.answer).passed
    wrong = right.model_copy(
        update={"hops": (right.hops[0].model_copy(update={"statement": others[0]}), right.hops[1])}
    )
    assert compare_reading(ground.corpus, text, wrong, proof, question.answer).code == "reading-differs"


@pytest.mark.parametrize("wanted", ["1402", "Ulf Berg"])
def test_a_question_over_quotations_verifies_and_one_that_quotes_otherwise_does_not(ground, wanted):
    guide = make_guide(
        ground,
        chosen=lambda inputs: ChosenStepsReply(
            steps=tuple(s.id for s in inputs.steps if s.object in (wanted, "Jon Vask", "Lumby"))
        ),
    )
    (path,) = walk(guide)
    splits, templates = guide.graph.rules.splits, TemplatesModel()
    writing = RoleClient(templates, load_prompt("write_question"))
    (question,) = asyncio.run(Questions(ground, writing, TrustingReader(), None, LASTING, 6, splits)(path))
    prompts = ("propose_descriptors", 4), ("rewrite_question", 3)
    asking = [RoleClient(templates, load_prompt(*prompt)) for prompt in prompts]
    rules = RewritesConfig(min_alone_first=1, min_alone=1)
    made = asyncio.run(Rewrites(ground, *asking, rules, 1000, 6)(question))
    assert not isinstance(made, Rejection), made
    (rewrite,) = made
    assert rewrite.answer.surface == wanted
    assert "Vask" not in rewrite.text
    claim = Claim(rewrite.text.replace("Kelm Hall", "the hall in the image"), rewrite.answer, rewrite.proof)
    assert find_problems(ground, claim) == []
    first, last = rewrite.proof.hops
    for changes in (
        {"answer_clause": rewrite.proof.answer_clause.replace("founded", "begun")},
        {"answer_gloss": "was burnt in"},
        {"hops": (first.model_copy(update={"clause": "It was planned by ____"}), last)},
        {"hops": (first.model_copy(update={"field": "architect"}), last)},
    ):
        assert find_problems(ground, replace(claim, proof=rewrite.proof.model_copy(update=changes))) != []
