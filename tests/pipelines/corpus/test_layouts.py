"""Each published layout reads as its documentation says, and no hostile file of questions does harm."""

import base64
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.layouts import (
    LAYOUTS,
    NamedPicture,
    PictureFolder,
    UnreadRow,
    map_columns,
    read_entities,
    read_layout,
    read_questions,
    read_rows,
)
from pipelines.errors import ConfigError
from tests.published import WRITERS, Published, publish

PNG = b"\x89PNG\r\n\x1a\n bytes that only a reader of pictures looks at"


def read(path, layout, columns=None):
    return [
        question
        for key, row in read_rows(path)
        for question in LAYOUTS[layout](key, map_columns(row, columns) if columns else row)
    ]


def write_lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


FVQA = {
    "data_id": "fvqa_train_0",
    "prompt": [{"role": "user", "content": "Which river flows under this bridge?"}],
    "images": [{"bytes": PNG, "path": None}],
    "reward_model": {"style": "rule", "ground_truth": "Kelm", "candidate_answers": '["the Kelm", "River Kelm"]'},
    "data_source": "mmsearch_r1/fvqa_train",
    "image_urls": None,
}


@pytest.mark.parametrize("suffix", [".parquet", ".pq"])
def test_fvqa_of_mmsearch_r1_has_bytes_and_candidate_answers_written_as_json(tmp_path, suffix):
    path = tmp_path / f"fvqa{suffix}"
    pq.write_table(pa.Table.from_pylist([FVQA]), path)
    (question,) = read(path, "fvqa")
    assert (question.id, question.question) == ("fvqa_train_0", "Which river flows under this bridge?")
    assert question.answers == ("Kelm", "the Kelm", "River Kelm")
    assert question.pictures == (NamedPicture(content=PNG),)


def test_livevqa_gives_a_question_of_each_level_and_no_letter_of_an_option(tmp_path):
    level = {
        "question": "Who speaks?",
        "options": ["A. x"],
        "Ground_Truth": "A",
        "Ground_Truth_List": ["Ada", "A. Vask"],
    }
    row = {"id": 3, "img_path": "bbc_1.webp", "level1_qa": level, "level2_qa": level | {"img_path": "bbc_2.webp"},
           "source": "bbc", "time": "2025"}  # fmt: skip
    path = tmp_path / "benchmark.json"
    path.write_text(json.dumps([row, {"id": 4, "level1_qa": None}]))
    first, second = read(path, "livevqa")
    assert (first.id, first.answers, first.pictures) == (
        "3/level1_qa",
        ("Ada", "A. Vask"),
        (NamedPicture("bbc_1.webp"),),
    )
    assert (second.id, second.pictures) == ("3/level2_qa", (NamedPicture("bbc_2.webp"),))


def test_infoseek_finds_pictures_by_id_and_entities_in_its_withkb_file(tmp_path):
    row = {"data_id": "infoseek_train_1", "image_id": "oven_01", "question": "How long is it?", "answer": ["320 m"],
           "answer_eval": [{"wikidata": 320.0, "range": [300.0, 340.0]}, "320 metres"], "data_split": "t"}  # fmt: skip
    (question,) = read(write_lines(tmp_path / "infoseek_train.jsonl", row), "infoseek")
    assert (question.answers, question.pictures) == (("320 m", "320 metres"), (NamedPicture("oven_01"),))
    kb = {"data_id": "infoseek_train_1", "entity_id": "Q5", "entity_text": "Kelm Bridge"}
    named = read_entities(
        write_lines(tmp_path / "infoseek_train_withkb.jsonl", kb, {"data_id": "x", "entity_id": "Q6"})
    )
    assert named == {"infoseek_train_1": "Kelm Bridge", "x": "Q6"}
    (tmp_path / "images" / "00").mkdir(parents=True)
    (tmp_path / "images" / "00" / "oven_01.JPEG").write_bytes(PNG)
    assert PictureFolder(tmp_path / "images").read(question.pictures[0]) == PNG


