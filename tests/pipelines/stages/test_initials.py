import asyncio
import itertools
from dataclasses import replace

import pytest

from pipelines.errors import RecordFailed
from pipelines.graph.query import Indexes
from pipelines.splits import SplitRule
from pipelines.stages.initials import Initials
from schemas.base import Rejection
from schemas.datasets import Seed
from schemas.proofs import UNCOUNTED
from schemas.tasks import AskedFactReply
from tests.pipelines.stages.chain_wiki import build_chain_wiki
from tests.pipelines.stages.players import TrustingReader, make_asking, read_request
from tests.toy import box, build_toy_corpus

LIMITS = UNCOUNTED.model_copy(update={"volatile": False})
ALL_SFT = SplitRule({"sft": 1.0}, seed=7)
NONE_SFT = SplitRule({"rl": 1.0}, seed=7)
ASKED = "On what date was Edda Marn born?"


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    return build_chain_wiki(tmp_path_factory.mktemp("chain"))


def make_seed(corpus, title="Edda Marn", split="sft"):
    number = corpus.find(title)
    page_id, kind = (corpus.page(number).page_id, corpus.page(number).type) if number is not None else (0, "painter")
    return Seed(
        record_id="seed-1",
        parent_id=f"page:{page_id}",
        page_id=page_id,
        title=title,
        qid="",
        type=kind,
        domain="Person",
        in_degree=0,
        sitelinks=-1,
        statements=-1,
        image="",
        split=split,
    )


def say(relation, question):
    return lambda inputs: AskedFactReply(relation=relation, question=question)


def make_stage(corpus, reply=None, splits=ALL_SFT, page_words=8, max_tokens=6, **rules):
    asking = make_asking("ask_fact", reply or say("birth_date", ASKED))
    return Initials(
        Indexes(corpus),
        asking,
        TrustingReader(),
        None,
        LIMITS.model_copy(update=rules),
        max_tokens,
        splits,
        page_words,
    )


def ask(stage, seed):
    """Return the one question, or the rejection."""
    made = asyncio.run(stage(seed))
    return made if isinstance(made, Rejection) else made[0]


def list_offered(stage):
    return [fact.relation for fact in stage.asking.model.asked[0].inputs.facts]


def test_the_seed_is_the_answer_node_of_a_proof_without_hops(wiki):
    seed = make_seed(wiki)
    row = ask(make_stage(wiki), seed)
    assert (row.text, row.parent_id, row.split, row.domain) == (ASKED, "seed-1", "sft", "Person")
    assert (row.answer.type, row.answer.value, row.answer.precision) == ("date", "1871-04-02", "day")
    proof = row.proof
    assert [(node.title, node.role) for node in proof.nodes] == [("Edda Marn", "answer")]
    assert (proof.hops, proof.constraints, proof.counts, proof.descriptors) == ((), (), (), ())
    assert (proof.answer_relation, proof.answer_evidence.key) == ("birth_date", "birth_date")
    assert proof.answer_evidence.text == "{{birth date|1871|4|2}}"
    assert proof.corpus == wiki.digest


def test_the_model_is_offered_facts_and_the_beginning_of_the_page_and_no_more(wiki):
    stage = make_stage(wiki)
    ask(stage, make_seed(wiki))
    (request,) = stage.asking.model.asked
    assert request.inputs.page == "Edda Marn was a painter. Edda Marn was"
    assert list_offered(stage) == ["birth_place", "birth_date", "movement"]
    text = "\n".join(message.text for message in request.messages)
    assert "Tonalism" in text
    assert text.count("Ostrel") == 1


def test_only_answers_of_the_seeds_split_are_offered(wiki):
    splits = next(
        rule
        for rule in (SplitRule({"sft": 0.5, "rl": 0.5}, seed=seed) for seed in itertools.count())
        if rule.place("answer", "date:1871-04-02") == "sft"
        and len(set(map(lambda k: rule.place("answer", k), KEYS))) == 2
    )
    stage = make_stage(wiki, splits=splits)
    ask(stage, make_seed(wiki))
    assert [key for key in list_offered(stage) if key != "birth_place"] == ["birth_date"]


