"""A release's rows held against each other, and its manifest against the corpus, its settings and what is shipped."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import get_args

from pipelines.agent.attempts import Preset, make_plan
from pipelines.agent.dialects import find_dialect
from pipelines.checks.sets import list_edges, name_anchor, name_answer_node
from pipelines.config.disclosure import Told, digest_settings, disclose_settings, read_sections
from pipelines.config.loading import list_recipes, parse_config, read_recipe
from pipelines.config.settings import (
    RunConfig,
)
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.graph.proofs import NEAR_MISSES
from pipelines.graph.titles import asks_name
from pipelines.names import fold_name
from pipelines.release.card import DOCUMENTS, read_prose
from pipelines.release.manifest import MANIFEST, ReleaseManifest, digest_content, name_version
from pipelines.release.publish import ATTRIBUTION, REWARDS
from pipelines.release.reviewed import REVIEWS
from pipelines.release.rows import ProofRow, shorten
from pipelines.release.verify.replaying import SPLITS
from pipelines.release.verify.reports import Problem
from pipelines.splits import SplitRule

SHARD = re.compile(r"(?:data|proofs)/(?P<split>[a-z]+)-(?P<number>\d{5})-of-(?P<of>\d{5})\.parquet")
THRESHOLDS: Mapping[str, str] = {
    "agreement": "questions.agreement",
    "volatile": "questions.volatile",
    "answer_share": "questions.max_answer_share",
    "read_pages": "questions.read_pages",
    "answers": "groundings.min_answers",
    "retrieval_rank": "groundings.retrieval_rank",
}
"""What a question must meet, and the setting that says so."""
OF_PATHS: Mapping[str, str] = {
    "alone_first": "rewrites.min_alone_first",
    "alone": "rewrites.min_alone",
}
"""The same of questions whose bridges are hidden."""


def name_maker(manifest: ReleaseManifest) -> str:
    """Return what helps where an honest release was made by a synth with other settings, words or gates."""
    return f"it was made by synth at commit {manifest.git_commit or 'unknown'}: verify with that, or publish again"


def read_settings(manifest: ReleaseManifest) -> tuple[ReleaseManifest, list[Problem]]:
    """Return a manifest whose settings can be read: the given one, or without them and with what is wrong.

    A setting that is neither told nor has a digest would turn its check off; so all are asked for.
    """
    try:
        sections = read_sections(manifest.told)
        read = {name: sections.get(name, {}) for name in ("splits", "tools", "trajectories", "releases")}
        RunConfig.model_validate({"recipe": manifest.recipe, **read}, strict=False)
        find_dialect(str(manifest.told.get("rollouts.dialect", "synth")))
    except (ValueError, TypeError, AttributeError, ConfigError) as error:
        problem = Problem(MANIFEST, f"settings: they cannot be read: {shorten(str(error))}")
        return manifest.model_copy(update={"told": {}}), [problem]
    told, untold = disclose_settings(RunConfig(recipe=manifest.recipe))
    apart = [
        f"{name} {'is missing' if name in wanted else 'is not known'}"
        for wanted, given in ((told, manifest.told), (untold, manifest.untold))
        for name in sorted(wanted.keys() ^ given.keys())
    ]
    if apart:
        return manifest, [Problem(MANIFEST, f"settings: {', '.join(apart)}; {name_maker(manifest)}")]
    return manifest, []


def find_manifest_problems(manifest: ReleaseManifest, corpus: Corpus) -> Iterator[Problem]:
    """Yield what a manifest says otherwise than corpus, settings, files and the shipped prompts and words do."""
    wheres = {
        "corpus": (manifest.corpus, corpus.digest),
        "snapshot": (manifest.snapshot, corpus.snapshot),
        "base_url": (manifest.base_url, corpus.manifest.base_url),
        "recipe": (manifest.told.get("recipe"), manifest.recipe),
        "seeds": (manifest.seeds, {"run": manifest.told.get("seed")}),
        "config_digest": (manifest.config_digest, digest_settings(manifest.told, manifest.untold, manifest.corpus)),
        "version": (manifest.version, name_version(manifest.content)),
    }
    for name, (given, wanted) in wheres.items():
        if given != wanted:
            yield Problem(MANIFEST, f"{name}: it says {shorten(given)}, wanted is {shorten(wanted)}")
    for label, digest in manifest.prompts.items():
        if (shipped := _read_lock().get(label)) and shipped != digest:
            yield Problem(MANIFEST, f"prompts: {label} was shipped as {shipped[:12]}, it says {digest[:12]}")
    for row in manifest.funnel:
        if row.rows_in != row.kept + sum(row.rejected.values()) + row.failed:
            yield Problem(MANIFEST, f"funnel: the rows of {row.stage} do not add up")
    yield from _find_file_problems(manifest)


@cache
def _read_lock() -> dict[str, str]:
    lines = (Path(__file__).parents[3] / "prompts" / "prompts.lock").read_text("utf-8").splitlines()
    return {name.removesuffix(".md"): digest for digest, name in (line.split("  ", 1) for line in lines)}


def _find_file_problems(manifest: ReleaseManifest) -> Iterator[Problem]:
    known = {*DOCUMENTS, ATTRIBUTION, *([REWARDS] if manifest.dataset == "rl" else [])}
    missing = known - {entry.name for entry in manifest.files}
    yield from (Problem(name, "files: it is missing from the manifest") for name in sorted(missing))
    shards = Counter[tuple[str, str]]()
    for entry in manifest.files:
        shard = SHARD.fullmatch(entry.name)
        if shard is None and entry.name not in (*known, REVIEWS):
            yield Problem(entry.name, "files: no release has such a file")
        if shard is not None:
            shards[entry.name.partition("-")[0], shard["of"]] += 1
    for (name, of), count in shards.items():
        if count != int(of):
            yield Problem(name, f"files: {count} of {int(of)} parts are there")
    content = digest_content(
        [entry for entry in manifest.files if entry.name not in DOCUMENTS], read_prose(manifest.dataset).text
    )
    if content != manifest.content:
        yield Problem(
            MANIFEST,
            f"content: it says {manifest.content[:12]}, files and the words of this version's card give {content[:12]}"
            f"; {name_maker(manifest)}",
        )


def find_threshold_problems(manifest: ReleaseManifest, proofs: Sequence[ProofRow]) -> Iterator[Problem]:
    """Yield what the questions were accepted by, where the settings that the manifest tells say something else."""
    told = manifest.told
    if not told:
        return
    wanted: dict[str, object] = {name: told.get(key) for name, key in THRESHOLDS.items()}
    if told.get("method") == "paths":
        wanted |= {name: told.get(key) for name, key in OF_PATHS.items()}
        wanted |= {"shortcuts_checked": True, "near_misses": NEAR_MISSES}
    seen = {
        (name, getattr(proof if name == "shortcuts_checked" else proof.thresholds, name))
        for proof in (row.proof for row in proofs if row.proof.nodes)
        for name in wanted
    }
    for name, value in sorted(seen, key=str):
        if value != wanted[name]:
            yield Problem("proofs", f"thresholds: {name} is {value}, the settings say {wanted[name]}")
    models = {(model.role, model.name) for model in manifest.models}
    for row in proofs:
        if strange := sorted({(cell.role, cell.solver) for cell in row.difficulty} - models):
            yield Problem(row.record_id, f"difficulty: {shorten(strange[0])} is no model of the manifest")
    yield from _find_filter_problems(told, proofs)


def _find_filter_problems(told: Mapping[str, Told], proofs: Sequence[ProofRow]) -> Iterator[Problem]:
    preset = next((name for name in get_args(Preset) if name == told.get("difficulty.preset")), None)
    if preset is None:
        return
    plan = make_plan(preset, probes=bool(told.get("difficulty.probe_attempts")))
    bounds = {step.condition: step.max_correct for step in plan.filters}
    for row in proofs:
        for cell in row.difficulty:
            bound = bounds.get(cell.condition)
            if bound is not None and cell.correct > bound:
                solved = f"{cell.correct} of {cell.attempts} attempts by {cell.condition} were right"
                yield Problem(row.record_id, f"difficulty: {solved}, the settings keep up to {bound}")


def describe_settings(manifest: ReleaseManifest) -> Iterator[str]:
    """Yield in words where settings depart from the shipped recipe of their name, and which prompts are not ours."""
    own = sorted(label for label in manifest.prompts if label not in _read_lock())
    if own:
        yield f"prompts that are not shipped: {', '.join(own)}"
    if manifest.recipe not in list_recipes():
        yield f"no recipe {manifest.recipe!r} is shipped: its settings were compared with none"
        return
    shipped, hidden = disclose_settings(parse_config(read_recipe(manifest.recipe)))
    apart = [
        f"{name} = {shorten(value)} (recipe: {shorten(shipped.get(name))})"
        for name, value in manifest.told.items()
        if value != shipped.get(name)
    ]
    if apart:
        yield f"settings that depart from the recipe {manifest.recipe}: {'; '.join(apart)}"
    silent = [name for name, digest in manifest.untold.items() if digest != hidden.get(name)]
    if silent:
        yield f"settings that are not told and depart from the recipe {manifest.recipe}: {', '.join(silent)}"


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
        (proof.thresholds, proof.shortcuts_checked, proof.hub_in_degree)
        for proof in (row.proof for row in proofs.values() if row.proof.nodes)
    }
    if len(rules) > 1:
        yield Problem("proofs", f"thresholds: questions were accepted by {len(rules)} sets of them; there must be one")
    sizes = {row.scene.training_pixels for row in proofs.values() if row.scene is not None}
    if len(sizes) > 1:
        yield Problem("proofs", f"scene: {len(sizes)} sizes of what a student sees; there must be one")
    yield from _check_splits(proofs)


def _check_splits(proofs: Mapping[str, ProofRow]) -> Iterator[Problem]:
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
    rule = SplitRule(shares, seed)
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
    if row.trace is not None:
        yield "entity", fold_name(row.trace.anchor)
    if row.proof.nodes:
        yield "entity", row.proof.nodes[0].title
        if not asks_name(row.proof):
            yield "answer", row.answer.key
