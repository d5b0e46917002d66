"""The pages of the view, as HTML: lists, one row, the funnel, comparisons. Every value is escaped by the templates."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from itertools import zip_longest
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from pipelines.cli.diff import FunnelShift, diff_releases, list_shifts
from pipelines.cli.drawing import draw_funnel, draw_path, list_steps, open_templates
from pipelines.cli.facets import (
    STAGE_MODELS,
    describe_branch,
    describe_cell,
    describe_hop,
    describe_record,
    explain_reason,
)
from pipelines.cli.report import make_example, read_funnel
from pipelines.cli.view.queries import (
    KINDS,
    MOST_RELATIVES,
    PAGE,
    Choice,
    Explorer,
    Relative,
    scan_release,
    scan_rows,
)
from pipelines.errors import ConfigError
from pipelines.run.naming import find_run, list_kept
from pipelines.run.workspace import Workspace
from schemas.base import Record
from schemas.datasets import Certificate, Enhancement, Grounding, Picture, Question, Rewrite, Rollout, Trajectory
from schemas.manifest import Manifest
from schemas.proofs import Proof, ReadFact, Reading
from schemas.reasons import STAGE_REASONS

LONGEST_DIFFERENCE = 3000
_IMAGE_ID = re.compile(r"img_\d+")
_environment = open_templates("view/templates")
diff_once = lru_cache(maxsize=8)(diff_releases)
"""Releases never change, and reading all their pictures takes long."""


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """The counts that prove one node of a path."""

    title: str
    chain: str
    alone: str
    needed: int


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step of a trajectory."""

    number: int
    thought: str
    tool: str
    arguments: str
    given: tuple[Picture, ...]
    """Pictures that the call works on."""
    made: tuple[Picture, ...]
    text: tuple[tuple[str, str], ...]
    """The observation in pieces; the second of a piece says what was seen there, empty for nothing."""
    remarks: str


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A column in which two versions of a row differ."""

    column: str
    before: str
    after: str


def link_row(stage: str, record_id: str) -> str:
    """Return the permanent address of a row."""
    return f"/row/{quote(stage, safe='')}/{quote(record_id, safe='')}"


def link_list(choice: Choice, **changes: object) -> str:
    """Return the address of a list; what is as it was left out stays out."""
    # Another stage has other values; another filter has other pages.
    changed = replace(choice, **({"page": 1} | changes))  # type: ignore[arg-type]
    asked = {name: value for name, value in asdict(changed).items() if value and (name, value) not in _PLAIN}
    return f"/?{urlencode(asked)}"


_PLAIN = {("page", 1), ("kind", "kept")}


def render(name: str, **values: object) -> str:
    """Return a page by its template."""
    return _environment.get_template(f"{name}.html.j2").render(link_row=link_row, link_list=link_list, **values)


def read_choice(explorer: Explorer, query: Mapping[str, str]) -> Choice:
    """Return the choice that an address names; without a stage the latest one of questions.

    Raises:
        ConfigError: if it names what a list has not.
    """
    known = {field.name for field in fields(Choice)}
    if unknown := sorted(query.keys() - known):
        raise ConfigError(f"unknown filter {unknown[0]!r}; there are {', '.join(sorted(known))}")
    page, kind = query.get("page", "1"), query.get("kind", "kept")
    if not page.isdecimal() or not 1 <= int(page) <= 10**6:
        raise ConfigError(f"page {page!r} is no page")
    if kind not in KINDS:
        raise ConfigError(f"kind {kind!r}; there are {', '.join(KINDS)}")
    given = {name: value.strip() for name, value in query.items() if name not in ("page", "kind")}
    stages = [found.stage for found in explorer.list_stages()]
    asked = [stage for stage in stages if issubclass(STAGE_MODELS.get(stage, Record), Grounding)]
    stage = given.pop("stage", "") or next(reversed(asked or stages), "")
    if not stage:
        raise ConfigError(f"workspace {explorer.root} has no finished stage; run `synth run` first")
    return Choice(stage=stage, kind=kind, page=int(page), **given)


def show_list(explorer: Explorer, query: Mapping[str, str]) -> str:
    """Return the page of a list of rows with its filters."""
    choice = read_choice(explorer, query)
    listing = explorer.list_rows(choice)
    facets = explorer.read_facets(choice.stage, choice.kind)
    stages = {found.stage: _count_kinds(found.folder.read_manifest()) for found in explorer.list_stages()}
    return render(
        "list",
        choice=choice,
        rows=listing.rows,
        total=listing.total,
        pages=max(1, ceil(listing.total / PAGE)),
        first=PAGE * (choice.page - 1) + 1,
        facets=facets,
        stages=stages,
        kinds=KINDS,
        releases=explorer.list_releases() if choice.kind == "kept" else [],
    )


def _count_kinds(manifest: Manifest | None) -> dict[str, int]:
    if manifest is None:
        return dict.fromkeys(KINDS, 0)
    rejected = sum(manifest.rejected.values())
    return {"kept": manifest.rows_out, "rejected": rejected, "failed": manifest.failed}


def show_row(explorer: Explorer, stage: str, record_id: str) -> str:
    """Return the page of one row, kept or refused.

    Raises:
        ConfigError: if the stage has no such row.
    """
    record, refused = explorer.find_record(stage, record_id), explorer.find_refusal(stage, record_id)
    if record is None and refused is None:
        raise ConfigError(f"{stage} has no row {record_id!r}")
    line = explorer.trace_line(record_id, _find_parent(record))
    family = line[:MOST_RELATIVES]
    input_stage, shown = (stage, record) if record is not None else _find_input(explorer, stage, record_id, family)
    question = shown if isinstance(shown, Question | Rewrite | Grounding) else _find_question(explorer, shown, family)
    steps = list_steps(shown) if isinstance(shown, Record) else []
    if not steps and question is not None:
        steps = list_steps(question)
    return render(
        "row",
        stage=stage,
        record_id=record_id,
        refusal=refused[0] if refused else None,
        codes=refused[1] if refused else (),
        meaning=explain_reason(refused[0].reason) if refused else "",
        input_stage=input_stage,
        record=shown,
        question=question,
        diagram=draw_path(steps) if steps else "",
        rollout=shown if isinstance(shown, Rollout) else None,
        steps=list(show_steps(shown)) if isinstance(shown, Rollout) else [],
        supports=shown.supports if isinstance(shown, Trajectory) else (),
        family=_group(family),
        releases=explorer.find_holding([relative.record_id for relative in line]),
        lines=describe_record(shown) if isinstance(shown, Record) else list((shown or {}).items()),
        **_describe_question(explorer, question, family),
    )


def _describe_question(
    explorer: Explorer, question: Question | Rewrite | Grounding | None, family: Sequence[Relative]
) -> dict[str, Any]:
    """Return what a page shows of a question beside its path: pictures, counts, reading, attempts; all may be empty."""
    grounding = question if isinstance(question, Grounding) else None
    reading = grounding.reading if grounding is not None else None
    found: dict[str, Any] = {"counts": [], "set_counts": "", "readings": [], "certificates": ()}
    if question is not None:
        found["counts"] = list(list_counts(question.proof))
        found["set_counts"] = list_set_counts(question.proof)
        found["readings"] = list(compare_reading(question.proof, reading)) if reading else []
        own = question.certificates if isinstance(question, Rewrite) else None
        found["certificates"] = _find_certificates(explorer, family) if own is None else own
    return found | {
        "grounding": grounding,
        "pictures": list_pictures(explorer.root, grounding),
        "cells": getattr(grounding, "cells", ()),
        "describe_cell": describe_cell,
        "attempts": list_attempts(explorer, grounding),
    }


def _find_parent(record: object) -> str:
    return str(record.get("parent_id", "")) if isinstance(record, dict) else getattr(record, "parent_id", "")


def _find_input(
    explorer: Explorer, stage: str, record_id: str, family: Sequence[Relative]
) -> tuple[str, Record | dict[str, Any] | None]:
    """Return a refused row as it came into the stage, and the stage that made it."""
    order = [found.stage for found in explorer.list_stages()]
    before = [
        relative.stage
        for relative in family
        if relative.record_id == record_id and not relative.reason and order.index(relative.stage) < order.index(stage)
    ]
    return (before[-1], explorer.find_record(before[-1], record_id)) if before else ("", None)


def _find_question(
    explorer: Explorer, record: object, family: Sequence[Relative]
) -> Question | Rewrite | Grounding | None:
    """Return the question that a rollout or a release's row is about."""
    parent = _find_parent(record)
    for relative in reversed(family):
        kind = STAGE_MODELS.get(relative.stage, Record)
        if relative.record_id == parent and not relative.reason and issubclass(kind, Grounding | Rewrite | Question):
            found = explorer.find_record(relative.stage, parent)
            return found if isinstance(found, Question | Rewrite | Grounding) else None
    return None


