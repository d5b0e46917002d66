import base64
import io
import re
from html.parser import HTMLParser

import pytest
from PIL import Image

from pipelines.agent.observations import credit_picture
from pipelines.agent.pictures import degrade_picture
from pipelines.cli.facets import explain_reason
from pipelines.cli.report import (
    collect_report,
    render_report,
    report_courses,
    report_enhancements,
    sample_questions,
    write_report,
)
from pipelines.errors import ConfigError
from pipelines.graph.proofs import NO_PROOF
from pipelines.pictures import PictureStore
from pipelines.run.workspace import Workspace
from schemas.base import Failure, Rejection
from schemas.datasets import (
    Alternative,
    Difficulty,
    Enhancement,
    Offer,
    Origin,
    ReleaseEntry,
    Rewrite,
    Rollout,
    Trajectory,
)
from schemas.proofs import Branch
from tests.pipelines.agent.signs import draw_scene, encode_scene
from tests.pipelines.agent.trail import SOURCE
from tests.pipelines.cli.conftest import FakeStage, write_stage
from tests.pipelines.cli.injected import make_injected, make_rewrite
from tests.pipelines.release.builders import (
    make_degraded,
    make_evidence,
    make_picture,
    make_question,
    make_trajectory,
    make_trial,
)


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.sources, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def write_rows(root, **stages):
    """Write and note stages by name: their type and rows, then what was rejected and what failed."""
    for name, (kind, *rows) in stages.items():
        write_stage(root, FakeStage(name, kind), name[0] * 16, *rows)
    Workspace(root).note_latest({name: name[0] * 16 for name in stages})


def render(root):
    return render_report(collect_report(root))


def test_one_page_loads_nothing_and_shows_funnel_chain_evidence_and_attempt(workspace, tmp_path):
    page = write_report(workspace, tmp_path / "out" / "report.html").read_text()
    assert page == render(workspace)
    reader = read(page)
    assert "script" not in reader.tags
    within = [source for source in reader.sources if source.startswith("#")]
    assert all(f'id="{place[1:]}"' in page for place in within)
    pictures = [source for source in reader.sources if source not in within]
    assert len(pictures) == 7
    assert all(source.startswith("data:image/webp;base64,") for source in pictures)
    shown = ("default-src 'none'", "solved-without-tools 1", "architect", "revision 9011", "answers ≥8", "image_search")
    assert [text for text in (*shown, "CC BY 4.0") if text not in page] == []


def test_a_few_refused_rows_of_each_reason_say_what_the_check_saw(workspace):
    page = render(workspace)
    (refused, _) = collect_report(workspace).refused
    assert (refused.stage, refused.reason, refused.rows) == ("difficulty", "solved-without-tools", 1)
    assert refused.shown == (("question-refused0000001", "3 of 8"),)
    assert "3 of 8" in page
    assert explain_reason("solved-without-tools") in page


def test_as_many_questions_are_shown_as_are_asked_for(workspace):
    assert [len(collect_report(workspace, count).questions) for count in (0, 3, 99)] == [0, 3, 7]


def test_what_a_released_row_took_is_told_by_stage(demo):
    report = collect_report(demo.root)
    rows = sum(row.dataset == "sft" for row in demo.rows("releases", ReleaseEntry))
    calls = {stage["stage"]: stage["calls"] for stage in demo.document["stages"] if stage["calls"]}
    assert (report.costs.rows, report.costs.what) == (rows, "sft")
    assert {cost.stage: cost.calls for cost in report.costs.stages} == pytest.approx(
        {**{stage: number / rows for stage, number in calls.items()}, "all": sum(calls.values()) / rows}
    )
    assert "What a released row took" in render_report(report)


def test_every_part_of_an_injected_questions_proof_is_shown(tmp_path):
    question = make_injected(make_picture(tmp_path, 1))
    write_rows(tmp_path, rewrites=(Rewrite, [make_rewrite(question, 1, 2)]), difficulty=(Difficulty, [question]))
    page = render(tmp_path)
    read(page)
    for text in (
        "Mira Tolland 1 &lt;-birth place- Ostrava 1",
        "birth_date = 1870s (redundant)",
        "12 absent: Jon Vask 0",
        "The town was founded in 1201.",
        "at most 50 near misses a node",
        "round 2: Mira Tolland 2 as",
    ):
        assert text in page


