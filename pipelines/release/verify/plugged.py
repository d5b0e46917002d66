"""Checks of plugins that decided a release, asked again if whoever verifies has chosen them.

A release is a stranger's: what it names is not loaded for that alone. A check that was chosen and cannot be asked
leaves its rows underived.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.checks.examination import Claim, PluggedCheck
from pipelines.checks.verdicts import run_checks
from pipelines.config.disclosure import disclose_plugin
from pipelines.config.settings import PluginsConfig
from pipelines.graph.query import Indexes
from pipelines.plugins import explain_absence, load_plugin
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.rows import ProofRow
from schemas.manifest import PluginEntry, PluginSetting


@dataclass(frozen=True)
class Asker:
    """The checks of a release's plugins.

    Attributes:
        ground: the corpus.
        checks: those that were chosen and are installed as they were.
        missing: why each other one that was chosen cannot be asked, and what to install.
        unasked: those that were not chosen, in words.
        others: plugins of other kinds, in words.
    """

    ground: Indexes
    checks: tuple[PluggedCheck, ...] = ()
    missing: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, manifest: ReleaseManifest, ground: Indexes, chosen: PluginsConfig) -> "Asker":
        """Load the checks that a manifest names and whoever verifies has chosen.

        Raises:
            ConfigError: if one is installed as it was and cannot be loaded.
        """
        named = [entry for entry in manifest.plugins if entry.kind == "checks"]
        asked = [(entry, chosen.settings.get(entry.name, {})) for entry in named if entry.name in chosen.checks]
        absent = {entry.name: explain_absence(entry) or _explain_settings(entry, own) for entry, own in asked}
        loaded = (
            load_plugin("checks", entry.name, entry.settings | own) for entry, own in asked if not absent[entry.name]
        )
        return cls(
            ground,
            tuple(PluggedCheck(plugin) for plugin in loaded),
            tuple(f"the check {why}; without it no walked row is derived" for why in absent.values() if why),
            tuple(
                f"what the check {each.name!r} of {each.distribution} decided: --plugin {each.name} asks it again"
                for each in named
                if each.name not in chosen.checks
            ),
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
        yield from self.unasked
        if self.others:
            yield f"what these plugins decided: {', '.join(self.others)}"


def _explain_settings(entry: PluginEntry, own: dict[str, PluginSetting]) -> str:
    """Return which settings a check is to be asked with that are not told, or told otherwise; empty for none."""
    whole = disclose_plugin(entry.model_copy(update={"settings": entry.settings | own}))
    made, given = ({**each.settings, **each.untold} for each in (entry, whole))
    wrong = [key for key in made | given if made.get(key) != given.get(key)]
    if not wrong:
        return ""
    keys = ", ".join(f"plugins.settings.{entry.name}.{key}" for key in sorted(wrong))
    return f"{entry.describe()} was made with other settings than are given: {keys}"
