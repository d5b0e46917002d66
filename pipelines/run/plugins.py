"""The plugins of a run: they are loaded and put in their places; where one is gone, the stages it decided are named."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from pipelines.checks.examination import PluggedCheck
from pipelines.config.settings import PluggableTool, PluginsConfig, RunConfig
from pipelines.errors import ConfigError, SynthError
from pipelines.ids import digest_value
from pipelines.plugins import Plugin, find_entry, find_folder, load_plugin
from pipelines.run.stage import AnyStage, RecordStage
from pipelines.services.prompting import OWN
from pipelines.services.protocols import ChatReply, ChatRequest
from schemas.base import Record, Rejection
from schemas.manifest import ModelEntry, PluginEntry, PluginKind

WALKED = frozenset(["paths", "injection", "concepts"])
"""Methods whose finished questions are given to plugins' checks."""
TOOL_STAGES: Mapping[PluggableTool, frozenset[str]] = {
    "text_search": frozenset(["difficulty", "rollouts"]),
    "image_search": frozenset(["groundings", "difficulty", "enhancements", "rollouts"]),
    "pages": frozenset(["rollouts"]),
}
"""Stages that each tool decides."""


@dataclass(frozen=True)
class PluggedChat:
    """A chat model that a plugin made; its replies are recorded under the plugin's identity, too."""

    plugin: Plugin

    @property
    def identity(self) -> str:
        """The plugin and the model's own identity."""
        entry = self.plugin.entry
        owner = f"{entry.distribution} {entry.version}"
        return f"plugin@{owner}:{self.plugin.identity[:16]}:{self.plugin.made.identity}"

    @property
    def name(self) -> str:
        """The model's own name."""
        return str(self.plugin.made.name)

    @property
    def reads_inputs(self) -> bool:
        """Whether the typed inputs decide its reply."""
        return bool(self.plugin.made.reads_inputs)

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the model's reply."""
        return cast(ChatReply, await self.plugin.made.chat(request))


@dataclass(frozen=True)
class PluggedTool:
    """A search or a reader of pages that a plugin made, with the plugin in its identity."""

    plugin: Plugin

    @property
    def identity(self) -> str:
        """The plugin and the tool's own identity."""
        return digest_value([self.plugin.identity, self.plugin.made.identity])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the methods of whichever protocol the plugin meets
        """Return what the plugin's object has; of private names none, which copying asks of an empty object."""
        if name.startswith("_") or name == "plugin":
            raise AttributeError(name)
        return getattr(self.plugin.made, name)


@dataclass(frozen=True)
class InsertedStage:
    """A stage of a plugin between two of ours: rows of one type in, rows of that type or one rejection out."""

    plugin: Plugin
    input: type[Record]
    output: type[Record]

    @property
    def name(self) -> str:
        """The name of its entry point, which its dataset has."""
        return self.plugin.entry.name

    @property
    def version(self) -> int:
        """The stage's own."""
        return int(self.plugin.made.version)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What it may refuse rows for."""
        return self.plugin.entry.list_reasons()

    def fingerprint(self) -> str:
        """Digest of the plugin and of what the stage itself says."""
        return digest_value([self.plugin.identity, self.plugin.made.fingerprint()])

    def prompts(self) -> dict[str, str]:
        """The stage's own."""
        return dict(self.plugin.made.prompts())

    def models(self) -> tuple[ModelEntry, ...]:
        """The stage's own."""
        return tuple(self.plugin.made.models())

    async def __call__(self, record: Record) -> Sequence[Record] | Rejection:
        """Process one record.

        Raises:
            ConfigError: if the plugin fails, or returns anything but rows of this type or a rejection.
        """
        where = f"plugin {self.plugin.entry.describe()}"
        try:
            made = await self.plugin.made(record)
        except SynthError:
            raise
        except Exception as error:
            raise ConfigError(f"{where} failed at {record.record_id}: {type(error).__name__}: {error}") from error
        if isinstance(made, Rejection):
            if made.record_id != record.record_id or made.reason not in self.reasons:
                raise ConfigError(f"{where} refused {made}; its reasons are {', '.join(self.reasons) or 'none'}")
            return made
        rows = tuple(made)
        if not rows or not all(isinstance(row, self.output) for row in rows):
            wanted = f"rows of {self.output.__name__}, or a refusal"
            raise ConfigError(f"{where} made {made!r} of {record.record_id}; wanted: {wanted}")
        return rows