def test_attempts_are_shown_and_no_empty_table(tmp_path):
    other = Alternative(text="<b>1999", times=3)
    question = make_question(1, None, search_need="mixed", alternatives=(other,))
    bare = question.model_copy(update={"proof": question.proof.model_copy(update={"constraints": ()})})
    write_rows(tmp_path, difficulty=(Difficulty, [bare]))
    page = render(tmp_path)
    for text in ("text, knower: 1 of 8", "solved", "needs: mixed", "also given 3 times: &lt;b&gt;1999"):
        assert text in page
    for text in ("Proof: what is told", "Confirmed by", "Degraded pictures", "Rollouts"):
        assert text not in page


def test_a_question_from_outside_is_shown_without_a_chain(tmp_path):
    origin = Origin(pool="<b>elsewhere", row="17", entity="", licence="CC0", source="https://pool.example/")
    asked = make_question(1, None, proof=NO_PROOF, origin=origin, reading=None, screening=None, standing="unproved")
    write_rows(tmp_path, difficulty=(Difficulty, [asked]))
    page = render(tmp_path)
    assert "no proof: row 17 of the pool &lt;b&gt;elsewhere, CC0, https://pool.example/" in page
    assert "-&gt;" not in page


def test_a_tree_is_shown_with_its_branches(tmp_path):
    question = make_question(1, None)
    node = question.proof.nodes[-1].model_copy(update={"title": "Lund Hall", "role": "branch"})
    branch = Branch(host=1, relation="owner", node=node, named=True, evidence=make_evidence(7001, "Lund Street"))
    proof = question.proof.model_copy(update={"branches": (branch,)})
    write_rows(tmp_path, difficulty=(Difficulty, [question.model_copy(update={"proof": proof})]))
    page = render(tmp_path)
    assert f"{question.proof.nodes[1].title} -owner-&gt; Lund Hall (named)" in page
    assert "Lund Street, revision" in page


def test_hostile_text_is_shown_as_text(tmp_path):
    text = '<img src=x onerror="alert(1)"><script>alert(1)</script>'
    picture = make_picture(tmp_path, 1, author=text, file=text)
    question = make_question(1, picture, text=text, record_id='q"><script>', domain=text)
    write_rows(tmp_path, difficulty=(Difficulty, [question]))
    reader = read(render(tmp_path))
    assert "script" not in reader.tags
    assert reader.tags.count("img") == 1


def test_a_picture_that_cannot_be_shown_says_why(workspace):
    for path in (workspace / "images").rglob("*.png"):
        path.write_bytes(b"no picture")
    report = collect_report(workspace)
    assert all(not card.thumbnail and "was changed" in card.caption for card in report.questions)


def test_a_workspace_without_a_finished_stage_has_no_report(tmp_path):
    with pytest.raises(ConfigError, match="no finished stage"):
        collect_report(tmp_path)


def test_the_sample_depends_on_ids_alone():
    questions = [make_question(number, None) for number in range(9)]
    chosen = sample_questions(questions, 4)
    assert sample_questions(questions[::-1], 4) == chosen
    assert sample_questions([question for question in questions if question in chosen], 4) == chosen


# Rollouts


def test_rollouts_are_counted_by_their_calls_and_by_whether_they_were_kept(tmp_path):
    kept = make_trajectory(1, make_question(1, make_picture(tmp_path, 1)))
    fields = {name: getattr(kept, name) for name in Rollout.model_fields}
    silent = Rollout(**fields | {"record_id": "rollout-silent", "steps": kept.steps[-1:]})
    write_rows(tmp_path, rollouts=(Rollout, [Rollout(**fields), silent]), trajectories=(Trajectory, [kept]))
    report = report_courses(tmp_path)
    assert (report.rollouts, report.kept, report.mean_calls) == (2, 1, 2.0)
    assert report.bars == ((0, 0, 1), (1, 0, 0), (2, 1, 0))
    tools, outcomes, endings = (distribution.values for distribution in report.distributions)
    assert tools == (("image_search", 1, 50.0), ("visit", 1, 50.0))
    assert outcomes == (("ok", 2, 100.0),)
    assert sum(count for _, count, _ in endings) == 2
    assert "2 rollouts, 1 of them kept, with 2.0 tool calls on average" in render(tmp_path)


def test_without_rollouts_there_is_nothing_to_show(tmp_path):
    report = report_courses(tmp_path)
    assert (report.rollouts, report.bars, report.mean_calls) == (0, (), 0.0)


# Degraded pictures

LOST = "perspective 0.75 (upper_left_x 9.5, upper_left_y 8): image-search 0.00, 0.00 after perspective_correct"
HARMLESS = "perspective 0.5 (upper_left_x 6.2, upper_left_y 5): image-search 1.00, still of use"