def _find_certificates(explorer: Explorer, family: Sequence[Relative]) -> tuple[Certificate, ...]:
    for relative in family:
        if relative.stage == "rewrites" and not relative.reason:
            found = explorer.find_record("rewrites", relative.record_id)
            return found.certificates if isinstance(found, Rewrite) else ()
    return ()


def _group(family: Sequence[Relative]) -> dict[str, list[Relative]]:
    groups: dict[str, list[Relative]] = {}
    for relative in family:
        groups.setdefault(relative.stage, []).append(relative)
    return groups


def list_pictures(root: Path, grounding: Grounding | None) -> list[tuple[str, str, str]]:
    """Return label, address and credit of a question's pictures: as it was, as it is, and repaired by its tool."""
    if grounding is None or grounding.picture is None:
        return []
    now, original = grounding.picture, getattr(grounding, "original", None)
    if not isinstance(grounding, Enhancement) or original is None:
        return [("the picture", f"/picture/{now.sha256}", _credit(now))]
    shown = [("before", f"/picture/{original.sha256}", _credit(original))]
    changed = grounding.trial.degradation if grounding.trial else "in a scene"
    shown.append((changed, f"/picture/{now.sha256}", f"{now.width}x{now.height}"))
    if grounding.trial is not None:
        repaired = make_example(root, grounding).pictures[2:]
        shown += [(f"after {label}", address, "what the tool makes of it") for label, address in repaired]
    return shown


