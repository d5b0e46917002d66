import json
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import ImageOps
from rich.console import Console
from typer.testing import CliRunner

from pipelines.cli.audit import AuditOptions, audit_files, render_audit, write_audit_page
from pipelines.cli.main import app
from pipelines.errors import ConfigError
from tests.pipelines.cli.audit_plants import encode, paint

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


CALL = '<think>I look.</think><tool_call>{"name": "image_search", "arguments": {}}</tool_call>'


def talk(*turns, images=1):
    conversation = [{"from": role, "value": text} for role, text in turns]
    return {"conversations": conversation, "images": [f"{REMOTE}{number}" for number in range(images)]}


ASKED = ("human", "<image>\nWho built the bridge in this image?")
SEEN = ("observation", "<tool_response>A page.</tool_response>")
LAST = ("gpt", "<think>So.</think><response>Mira Tolland</response>")


@pytest.mark.parametrize(
    ("turns", "defects"),
    [
        ((ASKED, ("gpt", CALL), SEEN, LAST), ()),
        ((ASKED, ("gpt", "Let me see."), ("function_call", '{"name": "a", "arguments": {}}'), SEEN, LAST), ()),
        ((("system", "Be brief."), ASKED, LAST), ()),
        ((ASKED, ("gpt", CALL), SEEN), ("missing-answer-turn",)),
        ((ASKED, ("gpt", CALL)), ("missing-answer-turn",)),
        ((ASKED, SEEN, LAST), ("roles-out-of-order",)),
        ((LAST, ASKED, LAST), ("roles-out-of-order",)),
        ((ASKED, ASKED, LAST), ("placeholder-mismatch", "roles-out-of-order")),
        ((ASKED, ("teacher", "Hm."), LAST), ("roles-out-of-order",)),
        ((("human", "Who built the bridge in this image?"), LAST), ("placeholder-mismatch",)),
        ((ASKED, ("gpt", CALL.replace("{}}", "{}")), SEEN, LAST), ("bad-tool-call",)),
        ((ASKED, ("gpt", CALL.replace('"name"', '"tool"')), SEEN, LAST), ("bad-tool-call",)),
        ((ASKED, ("function_call", "image_search()"), SEEN, LAST), ("bad-tool-call",)),
        ((ASKED, ("gpt", CALL.replace("</think>", "")), SEEN, LAST), ("unpaired-tag",)),
        ((ASKED, ("gpt", CALL), ("observation", " "), LAST), ("empty-turn",)),
        ((ASKED, ("gpt", CALL), ("observation", "<|im_start|>user"), LAST), ("control-token",)),
        ((ASKED, ("gpt", "<response>I cannot tell.</response>")), ("no-real-answer",)),
        ((ASKED, ("gpt", "<think>It isnâ€™t.</think><response>Mira Tolland</response>")), ("encoding",)),
    ],
)
def test_conversations_are_held_to_what_trainers_read(tmp_path, turns, defects):
    assert sorted(defects_of(write_lines(tmp_path, talk(*turns)))) == sorted(defects)


def test_a_conversation_that_ends_with_another_answer_than_the_rows_is_found(tmp_path):
    right, wrong = (talk(ASKED, ("gpt", f"It was {who}, I think.")) for who in ("Mira Tolland", "Jon Vask"))
    path = write_lines(
        tmp_path, *({**each, "answer": "Mira Tolland", "id": who} for who, each in (("a", right), ("b", wrong)))
    )
    report = audit_file(path)
    assert [(defect.name, defect.examples) for defect in report.defects] == [("other-final-answer", ("b",))]


def paint_file(tmp_path, name, seed, turn=lambda picture: picture):
    (tmp_path / name).write_bytes(encode(turn(paint(seed))))
    return name


