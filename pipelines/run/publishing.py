"""Publishing what a run made, once: what is released, where it comes from, and the receipt that says so."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, get_args

from pipelines.agent.dialects import SYNTH, render_system
from pipelines.checks.benchmarks import count_hits
from pipelines.config.disclosure import digest_settings, disclose_plugin, disclose_settings
from pipelines.corpus.addresses import find_licence_url
from pipelines.corpus.store import Corpus
from pipelines.ids import digest_file, digest_value
from pipelines.release.card import PAGE_LICENCE, PAGE_LICENCE_URL, digest_prose
from pipelines.release.manifest import (
    MANIFEST,
    ArticleRights,
    FunnelRow,
    PublishedRelease,
    ReleaseContext,
    is_invented,
)
from pipelines.release.publish import publish_releases
from pipelines.run.assembly import Assembly
from pipelines.run.reviewing import read_decided
from pipelines.run.runner import PlannedStage, StageReport
from pipelines.run.shards import read_parts, read_rejections
from pipelines.run.workspace import Workspace, read_names, write_names
from schemas.datasets import Dataset, Enhancement, ReleaseEntry, Trajectory
from schemas.manifest import BenchmarkEntry, InputEntry, Manifest, ModelEntry, Usage
from schemas.reasons import BenchmarkReason


def report_corpus(corpus: Corpus, built: bool, seconds: float) -> StageReport:
    """Return the corpus's own row of the funnel."""
    counts = corpus.manifest.counts
    return StageReport(
        stage="corpus",
        key=corpus.folder.name,
        ran=built,
        rows_in=counts.rows_in,
        kept=counts.kept,
        rejected=dict(counts.rejected),
        failed=counts.failed,
        rows_out=counts.kept,
        seconds=round(seconds, 3) if built else 0.0,
        usage=Usage(),
    )


def publish_run(assembly: Assembly, planned: Sequence[PlannedStage]) -> tuple[list[PublishedRelease], bool]:
    """Publish the releases of a run whose stages are all sealed, and say whether they were written now.

    A receipt beside the stage's rows says what was published from them and from what else; while that holds nothing is
    done again.
    """
    last = next(plan for plan in planned if plan.name == "releases")
    selections, trajectories = last.sources
    manifests = [manifest for plan in planned if (manifest := plan.folder.read_manifest()) is not None]
    context = _describe_origin(assembly, manifests, planned)
    receipt = last.folder.path / "published.json"
    mark = digest_value([context.model_dump(), digest_prose()])
    published = _read_receipt(assembly.workspace, receipt, mark)
    if published is not None:
        return published, False
    releases = publish_releases(
        assembly.workspace.root,
        read_parts(selections.folder, Enhancement),
        read_parts(trajectories.folder, Trajectory),
        read_parts(last.folder, ReleaseEntry),
        context,
    )
    entries: dict[str, str] = {r.dataset: f"{r.version} {r.rows} {digest_file(r.path / MANIFEST)}" for r in releases}
    write_names(receipt, {"mark": mark, **entries})
    return releases, bool(releases)


def _read_receipt(workspace: Workspace, receipt: Path, mark: str) -> list[PublishedRelease] | None:
    entries = read_names(receipt)
    if entries.pop("mark", "") != mark:
        return None
    releases = []
    for dataset, entry in entries.items():
        version, rows, _ = entry.split(" ")
        folder = workspace.releases / dataset / version
        if not (folder / MANIFEST).is_file():
            return None
        releases.append(PublishedRelease(cast(Dataset, dataset), version, folder, int(rows)))
    return releases


def _find_rights(assembly: Assembly) -> ArticleRights | None:
    if assembly.config.method != "news":
        return None
    licence = assembly.config.news.licence
    url = find_licence_url(licence)
    if not licence and is_invented(assembly.corpus.manifest.base_url):
        licence, url = PAGE_LICENCE, PAGE_LICENCE_URL
    return ArticleRights(licence=licence, licence_url=url, live=assembly.config.tools.family == "live")


def _count_hits(assembly: Assembly, planned: Sequence[PlannedStage]) -> tuple[BenchmarkEntry, ...]:
    if not assembly.benchmarks.settings:
        return ()
    hits = count_hits(
        refused for plan in planned for refused in read_rejections(plan.folder, get_args(BenchmarkReason))
    )
    return tuple(
        entry.model_copy(update={"hits": dict(hits.get(entry.name, {}))}) for entry in assembly.benchmarks.entries
    )


def _describe_origin(
    assembly: Assembly, manifests: Sequence[Manifest], planned: Sequence[PlannedStage]
) -> ReleaseContext:
    corpus, agent = assembly.corpus, assembly.make_agent()
    funnel: list[StageReport | Manifest] = [report_corpus(corpus, False, 0.0), *manifests]
    lineage = [InputEntry(name=manifest.stage, key=manifest.key, digest=manifest.digest) for manifest in manifests]
    models = {(model.role, model.name): model for manifest in manifests for model in manifest.models}
    told, untold = disclose_settings(assembly.config)
    served = sum((manifest.usage for manifest in manifests), Usage()).served
    return ReleaseContext(
        corpus=corpus.digest,
        snapshot=corpus.snapshot,
        base_url=corpus.manifest.base_url,
        articles=_find_rights(assembly),
        recipe=assembly.config.recipe,
        seeds={"run": assembly.config.seed},
        config_digest=digest_settings(told, untold, corpus.digest),
        git_commit=manifests[-1].git_commit,
        told=told,
        untold=untold,
        lineage=(assembly.corpus_entry, *lineage),
        funnel=tuple(FunnelRow(**{name: getattr(row, name) for name in FunnelRow.model_fields}) for row in funnel),
        models=tuple(_name_served(model, served) for _, model in sorted(models.items())),
        prompts={label: digest for manifest in manifests for label, digest in manifest.prompts.items()},
        tools=agent.offered,
        # Native calls are written down as text in a released row, so its system message must describe them.
        system=render_system(SYNTH, agent.tools.describe(), agent.settings.max_calls) if agent.dialect.native else "",
        settings=assembly.config.releases,
        benchmarks=_count_hits(assembly, planned),
        reviews=read_decided(assembly.workspace),
        plugins=tuple(
            {(e.kind, e.name): disclose_plugin(e) for manifest in manifests for e in manifest.plugins}.values()
        ),
    )


def _name_served(model: ModelEntry, served: Mapping[str, int]) -> ModelEntry:
    asked = f"{model.name}: "
    return model.model_copy(
        update={"served": tuple(sorted(name[len(asked) :] for name in served if name.startswith(asked)))}
    )
