"""Faults that only a stage can be given: its writer's reply."""

import asyncio
from functools import partial

from pipelines.checks.verdicts import PASSED, CheckResult
from schemas.base import Rejection
from schemas.tasks import Descriptor, FactView, QuestionReply
from tests.mutants.corpora import Corpora, Judge
from tests.pipelines.stages import test_rewrites
from tests.pipelines.stages.test_injections import make_stage, reword, say
from tests.planted.words import Pair


def list_stage_sets(corpora: Corpora) -> dict[str, Judge]:
    return {
        "a declared fact that is not said": partial(_judge_declared, corpora),
        "two places for one entity": partial(_judge_slots, corpora),
        "a name written otherwise": partial(_judge_reworded, corpora, "Ostrel", "ostrel"),
        "another entity dropped": partial(_judge_reworded, corpora, " of Bo Sund", ""),
    }


def _inject(corpora: Corpora, players: dict, text: str = "") -> CheckResult:
    question = corpora.question.model_copy(update={"text": text}) if text else corpora.question
    return _conclude(asyncio.run(make_stage(corpora.chain, players=players)(question)))


def _conclude(made: object) -> CheckResult:
    return CheckResult("FAIL", made.reason, made.detail or "") if isinstance(made, Rejection) else PASSED


def _judge_declared(corpora: Corpora) -> list[Pair]:
    fact = FactView(relation="movement", text="Tonalism")
    texts = ("the painter of Tonalism from [subject]", "the painter of [subject]")
    clean, bad = (
        _inject(corpora, {"propose_descriptors": say(Descriptor(text=text, facts=(fact,)))}) for text in texts
    )
    return [Pair(texts[1], clean, bad, ("no-descriptor",))]


def _judge_slots(corpora: Corpora) -> list[Pair]:
    question = test_rewrites.make_question(corpora.toy, *test_rewrites.BRIDGES)
    twice = test_rewrites.say("the one whom [subject] has of all that [subject] is")
    stages = test_rewrites.make_stage(corpora.toy), test_rewrites.make_stage(corpora.toy, proposing=twice)
    clean, bad = (_conclude(test_rewrites.rewrite(stage, question)) for stage in stages)
    return [Pair("[subject] twice", clean, bad, ("no-descriptor",))]


def _judge_reworded(corpora: Corpora, old: str, new: str) -> list[Pair]:
    text = "On what date was Edda Marn, a friend of Bo Sund, born?"
    wrong = {"inject_fact": lambda inputs: QuestionReply(question=reword(inputs).question.replace(old, new))}
    return [Pair(new or old, _inject(corpora, {}, text), _inject(corpora, wrong, text), ("descriptor-lost",))]