@dataclass(frozen=True)
class Plugins:
    """The plugins that a configuration names, each loaded when it is first needed."""

    config: RunConfig
    _loaded: dict[tuple[PluginKind, str], Plugin] = field(default_factory=dict, compare=False)

    @property
    def _named(self) -> PluginsConfig:
        return self.config.plugins

    def load(self, kind: PluginKind, name: str) -> Plugin:
        """Load a plugin with its settings.

        Raises:
            ConfigError: if it is missing or broken.
        """
        if (kind, name) not in self._loaded:
            self._loaded[kind, name] = load_plugin(kind, name, self._named.settings.get(name))
        return self._loaded[kind, name]

    @cached_property
    def checks(self) -> tuple[PluggedCheck, ...]:
        """The checks of finished questions."""
        return tuple(PluggedCheck(self.load("checks", name)) for name in self._named.checks)

    def find_tool(self, tool: PluggableTool) -> Any:  # noqa: ANN401 - what each tool's protocol says
        """Return what answers a tool in place of ours; None where nothing does."""
        name = self._named.tools.get(tool)
        return PluggedTool(self.load("backends", name)) if name else None

    def insert_stages(self, sources: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """Return where each stage's rows come from, with the plugins' stages behind those they are to follow.

        Raises:
            ConfigError: if a run by this method has no such stage, or nothing follows it.
        """
        merged = dict(sources)
        for name, after in self._named.stages.items():
            if after not in merged or after == "releases":
                allowed = ", ".join(stage for stage in merged if stage != "releases")
                raise ConfigError(
                    f"plugins.stages.{name}: no place after {after!r}; a run by this method has {allowed}"
                )
            renamed = {
                stage: tuple(name if source == after else source for source in own) for stage, own in merged.items()
            }
            merged = {}
            for stage, own in renamed.items():
                merged[stage] = own
                if stage == after:
                    merged[name] = (after,)
        return merged

    def build_stage(self, name: str, rows: type[Record]) -> AnyStage:
        """Build a plugin's stage over rows of the type that the stage before makes."""
        plugin = self.load("stages", name)
        for attribute in ("version", "fingerprint", "prompts", "models", "__call__"):
            if not hasattr(plugin.made, attribute):
                raise ConfigError(f"plugin {plugin.entry.describe()} is no stage: it has no {attribute}")
        return cast(RecordStage, InsertedStage(plugin, rows, rows))

    def list_deciding(self, stage: AnyStage) -> tuple[PluginEntry, ...]:
        """Return the plugins that decide a stage's rows, for its manifest."""
        return tuple(plugin.entry for plugin in self._find_deciding(stage))

    def _find_deciding(self, stage: AnyStage) -> Iterator[Plugin]:
        if isinstance(stage, InsertedStage):
            yield stage.plugin
        if stage.name == "groundings":
            yield from (check.plugin for check in self.checks)
        for role in dict.fromkeys(entry.role for entry in stage.models()):
            if role in self.config.roles and self.config.models[role].adapter == "plugin":
                yield self.load("backends", self.config.models[role].name)
        for tool, name in self._named.tools.items():
            if stage.name in TOOL_STAGES[tool]:
                yield self.load("backends", name)
        if stage.name == "pools":
            yield from (self.load("sources", pool.plugin) for pool in self.config.pools if pool.plugin)
        if self.config.plugins.prompts and any(OWN in label for label in stage.prompts()):
            yield self.load("prompts", self.config.plugins.prompts)


def list_named(config: RunConfig) -> list[tuple[PluginKind, str]]:
    """Return every plugin that a configuration names, with its kind."""
    models = [config.models[role] for role in config.roles]
    named: list[tuple[PluginKind, str]] = [("checks", name) for name in config.plugins.checks]
    named += [("stages", name) for name in config.plugins.stages]
    named += [("backends", model.name) for model in models if model.adapter == "plugin"]
    named += [("backends", name) for name in config.plugins.tools.values()]
    named += [("sources", pool.plugin) for pool in config.pools if pool.plugin]
    named += [("prompts", config.plugins.prompts)] if config.plugins.prompts else []
    return list(dict.fromkeys(named))


def check_plugins(config: RunConfig) -> list[PluginEntry]:
    """Load every plugin that a configuration names, before anything is written, and return what each is known by.

    Raises:
        ConfigError: naming the one that is missing or broken.
    """
    if config.plugins.checks and config.method not in WALKED:
        raise ConfigError(f"plugins.checks: questions of the method {config.method} are not walked, and not checked so")
    plugins = Plugins(config)
    return [plugins.load(kind, name).entry for kind, name in list_named(config)]


def find_prompt_folder(config: RunConfig) -> str:
    """Return the folder of the user's own or a plugin's prompts; may be empty.

    Raises:
        ConfigError: if both a folder and a plugin are named, or the plugin is missing.
    """
    if not config.plugins.prompts:
        return config.prompts
    if config.prompts:
        raise ConfigError("prompts and plugins.prompts name a folder each; name one")
    return str(find_folder(find_entry("prompts", config.plugins.prompts)))
