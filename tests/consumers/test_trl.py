from tests.consumers.expected import Form
from tests.consumers.releases import export_told, read_pin


def test_every_row_is_loaded_and_trained_on_as_written(tmp_path, drive, note):
    export = export_told(tmp_path, "trl")
    said = drive("trl", "load_trl.py", export.folder / "train.parquet")
    assert said["version"] == read_pin("trl")
    note(export="trl", loader=said["version"], **export.compare(said, Form(native=False, line="")))