def _credit(picture: Picture) -> str:
    return f"{picture.file}, {picture.width}x{picture.height}, {picture.author}, {picture.licence}"


def list_counts(proof: Proof) -> Iterator[NodeCounts]:
    """Yield for each entity how many fit it within the chain and alone, and how many have to."""
    found = {(count.name, count.node): f"{'≥' if count.capped else ''}{count.value}" for count in proof.counts}
    for number, node in enumerate(proof.entities):
        chain, alone = found.get(("chain", number), ""), found.get(("alone", number), "")
        if chain or alone:
            yield NodeCounts(node.title, chain, alone, proof.thresholds.require_alone(number))


def list_set_counts(proof: Proof) -> str:
    """Return the counts of the whole query: anchors, different answers (N_img), those with the question's own."""
    names = {"anchors": "anchors tried", "answers": "different answers (N_img)", "gold": "with this answer"}
    said = [
        f"{names[count.name]} {'≥' if count.capped else ''}{count.value:,}"
        for count in proof.counts
        if count.name in names
    ]
    return " · ".join(said)


def compare_reading(proof: Proof, reading: Reading) -> Iterator[tuple[str, str, str]]:
    """Yield what each step is, what the proof says of it, and what the reader understood."""
    for number, (hop, read) in enumerate(zip_longest(proof.hops, reading.hops), 1):
        said = (
            f"{read.statement or 'no statement'}{', backward' if read.backward else ''}: “{read.words}”"
            if read
            else "—"
        )
        yield f"hop {number}", describe_hop(hop, proof.nodes) if hop else "—", said
    yield from _compare_facts(proof, reading)
    form = f", as {reading.form}" if reading.form else ""
    yield "asked for", proof.answer_relation, f"{reading.asked or 'no statement'}{form}"
    if reading.unsure or reading.instruction:
        yield "doubts", "", f"{reading.unsure} {reading.instruction}".strip()


