import asyncio
import math
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.agent.attempts import Searches, make_plan
from pipelines.agent.choosing import EaseRater
from pipelines.agent.judging import Jury, UnscoredWatch
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import DifficultyConfig
from pipelines.errors import GateNotMet
from pipelines.pictures import PictureStore
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply, ImageHit, TextHit
from pipelines.stages.difficulty import MeasuredDifficulty
from pipelines.toy.players import ScriptedSolver
from schemas.base import Rejection
from schemas.datasets import Alternative, Depiction, Difficulty, Grounding
from schemas.tasks import AnswerReply, PictureReply
from tests.pipelines.release.builders import make_picture, make_question
from tests.pipelines.stages.players import FakeModel, make_asking

RIGHT, WRONG, UNKNOWN, BROKEN = AnswerReply(answer="1201"), "1999", AnswerReply(answer="unknown"), "no json here"
NO_LIMIT = UnscoredWatch(1.0, 1)
CROWD = 280


@dataclass
class FakeSearch:
    """One hit by picture and one by words; remembers how often it was asked."""

    identity: str = "search:1"
    asked: list = field(default_factory=list)

    async def search_image(self, picture, count):
        self.asked.append(picture.sha256)
        return (ImageHit("https://toy.example/wiki/Kelm", "Kelm Bridge 1", "a bridge", 0.0),)

    async def search_text(self, query, count):
        self.asked.append(query)
        return (TextHit("https://toy.example/wiki/Ostrava", "Ostrava 1", "a town"),)


def strip(question) -> Grounding:
    return Grounding(**{name: value for name, value in dict(question).items() if name in Grounding.model_fields})


@pytest.fixture
def question(tmp_path) -> Grounding:
    return strip(make_question(1, make_picture(tmp_path, 1)))


def answer_with(reply, **changes) -> RoleClient:
    return RoleClient(FakeModel(reply, **changes), load_prompt("answer_question", 4))


def make_solver(replies, name="fake", default=UNKNOWN):
    """Return a solver whose replies come by condition, one an attempt in turn."""
    taken = Counter()

    def reply(inputs):
        said = replies.get(inputs.condition, [default])
        taken[inputs.condition] += 1
        given_next = said[(taken[inputs.condition] - 1) % len(said)]
        return AnswerReply(answer=given_next) if given_next == WRONG else given_next

    return answer_with(reply, name=name)


def make_stage(tmp_path, replies=None, preset="opensearch-vl", attempts=4, **changes):
    search, plan = FakeSearch(), make_plan(preset)
    values = {
        "solver": make_solver(replies or {}),
        "jury": Jury(),
        "searches": Searches(search, search, PictureStore(tmp_path / "images")),
        "plan": plan,
        "settings": DifficultyConfig(attempts=attempts),
        "watch": NO_LIMIT,
    }
    return MeasuredDifficulty(**(values | changes))


def measure(stage, question):
    made = asyncio.run(stage(question))
    return made if isinstance(made, Rejection) else made[0]


def test_a_row_names_the_searches_and_is_rated_by_the_one_that_knows_all_pictures(tmp_path, question):
    depiction = Depiction(
        source="infobox", ranker="metadata", candidates=1, score=0.5, margin=None, distractors=0, over_threshold=None,
        articles=1, depicts=None, engines=(), text=(), text_at_training=(), ease="", ease_at_training="",
    )  # fmt: skip
    stage = make_stage(tmp_path)
    row = question.model_copy(update={"depiction": depiction})
    made = measure(stage, row)
    assert (made.tools, made.depiction) == (("search", "search"), depiction)
    rated = replace(stage, rater=EaseRater(FakeSearch(), stage.searches.pictures))
    made = measure(rated, row)
    assert (made.depiction.ease, made.depiction.ease_at_training) == ("easy", "easy")
    assert measure(rated, question).depiction is None
    assert rated.fingerprint() != stage.fingerprint()


def count_requests(stage):
    return Counter(request.inputs.condition for request in stage.solver.model.asked)


# cells


