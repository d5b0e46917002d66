import json

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.release.exporters.registry import validate_export
from tests.consumers.expected import PICTURE, Form
from tests.consumers.releases import export_told, read_pin


def test_every_row_is_loaded_and_trained_on_as_written(tmp_path, drive, note):
    export = export_told(tmp_path, "trl")
    said = drive("trl", "load_trl.py", export.folder / "train.parquet")
    assert said["version"] == read_pin("trl")
    note(export="trl", loader=said["version"], **export.compare(said, Form(native=False, line="")))


def test_plain_text_puts_every_picture_before_the_question_as_the_rules_say(tmp_path, drive):
    folder = export_told(tmp_path, "trl", ("A page.",)).folder
    path = folder / "train.parquet"
    table = pq.read_table(path)
    rows = [
        [{"role": each["role"], "content": each["content"][-1]["text"]} for each in messages]
        for messages in table["messages"].to_pylist()
    ]
    kept = json.loads(table.schema.metadata[b"huggingface"])
    plain = {name: {"dtype": "string", "_type": "Value"} for name in ("role", "content")}
    kept["info"]["features"]["messages"] = [plain]
    changed = table.set_column(0, "messages", pa.array(rows))
    pq.write_table(changed.replace_schema_metadata({"huggingface": json.dumps(kept)}), path)
    assert any("content: Input should be a valid list" in problem for problem in validate_export(folder, "trl"))
    row = drive("trl", "load_trl.py", path)["rows"][0]
    assert f"<|im_start|>user\n{PICTURE * 3}When" in row["text"]
