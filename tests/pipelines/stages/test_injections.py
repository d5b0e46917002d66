import asyncio
from dataclasses import replace

import pytest

from pipelines.agent.injecting import Askings
from pipelines.checks.examination import Claim
from pipelines.checks.proofs import find_problems
from pipelines.config.settings import GroundingsConfig, InjectionsConfig, RewritesConfig
from pipelines.graph.proofs import AnchorRules, InjectionRules
from pipelines.graph.query import Indexes
from pipelines.splits import SplitRule
from pipelines.stages.injections import Injections
from schemas.base import Rejection
from schemas.tasks import (
    Descriptor,
    DescriptorsReply,
    ExtractedFactReply,
    FactView,
    QuestionReply,
)
from tests.pipelines.stages.chain_wiki import TITLES, build_chain_wiki
from tests.pipelines.stages.players import TrustingReader, make_asking, read_request
from tests.pipelines.stages.test_initials import ask, make_seed
from tests.pipelines.stages.test_initials import make_stage as make_initials
from tests.toy import box

ALL_SFT = SplitRule({"sft": 1.0}, seed=7)
ANCHORS = AnchorRules(ALL_SFT, GroundingsConfig(require_image=False))
RULES = InjectionRules(
    InjectionsConfig(rounds=(1,), weights=(1.0,), tries=4),
    RewritesConfig(min_alone_first=1, min_alone=1),
    min_answers=0,
    hub_in_degree=100,
    max_answer_tokens=6,
    seed=7,
)


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    return build_chain_wiki(tmp_path_factory.mktemp("chain"))


def extract(inputs):
    return ExtractedFactReply(relation=inputs.facts[0].relation, object_name=inputs.facts[0].object_name)


def describe(inputs):
    text = f"the {inputs.hop.object_type} with {inputs.hop.relation.replace('_', ' ')} [subject]"
    return DescriptorsReply(descriptors=(Descriptor(text=text),))


def say(*descriptors):
    """Return a proposer that always proposes these: texts, or a text with facts."""
    made = tuple(d if isinstance(d, Descriptor) else Descriptor(text=d) for d in descriptors)
    return lambda inputs: DescriptorsReply(descriptors=made)


def reword(inputs):
    phrase = inputs.descriptor.replace("[subject]", inputs.path.anchor_name)
    return QuestionReply(question=inputs.question.replace(inputs.name, phrase))


def make_stage(corpus, rounds=1, anchors=ANCHORS, players=(), **rules):
    """Return the stage; ``players`` is what takes the place of the players named by prompt."""
    played = {"extract_fact": extract, "propose_descriptors": describe, "inject_fact": reword}
    askings = Askings(*(make_asking(prompt, reply) for prompt, reply in (played | dict(players)).items()))
    injections = RULES.settings.model_copy(update={"rounds": (rounds,)} | _take(rules, InjectionsConfig))
    descriptors = RULES.descriptors.model_copy(update=_take(rules, RewritesConfig))
    return Injections(
        Indexes(corpus),
        askings,
        TrustingReader(),
        anchors,
        replace(RULES, settings=injections, descriptors=descriptors, **rules),
    )


def _take(changes, section):
    """Take out the changes that are keys of a section."""
    return {key: changes.pop(key) for key in list(changes) if key in section.model_fields}


def make_question(corpus):
    return ask(make_initials(corpus), make_seed(corpus))


def inject(corpus, rounds=1, **changes):
    """Return the one rewrite of the chain's question, or the rejection."""
    made = asyncio.run(make_stage(corpus, rounds, **changes)(make_question(corpus)))
    return made if isinstance(made, Rejection) else made[0]


@pytest.mark.parametrize("rounds", [1, 3, 5, 10])
def test_a_question_grows_by_a_node_a_round_and_its_proof_verifies(wiki, rounds):
    row = inject(wiki, rounds)
    assert [node.title for node in row.proof.nodes] == [*reversed(TITLES[: rounds + 1])]
    assert [node.role for node in row.proof.nodes] == ["anchor", *["bridge"] * (rounds - 1), "answer"]
    assert all(hop.backward for hop in row.proof.hops)
    assert (
        find_problems(
            Indexes(wiki), Claim(row.text.replace(TITLES[rounds], "the one in the image"), row.answer, row.proof)
        )
        == []
    )


def test_each_round_has_a_certificate_with_the_index_its_node_has_in_the_end(wiki):
    row = inject(wiki, 3)
    assert [(c.round, c.node, c.name) for c in row.certificates] == [
        (1, 3, "Edda Marn"),
        (2, 2, "Ostrel"),
        (3, 1, "Jon Vask"),
    ]
    assert {c.answer_after for c in row.certificates} == {row.answer.key}
    assert [c.text_after for c in row.certificates][-1] == row.text
    assert [c.descriptor for c in row.certificates] == [*reversed(row.proof.descriptors)]
    assert "Ostrel" in row.certificates[0].text_after


