"""A stage whose rows change says so: its version is part of its key, and what was made before is made again.

``python -m pytest tests/pipelines/stages/test_versions.py --store-versions`` writes the table anew.
"""

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

GOLDEN = Path(__file__).with_name("versions.json")
STAGES = (
    "seeds", "paths", "questions", "rewrites", "groundings", "difficulty", "enhancements", "selections", "rollouts",
    "trajectories", "releases",
)  # fmt: skip


def digest_rows(folder):
    """Digest what a stage made and refused, without the keys that its version enters."""
    digest = hashlib.sha256()
    for kind in ("part", "rejected"):
        rows = [row for path in sorted(folder.glob(f"{kind}-*.parquet")) for row in pq.read_table(path).to_pylist()]
        for row in rows:
            row.pop("key", None)
            digest.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")
    return digest.hexdigest()


@pytest.fixture(scope="module")
def made(demo, request):
    stages = {name: demo.stage(name) for name in STAGES}
    versions = {name: stage.read_manifest().stage_version for name, stage in stages.items()}
    found = {name: {"version": versions[name], "rows": digest_rows(stage.path)} for name, stage in stages.items()}
    if request.config.getoption("--store-versions"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_rows_change_only_with_the_version_of_their_stage(made, stage):
    kept = json.loads(GOLDEN.read_text())
    if any(made[earlier]["rows"] != kept[earlier]["rows"] for earlier in STAGES[: STAGES.index(stage)]):
        pytest.skip("an earlier stage changed, and with it what comes in here")
    golden = kept[stage]
    if made[stage]["version"] == golden["version"]:
        advice = f"raise `version` of the stage {stage}, or undo the change; then run with --store-versions"
        assert made[stage]["rows"] == golden["rows"], f"rows of {stage} changed: {advice}"
    else:
        assert made[stage]["rows"] != golden["rows"], f"{stage} makes the same rows; take the new version back"
