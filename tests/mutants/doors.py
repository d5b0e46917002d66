"""Faults that only a stage can be given: its writer's reply, or the picture it finds."""

import asyncio
from functools import partial

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.config.settings import GroundingsConfig
from pipelines.graph.query import Indexes
from pipelines.stages.groundings import Groundings
from schemas.base import Rejection
from schemas.datasets import Grounding, Rewrite
from schemas.tasks import Descriptor, FactView, QuestionReply
from tests.mutants.corpora import Corpora, Judge
from tests.pipelines.stages import test_rewrites
from tests.pipelines.stages.players import TrustingReader, make_asking
from tests.pipelines.stages.test_groundings import OtherPictures, make_chooser
from tests.pipelines.stages.test_injections import make_stage, reword, say
from tests.planted.words import Pair

ENOUGH = GroundingsConfig(require_image=True, min_answers=0, retrieval_rank=0)


def list_stage_sets(corpora: Corpora) -> dict[str, Judge]:
    return {
        "a declared fact that is not said": partial(_judge_declared, corpora),
        "two places for one entity": partial(_judge_slots, corpora),
        "a name written otherwise": partial(_judge_reworded, corpora, "Ostrel", "ostrel"),
        "another entity dropped": partial(_judge_reworded, corpora, " of Bo Sund", ""),
        "a picture that tells": partial(_judge_picture, corpora),
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


def _judge_picture(corpora: Corpora) -> list[Pair]:
    """A grounding whose picture's address at the source tells a bridge, or the answer."""
    row = next(case.question for case in corpora.cases if len(case.numbers) > 2)
    told = (row.proof.nodes[1].title, row.answer.surface)
    clean = _ground(corpora, row, "Kept elsewhere")
    return [Pair(each, clean, _ground(corpora, row, each), ("file-leak",)) for each in told]


def _ground(corpora: Corpora, row: Grounding, told: str) -> CheckResult:
    corpus = OtherPictures(corpora.pool.corpus, source_url=f"https://pictures.example/wiki/File:{told}.jpg")
    asking = make_asking("refer_to_anchor", lambda inputs: QuestionReply(question=row.text))
    chooser = make_chooser(corpus, corpora.pictures, corpora.pool.corpus)
    stage = Groundings(Indexes(corpus), chooser, asking, ENOUGH, TrustingReader())
    given = row.model_dump(include={"record_id", "parent_id", "split", "domain", "canonical", "answer", "proof"})
    made = Rewrite(**given, image=row.picture.file, text=row.fuzzy, certificates=())
    return _conclude(asyncio.run(stage(made)))