def test_a_hard_question_has_a_cell_for_each_condition_in_order_of_cost(tmp_path, question):
    made = measure(make_stage(tmp_path), question)
    assert isinstance(made, Difficulty)
    assert [(c.condition, c.role, c.planned, c.attempts, c.correct, c.unscored) for c in made.cells] == [
        ("text", "solver", 4, 4, 0, 0),
        ("image", "solver", 4, 4, 0, 0),
        ("image+image-search", "solver", 4, 4, 0, 0),
    ]
    assert (made.record_id, made.text, made.standing, made.search_need) == (
        question.record_id, question.text, "proved", "",
    )  # fmt: skip


def test_a_cell_carries_the_latest_day_of_its_replies(tmp_path, question):
    days = iter(["2026-11-20", "2026-11-22", "2026-11-21", ""])

    class Dated(FakeModel):
        async def chat(self, request):
            return replace(await super().chat(request), day=next(days, "2026-12-01"))

    asking = RoleClient(Dated(lambda inputs: UNKNOWN), load_prompt("answer_question", 4))
    made = measure(make_stage(tmp_path, solver=asking), question)
    assert [cell.day for cell in made.cells] == ["2026-11-22", "2026-12-01", "2026-12-01"]


def test_attempts_are_separate_samples_share_one_search_and_show_the_picture_where_the_condition_has_it(
    tmp_path, question
):
    stage = make_stage(tmp_path)
    measure(stage, question)
    asked = stage.solver.model.asked
    assert [request.sample for request in asked] == [0, 1, 2, 3] * 3
    assert stage.searches.images.asked == [question.picture.sha256]
    for request in asked:
        shown = (question.picture.sha256,) if request.inputs.condition != "text" else ()
        assert request.messages[-1].images == shown


# bounds


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("text", "solved-without-tools"),
        ("image", "solved-without-tools"),
        ("image+image-search", "solved-by-one-image-search"),
    ],
)
def test_one_right_answer_too_many_refuses_the_question(tmp_path, question, condition, reason):
    refused = measure(make_stage(tmp_path, {condition: [UNKNOWN, RIGHT, UNKNOWN, UNKNOWN]}), question)
    assert refused.reason == reason
    assert refused.detail.split("; ")[0] == f"1 of 2 correct by fake ({condition})"


@pytest.mark.parametrize("condition", ["text", "image", "image+image-search"])
def test_an_unscored_attempt_never_passes_the_question(tmp_path, question, condition):
    refused = measure(make_stage(tmp_path, {condition: [WRONG, BROKEN, BROKEN, WRONG, WRONG]}), question)
    assert refused.reason == "unscored"
    assert refused.detail.split("; ")[0] == f"0 of 4 correct, 1 unscored by fake ({condition})"


def test_a_solver_reasons_freely_and_its_last_line_is_the_answer(tmp_path, question):
    said = [
        "The bridge is Kelm Bridge.\nIt opened in 1201, I think.\n\n**Answer:** 1201",
        "<think>1999?</think>\nAnswer: 1999",
        "Answer: 1998",
        "Answer: 1997",
    ]
    row = measure(make_stage(tmp_path, {"image": said}, "mars"), question)
    (cell,) = [cell for cell in row.cells if cell.condition == "image"]
    assert (cell.correct, cell.unscored, cell.prompt) == (1, 0, "answer_question/v4")


@pytest.mark.parametrize("said", ["It must be 1201.", "Answer: 1999\nAnswer: 1201", "Answer: 1201\nOr so.", "Answer:"])
def test_reasoning_without_one_answer_at_its_end_is_repaired_once_and_then_unscored(tmp_path, question, said):
    stage = make_stage(tmp_path, {"text": [said, "Answer: 1201"]})
    assert measure(stage, question).reason == "solved-without-tools"
    first, second = stage.solver.model.asked[:2]
    assert first.schema_json == second.schema_json == ""
    assert second.messages[: len(first.messages)] == first.messages
    assert "Reply again" in second.messages[-1].text
    assert measure(make_stage(tmp_path, {"text": [said]}), question).reason == "unscored"


def test_an_answer_that_reads_like_none_is_right_where_it_is_the_answer(tmp_path, question):
    sodium = question.answer.model_copy(
        update={"type": "string", "value": "Na", "surface": "Na", "aliases": (), "key": "text:na"}
    )
    stage = make_stage(tmp_path, {"text": [AnswerReply(answer="Na")]})
    assert measure(stage, question.model_copy(update={"answer": sodium})).reason == "solved-without-tools"


