"""Keeps README true: its generated blocks are made from a finished demo in ./workspace and compared or written.

python -m tests.readme           compare; exit 1 when they differ (CI does this after the demo)
python -m tests.readme --write   write them, and the example's picture
"""

import json
import re
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from pipelines.run.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "data_cards" / "example.jpg"
BLOCK = re.compile(r"(<!-- begin (?P<name>\w+) -->\n)(?P<body>.*?)(<!-- end (?P=name) -->)", re.DOTALL)


def read_manifests(workspace: Path) -> list[dict]:
    """Return the corpus manifest and those of the last run's stages, in pipeline order."""
    latest = Workspace(workspace).read_latest()
    names = [
        "seeds",
        "paths",
        "questions",
        "rewrites",
        "groundings",
        "difficulty",
        "enhancements",
        "selections",
        "rollouts",
        "trajectories",
        "releases",
    ]
    corpus = json.loads((workspace / "corpus" / latest["corpus"] / "manifest.json").read_text())
    stages = [json.loads((workspace / "stages" / n / latest[n] / "manifest.json").read_text()) for n in names]
    return [{**corpus, "stage": "corpus", "rows_out": corpus["kept"]}, *stages]


def render_funnel(workspace: Path) -> str:
    """Return the funnel as a Markdown table."""
    lines = [
        "| stage | rows in | kept | rejected | failed | rows out | reasons |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in read_manifests(workspace):
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(row["rejected"].items()))
        numbers = [row["rows_in"], row["kept"], sum(row["rejected"].values()), row["failed"], row["rows_out"]]
        lines.append(f"| {row['stage']} | " + " | ".join(f"{n:,}" for n in numbers) + f" | {reasons} |")
    return "\n".join(lines) + "\n"


def choose_row(workspace: Path) -> dict:
    """Return the three-hop question about a bridge, tower or castle with the smallest id, else any of three hops."""
    latest = Workspace(workspace).read_latest()
    data = workspace / "releases" / "vqa" / latest["release:vqa"] / "data" / "*.parquet"
    query = f"""
        SELECT id FROM read_parquet('{data}') WHERE hops = 3
        ORDER BY anchor_type NOT IN ('bridge', 'lighthouse', 'tower', 'castle'), id LIMIT 1
    """
    ((row_id,),) = duckdb.sql(query).fetchall() or ((None,),)
    for path in sorted(data.parent.glob("*.parquet")):
        for row in pq.read_table(path, filters=[("id", "==", row_id)]).to_pylist():
            return row
    raise LookupError("the demo released no three-hop question")


def render_row(workspace: Path) -> str:
    """Return the example as a picture and its row in JSON."""
    row = choose_row(workspace)
    shown = {
        key: row[key]
        for key in ("id", "question", "answer", "answer_type", "hops", "chain", "r_chain", "r_alone", "n_img")
    }
    body = ",\n".join(f' "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in shown.items())
    return f"![{row['anchor_type']}](data_cards/{PICTURE.name})\n\n```json\n{{\n{body}\n}}\n```\n"


def main(arguments: list[str]) -> int:
    """Compare or write the blocks; return the exit code."""
    workspace = ROOT / "workspace"
    blocks = {"row": render_row(workspace), "funnel": render_funnel(workspace)}
    text = README.read_text()
    fresh = BLOCK.sub(lambda match: match[1] + blocks[match["name"]] + match[4], text)
    if "--write" in arguments:
        README.write_text(fresh)
        PICTURE.write_bytes(choose_row(workspace)["image"]["bytes"])
        return 0
    same = fresh == text and PICTURE.read_bytes() == choose_row(workspace)["image"]["bytes"]
    sys.stdout.write("README is true\n" if same else "README differs from the demo: python -m tests.readme --write\n")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
