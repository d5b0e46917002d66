"""What a run leaves at the Prefect server: the funnel, and where the releases lie."""

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from pipelines.release.manifest import PublishedRelease, read_release_manifest
from pipelines.run.loop import RunDocument


def publish_artifacts(document: RunDocument) -> None:
    """Make the artifacts of the present flow run; each has a key, under which Prefect keeps those of earlier runs."""
    funnel = [
        {
            "stage": report.stage,
            "rows in": report.rows_in,
            "kept": report.kept,
            "rejected": sum(report.rejected.values()),
            "failed": report.failed,
            "rows out": report.rows_out,
            "reasons": report.describe_reasons(),
        }
        for report in document.stages
    ]
    create_table_artifact(funnel, "funnel", f"{document.recipe} in {document.workspace}: in = kept + rejected + failed")
    for release in document.releases:
        create_markdown_artifact(_describe_release(release), f"release-{release.dataset}", str(release.path))


def _describe_release(release: PublishedRelease) -> str:
    """Return a release as Markdown: where it lies, and every file with its digest."""
    manifest = read_release_manifest(release.path)
    files = "\n".join(f"| {entry.name} | {entry.rows or ''} | `{entry.sha256}` |" for entry in manifest.files)
    splits = ", ".join(f"{split.name} {split.rows:,}" for split in manifest.splits)
    return (
        f"# {release.dataset} {release.version}\n\n[{release.path}]({release.path.as_uri()}): {release.rows:,} rows "
        f"({splits})\n\n| file | rows | sha256 |\n|---|---:|---|\n{files}\n"
    )