def _compare_facts(proof: Proof, reading: Reading) -> Iterator[tuple[str, str, str]]:
    """Yield the facts of the proof, each with what was read of the same relation there, then what else was read."""
    left = list(reading.facts)
    for fact in proof.constraints:
        named = fact.relation.replace("_", " ")
        read = next((one for one in left if one.node == fact.node and (one.statement or "type") == named), None)
        if read is not None:
            left.remove(read)
        said = f"{proof.entities[fact.node].title}: {named} = {fact.value}"
        yield "fact", said, _say_fact(read) if read else "not read as a fact of its own"
    branches = [describe_branch(proof, branch) for branch in proof.branches]
    for told, other in zip_longest(branches, [_say_fact(one) for one in left], fillvalue="—"):
        yield "fact", told, other


def _say_fact(fact: ReadFact) -> str:
    return f"{fact.statement or 'type'} = {fact.value}: “{fact.words}”"


def list_attempts(explorer: Explorer, grounding: Grounding | None) -> list[dict[str, Any]]:
    """Return the rollouts of a question: attempt, answer, number of steps, and what became of each."""
    stages = {found.stage: found.folder for found in explorer.list_stages()}
    if grounding is None or "rollouts" not in stages:
        return []
    rows = explorer.ask(
        "SELECT record_id, attempt, teacher, answer, stop_reason, len(steps) AS steps "
        f"FROM {scan_rows(stages['rollouts'])} WHERE parent_id = ? ORDER BY attempt LIMIT {PAGE}",
        [grounding.record_id],
    )
    judged = explorer.find_outcomes("trajectories", [row["record_id"] for row in rows])
    for row in rows:
        row["outcome"] = judged.get(row["record_id"], "not judged")
        row["stage"] = "trajectories" if row["record_id"] in judged else "rollouts"
    return rows


def show_steps(rollout: Rollout) -> Iterator[ShownStep]:
    """Yield each step with the pictures that its call was given and made, and where each name was seen."""
    pictures = {image.id: image.picture for image in rollout.images}
    supports = rollout.supports if isinstance(rollout, Trajectory) else ()
    for number, step in enumerate(rollout.steps):
        seen = step.observation
        spans = [(support.start, support.end, support.what) for support in supports if support.step == number]
        remarks = [] if seen is None else [seen.error, seen.warning, *(f"contaminated: {flag}" for flag in seen.flags)]
        given = dict.fromkeys(_IMAGE_ID.findall(step.arguments))
        yield ShownStep(
            number=number + 1,
            thought=step.thought or ("" if step.tool else step.reply),
            tool=step.tool,
            arguments=step.arguments if step.tool else "",
            given=tuple(pictures[name] for name in given if name in pictures),
            made=tuple(pictures[name] for name in (seen.images if seen else ()) if name in pictures),
            text=tuple(mark_spans(seen.text, spans)) if seen else (),
            remarks="; ".join(remark for remark in remarks if remark),
        )