def refuse(number, reason, detail):
    return Rejection(record_id=f"question-refused{number}", reason=reason, detail=detail)


@pytest.fixture
def turned(tmp_path):
    """A question whose picture is truly turned away, with both pictures in the image store."""
    store, data = PictureStore(tmp_path / "images"), encode_scene(draw_scene(3))
    made = degrade_picture(data, "perspective", 0.5, "seed")
    original = store.add_bytes(data, SOURCE)
    picture = store.add_bytes(made.data, credit_picture(original))
    trial = make_trial(degradation="perspective", repair="perspective_correct", parameters=made.parameters)
    return make_question(1, picture, original=original, trial=trial)


def test_shares_are_those_of_the_broken_pictures_by_degradation_and_strength(tmp_path):
    trials = [make_trial(strength=each) for each in (0.41, 0.5, 0.5001)]
    offering = [make_question(n, None, offers=(Offer(trial=trial),)) for n, trial in enumerate(trials)]
    kept = [make_degraded(tmp_path, n, trial=trial) for n, trial in enumerate(trials[:2])]
    reasons = (
        f"unrepaired: {HARMLESS}; {LOST}; {HARMLESS}",
        f"unrepaired: {LOST.replace('perspective 0.75', 'blur 0.45')}",
        f"unharmed: {HARMLESS}",
        "untested: neither words nor a search by picture tell what the original shows",
    )
    left = [make_question(n, None, left_whole=why) for n, why in enumerate(reasons, 10)]
    failed = [Failure(record_id="question-failed1", error="picture-undecodable", detail=LOST.replace(":", ""))]
    tried = (Enhancement, [*offering, make_question(9, None), *left], [], failed)
    write_rows(tmp_path, enhancements=tried, selections=(Enhancement, kept))
    report = report_enhancements(tmp_path)
    assert [(row.degradation, row.strength, row.degraded, row.restored, row.share) for row in report.rows] == [
        ("blur", "0.4 to 0.5", 2 + 1, 2, 67),
        ("blur", "0.5 to 0.6", 1, 1, 100),
        ("perspective", "0.7 to 0.8", 1, 0, 0),
    ]
    assert (report.tried, report.repairable, report.kept) == (8, 3, 2)
    assert report.left == (("picture-undecodable", 1), ("unharmed", 1), ("unrepaired", 2), ("untested", 1))


def test_an_example_shows_the_picture_before_degraded_and_repaired(tmp_path, turned):
    offering = make_question(1, None, offers=(Offer(trial=turned.trial),))
    left = make_question(2, None, left_whole=f"unrepaired: {LOST}")
    write_rows(tmp_path, enhancements=(Enhancement, [offering, left]), selections=(Enhancement, [turned]))
    (example,) = report_enhancements(tmp_path).examples
    assert [label for label, _ in example.pictures] == ["original", "perspective", "perspective_correct"]
    shown = [decode(address) for _, address in example.pictures]
    before, degraded, repaired = (measure_likeness(shown[0], each) for each in shown)
    assert before < repaired < degraded / 2
    page = render(tmp_path)
    part = page[page.index("<h2>Degraded pictures") : page.index("Questions</h2>")]
    assert len(re.findall(r'<img src="data:image/webp', part)) == 3
    for text in (
        "perspective of strength 0.5",
        SOURCE.licence,
        "0.4 to 0.5",
        "0.7 to 0.8",
        "100%",
        "left as it is: unrepaired",
        "2 pictures were tried, and of 1 a repair",
    ):
        assert text in part


def decode(address):
    return Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("L").resize((32, 24))


def measure_likeness(one, other):
    """Return the mean difference of brightness: 0 of a picture from itself."""
    return sum(abs(a - b) for a, b in zip(one.tobytes(), other.tobytes(), strict=True)) / (32 * 24)


def test_a_repair_that_needs_weights_shows_two_pictures_and_a_changed_file_none(tmp_path, turned):
    trial = make_trial(degradation="downsample", repair="super_resolution")
    write_rows(tmp_path, selections=(Enhancement, [turned.model_copy(update={"trial": trial})]))
    (example,) = report_enhancements(tmp_path).examples
    assert [label for label, _ in example.pictures] == ["original", "downsample"]
    PictureStore(tmp_path / "images").path(turned.picture.sha256, turned.picture.extension).write_bytes(b"no picture")
    (example,) = report_enhancements(tmp_path).examples
    assert example.pictures == ()
    assert turned.picture.file in example.caption