def test_a_reply_of_no_use_is_asked_for_anew_and_no_more_than_the_tries(wiki):
    wrong = ExtractedFactReply(relation="spouse", object_name="Odo Marrick")
    stage = make_stage(wiki, players={"extract_fact": lambda inputs: wrong})
    assert asyncio.run(stage(make_question(wiki))).reason == "no-injection"
    asked = stage.askings.extracting.model.asked
    assert [request.sample for request in asked] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [len(request.inputs.tried) for request in asked] == [0, 1] * 4


@pytest.mark.parametrize(
    ("relation", "name"),
    [("birth_place", "Lumby"), ("death_place", "Ostrel"), ("ship_builder", "Hallow & Quist"), ("x", "y")],
)
def test_a_fact_that_was_not_offered_is_refused(wiki, relation, name):
    reply = ExtractedFactReply(relation=relation, object_name=name)
    refused = inject(wiki, players={"extract_fact": lambda inputs: reply})
    assert refused.reason == "no-injection"
    assert "was not offered" in refused.detail


@pytest.mark.parametrize(
    ("descriptor", "code"),
    [
        ("the one with birth place [subject]", "no-descriptor"),
        ("the painter Marn with birth place [subject]", "alias-leak"),
        ("the painter of 2 April 1871 with birth place [subject]", "answer-leak"),
        ("the painter of the 1870s with birth place [subject]", "answer-leak"),
        ("the painter", "descriptor-lost"),
        (
            Descriptor(text="the painter of [subject]", facts=(FactView(relation="movement", text="Tonalism"),)),
            "no-descriptor",
        ),
    ],
)
def test_a_descriptor_that_fails_a_check_is_refused_with_its_code(wiki, descriptor, code):
    refused = inject(wiki, players={"propose_descriptors": say(descriptor)})
    assert (refused.reason, refused.detail[:14]) == (code, "round 1 of 1: ")


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (lambda text: text.replace("Ostrel", "that town"), "descriptor-lost"),
        (lambda text: text.replace("Ostrel", "ostrel"), "descriptor-lost"),
        (lambda text: text.replace("with birth place", "from"), "descriptor-lost"),
        (lambda text: text.replace("the painter", "Marn, the painter"), "alias-leak"),
        (lambda text: text.replace("the painter", "E. Marn, the painter"), "alias-leak"),
        (lambda text: text.replace("On what date", "On what date in 1871"), "answer-leak"),
        (lambda text: text.replace("with birth place", "with birth place as of now"), "volatile"),
    ],
)
def test_a_rewording_that_leaks_or_loses_something_is_refused(wiki, wrong, code):
    players = {"inject_fact": lambda inputs: QuestionReply(question=wrong(reword(inputs).question))}
    assert inject(wiki, players=players).reason == code


def test_a_rewording_in_a_later_round_may_lose_no_earlier_descriptor(wiki):
    players = {
        "inject_fact": lambda inputs: QuestionReply(question=reword(inputs).question.replace("painter", "woman"))
    }
    refused = inject(wiki, 3, players=players)
    assert refused.reason == "descriptor-lost"

    def forget(inputs):
        text = reword(inputs).question
        return QuestionReply(question=text.replace("painter", "woman") if "Jon Vask" in text else text)

    refused = inject(wiki, 3, players={"inject_fact": forget})
    assert (refused.reason, refused.detail[:14]) == ("descriptor-lost", "round 2 of 3: ")


def make_painter(name, *fields, prose=""):
    return box("painter", f"'''{name}''' was a painter.{prose}", *fields)


def test_a_descriptor_that_fits_another_entity_too_is_refused(tmp_path):
    corpus = build_chain_wiki(tmp_path, Bo_Sund=make_painter("Bo Sund", "birth_place = [[Ostrel]]"))
    assert inject(corpus).reason == "not-unique"


def test_a_fact_tells_two_apart(tmp_path):
    other = make_painter("Bo Sund", "birth_place = [[Ostrel]]", "movement = Cubism")
    corpus = build_chain_wiki(tmp_path, Bo_Sund=other)
    fact = FactView(relation="movement", text="Tonalism")
    told = Descriptor(text="the painter of Tonalism with birth place [subject]", facts=(fact,))
    row = inject(corpus, players={"propose_descriptors": say("the painter with birth place [subject]", told)})
    assert [c.verdict for c in row.certificates[0].candidates] == ["not-unique", "accepted"]
    assert ("movement", "Tonalism") in [(c.relation, c.value) for c in row.proof.constraints]


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """The chain, with a first painter who has another relation before the one that leads on."""
    text = make_painter(
        "Edda Marn",
        "spouse = [[Odo Brem]]",
        "birth_place = [[Ostrel]]",
        "birth_date = {{birth date|1871|4|2}}",
        prose=" Edda Marn was born on 2 April 1871.",
    )
    other = box("banker", "'''Odo Brem''' was a banker.", "death_place = [[Sellby]]")
    return build_chain_wiki(tmp_path_factory.mktemp("forked"), Edda_Marn=text, Odo_Brem=other)


