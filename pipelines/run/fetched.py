"""The pictures that the stage groundings fetched, read back for the searches of later stages."""

from collections.abc import Iterator

import pyarrow.parquet as pq

from pipelines.errors import ConfigError
from pipelines.run.shards import check_part
from pipelines.run.workspace import StageFolder
from schemas.datasets import FetchedPicture


def read_fetched(folder: StageFolder) -> Iterator[FetchedPicture]:
    """Yield what was fetched for each row of groundings, in order; no other column is read.

    Raises:
        ConfigError: if the stage is not complete: pictures of rows that are still to come would be missing.
        CorruptInput: if a file is damaged.
    """
    manifest = folder.read_manifest()
    if manifest is None:
        raise ConfigError(f"{folder.path}: not complete; searches by picture need all that it fetches")
    for sidecar in manifest.shards:
        path = folder.part(sidecar.shard)
        check_part(path, sidecar.files[0].sha256)
        for batch in pq.ParquetFile(path).iter_batches(columns=["fetched"]):
            for row in batch.column("fetched").flatten().to_pylist():
                yield FetchedPicture.model_validate(row)
