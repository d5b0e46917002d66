"""An exporter of one line a row."""

import json

from pipelines.api import Exporter, ExportOptions, Written, read_release
from schemas.datasets import Dataset


def write(release, out, options: ExportOptions) -> Written:
    from pipelines.release.rows import SftRow

    rows = [row.id for _, row in read_release(release, "sft", SftRow)]
    (out / "rows.jsonl").write_text("".join(json.dumps({"id": each}) + "\n" for each in rows))
    return Written(len(rows), ("only ids are written",))


def make_exporter(dataset: Dataset = "sft") -> Exporter:
    """Return the exporter."""
    return Exporter("lines", dataset, write)
