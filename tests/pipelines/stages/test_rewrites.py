import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from pipelines.checks.verdicts import PASSED
from pipelines.config.settings import RewritesConfig
from pipelines.graph.facts import read_attributes, read_relations
from pipelines.graph.proofs import cite_fact, make_node
from pipelines.graph.query import Indexes
from pipelines.graph.walks import WalkMove
from pipelines.stages import rewrites
from pipelines.stages.paths import make_hop
from pipelines.stages.rewrites import Rewrites
from schemas.base import Rejection
from schemas.datasets import Question, Rewrite
from schemas.proofs import Proof
from schemas.tasks import Descriptor, DescriptorsReply, FactView, QuestionReply
from tests.pipelines.stages.players import make_asking, read_request
from tests.toy import build_toy_corpus

SETTINGS = RewritesConfig(min_alone_first=3, min_alone=1)
BRIDGES = ("Kelm Bridge", "Mira Tolland", "Ostrel", "Valdonia")
NOUNS = {"architect": "the architect of [subject]", "birth_place": "the birthplace of [subject]"}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return build_toy_corpus(tmp_path_factory.mktemp("toy"))


def make_question(corpus, *titles, attribute="established_date"):
    """Return the question along these titles; its text names every node but the last."""
    numbers = [corpus.find(title) for title in titles]
    hops = []
    for index, (source, target) in enumerate(pairwise(numbers), 1):
        fact = next(fact for fact in read_relations(corpus, source) if fact.target == target)
        hops.append(make_hop(corpus, index, source, WalkMove(target, fact, None, None), ()))
    (end,) = [found for found in read_attributes(corpus, numbers[-1]) if found.fact.key == attribute]
    roles = ["anchor", *["bridge"] * (len(hops) - 1), "answer"]
    proof = Proof(
        corpus=corpus.digest,
        snapshot=corpus.snapshot,
        nodes=tuple(make_node(corpus, number, role) for number, role in zip(numbers, roles, strict=True)),
        hops=tuple(hops),
        answer_relation=attribute,
        answer_evidence=cite_fact(corpus, end.fact),
        constraints=(),
        counts=(),
        alias_digest="",
    )
    return Question(
        record_id="question-1",
        parent_id="path-1",
        split="sft",
        domain="Artifact",
        image="",
        text=f"When was what {', '.join(reversed(titles[:-1]))} lead to established?",
        answer=end.answer,
        proof=proof,
    )


def say(*descriptors):
    """Return a proposer that always proposes these: texts, or a text with facts."""
    made = [d if isinstance(d, Descriptor) else Descriptor(text=d) for d in descriptors]
    return lambda inputs: DescriptorsReply(descriptors=tuple(made))


def describe(inputs):
    return DescriptorsReply(descriptors=(Descriptor(text=NOUNS[inputs.hop.relation]),))


def substitute(inputs):
    return QuestionReply(question=inputs.question.replace(inputs.name, inputs.descriptor))


def make_stage(corpus, proposing=describe, rewriting=substitute, **changes):
    own = {name: changes.pop(name) for name in {"hub_in_degree", "max_answer_tokens"} & set(changes)}
    settings = SETTINGS.model_copy(update=changes)
    asking = make_asking("propose_descriptors", proposing), make_asking("rewrite_question", rewriting)
    return Rewrites(Indexes(corpus), *asking, settings, **{"hub_in_degree": 100, "max_answer_tokens": 6} | own)


def rewrite(stage, question):
    """Return the one rewrite, or the rejection."""
    made = asyncio.run(stage(question))
    return made if isinstance(made, Rejection) else made[0]


def test_the_farthest_bridge_is_hidden_first_and_each_step_is_certified(toy):
    stage = make_stage(toy)
    row = rewrite(stage, make_question(toy, *BRIDGES))
    assert [(c.node, c.name, c.descriptor) for c in row.certificates] == [
        (2, "Ostrel", "the birthplace of [subject]"),
        (1, "Mira Tolland", "the architect of [subject]"),
    ]
    assert [(c.chain_count, c.alone_count, c.answer_after) for c in row.certificates] == [
        (1, 1, row.answer.key),
        (1, 3, row.answer.key),
    ]
    assert row.certificates[-1].text_after == row.text
    assert "Ostrel" not in row.certificates[0].text_after
    assert "Mira Tolland" in row.certificates[0].text_after


def test_the_first_descriptor_that_passes_is_kept_and_the_others_are_on_record(toy):
    told = Descriptor(text="the Other one", facts=(FactView(relation="nationality", text="Other"),))
    row = rewrite(
        make_stage(toy, say("the pupil of Tolland", told, "the one before [subject]", "never tried")),
        make_question(toy, "Kelm Bridge", "Mira Tolland", "Ostrel"),
    )
    assert [candidate.verdict for candidate in row.certificates[0].candidates] == [
        "alias-leak",
        "not-unique",
        "accepted",
    ]


def test_a_descriptor_becomes_constraints_on_its_node(toy):
    facts = (FactView(relation="nationality", text="Valdonian"),)
    stage = make_stage(
        toy, say(Descriptor(text="the Valdonian architect of [subject]", facts=facts)), min_alone_first=2
    )
    row = rewrite(stage, make_question(toy, "Kelm Bridge", "Mira Tolland", "Ostrel"))
    assert [(c.node, c.relation, c.value) for c in row.proof.constraints] == [
        (1, "type", "architect"),
        (1, "nationality", "Valdonian"),
    ]