def test_a_question_without_a_picture_is_measured_by_its_words(tmp_path, question):
    made = measure(make_stage(tmp_path), question.model_copy(update={"picture": None}))
    assert [cell.condition for cell in made.cells] == ["text"]
    assert made.left_out == ("image", "image+image-search")


@pytest.mark.parametrize("right", range(9))
@pytest.mark.parametrize("last", [False, True])
def test_mars_keeps_at_most_one_right_of_eight_wherever_it_falls(tmp_path, question, right, last):
    said = [*[RIGHT] * right, *[UNKNOWN] * (8 - right)]
    made = measure(make_stage(tmp_path, {"image": said[::-1] if last else said}, preset="mars", attempts=8), question)
    if right <= 1:
        assert (made.cells[0].attempts, made.cells[0].correct) == (8, right)
    else:
        assert made.reason == "not-rare"


# ends of a question alone


def make_probing(tmp_path, replies, preset="opensearch-vl", **changes):
    """Return a stage with two ends for each question and two attempts at each."""
    plan = make_plan(preset, probes=True)
    return make_stage(
        tmp_path, replies, plan=plan, list_endings=lambda *asked: ("The short end?", "The end?"), **changes
    )


@pytest.mark.parametrize(
    ("replies", "asked"), [([RIGHT], 1), ([WRONG, RIGHT], 2), ([UNKNOWN, WRONG, WRONG, RIGHT], 4)]
)  # fmt: skip
def test_an_end_that_is_answered_alone_refuses_before_anything_dearer(tmp_path, question, replies, asked):
    stage = make_probing(tmp_path, {"clause": replies})
    assert measure(stage, question).reason == "clause-answers"
    assert count_requests(stage) == {"clause": asked}


def test_each_end_is_attempted_without_the_rest_of_the_question(tmp_path, question):
    stage = make_probing(tmp_path, {})
    made = measure(stage, question)
    cell = made.cells[0]
    assert (cell.condition, cell.planned, cell.attempts, cell.correct) == ("clause", 4, 4, 0)
    assert [cell.condition for cell in made.cells[1:]] == ["text", "image", "image+image-search"]
    asked = [request for request in stage.solver.model.asked if request.inputs.condition == "clause"]
    assert [request.inputs.question for request in asked] == ["The short end?"] * 2 + ["The end?"] * 2
    assert not [request for request in asked if question.text in request.messages[-1].text]
    assert not [message for request in asked for message in request.messages if message.images]


# VSearcher's filters 3 and 4


def make_judge(said):
    return make_asking("judge_picture", lambda inputs: said)


def test_a_picture_that_is_too_simple_refuses_before_any_attempt(tmp_path, question):
    stage = make_stage(tmp_path, preset="vsearcher", picture_judge=make_judge(PictureReply(simple=True)))
    assert measure(stage, question).reason == "picture-too-simple"
    assert stage.picture_judge.model.asked[0].messages[-1].images == (question.picture.sha256,)
    assert not count_requests(stage)


def test_a_picture_that_is_not_goes_on_and_one_that_nobody_could_judge_does_not(tmp_path, question):
    fine = make_stage(tmp_path, preset="vsearcher", picture_judge=make_judge(PictureReply(simple=False)))
    garbled = make_stage(tmp_path, preset="vsearcher", picture_judge=make_judge(BROKEN))
    unjudged = make_stage(tmp_path, preset="vsearcher")
    assert measure(fine, question).left_out == ()
    assert measure(unjudged, question).left_out == ("picture-too-simple",)
    assert measure(garbled, question).reason == "unscored"


# alternatives


def contest_with(outcome):
    asked = []

    def contest(proof, answer, given_text):
        asked.append(given_text)
        return PASSED if outcome == "PASS" else CheckResult(outcome, "alternative-answer", "the field has it")

    return contest, asked


