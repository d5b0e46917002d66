import pytest

from tests.consumers.expected import NO_THOUGHT, Form
from tests.consumers.releases import export_told, read_pin
from tests.pipelines.release.exporters.trajectories import make_cropping


def space_variables(text):
    return text.replace("{{content}} {{idx}}", "{ {content}} { {idx}}")


FORMS = [
    ("native", "qwen3_vl", Form(native=True, unthinking=NO_THOUGHT)),
    ("native", "qwen3_vl_nothink", Form(native=True)),
    ("text", "qwen3_vl_nothink", Form(native=False, asked=space_variables)),
]


@pytest.mark.parametrize(("calls", "template", "form"), FORMS)
def test_every_row_is_loaded_and_trained_on_as_written(calls, template, form, tmp_path, drive, note):
    export = export_told(tmp_path, "llamafactory", calls=calls)
    said = drive("llamafactory", "load_llamafactory.py", export.folder, "synth_train", template)
    assert said["version"] == read_pin("llamafactory")
    note(export=f"llamafactory {calls} {template}", loader=said["version"], **export.compare(said, form))


@pytest.mark.parametrize("dialect", ["opensearch-vl", "mars"])
def test_rows_in_another_dialect_are_trained_on_as_a_rollout_in_it_would_be(dialect, tmp_path, drive, note):
    export = export_told(tmp_path, "llamafactory", make=make_cropping, calls="text", dialect=dialect)
    said = drive("llamafactory", "load_llamafactory.py", export.folder, "synth_train", "qwen3_vl_nothink")
    form = Form(native=False, asked=space_variables)
    note(export=f"llamafactory text {dialect}", loader=said["version"], **export.compare(said, form))
