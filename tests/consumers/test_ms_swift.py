import re

import pytest

from pipelines.release.exporters.registry import validate_export
from tests.consumers.expected import PICTURE, Form
from tests.consumers.releases import export_told, read_pin

VARIABLE = re.compile(r"\{\{(SYSTEM|QUERY|RESPONSE|ROUND0|ROUND1)\}\}")


def space_variables(text):
    return VARIABLE.sub(r"{ {\1}}", text)


FORMS = {
    "native": Form(native=True, flags=True, asked=space_variables, told=space_variables),
    "text": Form(native=False, flags=True, asked=space_variables),
}


@pytest.mark.parametrize("calls", FORMS)
def test_every_row_is_loaded_and_trained_on_as_written(calls, tmp_path, drive, note):
    export = export_told(tmp_path, "ms-swift", calls=calls)
    said = drive("ms-swift", "load_ms_swift.py", export.folder, export.folder / "train.jsonl")
    assert said["version"] == read_pin("ms-swift", "ms_swift")
    note(export=f"ms-swift {calls}", loader=said["version"], **export.compare(said, FORMS[calls]))


def test_a_placeholder_too_few_moves_a_thumbnail_to_the_question_as_the_rules_say(tmp_path, drive):
    folder = export_told(tmp_path, "ms-swift", ("A page.",)).folder
    path = folder / "train.jsonl"
    path.write_text(path.read_text().replace("<image><image>", "<image>"))
    assert "2 placeholders for 3 pictures" in validate_export(folder, "ms-swift")[0]
    row = drive("ms-swift", "load_ms_swift.py", folder, path)["rows"][0]
    assert f"<|im_start|>user\n{PICTURE}{PICTURE}\nWhen" in row["text"]