def test_a_round_that_fails_is_tried_with_another_fact(forked):
    def describe_places(inputs):
        return describe(inputs) if inputs.hop.relation != "spouse" else say("Marn")(inputs)

    row = inject(forked, 3, players={"propose_descriptors": describe_places})
    assert [node.title for node in row.proof.nodes] == [*reversed(TITLES[:4])]


def test_where_an_entity_has_no_fact_left_the_round_before_is_done_anew(forked):
    def describe_places(inputs):
        return describe(inputs) if inputs.hop.relation != "death_place" else say("the banker Brem")(inputs)

    row = inject(forked, 2, players={"propose_descriptors": describe_places})
    assert [node.title for node in row.proof.nodes] == [*reversed(TITLES[:3])]


def test_a_question_from_which_no_chain_is_long_enough_is_refused_with_what_closed_it(wiki):
    refused = inject(wiki, 12)
    assert refused.reason == "no-injection"
    assert refused.detail.startswith("round 1 of 12: ")
    refused = inject(wiki, 3, hub_in_degree=0)
    assert (refused.reason, "hub 1" in refused.detail) == ("no-injection", True)


def test_the_anchor_is_of_the_questions_split_and_has_a_picture_where_one_is_needed(wiki):
    refused = inject(wiki, anchors=replace(ANCHORS, splits=SplitRule({"eval": 1.0}, seed=7)))
    assert (refused.reason, "other-split 1" in refused.detail) == ("no-injection", True)
    refused = inject(wiki, anchors=replace(ANCHORS, settings=GroundingsConfig()))
    assert (refused.reason, "no-image 1" in refused.detail) == ("no-injection", True)


def test_no_page_before_the_answers_may_hold_the_answer(tmp_path):
    town = box("settlement", "'''Ostrel''' was a town. It was new in 1871, on 2 April 1871.", "settlement_type = Town")
    corpus = build_chain_wiki(tmp_path, Ostrel=town)
    refused = inject(corpus)
    assert (refused.reason, "answer-on-earlier-page 1" in refused.detail) == ("no-injection", True)


def test_the_fingerprint_knows_the_rules_the_anchors_and_the_prompts(wiki):
    stages = [
        make_stage(wiki),
        make_stage(wiki, 2),
        make_stage(wiki, seed=8),
        make_stage(wiki, anchors=replace(ANCHORS, settings=GroundingsConfig())),
    ]
    assert len({stage.fingerprint() for stage in stages}) == len(stages)
    assert make_stage(wiki).fingerprint() == stages[0].fingerprint()
    assert list(stages[0].prompts()) == [
        "extract_fact/v3",
        "propose_descriptors/v5",
        "inject_fact/v3",
    ]
    assert [model.role for model in stages[0].models()] == ["rewriter", "evaluator"]


def test_a_chain_that_leaves_too_few_answers_for_other_pictures_is_refused_in_its_round(tmp_path, wiki):
    refused = inject(wiki, min_answers=2)
    assert refused.detail.startswith("round 1 of 1: picture-not-needed 1 answers")
    born = ("birth_place = [[Lumby]]", "birth_date = {{birth date|1902|1|9}}")
    corpus = build_chain_wiki(tmp_path, Bo_Sund=make_painter("Bo Sund", *born))
    assert inject(corpus, min_answers=2).proof.nodes[0].title == "Ostrel"
    refused = inject(corpus, 2, min_answers=2)
    assert refused.detail.startswith("round 2 of 2: picture-not-needed 1 answers")


def test_each_request_of_a_round_is_made_once_more_with_the_reason(wiki):
    def extract_second(inputs):
        told = inputs.tried and "was not offered" in inputs.tried[0].problem
        return extract(inputs) if told else ExtractedFactReply(relation="spouse", object_name="Odo")

    def describe_second(inputs):
        told = inputs.tried and inputs.tried[0].problem == "it gives away a hidden name: 'marn'"
        return describe(inputs) if told else say("the painter Marn of [subject]")(inputs)

    def reword_second(inputs):
        told = inputs.tried and "words that must stand there are missing" in inputs.tried[0].problem
        return reword(inputs) if told else QuestionReply(question="How old is it?")

    askings = Askings(
        make_asking("extract_fact", extract_second),
        make_asking("propose_descriptors", describe_second),
        make_asking("inject_fact", reword_second),
    )
    (row,) = asyncio.run(replace(make_stage(wiki), askings=askings)(make_question(wiki)))
    assert [node.title for node in row.proof.nodes] == ["Ostrel", "Edda Marn"]
    for asking in askings.list_all():
        assert [len(request.inputs.tried) for request in asking.model.asked] == [0, 1]
        assert "</tried>" in read_request(asking.model)
        assert "</tried>" not in read_request(asking.model, 0)
    assert askings.proposing.model.asked[0].inputs.lead == "Edda Marn was a painter."
