"""A release's rows held against each other."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pipelines.checks.sets import list_edges, name_anchor, name_answer_node
from pipelines.config.disclosure import read_sections
from pipelines.config.settings import SplitRule, SplitsConfig
from pipelines.graph.titles import asks_name
from pipelines.names import fold_name
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.rows import ProofRow
from pipelines.release.verify.remaking import SPLITS
from pipelines.release.verify.reports import Problem


@dataclass(slots=True)
class Ledger:
    """What the rows so far held, for claims about all rows together."""

    verdicts: dict[str, list[str]] = field(default_factory=dict)
    """Problems of each question, found once however many rows ask it."""
    ids: Counter[str] = field(default_factory=Counter)
    questions: set[str] = field(default_factory=set)
    settings: set[tuple[str, str, str]] = field(default_factory=set)
    """System message, tools and dialect of SFT rows: the same in all of them."""


def check_together(proofs: Mapping[str, ProofRow], ledger: Ledger) -> Iterator[Problem]:
    """Check the rows together: each row once, each proof used, one set of tools and thresholds, splits apart."""
    for row, times in ledger.ids.items():
        if times > 1:
            yield Problem(row, f"rows: {times} rows have this id")
    for question in sorted(proofs.keys() - ledger.questions):
        yield Problem(question, "proof: no row asks this question")
    if len(ledger.settings) > 1:
        yield Problem(
            "data", f"rows: {len(ledger.settings)} sets of system message, tools and dialect; there must be one"
        )
    rules = {
        (proof.thresholds, proof.shortcuts_checked, proof.hub_in_degree, proof.compared_snapshot)
        for proof in (row.proof for row in proofs.values() if row.proof.nodes)
    }
    if len(rules) > 1:
        yield Problem("proofs", f"thresholds: questions were accepted by {len(rules)} sets of them; there must be one")
    sizes = {row.scene.training_pixels for row in proofs.values() if row.scene is not None}
    if len(sizes) > 1:
        yield Problem("proofs", f"scene: {len(sizes)} sizes of what a student sees; there must be one")
    yield from _check_splits(proofs)


def _check_splits(proofs: Mapping[str, ProofRow]) -> Iterator[Problem]:
    """No anchor, answer node, answer key, hop or picture may be in two splits; no two questions may be the same."""
    splits: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    asked: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for question, row in proofs.items():
        anchor = name_anchor(row)
        splits["anchor", anchor].add(row.split)
        if node := name_answer_node(row):
            splits["answer node", node].add(row.split)
        splits["answer key", row.answer.key].add(row.split)
        for edge in list_edges(row):
            splits["hop", " ".join(map(str, edge))].add(row.split)
        picture = row.original or row.picture
        for name in ("sha256", "phash") if picture else ():
            splits[f"picture {name}", getattr(picture, name)].add(row.split)
        for part in row.scene.parts if row.scene else ():
            splits["picture sha256", part.picture.sha256].add(row.split)
        asked[anchor, row.answer.key].append(question)
    for (name, value), found in splits.items():
        if len(found) > 1:
            yield Problem("splits", f"splits: {' and '.join(sorted(found))} share {name} {value}")
    for same in asked.values():
        if len(same) > 1:
            yield Problem(same[-1], f"rows: it asks the same of the same anchor as {same[0]}")


def find_placement_problems(manifest: ReleaseManifest, proofs: Iterable[ProofRow]) -> Iterator[Problem]:
    """Yield questions in another split than the rule of the settings puts their entities and answers in.

    A question from outside follows its pool, which is not told; it is passed over.
    """
    shares, seed = read_sections(manifest.told).get("splits"), manifest.told.get("seed")
    if not isinstance(shares, dict) or not isinstance(seed, int):
        return
    rule = SplitRule(SplitsConfig.model_validate(shares, strict=False), seed)
    for row in proofs:
        allowed = SPLITS.get((manifest.dataset, row.split))
        if allowed is None:
            yield Problem(row.record_id, f"split: {manifest.dataset} has no split {row.split}")
            continue
        for kind, name in _list_placed(row):
            split = rule.place(kind, name)
            if split not in allowed:
                yield Problem(row.record_id, f"split: the {kind} {name} is of {split}, the row is in {row.split}")


def _list_placed(row: ProofRow) -> Iterator[tuple[str, str]]:
    """Yield what decides a question's split: its anchor, and its answer where a fact is asked for."""
    if row.trace is not None:
        yield "entity", fold_name(row.trace.anchor)
    if row.proof.nodes:
        yield "entity", row.proof.nodes[0].title
        if not asks_name(row.proof):
            yield "answer", row.answer.key