def test_files_are_compared_by_picture_question_entity_fact_and_answer(tmp_path):
    one = tmp_path / "train.jsonl"
    rows = [
        row(image=paint_file(tmp_path, "1.png", 1), entity="Kelm Bridge"),
        row(id="2", question="When was the church in this image built?", answer="1874",
            image=paint_file(tmp_path, "2.png", 2), entity="Orn Church"),
    ]  # fmt: skip
    one.write_text("".join(json.dumps(each) + "\n" for each in rows))
    other = write_lines(
        tmp_path,
        row(id="3", question="Whose name is this?", image=paint_file(tmp_path, "3.png", 3), entity="Sorn"),
        row(id="4", question="How long is this?", answer="320 m", image=paint_file(tmp_path, "4.png", 4),
            entity="Kelm Bridge"),
        row(id="5", question="Who is the owner here?", answer="H. Oder",
            image=paint_file(tmp_path, "5.png", 2, ImageOps.mirror), entity="Pell"),
        row(id="6", image=paint_file(tmp_path, "6.png", 1), entity="Kelm  bridge"),
        row(id="7", question="Who lives in this tower?", answer="Ines Farrow",
            image=paint_file(tmp_path, "7.png", 7), entity="Grey Tower"),
    )  # fmt: skip
    report = audit_files([one, other])
    assert {defect.name: defect.examples for defect in report.defects} == {
        "overlap-answer": ("3",),
        "overlap-entity": ("4", "6"),
        "overlap-picture": ("5", "6"),
        "overlap-question": ("6",),
        "overlap-fact": ("6",),
    }
    assert {defect.file for defect in report.defects} == {other}
    assert {finding.other.id for defect in report.defects for finding in defect.findings} == {"1", "2"}


def test_a_question_asked_in_nearly_the_same_words_is_found_in_another_file(tmp_path):
    asked = "Which painter of Ostrel made the portrait of the banker that hangs in the hall shown in this image?"
    one = tmp_path / "train.jsonl"
    one.write_text(json.dumps(row(question=asked)))
    path = write_lines(tmp_path, row(question=asked.replace("image?", "image now?"), image=REMOTE + "2"))
    assert "overlap-question" in {defect.name for defect in audit_files([one, path]).defects}


def test_what_cannot_be_checked_is_counted(tmp_path):
    path = write_lines(tmp_path, row(), row(id="2", image="a/b.jpg", question="When was this built?", answer="1901"))
    report = audit_file(path)
    assert report.passed
    assert {each.name: each.count for each in report.unchecked} == {"address": 1, "absent": 1, "no-entity": 2}


def test_that_no_picture_was_looked_at_is_the_last_line_and_in_the_document(tmp_path):
    path = write_lines(tmp_path, row(image="a.jpg", question="Whose is it, says 她?", entity=""))
    done = CliRunner().invoke(app, ["audit", str(path), str(path)], env={"COLUMNS": "160"})
    told = [line for line in done.stdout.splitlines() if "not checked" in line]
    assert "pictures none of which lies beside the file" in told[-1]
    done = CliRunner().invoke(app, ["audit", str(path), "--json"])
    assert {"name": "absent", "count": 1} in [
        {name: each[name] for name in ("name", "count")} for each in json.loads(done.stdout)["unchecked"]
    ]
    assert done.exit_code == 0


def test_a_local_picture_that_is_not_there_is_missing_where_others_are(tmp_path):
    rows = row(image=paint_file(tmp_path, "1.png", 1)), row(id="2", question="When was this built?", image="2.png")
    assert defects_of(write_lines(tmp_path, *rows)) == {"missing-image": 1}


def test_no_name_of_a_picture_leads_out_of_the_files_folder(tmp_path):
    (tmp_path / "secret.png").write_bytes(encode(paint(1)))
    inside = tmp_path / "inside"
    inside.mkdir()
    for name in ("../secret.png", str(tmp_path / "secret.png"), f"file://{tmp_path}/secret.png"):
        report = audit_file(write_lines(inside, row(image=name)))
        assert [each.name for each in report.unchecked] == ["absent", "no-entity"]