@pytest.mark.parametrize(
    ("descriptors", "rules", "reason"),
    [
        (["the pupil of Mira Tolland"], {}, "alias-leak"),
        (["the guest of TOLLAND's house"], {}, "alias-leak"),
        (["the one of the year 1204"], {}, "answer-leak"),
        ([Descriptor(text="x", facts=(FactView(relation="nationality", text="Other"),))], {}, "not-unique"),
        (["the architect of [subject]"], {"min_alone_first": 4}, "stands-alone"),
        (["the year 1204", "the pupil of Tolland"], {}, "no-descriptor"),
        ([], {}, "no-descriptor"),
    ],
)
def test_each_reason_is_reached_by_the_descriptors(toy, descriptors, rules, reason):
    row = rewrite(
        make_stage(toy, say(*descriptors), **rules), make_question(toy, "Kelm Bridge", "Mira Tolland", "Ostrel")
    )
    assert isinstance(row, Rejection)
    assert row.reason == reason


def test_a_shortcut_is_refused_before_any_model_is_asked(toy):
    question = make_question(toy, "Kelm Bridge", "Mira Tolland", "Ostrel", "Lumby")
    stage = make_stage(toy)
    assert rewrite(stage, question).reason == "shorter-path"
    assert stage.proposing.model.asked == []


def test_the_demo_certifies_every_bridge_farthest_first(demo):
    for row in demo.rows("rewrites", Rewrite):
        assert [c.node for c in row.certificates] == list(range(len(row.proof.hops) - 1, 0, -1))
        assert all(c.chain_count == 1 and c.answer_after == row.answer.key for c in row.certificates)
        assert all(c.candidates[-1].verdict == "accepted" for c in row.certificates)


def test_the_fingerprint_covers_rules_prompts_and_models(toy):
    stage = make_stage(toy)
    others = [
        replace(stage, settings=SETTINGS.model_copy(update={"min_alone": 2})),
        replace(stage, proposing=stage.rewriting),
        replace(stage, rewriting=make_asking("rewrite_question", substitute, identity="fake:2")),
    ]
    assert len({each.fingerprint() for each in [stage, *others]}) == 4


def test_a_rewriter_is_told_once_what_was_wrong_and_the_mended_text_is_kept(toy):
    question = make_question(toy, "Kelm Bridge", "Mira Tolland", "Ostrel")

    def mend(inputs):
        told = inputs.tried and "it gives away a hidden name: 'mira tolland'" in inputs.tried[0].problem
        return substitute(inputs) if told else QuestionReply(question=inputs.question)

    stage = replace(make_stage(toy), rewriting=make_asking("rewrite_question", mend))
    assert "Mira Tolland" not in rewrite(stage, question).text
    assert [len(request.inputs.tried) for request in stage.rewriting.model.asked] == [0, 1]
    assert "it gives away a hidden name" in read_request(stage.rewriting.model)
    assert "Ostrel" not in read_request(stage.rewriting.model)
    never = make_stage(toy, rewriting=lambda inputs: QuestionReply(question=inputs.question))
    assert rewrite(never, question).reason == "alias-leak"


def test_other_descriptors_are_proposed_once_all_were_refused_with_the_reason_for_each(toy):
    reasons = ["it gives away a hidden name: 'tolland'", "several entities fit it, or none"]

    def mend(inputs):
        if [one.problem for one in inputs.tried] == reasons:
            return describe(inputs)
        told = Descriptor(text="the Other one", facts=(FactView(relation="nationality", text="Other"),))
        return say("the pupil of Tolland", told)(inputs)

    stage = replace(make_stage(toy), proposing=make_asking("propose_descriptors", mend))
    row = rewrite(stage, make_question(toy, "Kelm Bridge", "Mira Tolland", "Ostrel"))
    assert [c.verdict for c in row.certificates[0].candidates] == ["alias-leak", "not-unique", "accepted"]
    first, second = stage.proposing.model.asked
    assert second.inputs.model_copy(update={"tried": ()}) == first.inputs
    assert all(reason in read_request(stage.proposing.model) for reason in reasons)


def test_a_proposer_is_shown_the_bridges_first_sentence_unless_it_tells_the_answer(toy, monkeypatch):
    for check in ("check_path_length", "check_earlier_pages"):
        monkeypatch.setattr(rewrites, check, lambda *asked: PASSED)
    question = make_question(toy, "Kelm Bridge", "Mira Tolland", "Ostrel")
    stage = make_stage(toy)
    rewrite(stage, question)
    lead = stage.proposing.model.asked[0].inputs.lead
    assert lead.startswith("Mira Tolland ")
    word = lead.split()[-1].strip(".")
    telling = question.answer.model_copy(
        update={"type": "string", "value": word, "surface": word, "precision": "", "aliases": ()}
    )
    rewrite(stage, question.model_copy(update={"answer": telling}))
    assert stage.proposing.model.asked[1].inputs.lead == ""
