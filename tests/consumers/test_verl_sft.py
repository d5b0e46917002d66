from tests.consumers.expected import Form
from tests.consumers.releases import export_told, read_pin


def test_every_row_is_loaded_and_trained_on_as_written(tmp_path, drive, note):
    export = export_told(tmp_path, "verl-sft")
    said = drive("verl", "load_verl_sft.py", export.folder / "train.parquet")
    assert said["version"] == read_pin("verl")
    note(export="verl-sft", loader=said["version"], **export.compare(said, Form(native=False)))