@pytest.mark.parametrize(("outcome", "found"), [("FAIL", "answers it too"), ("UNKNOWN", "cannot be refuted")])
def test_a_wrong_answer_given_twice_that_is_not_refuted_refuses_the_question(tmp_path, question, outcome, found):
    contest, asked = contest_with(outcome)
    replies = {"image": [AnswerReply(answer="12 May 1900"), AnswerReply(answer="May 12, 1900"), UNKNOWN, UNKNOWN]}
    refused = measure(make_stage(tmp_path, replies, contest=contest), question)
    assert refused.reason == "alternative-answer"
    assert refused.detail == f"'12 May 1900', given 2 times, {found}: the field has it"
    assert asked == ["12 May 1900"]


def test_a_refuted_alternative_travels_with_the_row(tmp_path, question):
    contest, _ = contest_with("PASS")
    made = measure(make_stage(tmp_path, {"image": [WRONG]}, contest=contest), question)
    assert made.alternatives == (Alternative(text=WRONG, times=4),)


# standing


def test_what_nobody_solved_and_nothing_proves_is_refused(tmp_path, question):
    bare = question.model_copy(update={"proof": question.proof.model_copy(update={"corpus": ""})})
    assert measure(make_stage(tmp_path), bare).reason == "unproved"
    solved = make_stage(tmp_path, {"image": [RIGHT, UNKNOWN, UNKNOWN, UNKNOWN]}, "mars")
    assert measure(solved, bare).standing == "solved"


# the run


def test_too_many_unscored_attempts_stop_the_run(tmp_path, question):
    stage = make_stage(tmp_path, {"text": [BROKEN]}, watch=UnscoredWatch(0.5, 4))
    with pytest.raises(GateNotMet, match=r"the last one: .*unparseable-reply: .* its last line is not"):
        measure(stage, question)


def test_an_answer_that_the_comparer_leaves_open_is_judged(tmp_path, question):
    named = question.answer.model_copy(
        update={"type": "string", "value": "oak", "surface": "oak", "aliases": (), "key": "text:oak"}
    )
    said = {"text": [AnswerReply(answer="oak wood")]}
    judge = make_asking("judge_answer", lambda inputs: "Verdict: correct")
    judged = make_stage(tmp_path, said, jury=Jury((judge,)))
    refused = measure(judged, question.model_copy(update={"answer": named}))
    assert refused.reason == "solved-without-tools"
    assert judge.model.asked[0].inputs.oracle.trial == f"{question.record_id}:text:solver:0"
    unjudged = measure(make_stage(tmp_path, said), question.model_copy(update={"answer": named}))
    assert unjudged.reason == "unscored"


def test_the_fingerprint_covers_everything_that_decides(tmp_path):
    stage = make_stage(tmp_path, preset="vsearcher")
    judge = make_judge(PictureReply(simple=True))
    search = FakeSearch(identity="search:2")
    others = [
        replace(stage, settings=DifficultyConfig(attempts=5)),
        replace(stage, at_once=True),
        replace(stage, settings=stage.settings.model_copy(update={"probe_attempts": 3})),
        replace(stage, plan=make_plan("vsearcher", probes=True)),
        replace(stage, plan=make_plan("mars")),
        replace(stage, searches=replace(stage.searches, images=search)),
        replace(stage, searches=replace(stage.searches, hits=5)),
        replace(stage, solver=answer_with(lambda inputs: RIGHT, identity="fake:2")),
        replace(stage, jury=Jury((make_asking("judge_answer", lambda inputs: ""),))),
        replace(stage, picture_judge=judge),
        replace(stage, contest=contest_with("PASS")[0]),
    ]
    assert len({each.fingerprint() for each in [stage, *others]}) == len(others) + 1


# many questions


@pytest.fixture(scope="module")
def crowd():
    """Questions without pictures: the text condition alone decides."""
    return [strip(make_question(number, None)) for number in range(CROWD)]


def run_crowd(stage, crowd):
    """Return each question's fate and how many attempts all of them took."""

    async def run():
        return [await stage(question) for question in crowd]

    fates = {}
    for question, made in zip(crowd, asyncio.run(run()), strict=True):
        fates[question.record_id] = made.reason if isinstance(made, Rejection) else "kept"
    return fates


