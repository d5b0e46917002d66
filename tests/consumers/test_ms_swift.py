import re

import pytest

from tests.consumers.expected import Form
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
