"""synth from Python: run a recipe, look at what it made, verify a release, and what a plugin implements.

``from pipelines.api import run`` is the documented import name. The four code folders are the import names of this
project (DESIGN section 3), so the API lives in the one that holds the library; a package of another name would only
import this one again. Everything here names functions that the commands use, too.

>>> from pipelines.api import open_workspace, run, verify
>>> document = run("demo", "my-workspace", settings=["corpus.generate.entities=300"])   # doctest: +SKIP
>>> workspace = open_workspace("my-workspace")                                          # doctest: +SKIP
>>> [verify(release.path).describe() for release in document.releases]                  # doctest: +SKIP
['41/41', '18/18']

Plugins
-------
A distribution adds to synth by entry points; each is called with the settings that ``plugins.settings.NAME`` gives as
keyword arguments, but for prompts::

    [project.entry-points."synth.checks"]
    plain = "my_package.checks:PlainWords"

============================ ================================= ===================================================
group                        chosen by                         makes
============================ ================================= ===================================================
``synth.checks``             ``plugins.checks = ["plain"]``    a :class:`Check`
``synth.stages``             ``plugins.stages.NAME = "AFTER"`` a :class:`Stage`; its dataset is called as the plugin
``synth.backends``           ``models.ROLE.plugin``,           a :class:`ChatModel`, :class:`TextSearch`,
                             ``plugins.tools``                 :class:`ImageSearch` or :class:`PageReader`
``synth.exporters``          ``synth export --to NAME``        an :class:`Exporter` of that name
``synth.sources``            ``[[pools]] plugin = NAME``       a function of a path that yields
                                                               :class:`ForeignQuestion` and :class:`UnreadRow`
``synth.prompts``            ``plugins.prompts = NAME``        nothing: it names a package with ``NAME/v1.md``
============================ ================================= ===================================================

Distribution, version and the sha256 of the package's files are part of the key of each stage that a plugin decides, and
manifests name them: another version makes those stages again, and what follows from them.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import current_process
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from pipelines.checks.examination import Claim
from pipelines.checks.examination import QuestionCheck as Check
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.cli.commands import load_config, verify_releases
from pipelines.cli.naming import RunChoice, make_request
from pipelines.cli.view.cards import Card, explain_record
from pipelines.config.settings import PluginsConfig, RunConfig
from pipelines.corpus.layouts import ForeignQuestion, UnreadRow
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, GateNotMet, ServiceError, SynthError
from pipelines.graph.query import Indexes
from pipelines.release.exporters.base import Exporter, ExportOptions, Written, read_release
from pipelines.release.manifest import PublishedRelease, read_release_manifest
from pipelines.release.verify import VerifyReport
from pipelines.run.executors import make_executor
from pipelines.run.loop import RunDocument, RunRequest, run_request
from pipelines.run.naming import NamedRun
from pipelines.run.progress import Reporter
from pipelines.run.shards import read_parts
from pipelines.run.stage import RecordStage as Stage
from pipelines.run.views import QueryRows, find_corpus, list_latest, list_views, open_views, run_sql
from pipelines.run.workspace import Workspace
from pipelines.services.protocols import (
    Backend,
    ChatModel,
    ChatReply,
    ChatRequest,
    ImageSearch,
    PageReader,
    TextSearch,
)
from schemas.base import Record, Rejection
from schemas.datasets import Grounding
from schemas.reasons import PluginReason

ResultT = TypeVar("ResultT")
UNGUARDED = 'worker processes import the script that began them: call it under `if __name__ == "__main__":`'

__all__ = [
    "PASSED", "Backend", "Card", "ChatModel", "ChatReply", "ChatRequest", "Check", "CheckResult", "Claim",
    "ConfigError", "ExportOptions", "Exporter", "ForeignQuestion", "GateNotMet", "ImageSearch", "Indexes",
    "OpenWorkspace", "PageReader", "PluginReason", "PublishedRelease", "QueryRows", "Record", "Rejection", "Rows",
    "RunConfig", "RunDocument", "ServiceError", "Stage", "SynthError", "TextSearch", "UnreadRow", "VerifyReport",
    "Written", "load_config", "open_workspace", "read_release", "run", "verify",
]  # fmt: skip


def run(
    recipe: str | RunConfig = "demo",
    workspace: str | Path = "workspace",
    *,
    files: Sequence[str | Path] = (),
    settings: Sequence[str] = (),
    until: str = "",
    name: str = "",
) -> RunDocument:
    """Run the missing parts of a recipe, as ``synth run`` does; nothing is printed. It works in a notebook, too.

    Worker processes import the script that calls this, so a script calls it under ``if __name__ == "__main__":``.

    Args:
        recipe: name of a shipped recipe, or a configuration that :func:`load_config` returned; empty for the recipe
            that a file names, or for the run that the workspace keeps.
        workspace: folder; it is made.
        files: TOML files over the recipe, the last one uppermost.
        settings: values as ``section.key=value``, over all.
        until: last stage to run; empty for all.
        name: of the run, under which the workspace keeps the configuration; empty for the recipe's or the file's.

    Returns:
        What every stage did, and the releases.

    Raises:
        ConfigError: if configuration or input is wrong; nothing was written that a later run would trust.
        ServiceError: if a service, a disk or the workspace's lock is away: call it again to go on.
        GateNotMet: if a stage failed all its rows, or too many answers are unscored.
    """
    if isinstance(recipe, RunConfig):
        if files or settings:
            raise ConfigError("run: a whole configuration takes no files or settings; load_config takes them")
        named = NamedRun(name or recipe.recipe, recipe.model_dump(mode="json"))
        request = RunRequest(recipe, Path(workspace), until, named=named)
    else:
        choice = RunChoice(name, recipe, tuple(Path(each) for each in files), tuple(settings))
        request = make_request(choice, Path(workspace), until)
    return _call_apart(lambda: run_request(request, Reporter(), make_executor(request.config)))


def _call_apart(call: Callable[[], ResultT]) -> ResultT:
    """Call where no event loop runs: a notebook has one of its own in its thread."""
    # As multiprocessing itself tells a worker that still imports the script.
    if getattr(current_process(), "_inheriting", False):
        raise ConfigError(UNGUARDED)
    try:
        if not _is_in_loop():
            return call()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(call).result()
    except BrokenExecutor as error:
        raise ConfigError(f"a worker process died as it began, or for lack of memory; {UNGUARDED}") from error


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Rows:
    """A dataset of a workspace; it is read when it is asked for, and never pickled or cached."""

    root: Path
    name: str

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table."""
        with open_views(self.root) as connection:
            return connection.sql(f"FROM {self._quoted}").to_arrow_table()

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield each row by column name, a batch in memory at a time."""
        with open_views(self.root) as connection:
            reader: pa.RecordBatchReader = connection.sql(f"FROM {self._quoted}").to_arrow_reader()
            for batch in reader:
                yield from batch.to_pylist()

    def __len__(self) -> int:
        """Return how many rows there are."""
        (count,) = run_sql(self.root, f"SELECT count(*) FROM {self._quoted}").rows[0]
        return int(count)

    @property
    def _quoted(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """A workspace to look at; nothing is written."""

    root: Path

    def datasets(self) -> Mapping[str, Rows]:
        """Return every dataset of the last run by name: each stage's, rejections, failures, funnel and the corpus's.

        ``workspace.datasets()["rejections"].to_arrow()`` has each refused row with its stage, reason and detail.
        """
        return {view.name: Rows(self.root, view.name) for view in list_views(self.root)}

    def sql(self, statement: str) -> QueryRows:
        """Return what one statement that only reads finds; its views are the datasets.

        Raises:
            ConfigError: if it does anything but read, or DuckDB refuses it.
        """
        return run_sql(self.root, statement)

    def releases(self) -> list[PublishedRelease]:
        """Return every published release, by dataset and version."""
        folders = Workspace(self.root).list_releases()
        read = ((folder, read_release_manifest(folder)) for folder in folders)
        return [PublishedRelease(each.dataset, each.version, folder, each.rows) for folder, each in read]

    def open_corpus(self) -> Indexes:
        """Return the corpus of the last run, as checks are given it.

        Raises:
            ConfigError: if there is none.
        """
        folder = find_corpus(self.root)
        if folder is None:
            raise ConfigError(f"workspace {self.root}: it has no corpus; run `synth run` first")
        return Indexes(Corpus.open(folder))

    def list_claims(self) -> Iterator[tuple[str, Claim]]:
        """Yield each finished question of the last run with its id, as checks are given it: to try one of your own.

        Questions that were not walked have no proof, and are left out.
        """
        for found in list_latest(self.root):
            rows = read_parts(found.folder, Grounding) if found.stage == "groundings" else ()
            yield from ((row.record_id, Claim(row.text, row.answer, row.proof)) for row in rows if row.proof.nodes)

    def explain(self, record_id: str) -> Card:
        """Return all that is known of the row whose id begins so, across stages.

        Raises:
            ConfigError: if there is none, or several.
        """
        return explain_record(self.root, record_id)


def open_workspace(path: str | Path = "workspace") -> OpenWorkspace:
    """Open a workspace to look at.

    >>> open_workspace("no-such-folder")
    Traceback (most recent call last):
    pipelines.errors.ConfigError: workspace no-such-folder: no such folder; run `synth run` first

    Raises:
        ConfigError: if there is no such folder.
    """
    root = Path(path)
    if not root.is_dir():
        raise ConfigError(f"workspace {root}: no such folder; run `synth run` first")
    return OpenWorkspace(root.resolve())


def verify(release: str | Path, corpus: str | Path | None = None, plugins: PluginsConfig | None = None) -> VerifyReport:
    """Derive every answer of a release again from corpus and proofs, with no model.

    Args:
        release: folder of a release.
        corpus: folder of the corpus that its proofs refer to; None for the one in its own workspace.
        plugins: checks that are asked again, as ``load_config(...).plugins``; None for none.

    Returns:
        The report; ``report.passed`` says whether all holds, ``report.problems`` what does not.

    Raises:
        ConfigError: if it is no release, or there is no such corpus.
    """
    folder = Path(release).resolve()
    root = folder.parent.parent.parent
    place = Path(corpus) if corpus else None
    chosen = plugins or PluginsConfig()
    (report,) = _call_apart(lambda: verify_releases(folder, place, None, root, Reporter(), plugins=chosen))
    return report
