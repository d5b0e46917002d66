"""Every trainer that a release can be written for: ``synth export`` and ``synth validate``."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from pipelines.agent.dialects import find_dialect
from pipelines.errors import ConfigError, ConservationError, GateNotMet
from pipelines.release.exporters.base import EXPORT, Exporter, ExportOptions, publishing, write_document
from pipelines.release.exporters.rl import RL_EXPORTERS, name_folder
from pipelines.release.exporters.sft import SFT_EXPORTERS
from pipelines.release.manifest import read_release_manifest
from pipelines.release.rows import list_files

SHOWN_PROBLEMS = 5
MOST_PROBLEMS = 1000
"""Problems that are listed of one folder; a reader that fails on the first one will not miss the others."""
CREDITS = "ATTRIBUTION.tsv"
EXPORTERS: Final[Mapping[str, Exporter]] = {each.name: each for each in (*SFT_EXPORTERS, *RL_EXPORTERS)}


@dataclass(frozen=True, slots=True)
class ExportReport:
    """An export that was published."""

    to: str
    rows_in: int
    rows_out: int
    files: int
    notes: tuple[str, ...]


def export_release(release: Path, out: Path, to: str, options: ExportOptions | None = None) -> ExportReport:
    """Write a release as a trainer reads it; what was written is read back by that trainer's rules before it is there.

    Args:
        release: folder of a published release, hashed again first.
        out: folder to make; nothing may be there.
        to: name of an exporter.
        options: how rows are written.

    Raises:
        ConfigError: if ``to`` is no exporter, the release is of another dataset, empty or damaged, ``out`` is taken, or
            there is no such dialect or it has no words for a turn.
        GateNotMet: if the release's files changed, or the rules find something.
        ConservationError: if rows were lost or invented.
        Unavailable: if the disk is full.
    """
    return write_export(release, out, find_exporter(to), options or ExportOptions())


def write_export(release: Path, out: Path, exporter: Exporter, options: ExportOptions) -> ExportReport:
    """Write a release by an exporter; see :func:`export_release`."""
    manifest, to = read_release_manifest(release), exporter.name
    if manifest.dataset != exporter.dataset:
        raise ConfigError(
            f"export {release}: is of {manifest.dataset}; {to} is made from a release of {exporter.dataset}"
        )
    if not manifest.rows:
        raise ConfigError(f"export {release}: has no rows, and no loader accepts an empty dataset")
    # Some exporters would only write the name and the dialect down, for a trainer to fail on.
    name_folder(options)
    if options.dialect:
        find_dialect(options.dialect)
    with publishing(out) as staging:
        written = exporter.write(release, staging, options)
        if not written.rows_in == written.rows_out == manifest.rows:
            raise ConservationError(
                f"export {to}: {manifest.rows} rows released, {written.rows_in} read, {written.rows_out} written"
            )
        if (release / CREDITS).is_file():
            shutil.copyfile(release / CREDITS, staging / CREDITS)
        told = {"to": to, "dataset": manifest.dataset, "version": manifest.version, "content": manifest.content}
        told |= {"name": options.title, "dialect": options.dialect or "as released", "calls": options.calls}
        origin = {**told, "rows": manifest.rows, "notes": written.notes}
        write_document(staging / EXPORT, origin, indent=1, ensure_ascii=False)
        problems = tuple(islice(exporter.check(staging), MOST_PROBLEMS))
        if problems:
            raise GateNotMet(f"export {to}: {len(problems)} problems: {'; '.join(problems[:SHOWN_PROBLEMS])}")
        files = sum(1 for _ in list_files(staging))
    return ExportReport(to, written.rows_in, written.rows_out, files, written.notes)


def validate_export(out: Path, to: str) -> tuple[str, ...]:
    """Return what a trainer would drop, shift or fail on in a folder, whoever wrote it; at most a thousand problems.

    Raises:
        ConfigError: if ``to`` is no exporter or ``out`` no folder.
    """
    exporter = find_exporter(to)
    if not out.is_dir():
        raise ConfigError(f"validate {out}: {'is a file; name its folder' if out.exists() else 'no such folder'}")
    return tuple(islice(exporter.check(out), MOST_PROBLEMS))


def find_exporter(name: str) -> Exporter:
    """Return an exporter by name.

    Raises:
        ConfigError: if there is none.
    """
    if name not in EXPORTERS:
        raise ConfigError(f"trainer {name!r} is not known; known are {', '.join(EXPORTERS)}")
    return EXPORTERS[name]
