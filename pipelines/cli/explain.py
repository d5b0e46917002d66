"""``synth explain ID``: everything about one record across stages, from its seed to the releases that hold it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from pipelines.cli.facets import Refusal, describe_branch, describe_record, make_grid
from pipelines.cli.view.queries import MOST_RELATIVES, Explorer
from pipelines.errors import ConfigError
from pipelines.graph.proofs import draw_proof
from schemas.base import Record
from schemas.datasets import Grounding, Question, Rewrite

SHOWN_CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """One row of the record's line, and the stage it is from."""

    stage: str
    key: str
    record: Record


@dataclass(frozen=True, slots=True)
class Explanation:
    """A record with its ancestors and what was made from it, in pipeline order; at most 400 rows."""

    record_id: str
    rows: tuple[ExplainedRow, ...]
    refusals: tuple[Refusal, ...]
    releases: tuple[str, ...]
    """``dataset/version`` of each published release that has a row of it, one of ``left_out`` too."""
    left_out: int = 0
    """Rows of its line beyond those."""


def explain_record(workspace_root: Path, id_prefix: str) -> Explanation:
    """Return everything about the record whose id begins with a prefix.

    Raises:
        ConfigError: if no record begins so, or several do.
    """
    explorer = Explorer(workspace_root)
    chosen = choose_id(explorer.find_ids(id_prefix), id_prefix, workspace_root)
    line = explorer.trace_line(chosen, "")
    keys = {found.stage: found.key for found in explorer.list_stages()}
    rows, refusals = list[ExplainedRow](), list[Refusal]()
    for each in line[:MOST_RELATIVES]:
        if each.reason:
            refused = explorer.find_refusal(each.stage, each.record_id)
            refusals += refused[:1] if refused else []
        elif isinstance(record := explorer.find_record(each.stage, each.record_id), Record):
            rows.append(ExplainedRow(each.stage, keys[each.stage], record))
    releases = explorer.find_holding(sorted({chosen, *(each.record_id for each in line)}))
    left_out = max(0, len(line) - MOST_RELATIVES)
    return Explanation(chosen, tuple(rows), tuple(refusals), tuple(releases), left_out)


def choose_id(found: Sequence[str], prefix: str, root: Path) -> str:
    """Return which of the ids that begin with a prefix is meant: the one that equals it, or the only one.

    Raises:
        ConfigError: if no id or several ids match.
    """
    if prefix in found:
        return prefix
    if not found or not prefix:
        raise ConfigError(f"explain: no record of {root} begins with {prefix!r}; ids look like rollout-0a1b2c3d")
    if len(found) > 1:
        shown = ", ".join(found[:SHOWN_CANDIDATES])
        raise ConfigError(f"explain: {len(found)} records begin with {prefix!r}; give more of one of: {shown}")
    return found[0]


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
    cut = f"; the first {MOST_RELATIVES} rows of its line follow, {explanation.left_out:,} do not"
    head = f"{explanation.record_id} is in {released}{cut if explanation.left_out else ''}"
    return Group(Text(head, style="bold"), *panels)


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
