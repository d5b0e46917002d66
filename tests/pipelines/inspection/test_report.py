from html.parser import HTMLParser

import pytest

from pipelines.cli.report import collect_report, render_report, sample_questions, write_report
from pipelines.errors import ConfigError
from pipelines.run.workspace import Workspace
from schemas.datasets import Alternative, Difficulty, Rewrite
from tests.pipelines.inspection.conftest import FakeStage, write_stage
from tests.pipelines.inspection.injected import make_injected, make_rewrite
from tests.pipelines.release.builders import make_picture, make_question


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


def test_the_report_is_one_page_that_loads_nothing(workspace, tmp_path):
    page = write_report(workspace, tmp_path / "out" / "report.html").read_text()
    reader = read(page)
    assert "script" not in reader.tags
    assert len(reader.sources) == 7
    assert all(source.startswith("data:image/webp;base64,") for source in reader.sources)
    assert "default-src 'none'" in page


def test_the_report_shows_funnel_chain_evidence_and_attempt(workspace):
    page = render_report(collect_report(workspace))
    for text in ("solved-without-tools 1", "architect", "revision 9011", "answers ≥8", "image_search", "CC BY 4.0"):
        assert text in page


def test_the_report_shows_every_part_of_an_injected_questions_proof(tmp_path):
    question = make_injected(make_picture(tmp_path, 1))
    write_stage(tmp_path, FakeStage("rewrites", Rewrite), "w" * 16, [make_rewrite(question, 1, 2)])
    write_stage(tmp_path, FakeStage("difficulty", Difficulty), "d" * 16, [question])
    Workspace(tmp_path).note_latest({"rewrites": "w" * 16, "difficulty": "d" * 16})
    page = render_report(collect_report(tmp_path))
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


def test_the_report_shows_what_was_attempted_and_what_a_question_needs(tmp_path):
    other = Alternative(text="<b>1999", times=3)
    question = make_question(1, None, search_need="mixed", alternatives=(other,))
    write_stage(tmp_path, FakeStage("difficulty", Difficulty), "d" * 16, [question])
    Workspace(tmp_path).note_latest({"difficulty": "d" * 16})
    page = render_report(collect_report(tmp_path))
    for text in ("text, knower: 1 of 8", "solved", "needs: mixed", "also given 3 times: &lt;b&gt;1999"):
        assert text in page


def test_a_question_without_these_parts_shows_no_empty_table(tmp_path):
    question = make_question(1, None)
    bare = question.model_copy(update={"proof": question.proof.model_copy(update={"constraints": ()})})
    write_stage(tmp_path, FakeStage("difficulty", Difficulty), "d" * 16, [bare])
    Workspace(tmp_path).note_latest({"difficulty": "d" * 16})
    page = render_report(collect_report(tmp_path))
    assert "Proof: what is told" not in page
    assert "Confirmed by" not in page


def test_the_same_workspace_gives_the_same_report(workspace):
    assert render_report(collect_report(workspace)) == render_report(collect_report(workspace))


def test_hostile_text_is_shown_as_text(tmp_path):
    text = '<img src=x onerror="alert(1)"><script>alert(1)</script>'
    picture = make_picture(tmp_path, 1, author=text, file=text)
    question = make_question(1, picture, text=text, record_id='q"><script>', domain=text)
    write_stage(tmp_path, FakeStage("difficulty", Difficulty), "d" * 16, [question])
    Workspace(tmp_path).note_latest({"difficulty": "d" * 16})
    reader = read(render_report(collect_report(tmp_path)))
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
