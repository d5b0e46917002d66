"""The pictures that the stage groundings fetched, read back for the searches of later stages."""

from collections.abc import Iterator

import pyarrow.parquet as pq

from pipelines.run.shards import list_parts
from pipelines.run.workspace import StageFolder
from schemas.datasets import FetchedPicture


def read_fetched(folder: StageFolder) -> Iterator[FetchedPicture]:
    """Yield what was fetched for each row of groundings, in order; no other column is read.

    Raises:
        ConfigError: if the stage is not complete: pictures of rows that are still to come would be missing.
        CorruptInput: if a part is gone or has other bytes.
    """
    for path in list_parts(folder):
        for batch in pq.ParquetFile(path).iter_batches(columns=["fetched"]):
            for row in batch.column("fetched").flatten().to_pylist():
                yield FetchedPicture.model_validate(row)
