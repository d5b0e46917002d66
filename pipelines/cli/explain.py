"""``synth explain ID``: everything about one record across stages, from its seed to the releases that hold it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from pipelines.cli.facets import STAGE_MODELS, Refusal, describe_branch, describe_record, make_grid, read_refusals
from pipelines.errors import ConfigError
from pipelines.graph.proofs import draw_proof
from pipelines.run.shards import read_rows
from pipelines.run.views import list_latest
from pipelines.run.workspace import Workspace
from schemas.base import Record
from schemas.datasets import Grounding, Question, Rewrite

SHOWN_CANDIDATES = 8
Link = tuple[str, str]
"""Record id and parent id."""


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """One row of the record's line, and the stage it is from."""

    stage: str
    key: str
    record: Record


@dataclass(frozen=True, slots=True)
class Explanation:
    """A record with its ancestors and what was made from it, in pipeline order."""

    record_id: str
    rows: tuple[ExplainedRow, ...]
    refusals: tuple[Refusal, ...]
    releases: tuple[str, ...]
    """``dataset/version`` of each published release that has a row of it."""


def explain_record(workspace_root: Path, id_prefix: str) -> Explanation:
    """Return everything about the record whose id begins with a prefix.

    Raises:
        ConfigError: if no record begins so, or several do.
    """
    made = list_latest(workspace_root)
    latest = [found for found in made if found.stage in STAGE_MODELS]
    links = {found.stage: list(_read_links(found.folder.path)) for found in made}
    refusals = [refusal for found in made for refusal in read_refusals(found)]
    ids = {record_id for pairs in links.values() for record_id, _ in pairs} | {row.record_id for row in refusals}
    chosen = choose_id(ids, id_prefix, workspace_root)
    line = trace_line(chosen, [pair for pairs in links.values() for pair in pairs])
    rows = [
        ExplainedRow(found.stage, found.key, record)
        for found in latest
        if any(record_id in line for record_id, _ in links[found.stage])
        for path in sorted(found.folder.path.glob("part-*.parquet"))
        for record in read_rows(path, STAGE_MODELS[found.stage])
        if record.record_id in line
    ]
    refused = tuple(refusal for refusal in refusals if refusal.record_id in line)
    return Explanation(chosen, tuple(rows), refused, tuple(find_releases(workspace_root, line)))


def _read_links(folder: Path) -> Iterator[Link]:
    for path in sorted(folder.glob("part-*.parquet")):
        table = pq.read_table(path, columns=["record_id", "parent_id"])
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def choose_id(ids: Iterable[str], prefix: str, root: Path) -> str:
    """Return the only id that equals the prefix, or else begins with it.

    Raises:
        ConfigError: if no id or several ids match.
    """
    found = sorted(record_id for record_id in ids if prefix and record_id.startswith(prefix))
    if prefix in found:
        return prefix
    if not found:
        raise ConfigError(f"explain: no record of {root} begins with {prefix!r}; ids look like rollout-0a1b2c3d")
    if len(found) > 1:
        shown = ", ".join(found[:SHOWN_CANDIDATES])
        raise ConfigError(f"explain: {len(found)} records begin with {prefix!r}; give more of one of: {shown}")
    return found[0]


def trace_line(chosen: str, links: Iterable[Link]) -> frozenset[str]:
    """Return the ids of a record's ancestors, itself and its descendants; siblings are left out."""
    parents: dict[str, set[str]] = {}
    children: dict[str, set[str]] = {}
    for record_id, parent_id in links:
        if record_id != parent_id:
            parents.setdefault(record_id, set()).add(parent_id)
            children.setdefault(parent_id, set()).add(record_id)
    return frozenset(_reach(chosen, parents) | _reach(chosen, children))


def _reach(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen, waiting = {start}, [start]
    while waiting:
        found = edges.get(waiting.pop(), set()) - seen
        seen |= found
        waiting.extend(sorted(found))
    return seen


def find_releases(root: Path, line: Iterable[str]) -> list[str]:
    """Return ``dataset/version`` of each published release with a row whose id is in the line."""
    wanted, found = set(line), []
    for folder in Workspace(root).list_releases():
        ids: set[str] = set()
        for path in sorted((folder / "data").glob("*.parquet")):
            ids.update(pq.read_table(path, columns=["id"])["id"].to_pylist())
        if ids & wanted:
            found.append(f"{folder.parent.name}/{folder.name}")
    return found


def render_explanation(explanation: Explanation) -> Group:
    """Return the explanation as panels in pipeline order; all text is shown as text, never as markup.

    A record keeps its id where a stage only adds to it, so it has one panel: its last and fullest row.
    """
    stages: dict[str, list[str]] = {}
    for row in explanation.rows:
        stages.setdefault(row.record.record_id, []).append(row.stage)
    whole = {row.record.record_id: row.record for row in explanation.rows}
    panels = [
        Panel(
            make_grid([*list_chain(record), *describe_record(record)]),
            title=Text(f"{', '.join(stages[record_id])} · {record_id}"),
        )
        for record_id, record in whole.items()
    ]
    for refusal in explanation.refusals:
        lines = [("reason", refusal.reason), ("detail", refusal.detail)]
        panels.append(Panel(make_grid(lines), title=Text(f"{refusal.kind} by {refusal.stage} · {refusal.record_id}")))
    released = ", ".join(explanation.releases) or "no published release"
    return Group(Text(f"{explanation.record_id} is in {released}", style="bold"), *panels)


def list_chain(record: Record) -> list[tuple[str, str]]:
    """Return the graph of a record's proof, the chain as one line and each branch as another; none without a proof.

    An arrow leaves the page that states the relation: that of a backward hop points back along the path.
    """
    if isinstance(record, Grounding) and record.trace is not None:
        links = "".join(f" -{link.relation}-> {link.object}" for link in record.trace.links)
        return [("chain", f"{record.trace.anchor}{links}")]
    if not isinstance(record, Question | Rewrite | Grounding) or not record.proof.nodes:
        return []
    graph = draw_proof(record.proof, record.answer).to_undirected(as_view=True)
    names = [*(node.title for node in record.proof.nodes), f"= {record.answer.surface}"]
    backward = [*(hop.backward for hop in record.proof.hops), False]
    steps = ""
    for (left, right), back in zip(pairwise(names), backward, strict=True):
        relation = graph.edges[left, right]["relation"]
        steps += f" <-{relation}- {right}" if back else f" -{relation}-> {right}"
    beside = [("branch", describe_branch(record.proof, branch)) for branch in record.proof.branches]
    return [("chain", f"{record.proof.nodes[0].title}{steps}"), *beside]
