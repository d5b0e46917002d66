"""Each published layout reads as its documentation says, and no hostile file of questions does harm."""

import base64
import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus import layouts
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


def test_fvqa_of_mars_has_the_same_columns_as_lines_with_paths(tmp_path):
    row = FVQA | {"prompt": [{"role": "user", "content": "<image>\nWhich river?"}], "images": [{"image": "a/1.jpg"}]}
    row["reward_model"] = {"ground_truth": "Kelm", "candidate_answers": ["River Kelm"]}
    (question,) = read(write_lines(tmp_path / "train.jsonl", row), "fvqa")
    assert (question.question, question.answers) == ("Which river?", ("Kelm", "River Kelm"))
    assert question.pictures == (NamedPicture("a/1.jpg"),)


def test_fvqa_of_2017_is_an_object_of_questions(tmp_path):
    row = {
        "question": "Which animal climbs?",
        "answer": "cat",
        "img_file": "val_1.jpg",
        "fact": ["e1"],
        "ans_source": "KB",
    }
    path = tmp_path / "all_qs_dict_release.json"
    path.write_text(json.dumps({"7": row, "8": row}))
    first, _ = read(path, "fvqa-facts")
    assert (first.id, first.answers, first.pictures) == ("7", ("cat",), (NamedPicture("val_1.jpg"),))


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


@pytest.mark.parametrize("offsets", ["-5", "28", "9" * 30, "9" * 5000, "x"])
def test_offsets_that_lead_out_of_a_table_are_refused_before_it_is_read(tmp_path, offsets):
    (tmp_path / "imgs.tsv").write_text("10000000\tYWJj\n")
    (tmp_path / "imgs.lineidx").write_text(f"{offsets}\n")
    table = PictureFolder(tmp_path / "imgs.tsv")
    for look in (table.probe, lambda: table.read(NamedPicture("10000000"))):
        with pytest.raises(ConfigError, match=r"imgs\.lineidx"):
            look()


def test_an_id_longer_than_any_is_in_no_table(tmp_path):
    (tmp_path / "imgs.tsv").write_text("10000000\tYWJj\n")
    (tmp_path / "imgs.lineidx").write_text("0\n")
    table = PictureFolder(tmp_path / "imgs.tsv")
    assert [table.read(NamedPicture(name)) for name in ("10000000", "1" * 5000)] == [b"abc", None]


def test_a_file_of_the_folder_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "a.png").mkdir()
    (tmp_path / "a.png" / "b.png").symlink_to(tmp_path / "a.png" / "b.png")
    with pytest.raises(ConfigError, match=r"b\.png"):
        PictureFolder(tmp_path / "a.png").read(NamedPicture("b"))


def test_simplevqa_says_its_language_and_what_is_shown(tmp_path):
    row = {"data_id": 5, "image": {"bytes": PNG, "path": "5.png"}, "language": "EN", "question": "Who built it?",
           "answer": "Ada Vask", "atomic_question": "What is it?", "atomic_fact": "Kelm Bridge"}  # fmt: skip
    path = tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    (question,) = read(path, "simplevqa")
    assert (question.id, question.language, question.entity) == ("5", "EN", "Kelm Bridge")
    assert question.pictures[0].content == PNG
    written = row | {"image": base64.b64encode(PNG * 9).decode()}
    (again,) = read(write_lines(tmp_path / "test.jsonl", written), "simplevqa")
    assert again.pictures == (NamedPicture(content=PNG * 9),)


def test_mm_searchexam_names_pictures_by_address(tmp_path):
    row = {"question": "When?", "image_path": "https://raw.example/store/a%20b.png?x=1", "answer": "1901"}
    (question,) = read(write_lines(tmp_path / "mmsearchexam.jsonl", row), "mm-searchexam")
    (tmp_path / "a b.png").write_bytes(PNG)
    assert question.answers == ("1901",)
    assert PictureFolder(tmp_path).read(question.pictures[0]) == PNG


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
    "bytes.jsonl": b"\xff\xfe\x00",
    "deep.jsonl": b"[" * 200_000,
    "scalar.json": b"3",
    "list.jsonl": b"[1]\n",
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
    "text", ['{"question": "' + "a\n" * 40_000 + '"}', '{"a": 1}' * 160_000], ids=["lines", "rows"]
)
def test_an_object_of_many_lines_and_a_line_of_many_objects_take_linear_time(tmp_path, text):
    (tmp_path / "many.jsonl").write_text(text)
    started = time.process_time()
    assert sum(1 for _ in read_rows(tmp_path / "many.jsonl")) == max(1, text.count("}"))
    assert time.process_time() - started < 2


