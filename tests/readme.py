"""Keeps README and docs true: generated blocks are made from a finished demo in ./workspace and compared or written.

python -m tests.readme           compare; exit 1 when they differ (CI does this after the demo)
python -m tests.readme --write   write them, and the example's picture
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from pipelines.run.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "data_cards" / "docs").glob("*.md")))
"""Files that may hold generated blocks."""
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


def find_proof(workspace: Path) -> dict:
    """Return the proof row of the example."""
    latest = Workspace(workspace).read_latest()
    wanted = choose_row(workspace)["id"]
    folder = workspace / "releases" / "vqa" / latest["release:vqa"] / "proofs"
    for path in sorted(folder.glob("*.parquet")):
        for row in pq.read_table(path, filters=[("record_id", "==", wanted)]).to_pylist():
            return row
    raise LookupError(f"{folder}: no proof of {wanted}")


def render_asked(row: Mapping[str, Any]) -> str:
    """Return the example's question and answer."""
    said = f"> {row['text']}\n>\n> **{row['answer']['surface']}**\n"
    return f"{said}\n`synth explain {row['record_id']}` shows its whole way.\n"


def render_proof(row: Mapping[str, Any]) -> str:
    """Return the example's hops and its last fact with where each is stated, as a table."""
    proof = row["proof"]
    titles = {node["page_id"]: node["title"] for node in proof["nodes"]}
    lines = ["| hop | says | the page says | where |", "|---:|---|---|---|"]
    for hop in proof["hops"]:
        says = f"{titles[hop['subject_id']]} has the {hop['relation']} {titles[hop['object_id']]}"
        lines.append(f"| {hop['index']} | {says} | {_quote(hop['evidence'])} |")
    says = f"{proof['nodes'][-1]['title']} has the {proof['answer_relation']} {row['answer']['surface']}"
    lines.append(f"| asked | {says} | {_quote(proof['answer_evidence'])} |")
    if proof["corroboration"]:
        lines.append(f"| confirmed | the same, in prose | {_quote(proof['corroboration'])} |")
    return "\n".join(lines) + "\n"


def _quote(evidence: Mapping[str, Any]) -> str:
    place = (
        f"*{evidence['title']}*, revision {evidence['revision']}, characters {evidence['start']} to {evidence['end']}"
    )
    field = f", infobox field `{evidence['key']}`" if evidence["key"] else ""
    text = evidence["text"].replace("|", "\\|")
    return f"`{text}` | {place}{field}"


def render_counts(row: Mapping[str, Any]) -> str:
    """Return the example's counts as a table."""
    titles = [node["title"] for node in row["proof"]["nodes"]]
    lines = ["| count | of | value |", "|---|---|---:|"]
    for count in row["proof"]["counts"]:
        value = f"at least {count['value']}" if count["capped"] else str(count["value"])
        lines.append(f"| {count['name']} | {titles[count['node']]} | {value} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Compare or write the blocks; return the exit code."""
    workspace = ROOT / "workspace"
    proof = find_proof(workspace)
    blocks = {"row": render_row(workspace), "funnel": render_funnel(workspace), "asked": render_asked(proof)}
    blocks |= {"proof": render_proof(proof), "counts": render_counts(proof)}
    picture = choose_row(workspace)["image"]["bytes"]
    differ = [] if PICTURE.read_bytes() == picture else [PICTURE]
    for page in PAGES:
        text = page.read_text("utf-8")
        fresh = BLOCK.sub(lambda match: match[1] + blocks[match["name"]] + match[4], text)
        if fresh != text:
            differ.append(page)
        if "--write" in arguments:
            page.write_text(fresh, "utf-8")
    if "--write" in arguments:
        PICTURE.write_bytes(picture)
        return 0
    named = ", ".join(str(path.relative_to(ROOT)) for path in differ)
    same = "README and docs are true\n"
    sys.stdout.write(f"{named}: differs from the demo: python -m tests.readme --write\n" if differ else same)
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