def test_webqa_takes_its_pictures_from_lines_of_a_table(tmp_path):
    row = {"Q": '"Is the roof red?"', "A": ['"Red"'], "Guid": "d5", "split": "train",
           "img_posFacts": [{"image_id": 30000001, "title": "t", "caption": "c"}], "txt_posFacts": []}  # fmt: skip
    path = tmp_path / "WebQA_train_val.json"
    path.write_text(json.dumps({"d5": row, "d6": row | {"img_posFacts": []}}))
    first, second = read(path, "webqa")
    assert (first.id, first.question, first.answers) == ("d5", "Is the roof red?", ("Red",))
    assert (first.pictures, second.pictures) == ((NamedPicture("30000001"),), ())
    lines = [f"{30000000 + number}\t{base64.b64encode(PNG + bytes([number])).decode()}\n" for number in range(3)]
    (tmp_path / "imgs.tsv").write_text("".join(lines))
    (tmp_path / "imgs.lineidx").write_text("\n".join(str(sum(map(len, lines[:number]))) for number in range(3)))
    table = PictureFolder(tmp_path / "imgs.tsv")
    assert table.read(first.pictures[0]) == PNG + b"\x01"
    assert [table.read(NamedPicture(name)) for name in ("30000009", "x", "20000001")] == [None] * 3
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "0042.png").write_bytes(PNG)
    assert [PictureFolder(tmp_path / "files").read(NamedPicture(name)) for name in ("42", "0042", "2")] == [
        PNG,
        PNG,
        None,
    ]


def test_any_table_reads_by_its_columns(tmp_path):
    row = {"ask": "Who?", "gold": {"text": "Ada", "more": ["A. Vask"]}, "pic": "1.png", "what": "Kelm Bridge"}
    columns = {"question": "ask", "answer": "gold.text", "answer_aliases": "gold.more", "image": "pic",
               "entity": "what", "language": "gone.astray"}  # fmt: skip
    (question,) = read(write_lines(tmp_path / "a.jsonl", row), "columns", columns)
    assert (question.question, question.answers, question.entity) == ("Who?", ("Ada", "A. Vask"), "Kelm Bridge")
    (usual,) = read(write_lines(tmp_path / "b.jsonl", {"question": "Who?", "answer": 7, "image": "1.png"}), "columns")
    assert (usual.answers, usual.pictures) == (("7",), (NamedPicture("1.png"),))


HOSTILE = {
    "truncated.parquet": b"PAR1" + b"\0" * 40,
    "not.json": b'{"a": ',
    "deep.json": b"[" * 200_000,
    "scalar.json": b"3",
    "strange.csv": b"a,b\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_broken_is_refused_by_its_name(tmp_path, name):
    (tmp_path / name).write_bytes(HOSTILE[name])
    with pytest.raises(ConfigError, match=name):
        list(read_rows(tmp_path / name))


def test_a_file_cut_short_gives_no_half_of_its_rows_in_silence(tmp_path):
    path = tmp_path / "cut.parquet"
    pq.write_table(pa.Table.from_pylist([FVQA] * 50), path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ConfigError, match=r"cut\.parquet"):
        list(read_rows(path))


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png",
        "/etc/passwd",
        "a/../../secret.png",
        "file:///etc/passwd",
        "https://x.example/..",
        "..",
        "a\0b",
        "http://[::1",
        "\ud800.png",
        "n" * 256 + ".png",
        "a/" * 3000 + "b",
        ".",
        "",
    ],
)
def test_a_name_that_is_no_file_of_the_folder_opens_none(tmp_path, name):
    (tmp_path / "secret.png").write_bytes(PNG)
    (tmp_path / "in").mkdir()
    assert PictureFolder(tmp_path / "in").read(NamedPicture(name)) is None


ASKED = tuple(
    Published(str(30000000 + n), f"Who designed tower {n} that the picture shows?", f"Ada Vask {n}", f"A. Vask {n}",
              f"Kelm Tower {n}", PNG * 9 + bytes([n]))
    for n in range(3)
)  # fmt: skip


@pytest.mark.parametrize("kind", WRITERS)
def test_each_layout_is_recognised_from_its_rows_and_read_whole(tmp_path, kind):
    path, folder = publish(tmp_path, kind, ASKED)
    pictures = PictureFolder(folder)
    assert read_layout(path) == WRITERS[kind][0]
    for question, asked in zip(read_questions(path), ASKED, strict=True):
        assert question.question == asked.question
        assert question.answers[0] == asked.answer
        assert (asked.alias in question.answers) == (kind not in ("webqa", "vsearcher"))
        assert question.entity == (asked.entity if kind in ("infoseek", "columns") else "")
        (shown,) = question.pictures
        assert pictures.read(shown) == asked.picture


def test_a_line_that_cannot_be_read_is_one_row_with_its_number_and_others_are_read(tmp_path):
    good = json.dumps({"question": "Who?", "answer": "Ada"})
    path = tmp_path / "a.jsonl"
    bad = ('{"answer": nope}', "[" * 100_000, "null", '{"question": "cut')
    path.write_text("\n".join(f"{good}\n{line}" for line in bad))
    unread = [row for row in read_questions(path) if isinstance(row, UnreadRow)]
    assert [row.key for row in unread] == ["1", "3", "5", "7"]
    assert all(row.why.startswith(f"row {row.key} is no ") for row in unread)
