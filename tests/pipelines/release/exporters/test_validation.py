"""``validate_export`` over exports that somebody else wrote, changed or cut off."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigError
from pipelines.release.exporters.base import read_lines
from pipelines.release.exporters.registry import export_release, validate_export
from tests.pipelines.release.exporters.trajectories import make_release

SFT = ("llamafactory", "ms-swift", "trl", "verl-sft")
LINES = ("llamafactory", "ms-swift")
TOLD = ("A page.", "Another.", "A third.", "A fourth.")


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Each exporter's folder."""
    root = tmp_path_factory.mktemp("validation")
    release, _ = make_release(root, TOLD)
    for name in SFT:
        export_release(release, root / "out" / name, name)
    return {name: root / "out" / name for name in SFT}


def test_a_folder_that_is_none_cannot_be_validated(tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        validate_export(tmp_path / "out", "trl")


def test_a_file_cannot_be_validated_as_a_folder(tmp_path):
    (tmp_path / "train.jsonl").write_text("{}")
    with pytest.raises(ConfigError, match="is a file; name its folder"):
        validate_export(tmp_path / "train.jsonl", "trl")


@pytest.mark.parametrize("to", LINES)
def test_half_a_surrogate_pair_in_a_foreign_export_is_found(to, exports, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(exports[to], folder)
    path = folder / "train.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("A page.", r"A \ud800 page."), encoding="utf-8")
    assert [problem.partition(":")[0] for problem in validate_export(folder, to)] == ["train.jsonl line 1"]


@pytest.mark.parametrize("line", ["no json", "[]", '{"a": 1', "[" * 100_000])
@pytest.mark.parametrize("to", LINES)
def test_a_line_that_is_no_object_is_found(to, line, exports, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(exports[to], folder)
    with (folder / "train.jsonl").open("a") as lines:
        lines.write(line + "\n")
    assert len(validate_export(folder, to)) == 1


@pytest.mark.parametrize("to", LINES)
def test_bytes_that_are_no_text_are_found(to, exports, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(exports[to], folder)
    with (folder / "train.jsonl").open("ab") as lines:
        lines.write(b'{"a": "\xff\xfe"}\n')
    (problem,) = validate_export(folder, to)
    assert f"line {1 + len(TOLD)} is no JSON" in problem


@pytest.mark.parametrize("to", LINES)
def test_a_file_without_rows_is_no_dataset(to, exports, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(exports[to], folder)
    (folder / "train.jsonl").write_text("")
    assert validate_export(folder, to) == ("train.jsonl: holds no row",)


@pytest.mark.parametrize("to", ["trl", "verl-sft"])
def test_a_table_without_rows_is_no_dataset(to, exports, tmp_path):
    table = pq.read_table(exports[to] / "train.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "train.parquet")
    assert validate_export(tmp_path, to) == ("train.parquet: holds no row",)


def test_text_in_a_table_that_is_no_text_is_found(tmp_path):
    raw = pa.array([b"\xff\xfe"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    pq.write_table(pa.table({"messages": texts}), tmp_path / "train.parquet")
    (problem,) = validate_export(tmp_path, "trl")
    assert "cannot be read" in problem


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"\x89PNG\r\n\x1a\n"])
@pytest.mark.parametrize("to", LINES)
def test_a_file_that_no_reader_opens_as_a_picture_is_found_once(to, content, exports, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(exports[to], folder)
    next((folder / "images").rglob("*.png")).write_bytes(content)
    (problem,) = validate_export(folder, to)
    assert ".png" in problem


@pytest.mark.parametrize("to", ["trl", "verl-sft"])
def test_bytes_that_no_reader_opens_as_a_picture_are_found(to, exports, tmp_path):
    table = pq.read_table(exports[to] / "train.parquet").slice(0, 2)
    rows = table.to_pylist()
    rows[1]["images"][2]["bytes"] = b"GIF of nothing"
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / "train.parquet")
    (problem,) = validate_export(tmp_path, to)
    assert problem.startswith("train.parquet row 2: images: picture 2 is no PNG")


def rename(rows):
    """Return rows under the names of OpenSearch-VL's data: messages with a role and a content."""
    roles = {"human": "user", "gpt": "assistant", "observation": "tool", "function_call": "call"}
    for row in rows:
        turns = row.pop("conversations")
        row["messages"] = [{"role": roles[turn["from"]], "content": turn["value"]} for turn in turns]
    return rows


TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "observation_tag": "tool",
    "function_tag": "call",
    "system_tag": "system",
}


def make_foreign(exports, folder, **entry):
    """Write an array with names of its own beside pictures of ours, and return its rows."""
    shutil.copytree(exports["llamafactory"], folder)
    rows = rename(list(read_lines(folder / "train.jsonl")))
    columns = {"messages": "messages", "images": "images", "system": "system", "tools": "tools"}
    listed = {"file_name": "mine.json", "formatting": "sharegpt", "columns": columns, "tags": TAGS, **entry}
    (folder / "dataset_info.json").write_text(json.dumps({"mine": listed}))
    (folder / "mine.json").write_text(json.dumps(rows))
    return rows


def test_an_array_with_columns_and_tags_of_its_own_is_held_to_the_rules(exports, tmp_path):
    rows = make_foreign(exports, tmp_path / "foreign")
    assert validate_export(tmp_path / "foreign", "llamafactory") == ()
    rows[2]["messages"][0]["content"] += "<image>"
    rows[3]["messages"].append({"role": "tool", "content": "and?"})
    (tmp_path / "foreign" / "mine.json").write_text(json.dumps(rows))
    problems = validate_export(tmp_path / "foreign", "llamafactory")
    assert [problem.partition(": ")[0] for problem in problems] == ["mine.json row 3", "mine.json row 4"]


def test_a_file_that_is_not_read_is_not_passed(exports, tmp_path):
    make_foreign(exports, tmp_path / "foreign", file_name="mine.csv")
    (tmp_path / "foreign" / "mine.csv").write_text("a,b")
    (problem,) = validate_export(tmp_path / "foreign", "llamafactory")
    assert "only .json and .jsonl are" in problem


@pytest.mark.parametrize("text", ["[1]", "[{]"])
def test_an_array_of_no_rows_is_found(text, exports, tmp_path):
    make_foreign(exports, tmp_path / "foreign")
    (tmp_path / "foreign" / "mine.json").write_text(text)
    assert len(validate_export(tmp_path / "foreign", "llamafactory")) == 1


@pytest.mark.parametrize("to", SFT)
def test_an_empty_folder_is_no_export(to, tmp_path):
    assert len(validate_export(tmp_path, to)) == 1


@pytest.mark.parametrize("to", ["trl", "verl-sft"])
def test_a_file_that_is_no_parquet_is_found(to, tmp_path):
    (tmp_path / "train.parquet").write_bytes(b"PAR1 no")
    assert len(validate_export(tmp_path, to)) == 1


def test_a_broken_list_of_datasets_is_found(exports, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(exports["llamafactory"], folder)
    (folder / "dataset_info.json").write_text("{")
    assert "is no JSON" in validate_export(folder, "llamafactory")[0]
    (folder / "dataset_info.json").write_text("[" * 100_000)
    assert "is no JSON" in validate_export(folder, "llamafactory")[0]
    (folder / "dataset_info.json").write_text("{}")
    assert "no object with datasets" in validate_export(folder, "llamafactory")[0]


@pytest.mark.parametrize("to", LINES)
def test_a_picture_that_went_missing_is_found(to, exports, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(exports[to], folder)
    next((folder / "images").rglob("*.png")).unlink()
    assert any("is missing" in problem for problem in validate_export(folder, to))