def play(tmp_path, preset="opensearch-vl", attempts=8, name="knower", **changes):
    counted = CountingModel(ScriptedSolver(name=name, **changes))
    solver = RoleClient(counted, load_prompt("answer_question", 4))
    return make_stage(tmp_path, preset=preset, attempts=attempts, solver=solver), counted


class CountingModel:
    def __init__(self, model):
        self.model, self.calls = model, 0

    def __getattr__(self, name):
        return getattr(self.model, name)

    async def chat(self, request) -> ChatReply:
        self.calls += 1
        return await self.model.chat(request)


def find_binomial_interval(trials, share, outside=0.001):
    """Return the central counts of successes, beyond which a binomial draw lies no more often than ``outside``."""
    chances = [math.comb(trials, n) * share**n * (1 - share) ** (trials - n) for n in range(trials + 1)]
    below = list(accumulate(chances))
    return bisect_left(below, outside / 2), bisect_left(below, 1 - outside / 2)


@pytest.mark.parametrize("ability", [0.1, 0.35, 0.8])
@pytest.mark.parametrize(
    ("preset", "survival"),
    [
        ("opensearch-vl", lambda p: (1 - p) ** 8),
        ("mars", lambda p: (1 - p) ** 8 + 8 * p * (1 - p) ** 7),
    ],
)
def test_survivors_lie_within_the_binomial_interval(tmp_path, crowd, preset, survival, ability):
    """Of being right at most so often in eight attempts."""
    play_at = {"right_without_tools": ability, "right_with_search": ability}
    stage, _ = play(tmp_path, preset, name=f"knower at {ability}", **play_at)
    kept = sum(fate == "kept" for fate in run_crowd(stage, crowd).values())
    low, high = find_binomial_interval(len(crowd), survival(ability))
    assert low <= kept <= high


SAID = st.sampled_from([RIGHT, AnswerReply(answer=WRONG), AnswerReply(answer="1850"), UNKNOWN, BROKEN])


@settings(max_examples=80)
@given(
    st.dictionaries(
        st.sampled_from(["text", "image", "image+image-search", "image+text-search", "image+both"]),
        st.lists(SAID, min_size=4, max_size=4),
    ),
    st.sampled_from(["opensearch-vl", "vsearcher", "mars"]),
    st.sampled_from(["PASS", "FAIL", ""]),
    st.booleans(),
)
def test_whatever_is_said_an_early_stop_leads_to_the_same_end(tmp_path_factory, said, preset, outcome, proved):
    folder = tmp_path_factory.getbasetemp()
    row, ends = strip(make_question(1, make_picture(folder, 1))), []
    if not proved:
        row = row.model_copy(update={"proof": row.proof.model_copy(update={"corpus": ""})})
    for at_once in (True, False):
        contest = contest_with(outcome)[0] if outcome else None
        solver = answer_with(make_sampled(said))
        made = measure(
            make_stage(folder, None, preset, at_once=at_once, contest=contest,
                       solver=solver),
            row,
        )  # fmt: skip
        ends.append(
            made.reason if isinstance(made, Rejection) else (made.search_need, made.alternatives, made.standing)
        )
    assert ends[0] == ends[1]


def make_sampled(said):
    """Return replies by condition and number of the attempt; a repair is answered as the reply that it repairs."""
    turns = Counter()

    def reply(inputs):
        condition = inputs.condition
        replies = said.get(condition, [UNKNOWN] * 4)
        turn = turns[condition]
        now = replies[turn // 2 % 4]
        # A broken reply is asked for twice, any other once: both take two turns.
        turns[condition] += 1 if now == BROKEN else 2
        return now

    return reply


# recipes


@pytest.mark.parametrize(
    ("recipe", "preset", "attempts"),
    [("opensearch-vl", "opensearch-vl", 8), ("vsearcher", "vsearcher", 8), ("exam", "vsearcher", 8),
     ("mars", "mars", 8), ("fvqa", "fvqa", 8), ("demo", "opensearch-vl", 4)],
)  # fmt: skip
def test_each_published_filter_has_a_recipe(recipe, preset, attempts):
    difficulty = make_config(read_recipe(recipe), ["corpus.dump=dump.xml"]).difficulty
    assert (difficulty.preset, difficulty.attempts) == (preset, attempts)