def test_a_line_or_document_without_end_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "LINE_BYTES", 1 << 20)
    monkeypatch.setattr(layouts, "DOCUMENT_BYTES", 1 << 20)
    for name, match in (("long.jsonl", "more than 1 MiB"), ("large.json", "give its rows as lines")):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 33)
        with pytest.raises(ConfigError, match=match):
            list(read_rows(tmp_path / name))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "prompt", "images", "image", "reward_model", "question", "answer", "img_file", "level1_qa", "image_id", "Q", "A",
    "answer_eval", "img_posFacts", "atomic_fact", "language", "image_path", "messages", "data_id", "id",
)  # fmt: skip


@given(st.sampled_from(sorted(LAYOUTS)), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8))
def test_values_of_any_type_make_questions_of_texts_or_none(layout, row):
    for question in LAYOUTS[layout]("k", row):
        assert isinstance(question.id, str)
        assert isinstance(question.question, str)
        assert all(isinstance(answer, str) for answer in question.answers)
        assert all(isinstance(p.name, str) and isinstance(p.content, bytes) for p in question.pictures)
        assert all(isinstance(text, str) for text in (question.entity, question.language))


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
UNALIASED = {"fvqa-facts", "webqa", "simplevqa", "mm-searchexam", "vdr", "opensearch-vl", "vsearcher", "sharegpt",
             "messages", "alpaca", "verl"}  # fmt: skip
NAMED = {"infoseek", "simplevqa", "columns"}
MARKED = {"opensearch-vl", "sharegpt", "alpaca", "verl"}


@pytest.mark.parametrize("kind", WRITERS)
def test_each_layout_is_recognised_from_its_rows_and_read_whole(tmp_path, kind):
    path, folder = publish(tmp_path, kind, ASKED)
    pictures = PictureFolder(folder)
    assert read_layout(path) == WRITERS[kind][0]
    read = list(read_questions(path))
    for question, asked in zip(read, ASKED, strict=True):
        assert question.question == asked.question
        assert question.answers[0] == asked.answer
        assert (asked.alias in question.answers) == (kind not in UNALIASED)
        assert question.entity == (asked.entity if kind in NAMED else "")
        (shown,) = question.asked_with
        assert kind == "vsearcher" or pictures.read(shown) == asked.picture
        assert question.placeholders == (kind in MARKED)
        marks = sum(text.count("<image>") for text in question.texts)
        assert marks == (len(question.pictures) if kind in MARKED else 0)


def test_a_conversation_tells_what_its_question_shows_from_what_tools_show(tmp_path):
    path, _ = publish(tmp_path, "opensearch-vl", ASKED)
    question = next(read_questions(path))
    assert (len(question.pictures), question.asked_with) == (2, question.pictures[:1])
    assert [message.role for message in question.messages] == ["human", "gpt", "observation", "gpt"]
    assert question.has_messages


def test_split_and_category_are_kept_where_a_row_says_them(tmp_path):
    said = {}
    for kind in ("webqa", "infoseek", "mmsearch", "verl", "vdr", "livevqa"):
        path, _ = publish(tmp_path / kind, kind, ASKED[:1])
        (question,) = read_questions(path)
        said[kind] = (question.split, question.category)
    assert said == {"webqa": ("val", "Others"), "infoseek": ("val", ""), "mmsearch": ("", "arts"),
                    "verl": ("test", "vqa"), "vdr": ("", "arts"), "livevqa": ("", "person")}  # fmt: skip


def test_a_question_of_text_misses_no_picture(tmp_path):
    search = {"sample_id": "a", "query": "Who?", "query_image": None, "gt_answer": "Ada"}
    (found,) = read_questions(write_lines(tmp_path / "a.jsonl", search))
    assert (found.pictures, found.pictureless) == ((), True)
    web = {"Q": "Who?", "A": ["Ada"], "img_posFacts": [], "txt_posFacts": [{"title": "t"}]}
    (told,) = read_questions(write_lines(tmp_path / "b.jsonl", web))
    assert (told.pictures, told.pictureless) == ((), True)


