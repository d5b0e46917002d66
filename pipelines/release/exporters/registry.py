"""Every trainer that a release can be written for."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipelines.agent.dialects import find_dialect
from pipelines.errors import ConfigError, ConservationError
from pipelines.plugins import list_names, load_plugin
from pipelines.release.exporters.base import Exporter, ExportOptions, publishing, write_document
from pipelines.release.exporters.rl import RL_EXPORTERS
from pipelines.release.exporters.sft import SFT_EXPORTERS
from pipelines.release.manifest import read_release_manifest
from pipelines.release.publish import ATTRIBUTION
from pipelines.release.rows import list_files

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
EXPORTERS: Final[Mapping[str, Exporter]] = {each.name: each for each in (*SFT_EXPORTERS, *RL_EXPORTERS)}


@dataclass(frozen=True, slots=True)
class ExportReport:
    """An export that was published."""

    to: str
    rows: int
    files: int
    notes: tuple[str, ...]


def export_release(release: Path, out: Path, to: str, options: ExportOptions | None = None) -> ExportReport:
    """Write a release, hashed again first, as a trainer reads it; ``out`` must not exist or be empty."""
    exporter, options = find_exporter(to), options or ExportOptions()
    manifest = read_release_manifest(release)
    if manifest.dataset != exporter.dataset:
        raise ConfigError(f"export {release}: it is of {manifest.dataset}; {to} needs one of {exporter.dataset}")
    if not manifest.rows:
        raise ConfigError(f"export {release}: it has no rows, and no loader accepts an empty dataset")
    if not NAME.fullmatch(options.name):
        raise ConfigError(f"export: the name {options.name!r} is no folder name; it takes letters, digits, . _ and -")
    if options.dialect:
        find_dialect(options.dialect)
    with publishing(out) as staging:
        written = exporter.write(release, staging, options)
        if written.rows != manifest.rows:
            raise ConservationError(f"export {to}: {manifest.rows} rows released, {written.rows} written")
        shutil.copyfile(release / ATTRIBUTION, staging / ATTRIBUTION)
        origin = {"to": to, "dataset": manifest.dataset, "version": manifest.version, "content": manifest.content}
        origin |= {"name": options.name, "dialect": options.dialect or "as released", "calls": options.calls}
        facts = {**origin, "rows": manifest.rows, "notes": written.notes}
        write_document(staging / "export.json", facts, indent=1, ensure_ascii=False)
        files = sum(1 for _ in list_files(staging))
    return ExportReport(to, written.rows, files, written.notes)


def find_exporter(name: str) -> Exporter:
    """Return an exporter by name, ours or that of a plugin."""
    if name in EXPORTERS:
        return EXPORTERS[name]
    plugged = list_names("exporters")
    if name not in plugged:
        raise ConfigError(f"trainer {name!r} is not known; known are {', '.join((*EXPORTERS, *plugged))}")
    plugin = load_plugin("exporters", name)
    if not isinstance(plugin.made, Exporter) or plugin.made.name != name:
        raise ConfigError(f"plugin {plugin.entry.describe()} made {plugin.made!r}; wanted: an Exporter of this name")
    return plugin.made
