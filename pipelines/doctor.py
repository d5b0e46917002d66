"""``synth doctor``: is a run ready? Every line says what was looked at, what was found, and what to do about it."""

import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from pipelines.config import RunConfig
from pipelines.corpus.dump import list_parts, read_site
from pipelines.corpus.sidefiles import find_side_files
from pipelines.errors import SynthError
from pipelines.findings import Finding, State
from pipelines.inputs import DUMP_PATTERN
from pipelines.live_services import look_at_live
from pipelines.local_models import SCRIPTED, look_at_judges, look_at_local_models
from pipelines.picture_services import look_at_pictures
from pipelines.services import PATIENCE, list_roles_in_use, look_at_services
from pipelines.settings import ModelConfig
from pipelines.workspace import Workspace

BYTES_PER_DUMP_BYTE = 12
"""Workspace bytes a byte of compressed dump needs at most: page store, search index, tables."""
SPARE_BYTES = 500_000_000


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything looked at; ready unless something is a problem."""

    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether no finding is a problem."""
        return all(finding.state != "problem" for finding in self.findings)


def examine_run(config: RunConfig, root: Path, patience: float = PATIENCE) -> Examination:
    """Look at software, input, workspace, disk and models; nothing is written but a probe in an existing workspace.

    Args:
        config: of the run.
        root: the workspace.
        patience: seconds for one reply of a server; servers are asked a few tokens each, where models have some.
    """
    workspace = Workspace(root.resolve())
    looks: tuple[Callable[[], list[Finding]], ...] = (
        _look_at_software,
        lambda: _look_at_input(config),
        lambda: _look_at_workspace(workspace),
        lambda: _look_at_disk(config, workspace),
        lambda: _look_at_models(config),
        lambda: look_at_judges(config),
        lambda: look_at_local_models(config),
        lambda: look_at_pictures(config),
        lambda: look_at_services(config, patience),
        lambda: look_at_live(config.live, patience) if config.tools.family == "live" else [],
    )
    return Examination(tuple(finding for look in looks for finding in look()))


def _look_at_software() -> list[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    found = [Finding("python", "ok" if sys.version_info >= (3, 11) else "problem", version)]
    for extra, module in (("hub", "huggingface_hub"), ("hub", "datasets")):
        here = importlib.util.find_spec(module) is not None
        found.append(
            Finding(module, "ok" if here else "warning", "installed" if here else f"pip install 'synth[{extra}]'")
        )
    return found


def _look_at_input(config: RunConfig) -> list[Finding]:
    if config.corpus.generate is not None:
        return [Finding("input", "ok", f"a toy Wikipedia of {config.corpus.generate.entities:,} entities is generated")]
    dumps = [Path(config.corpus.dump)]
    if config.corpus.world:
        dumps = sorted(p for p in Path(config.corpus.world).glob(DUMP_PATTERN) if "-index" not in p.name)
    if len(dumps) != 1 or not dumps[0].is_file():
        return [Finding("input", "problem", f"{config.corpus.dump or config.corpus.world}: no dump there")]
    try:
        site = read_site(dumps[0])
    except SynthError as error:
        return [Finding("input", "problem", str(error))]
    side = [path.name for _, path in find_side_files(dumps[0]).list_files()]
    state: State = "ok" if side else "warning"
    return [
        Finding("input", "ok", f"{dumps[0].name}: {site.dbname}, {dumps[0].stat().st_size:,} bytes"),
        Finding("files beside it", state, ", ".join(side) or "none: no Qids, counts or pictures will be known"),
    ]


def _look_at_workspace(workspace: Workspace) -> list[Finding]:
    if not workspace.root.exists():
        return [_look_at_place(workspace.root)]
    try:
        with workspace.claim():
            return [Finding("workspace", "ok", f"{workspace.root}: free, and its file system renames and locks")]
    except SynthError as error:
        return [Finding("workspace", "problem", str(error))]


def _look_at_place(root: Path) -> Finding:
    """Say whether a workspace that is not there yet could be made; nothing is made."""
    place = _find_place(root)
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return Finding("workspace", "ok", f"{root}: will be made in {place}, which can be written to")
    why = "cannot be written to" if place.is_dir() else "is no folder"
    return Finding("workspace", "problem", f"{root}: {place} {why}; choose another --workspace")


def _find_place(path: Path) -> Path:
    """Return a path's nearest ancestor that exists, itself included."""
    return next(place for place in (path, *path.parents) if place.exists())


def _look_at_disk(config: RunConfig, workspace: Workspace) -> list[Finding]:
    free = shutil.disk_usage(_find_place(workspace.root)).free
    dump = Path(config.corpus.dump)
    known = config.corpus.dump and dump.is_file()
    size = sum(path.stat().st_size for path in list_parts(dump)) if known else 0
    need = SPARE_BYTES + BYTES_PER_DUMP_BYTE * size
    detail = f"{free / 1e9:.1f} GB free, about {need / 1e9:.1f} GB may be needed"
    return [Finding("disk", "ok" if free > need else "problem", detail)]


def _look_at_models(config: RunConfig) -> list[Finding]:
    models = config.models
    roles = {role: models.get(role) for role in list_roles_in_use(config)}
    found = [Finding(f"{role} model", "ok", _describe_model(model)) for role, model in roles.items()]
    solvers = [role for role in roles if role == "solver" or role in models.solvers]
    alike = [role for role in solvers if roles[role].name == models.teacher.name]
    if alike:
        detail = f"{alike[0]} and teacher are the same model: difficulty will flatter it"
        found.append(Finding("roles", "warning", detail))
    return [*found, *_look_at_attempts(config, {role: roles[role] for role in solvers})]


def _look_at_attempts(config: RunConfig, solvers: Mapping[str, ModelConfig]) -> list[Finding]:
    """Say what makes several attempts one: no temperature, or one model in two roles, whose replies are shared."""
    tries, found = config.difficulty.attempts, []
    real = [role for role, model in solvers.items() if model.adapter not in SCRIPTED]
    if real and config.models.judge is None:
        detail = (
            f"{real[0]} is a model and nobody judges: names and phrases in other words stay unscored; set models.judge"
        )
        found.append(Finding("judge", "warning", detail))
    greedy = [role for role, model in solvers.items() if model.adapter not in SCRIPTED and model.temperature == 0.0]
    if greedy and tries > 1:
        detail = f"{greedy[0]} has temperature 0: {tries} attempts are one answer, paid {tries} times; give it one"
        found.append(Finding("attempts", "warning", detail))
    played = Counter((model.name, model.revision or model.base_url) for model in solvers.values())
    same = [name for (name, _), count in played.items() if count > 1]
    if same:
        found.append(Finding("solvers", "warning", f"{same[0]} plays two of them; its attempts are counted twice"))
    return found


def _describe_model(model: ModelConfig) -> str:
    if model.adapter in SCRIPTED:
        return f"{model.name} ({model.adapter}, no service needed)"
    if model.adapter == "vllm" or model.serve.own:
        return f"{model.name} ({model.adapter}, started by the run)"
    return f"{model.name} ({model.adapter})"


def render_examination(examination: Examination) -> Table:
    """Return the findings as a table."""
    table = Table(title="ready" if examination.ready else "not ready")
    for column in ("looked at", "state", "found"):
        table.add_column(column)
    for finding in examination.findings:
        table.add_row(finding.what, finding.state, finding.detail)
    return table
