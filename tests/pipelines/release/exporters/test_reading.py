import random

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.release.exporters.base import read_table

PICTURE = 100_000
GROUPS = 60


def test_memory_does_not_grow_with_a_table(tmp_path):
    picture = random.Random(7).randbytes(PICTURE)
    group = pa.table({"number": list(range(8)), "picture": [picture] * 8})
    with pq.ParquetWriter(tmp_path / "rows.parquet", group.schema, use_dictionary=False, compression="none") as writer:
        for _ in range(GROUPS):
            writer.write_table(group)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for row in read_table(tmp_path / "rows.parquet"):
        assert row["picture"] == picture
        most = max(most, pa.total_allocated_bytes() - before)
        rows += 1
    assert rows == 8 * GROUPS
    assert most < 5 * 8 * PICTURE
