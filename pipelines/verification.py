"""``synth verify``: which releases, by which corpus."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.corpus.build import CorpusOptions, build_corpus
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.graph.ground import Ground
from pipelines.progress import Reporter
from pipelines.release.manifest import read_release_manifest
from pipelines.release.verify import VerifyReport, verify_release
from pipelines.workspace import Workspace


def verify_releases(
    release: Path | None, corpus: Path | None, dump: Path | None, root: Path, reporter: Reporter
) -> list[VerifyReport]:
    """Verify one release, or those of the last run.

    Args:
        release: a release folder; None for all that the last run in the workspace published.
        corpus: corpus folder to verify by; None for the one each release names, in its own workspace or in ``root``.
        dump: build the corpus anew from this dump and verify by it.
        root: the workspace.
        reporter: told how far it is.

    Raises:
        ConfigError: if there is no release or no corpus to verify by.
    """
    workspace = Workspace(root.resolve())
    folders = [release] if release else list_last_releases(workspace)
    if dump is not None:
        with TemporaryDirectory(prefix="synth-verify-") as scratch:
            built = Path(scratch) / "corpus"
            build_corpus(dump, built, CorpusOptions())
            return _verify_all(folders, lambda folder: built, reporter)
    return _verify_all(folders, lambda folder: corpus or find_corpus(workspace, folder), reporter)


def _verify_all(folders: Sequence[Path], choose: Callable[[Path], Path], reporter: Reporter) -> list[VerifyReport]:
    opened: dict[Path, Ground] = {}
    reports = []
    for folder in folders:
        place = choose(folder)
        if place not in opened:
            opened[place] = Ground(Corpus.open(place))
        reporter.begin("verify", 0, "rows")
        report = verify_release(folder, opened[place], reporter.advance)
        reporter.finish(f"{folder}: {report.verified:,} of {report.rows:,} rows hold")
        reports.append(report)
    return reports


def list_last_releases(workspace: Workspace) -> list[Path]:
    """Return the folders of the releases that the last run published.

    Raises:
        ConfigError: if it published none.
    """
    latest = workspace.read_latest()
    names = [(key.partition(":")[2], version) for key, version in sorted(latest.items()) if key.startswith("release:")]
    if not names:
        raise ConfigError(
            f"workspace {workspace.root}: the last run released nothing here; run `synth run`, or name a release folder"
        )
    return [workspace.releases / dataset / version for dataset, version in names]


def find_corpus(workspace: Workspace, release: Path) -> Path:
    """Return the corpus a release was made from: in the workspace it lies in, else in the one named.

    Raises:
        ConfigError: if neither has it, or the folder is no release.
    """
    name = next(entry.key for entry in read_release_manifest(release).lineage if entry.name == "corpus")
    around = release.resolve().parents
    for root in [*around[2:3], workspace.root]:
        if (root / "corpus" / name / "manifest.json").is_file():
            return root / "corpus" / name
    raise ConfigError(
        f"verify {release}: no corpus {name} beside it; name its folder with --corpus, or the dump with --dump"
    )