TYPED = {
    "responses": [{"type": "input_text", "text": "Who?"}, {"type": "input_image", "image_url": "1.png"}],
    "qwen": [{"image": "1.png"}, {"text": "Who?"}],
    "qwen of today": [{"type": "image", "image": "1.png", "text": None}, {"type": "text", "text": "Who?"}],
    "next LLaMA-Factory": [{"type": "image", "value": "1.png"}, {"type": "text", "value": "Who?"}],
}


@pytest.mark.parametrize("kind", TYPED)
def test_typed_content_is_text_and_pictures_in_any_of_its_spellings(tmp_path, kind):
    (question,) = read_questions(
        write_lines(tmp_path / "a.jsonl", {"messages": [{"role": "user", "content": TYPED[kind]}]})
    )
    assert (question.question, question.pictures) == ("Who?", (NamedPicture("1.png"),))
    assert not question.answers


def test_a_part_that_only_says_that_a_picture_is_there_stands_for_one_of_the_column(tmp_path):
    row = {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Who?"}]},
                        {"role": "assistant", "content": [{"type": "text", "text": "<think>x</think>\\boxed{Ada}"}]}],
           "images": [{"bytes": PNG, "path": None}]}  # fmt: skip
    path = tmp_path / "trl.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    (question,) = read_questions(path)
    assert (question.question, question.answers, question.placeholders) == ("Who?", ("Ada",), True)
    assert question.texts[0].count("<image>") == len(question.pictures) == 1


def test_bytes_are_bytes_in_any_of_their_spellings(tmp_path):
    as_struct = {"question": "Who?", "answer": "Ada", "image": {str(n): byte for n, byte in enumerate(PNG)}}
    as_list = {"question": "Who?", "answer": "Ada", "image": list(PNG)}
    for question in read_questions(write_lines(tmp_path / "a.jsonl", as_struct, as_list)):
        assert question.pictures == (NamedPicture(content=PNG),)


def test_a_row_without_a_question_says_why_and_others_are_read(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", {"question": "Who?", "answer": "Ada"}, {"caption": "A tower", "url": "u"})
    read, unread = read_questions(path)
    assert (read.question, unread) == (
        "Who?", UnreadRow("1", "has neither a question nor messages; its columns are caption, url"))  # fmt: skip


def test_a_line_that_cannot_be_read_is_one_row_with_its_number_and_others_are_read(tmp_path):
    good = json.dumps({"question": "Who?", "answer": "Ada"})
    path = tmp_path / "a.jsonl"
    bad = ('{"answer": ' + "9" * 5000 + "}", '{"answer": nope}', "[" * 100_000, "null", '{"question": "cut')
    path.write_text("\n".join(f"{good}\n{line}" for line in bad))
    read = list(read_questions(path))
    unread = [row for row in read if isinstance(row, UnreadRow)]
    assert len(read) - len(unread) == len(bad)
    assert [row.key for row in unread] == ["1", "3", "5", "7", "9"]
    assert [row.why.partition(":")[0] for row in unread] == [
        "line 2",
        "line 4",
        "line 6",
        "row 7 is no object",
        "line 10",
    ]
    assert not any("sys." in row.why for row in unread)
    with pytest.raises(ConfigError, match=r"line 2: row 1 Exceeds the limit"):
        list(read_rows(path))


def test_a_file_without_one_row_that_can_be_read_is_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("{nope}\n{nope}\n")
    with pytest.raises(ConfigError, match=r"a\.jsonl: none of its rows can be read; line 1"):
        list(read_questions(path))


def test_objects_over_several_lines_and_strings_with_line_breaks_are_rows(tmp_path):
    rows = [{"question": f"Who\nis {n}?", "answer": "Ada"} for n in range(50)]
    path = tmp_path / "spread.jsonl"
    path.write_text("\n".join(json.dumps(row, indent=2).replace("\\n", "\n") for row in rows))
    assert [row for _, row in read_rows(path)] == rows
    path.write_text(json.dumps(rows[0]) + "\n" + '{"question": "cut')
    with pytest.raises(ConfigError, match=r"spread\.jsonl.*row 1 has no end"):
        list(read_rows(path))
    path.write_text('{"question": "cut\n' + json.dumps(rows[0]))
    with pytest.raises(ConfigError, match=r"spread\.jsonl.*row 0"):
        list(read_rows(path))
