"""Checks of plugins that decided a release, asked again; without one its rows are not derived."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.checks.examination import Claim
from pipelines.checks.plugged import PluggedCheck
from pipelines.checks.verdicts import run_checks
from pipelines.graph.query import Indexes
from pipelines.plugins import explain_absence, load_plugin
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.rows import ProofRow


@dataclass(frozen=True)
class Asker:
    """The checks of a release's plugins.

    Attributes:
        ground: the corpus.
        checks: those that are installed as they were.
        missing: why each other one cannot be asked, and what to install.
        others: plugins of other kinds, in words.
    """

    ground: Indexes
    checks: tuple[PluggedCheck, ...] = ()
    missing: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, manifest: ReleaseManifest, ground: Indexes) -> "Asker":
        """Load the checks that a manifest names.

        Raises:
            ConfigError: if one is installed as it was and cannot be loaded.
        """
        asked = [entry for entry in manifest.plugins if entry.kind == "checks"]
        absent = {entry.name: explain_absence(entry) for entry in asked}
        loaded = (load_plugin("checks", entry.name, entry.settings) for entry in asked if not absent[entry.name])
        return cls(
            ground,
            tuple(PluggedCheck(plugin) for plugin in loaded),
            tuple(f"the check {why}; without it no walked row is derived" for why in absent.values() if why),
            tuple(f"{each.name} of {each.distribution}" for each in manifest.plugins if each.kind != "checks"),
        )

    def find_problems(self, row: ProofRow) -> list[str]:
        """Return what the checks have against a walked question; of others they are not asked."""
        if not row.proof.nodes:
            return []
        claim = Claim(row.text, row.answer, row.proof)
        refused = run_checks((check.make_check(self.ground, claim) for check in self.checks), audit=True)
        return [f"plugin: {result.code}: {result.detail}" for result in refused]

    def describe_unasked(self) -> Iterator[str]:
        """Yield in words what plugins decided that is not derived."""
        if self.others:
            yield f"what these plugins decided: {', '.join(self.others)}"