def mark_spans(text: str, spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a text, each with what was seen there; of spans that overlap the first is marked."""
    place = 0
    for start, end, what in sorted(spans):
        if place <= start < end <= len(text):
            if text[place:start]:
                yield text[place:start], ""
            yield text[start:end], what
            place = end
    if text[place:]:
        yield text[place:], ""


def show_funnel(explorer: Explorer) -> str:
    """Return the page of the funnel, each reason with what it means and a link to its rows."""
    funnel = read_funnel(explorer.root)
    meanings = {reason: explain_reason(reason) for row in funnel for reason in row["rejected"]}
    stages = {found.stage for found in explorer.list_stages()}
    return render("funnel", funnel=funnel, diagram=draw_funnel(funnel), meanings=meanings, stages=stages, Choice=Choice)


# Comparisons


def show_comparison(explorer: Explorer, query: Mapping[str, str]) -> str:
    """Return the page that compares two releases of a dataset, or two outputs of a stage.

    Raises:
        ConfigError: if one of them is not there.
    """
    choices = _list_comparable(explorer)
    subject, page = query.get("of", ""), query.get("page", "1")
    before, after = query.get("a", ""), query.get("b", "")
    page_number = int(page) if page.isdecimal() and 0 < int(page) < 10**6 else 1
    values: dict[str, Any] = {"choices": choices, "subject": subject, "before": before, "after": after}
    values |= {"shown": {}, "counts": {}, "funnel": (), "stages": {}, "page": page_number}
    if subject:
        kind, _, name = subject.partition(":")
        makers = {"release": _compare_releases, "stage": _compare_stages, "runs": _compare_runs}
        if kind not in makers:
            raise ConfigError(f"compare {subject!r}: there are {', '.join(makers)}")
        values |= makers[kind](explorer, name, (before, after), page_number)
    largest = max((rows for kind, rows in values["counts"].items() if kind != "same"), default=0)
    return render("compare", more=largest > PAGE * page_number, urlencode=urlencode, **values)


def _list_comparable(explorer: Explorer) -> dict[str, list[str]]:
    """Return names of runs, versions of each dataset and keys of each stage, where there are several."""
    datasets: dict[str, list[str]] = {"runs": [run.name for run in list_kept(Workspace(explorer.root))]}
    for name in explorer.list_releases():
        dataset, _, version = name.partition("/")
        datasets.setdefault(f"release:{dataset}", []).append(version)
    stages = {f"stage:{found.stage}": explorer.list_keys(found.stage) for found in explorer.list_stages()}
    return {subject: found for subject, found in (datasets | stages).items() if len(found) > 1}


def _compare_releases(explorer: Explorer, dataset: str, versions: tuple[str, str], page: int) -> dict[str, Any]:
    old, new = (explorer.find_release(f"{dataset}/{version}") for version in versions)
    diff = diff_once(old, new)
    place = slice(PAGE * (page - 1), PAGE * page)
    ids = {"added": diff.added, "removed": diff.removed, "changed": tuple(row.id for row in diff.changed)}
    sources = (scan_release(old), scan_release(new))
    shown = {kind: _show_rows(explorer, sources, "id", rows[place]) for kind, rows in ids.items()}
    counts = {"same": diff.same} | {kind: len(rows) for kind, rows in ids.items()}
    return {"shown": shown, "counts": counts, "funnel": diff.funnel}


def _compare_stages(explorer: Explorer, stage: str, keys: tuple[str, str], page: int) -> dict[str, Any]:
    old, new = (explorer.find_output(stage, key) for key in keys)
    found = explorer.compare_outputs(old, new, page)
    sources = (scan_rows(old), scan_rows(new))
    return {
        "shown": {kind: _show_rows(explorer, sources, "record_id", ids) for kind, ids in found.shown.items()},
        "counts": found.counts,
    }


def _compare_runs(explorer: Explorer, _: str, names: tuple[str, str], page: int) -> dict[str, Any]:
    """Return how the funnel moved from one run to another, and where the rows of each stage are compared."""
    workspace = Workspace(explorer.root)
    old, new = (find_run(workspace, name).read_used() for name in names)
    shifts, stages = list[FunnelShift](), {}
    for stage in [stage for stage in STAGE_REASONS if stage != "corpus" and stage in old and stage in new]:
        if old[stage] != new[stage]:
            manifests = [explorer.find_output(stage, used[stage]).read_manifest() for used in (old, new)]
            shifts += list_shifts(stage, *manifests)
            asked = {"of": f"stage:{stage}", "a": old[stage], "b": new[stage]}
            stages[stage] = f"/compare?{urlencode(asked)}"
    return {"funnel": shifts, "stages": stages}


def _show_rows(
    explorer: Explorer, sources: tuple[str, str], column: str, ids: Sequence[str]
) -> dict[str, list[ComparedCell]]:
    """Return of each row the columns in which it differs."""
    old, new = sources
    return {
        row_id: compare_cells(explorer.read_cells(old, column, row_id), explorer.read_cells(new, column, row_id))
        for row_id in ids
    }


def compare_cells(before: Mapping[str, str], after: Mapping[str, str]) -> list[ComparedCell]:
    """Return the columns in which two versions of a row differ, long ones around the first difference."""
    return [
        ComparedCell(name, *_cut_around(before.get(name, ""), after.get(name, "")))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _cut_around(one: str, other: str) -> tuple[str, str]:
    same = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    start = max(0, same - 200)
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    end = start + LONGEST_DIFFERENCE
    return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")