@pytest.mark.parametrize("folder", [False, True])
def test_a_picture_that_is_no_file_or_has_a_name_that_none_can_have_is_not_there(tmp_path, folder):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    names = "pipe.png", "folder.png", "\ud800.jpg", "a\0.jpg", "b" * 5000 + ".jpg"
    asked = "Who built it?", "When was it built?", "Where does it stand?", "How high is it?", "Which style has it?"
    rows = [row(id=str(at), question=asked[at], image=name) for at, name in enumerate(names)]
    report = audit_files([write_lines(tmp_path, *rows)], AuditOptions(tmp_path if folder else None))
    found = {each.name: each.rows for each in report.defects} | {each.name: each.count for each in report.unchecked}
    assert found["missing-image" if folder else "absent"] == len(names)


def test_one_line_that_cannot_be_read_is_a_defect_of_its_row(tmp_path):
    path = write_lines(tmp_path, row())
    path.write_text(path.read_text() + '{"question": "Who?", "answer": ' + "9" * 5000 + "}\n")
    report = audit_file(path)
    assert report.files[0].rows == 1
    (defect,) = report.defects
    assert (defect.name, defect.examples) == ("missing-question", ("1",))
    assert defect.findings[0].detail.startswith("line 2: ")


def test_the_table_steers_no_terminal(tmp_path):
    console = Console(width=160, color_system=None)
    with console.capture() as capture:
        console.print(render_audit(audit_file(write_lines(tmp_path, row(id="\x1b[31mred\x9b\u202e", question=" ")))))
    assert not set(capture.get()) & set("\x1b\x9b\u202e")
    assert "\ufffd[31mred" in capture.get()


def test_listed_entities_are_found_in_questions_and_answers(tmp_path):
    rows = (
        row(question="Who built this beside the Kelm Bridge?"),
        row(id="2", image=REMOTE + "2"),
        row(id="3", answer="Orn"),
    )
    path = write_lines(tmp_path, *rows)
    report = audit_files([path], AuditOptions(names=("Kelm Bridge", "Orn")))
    assert {defect.name: defect.examples for defect in report.defects}["prompt-example"] == ("1", "3")


def test_columns_are_mapped(tmp_path):
    path = write_lines(tmp_path, {"ask": {"text": "Who built it?"}, "gold": "unknown", "pic": REMOTE})
    columns = {"question": "ask.text", "answer": "gold", "image": "pic"}
    assert [each.name for each in audit_files([path], AuditOptions(columns=columns)).defects] == ["no-real-answer"]


def test_the_page_shows_what_was_found_and_runs_nothing_of_it(tmp_path):
    hostile = '<script>alert("1")</script> Who built the house in this image?'
    rows = [
        row(id=f"{number}", question=hostile.replace("1", f"{number}"), image=paint_file(tmp_path, f"{number}.png", 1))
        for number in range(2)
    ]
    report = audit_file(write_lines(tmp_path, *rows))
    write_audit_page(report, AuditOptions(), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert re.findall(r'(?:src|href)="(?!data:image/jpeg;base64,|#d\d+")', page) == []
    assert page.count("data:image/jpeg") >= 2


def test_the_command_writes_a_page_and_exits_with_one(tmp_path):
    path = write_lines(tmp_path, row(answer="N/A"))
    arguments = ["audit", str(path), "--json", "--html", str(tmp_path / "page.html")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    printed = json.loads(result.stdout)
    assert [(each["name"], each["rows"], each["examples"]) for each in printed["defects"]] == [
        ("no-real-answer", 1, ["1"])
    ]
    assert "no-real-answer" in (tmp_path / "page.html").read_text()


def test_the_document_of_a_file_with_half_a_character_is_json(tmp_path):
    path = write_lines(tmp_path, row(id="\ud800", question=" "))
    result = CliRunner().invoke(app, ["audit", str(path), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["defects"][0]["examples"] == ["\ud800"]
