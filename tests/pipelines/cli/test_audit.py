import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from pipelines.cli.audit import audit_files, render_audit
from pipelines.errors import ConfigError

REMOTE = "https://images.example/1.jpg"


def write_lines(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def audit_file(path):
    return audit_files([path])


def defects_of(path):
    return {defect.name: defect.rows for defect in audit_file(path).defects}


def row(**changes):
    return {"id": "1", "question": "Who built it?", "answer": "Mira Tolland", "image": REMOTE} | changes


def test_a_clean_file_passes(tmp_path):
    report = audit_file(
        write_lines(tmp_path, row(), row(id="2", question="When was this made?", answer="1901", image=REMOTE + "2"))
    )
    assert report.passed
    assert [(file.rows, file.images, file.layout) for file in report.files] == [(2, 2, "columns")]


@pytest.mark.parametrize(
    ("change", "defect"),
    [
        ({"question": " "}, "missing-question"),
        ({"answer": None}, "missing-answer"),
        ({"image": None}, "missing-image"),
        ({"question": "Did MIRA TOLLAND build it?"}, "answer-in-question"),
        ({"answer_aliases": ["built"]}, "answer-in-question"),
        ({"question": "Who built <image> and <image>?"}, "placeholder-mismatch"),
        ({"question": "Who built it?<|im_end|>"}, "control-token"),
        ({"messages": [{"role": "user", "content": "no placeholder"}]}, "placeholder-mismatch"),
    ],
)
def test_each_defect_is_found_alone(tmp_path, change, defect):
    assert defects_of(write_lines(tmp_path, row(**change))) == {defect: 1}


def test_the_same_question_about_the_same_picture_is_a_duplicate(tmp_path):
    assert defects_of(write_lines(tmp_path, row(), row(id="2", question="who  built it?"))) == {"duplicate-question": 1}


def test_the_same_question_about_another_picture_is_none(tmp_path):
    assert defects_of(write_lines(tmp_path, row(), row(id="2", image=REMOTE + "2"))) == {}


def test_two_conversations_about_one_question_are_no_duplicates(tmp_path):
    talks = [[{"role": "user", "content": f"<image> {words}"}] for words in ("a", "b", "b")]
    rows = [row(id=str(number), messages=talk) for number, talk in enumerate(talks)]
    assert defects_of(write_lines(tmp_path, *rows[:2])) == {}
    assert defects_of(write_lines(tmp_path, *rows)) == {"duplicate-question": 1}


def test_the_same_picture_under_another_question_is_counted(tmp_path):
    assert defects_of(write_lines(tmp_path, row(), row(id="2", question="When was this made?"))) == {
        "duplicate-image": 1
    }


def test_ids_are_unique(tmp_path):
    assert defects_of(write_lines(tmp_path, row(), row(question="When was this made?", image=REMOTE + "2"))) == {
        "duplicate-id": 1
    }


def test_embedded_bytes_that_are_no_picture_are_found(tmp_path):
    path = tmp_path / "rows.parquet"
    image = {"bytes": b"not a picture", "path": "a.png"}
    pq.write_table(pa.table({"question": ["Who?"], "answer": ["Ada"], "image": [image]}), path)
    assert defects_of(path) == {"unreadable-image": 1}


def test_a_null_in_a_list_of_pictures_is_missing(tmp_path):
    path = write_lines(tmp_path, row(image=None, images=[REMOTE, None]))
    assert defects_of(path) == {"missing-image": 1}


@pytest.mark.parametrize("dataset", ["sft", "rl", "vqa"])
def test_our_own_releases_have_no_defect_but_for_pictures_of_one_colour(workspace, dataset):
    for path in (workspace / "releases" / dataset).rglob("data/*.parquet"):
        report = audit_file(path)
        assert {(defect.name, defect.rows) for defect in report.defects} == {("blank-image", report.rows)}


def test_an_object_with_one_list_is_read(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"version": 1, "data": [row()]}))
    assert audit_file(path).rows == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "q"),
        ("a.json", "{"),
        ("a.jsonl", "[1]\n"),
        ("a.jsonl", ""),
        ("a.parquet", "PAR"),
        ("a.json", '[{"x":1}]'),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ConfigError, match=name):
        audit_file(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        audit_file(tmp_path / "a.json")


def test_the_report_renders_with_examples(tmp_path):
    report = audit_file(write_lines(tmp_path, row(question=" ")))
    console = Console(width=160)
    with console.capture() as capture:
        console.print(render_audit(report))
    assert "missing-question" in capture.get()
    assert [(defect.name, defect.rows, defect.examples) for defect in report.defects] == [
        ("missing-question", 1, ("1",))
    ]
