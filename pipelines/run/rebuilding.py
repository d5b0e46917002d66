"""Making a release again from itself: what it tells of its configuration, and what it leaves to be given again."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.config.disclosure import digest_settings, disclose_settings, read_sections
from pipelines.config.loading import lay_layer, list_recipes, read_recipe
from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError
from pipelines.plugins import explain_absence
from pipelines.release.manifest import ReleaseManifest, read_release_manifest

RULES_NO_ROW = frozenset({"budget"})
"""Settings that a release does not tell and need not: they decide no row of a finished run."""


@dataclass(frozen=True, slots=True)
class Retold:
    """What a release tells of the configuration it was made by.

    Attributes:
        folder: of the release.
        manifest: of the release.
        tables: the shipped recipe of its name, if there is one, with what is told over it.
    """

    folder: Path
    manifest: ReleaseManifest
    tables: dict[str, Any]

    def hold(self, config: RunConfig, given: Collection[str]) -> Iterator[str]:
        """Compare a configuration and its plugins with the release's, and yield in words what differs.

        Args:
            config: of the run that is to make it again.
            given: keys, or sections, that the user gave values for.

        Raises:
            ConfigError: if a value that the release does not tell is neither the recipe's nor given.
        """
        told, untold = disclose_settings(config)
        apart = [
            name
            for name, digest in self.manifest.untold.items()
            if untold.get(name) != digest and name not in RULES_NO_ROW
        ]
        missing = [name for name in apart if not any(_touches(key, name) for key in given)]
        if missing:
            corpus = (
                ""
                if any(_touches(key, "corpus") for key in given)
                else f"; its corpus has digest {self.manifest.corpus[:16]}: if that is not the recipe's, give "
                "--set corpus.dump=FILE, corpus.world=DIR or the keys of corpus.generate, too"
            )
            raise ConfigError(
                f"release {self.folder}: it was made with other values of {', '.join(missing)} than recipe "
                f"{self.manifest.recipe} has, and does not tell them; give them again: --models scripted, "
                f"--set {missing[0]}{'.KEY' if '.' not in missing[0] else ''}=VALUE or --config FILE{corpus}"
            )
        apart += [name for name, value in self.manifest.told.items() if told.get(name) != value]
        for name in apart:
            yield f"{name}: not the value that the release was made with, so its rows may differ"
        for entry in self.manifest.plugins:
            if why := explain_absence(entry):
                yield f"plugin {why}; the release was made with that, so its rows may differ"


def _touches(key: str, name: str) -> bool:
    """Say whether two dotted names are the same, or one lies in the other."""
    return f"{key}.".startswith(f"{name}.") or f"{name}.".startswith(f"{key}.")


def read_retold(folder: Path) -> Retold:
    """Return what a release tells of its configuration.

    Raises:
        ConfigError: if the folder is no release, its settings are not those it has the digest of, or this synth knows
            them otherwise.
    """
    manifest = read_release_manifest(folder)
    if digest_settings(manifest.told, manifest.untold, manifest.corpus) != manifest.config_digest:
        raise ConfigError(f"release {folder}: its settings are not those it has the digest of; see `synth verify`")
    tables = read_recipe(manifest.recipe) if manifest.recipe in list_recipes() else {}
    told = read_sections({name: value for name, value in manifest.told.items() if value is not None})
    lay_layer(tables, told)
    return Retold(folder, manifest, tables)