KEYS = ("date:1871-04-02", "string:tonalism")


def test_a_seed_without_a_fact_to_ask_for_is_refused_with_what_stood_against_each(wiki, tmp_path):
    refused = ask(make_stage(wiki, splits=NONE_SFT), make_seed(wiki))
    assert (refused.reason, refused.detail) == ("no-fact", "other-split 3")
    bare = build_toy_corpus(
        tmp_path, {"Ostrel": box("settlement", "'''Ostrel''' is a town.", "settlement_type = Town")}, {}
    )
    refused = ask(make_stage(bare), make_seed(bare, "Ostrel"))
    assert (refused.reason, refused.codes) == ("no-fact", ("no-fact",))
    assert refused.detail == "the page has no typed fact"


@pytest.mark.parametrize(
    ("relation", "question"),
    [
        ("death_date", ASKED),
        ("birth_date", "On what date was Odo Marrick born?"),
        ("birth_date", "On what date in 1871 was Edda Marn born?"),
        ("birth_date", "On what date was Edda Marn, the latest of her name, born?"),
        ("birth_date", "On what date was Edda Marn born"),
        ("birth_date", "Edda Marn was a painter. On what date was Edda Marn born?"),
        ("birth_date", "On what date was Edda Marn born? I hope this helps!"),
    ],
)
def test_a_question_that_cannot_be_used_is_asked_for_once_more_and_then_fails(wiki, relation, question):
    stage = make_stage(wiki, say(relation, question))
    with pytest.raises(RecordFailed) as caught:
        ask(stage, make_seed(wiki))
    assert caught.value.error == "unusable-question"
    assert [request.sample for request in stage.asking.model.asked] == [0, 1]


def test_a_name_that_holds_the_answer_is_no_leak_yet(tmp_path):
    text = box("fair", "'''Fair of 1884''' was a fair in 1884.", "year = 1884")
    corpus = build_toy_corpus(tmp_path, {"Fair of 1884": text}, {})
    stage = make_stage(corpus, say("year", "In what year was Fair of 1884 held?"))
    assert ask(stage, make_seed(corpus, "Fair of 1884")).answer.value == "1884"


def test_a_name_with_a_full_stop_or_another_fact_is_no_second_sentence_and_nothing_told(tmp_path):
    title = "Fair of St. Orn in 12 halls"
    text = box("fair", f"'''{title}''' was a fair in 1884.", "year = 1884", "halls = 12 halls")
    corpus = build_toy_corpus(tmp_path, {title: text}, {})
    stage = make_stage(corpus, say("year", f"In what year was {title} held?"))
    assert ask(stage, make_seed(corpus, title)).answer.value == "1884"


def test_the_fingerprint_knows_the_rules_the_splits_and_the_method(wiki):
    stage = make_stage(wiki)
    others = [
        make_stage(wiki, volatile=True),
        make_stage(wiki, splits=NONE_SFT),
        make_stage(wiki, page_words=9),
    ]
    prints = [stage.fingerprint(), *(other.fingerprint() for other in others)]
    assert len(set(prints)) == len(prints)
    assert stage.fingerprint() == make_stage(wiki).fingerprint()
    assert list(stage.prompts()) == ["ask_fact/v3"]
    assert [model.role for model in stage.models()] == ["writer", "evaluator"]


@pytest.mark.parametrize(
    ("relation", "question", "problem"),
    [
        ("birth_date", "On what date was Odo Marrick born?", "'Edda Marn' does not stand in"),
        ("no_such_key", ASKED, "'no_such_key' was not offered"),
    ],
)
def test_the_second_request_says_what_was_wrong_with_the_first(wiki, relation, question, problem):
    def mend(inputs):
        told = inputs.tried and problem in inputs.tried[0].problem
        return AskedFactReply(relation="birth_date" if told else relation, question=ASKED if told else question)

    stage = replace(make_stage(wiki), asking=make_asking("ask_fact", mend))
    assert ask(stage, make_seed(wiki)).text == ASKED
    assert problem in read_request(stage.asking.model)
    assert "</tried>" not in read_request(stage.asking.model, 0)
