"""rLLM's own dataset registry over an export: loaded as it is, and registered once more under another name.

Usage: load_rllm.py SOURCE FOLDER NAME SPLIT (SOURCE is a checkout of rLLM: it is on no package index)
"""

import hashlib
import json
import os
import sys

import pandas

source, folder, name, split = sys.argv[1:5]
os.environ["RLLM_HOME"] = folder
sys.path.insert(0, source)

from rllm.data.dataset import DatasetRegistry  # noqa: E402


def describe(row):
    """Return a row with digests for pictures."""
    return row | {"images": [hashlib.sha256(image).hexdigest() for image in row["images"]]}


def read_companion(dataset):
    """Return what rLLM hands to veRL: the rows in extra_info, with wrapped pictures."""
    rows = pandas.read_parquet(dataset.get_verl_data_path())["extra_info"]
    return [row | {"images": [hashlib.sha256(one["bytes"]).hexdigest() for one in row["images"]]} for row in rows]


loaded = DatasetRegistry.load_dataset(name, split)
again = DatasetRegistry.register_dataset("again", loaded.data, split)
told = {
    "splits": DatasetRegistry.get_dataset_splits(name),
    "rows": [describe(row) for row in loaded.data],
    "companion": read_companion(loaded),
    "registered": [describe(row) for row in DatasetRegistry.load_dataset("again", split).data],
    "registered_companion": read_companion(again),
}
sys.stdout.write("\n" + json.dumps(told) + "\n")
