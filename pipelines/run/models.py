"""The models of a run's roles, recorded, priced and within the budget; the services outside; and the other dump."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import inf
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipelines.agent.judging import Jury
from pipelines.config.loading import explain_missing
from pipelines.config.settings import ModelConfig, RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.pictures import MAX_BYTES, PictureStore
from pipelines.run.plugins import PluggedChat, Plugins, find_prompt_folder
from pipelines.run.stage import AnyStage
from pipelines.run.workspace import Workspace
from pipelines.services.clients.batch import BATCH_ROWS, PACE, BatchChat, Pace
from pipelines.services.clients.chat import OpenAIChat, list_own_keys
from pipelines.services.clients.commons import CommonsFiles, JoinedMetadata, RecordedCommons
from pipelines.services.clients.recorded import Recorded, RecordedChat
from pipelines.services.clients.replies import ReplyStore, open_replies, read_epochs
from pipelines.services.clients.sparql import SparqlEndpoint
from pipelines.services.image_metadata import ImageMetadata
from pipelines.services.metering import Budget, make_price
from pipelines.services.prompting import WORDED, RoleClient, load_prompt, make_sampling, speak
from pipelines.services.protocols import ChatModel
from pipelines.stages.seeds import WikidataSource

if TYPE_CHECKING:
    from pipelines.services.clients.commons import CommonsApi
    from pipelines.services.clients.http import RateLimiter
    from pipelines.services.clients.turns import Turns

SPARQL_PAUSE, COMMONS_PAUSE = 1.0, 0.5
"""Seconds between two requests to a public service; only one is in flight."""
PAGE_ROWS = 5_000
"""A SPARQL query with more rows is divided: so many come well within a minute, at which the public service stops."""
COMMONS_RATE = 10.0
"""Pictures a second: of 1280 pixels they stay within the 25 Mbit/s of Commons' robot policy."""
CONNECTIONS = 2
"""Pictures fetched from Commons at a time; its robot policy allows two."""


def is_own(address: str) -> bool:
    """Say whether a service runs on this machine, and so needs no pause."""
    from pipelines.services.clients.commons import LOOPBACK

    return urlsplit(address).hostname in LOOPBACK


def make_commons_api(config: RunConfig, turns: "Turns | None" = None) -> "CommonsApi":
    """Return Commons' API: one request at a time, with a pause after each, of all processes that share turns."""
    from pipelines.services.clients.commons import CommonsApi, make_client

    host = urlsplit(config.commons.endpoint).netloc
    return CommonsApi(
        config.commons.endpoint,
        config.contact,
        make_client(_find_limiter(host, turns, pause=0.0 if is_own(config.commons.endpoint) else COMMONS_PAUSE)),
    )


@cache
def _find_limiter(
    name: str, turns: "Turns | None", rate: float = inf, concurrency: int = 1, pause: float = 0.0
) -> "RateLimiter":
    """Return the limit that all clients of a service share in this process."""
    from pipelines.services.clients.http import RateLimiter

    return RateLimiter(name, rate=rate, concurrency=concurrency, pause=pause, turns=turns)


def make_image_metadata(config: RunConfig, replies: ReplyStore, epoch: int = 0) -> ImageMetadata:
    """Return Commons' imageinfo API, recorded."""
    return RecordedCommons(JoinedMetadata(make_commons_api(config, replies.turns)), replies, epoch)


def make_file_fetch(config: RunConfig, turns: "Turns | None" = None) -> CommonsFiles:
    """Return what fetches Commons' pictures, within its limits; they come from other servers than its API."""
    from pipelines.services.clients.commons import make_client

    name = f"pictures of {urlsplit(config.commons.endpoint).netloc}"
    rate = inf if is_own(config.commons.endpoint) else COMMONS_RATE
    limiter = _find_limiter(name, turns, rate=rate, concurrency=CONNECTIONS)
    client = make_client(limiter, seconds=120.0, reply_bytes=MAX_BYTES)
    return CommonsFiles(config.commons.endpoint, config.contact, client)


def make_wikidata_source(run: RunConfig, corpus: Corpus, replies: ReplyStore, epoch: int = 0) -> WikidataSource:
    """Return the endpoint that seeds are drawn from, recorded.

    Raises:
        ConfigError: if no class or no contact is named.
    """
    config = run.seeds
    if not config.classes:
        raise ConfigError("seeds.classes is empty; a query needs a class: --set 'seeds.classes=[\"Q12280\"]'")
    if not run.contact:
        raise ConfigError("contact is empty; SPARQL services want one: --set contact=you@example.org")
    endpoint = SparqlEndpoint(
        config.endpoint, run.contact, 0.0 if is_own(config.endpoint) else SPARQL_PAUSE, turns=replies.turns
    )
    address = urlsplit(corpus.manifest.base_url)
    site = f"{address.scheme}://{address.netloc}/"
    return WikidataSource(Recorded(endpoint, replies, epoch), site, PAGE_ROWS)


def build_player(role: str, config: ModelConfig) -> ChatModel:
    """Build a role's scripted player; imported here because production works without the toy.

    Raises:
        ConfigError: if it has no such ability.
    """
    from pipelines.toy.players import ScriptedJudge, ScriptedSolver
    from pipelines.toy.reader import GrammarReader
    from pipelines.toy.teacher import ScriptedTeacher, make_vices
    from pipelines.toy.writer import TemplatesModel

    abilities = list_own_keys(config)
    try:
        if role == "solver":
            return ScriptedSolver(**abilities, name=config.name)
        if role == "judge":
            return ScriptedJudge(**abilities, name=config.name)
        if role == "teacher":
            return ScriptedTeacher(name=config.name, vices=make_vices(abilities))
    except TypeError as error:
        raise ConfigError(f"models.{role}.extra_body: {error}") from error
    if abilities:
        raise ConfigError(f"models.{role}.extra_body: the scripted {role} has no abilities; leave it out")
    return GrammarReader() if role == "evaluator" else TemplatesModel()


TOOLS = ("text_search", "image_search", "pages", "wikidata", "commons", "ocr")
"""What is recorded beside the models of roles."""


@dataclass
class Roles:
    """The models of one run. Requests of all stages to one role share its connections and its limits."""

    config: RunConfig
    workspace: Workspace
    say: Callable[[str], None] = field(default=lambda text: None)
    """Takes messages about batches."""
    run: str = ""
    """Name of the run whose processes share turns and budget; empty for this process alone."""
    language: str = "en"
    """Of the corpus, in which questions are asked."""
    pace: Pace = PACE
    """How batches are cut and waited for."""
    _models: dict[str, RecordedChat] = field(default_factory=dict)
    _batched: list[BatchChat] = field(default_factory=list)

    @cached_property
    def replies(self) -> ReplyStore:
        """The workspace's recorded replies."""
        return open_replies(self.workspace.replies, self.config.replies, self.run, self.budget)

    @cached_property
    def pictures(self) -> PictureStore:
        """The workspace's image store."""
        return PictureStore(self.workspace.images)

    @cached_property
    def plugins(self) -> Plugins:
        """The plugins that the configuration names, of all parts of the run."""
        return Plugins(self.config)

    @cached_property
    def budget(self) -> Budget:
        """The budget of all roles together."""
        return Budget(self.config.budget)

    @cached_property
    def epochs(self) -> dict[str, int]:
        """The cache epoch of each role and tool."""
        return read_epochs(self.workspace.replies)

    def find_epoch(self, name: str) -> int:
        """Return the cache epoch of a role or tool, part of its recordings' keys."""
        return self.epochs.get(name, 0)

    def close(self) -> None:
        """Close what follows batches, then the recorded replies."""
        for model in self._batched:
            model.close()
        if "replies" in self.__dict__:
            self.replies.close()

    def find_model(self, role: str) -> RecordedChat:
        """Return the model in a role.

        Raises:
            ConfigError: if its adapter has no such settings, or its key is missing.
        """
        if role not in self._models:
            self._models[role] = self._build_model(role)
        return self._models[role]

    def _build_model(self, role: str) -> RecordedChat:
        if role not in self.config.roles:
            raise ConfigError(explain_missing([role]))
        config = self.config.models[role]
        price = make_price(config)
        if config.mode == "batch":
            # The model itself knows its epoch: it waits for no batch of an older one.
            return RecordedChat(self._build_batched(role, config), self.replies, price, self.budget, role=role)
        return RecordedChat(
            self._build_live(role, config), self.replies, price, self.budget, epoch=self.find_epoch(role), role=role
        )

    def _build_live(self, role: str, config: ModelConfig) -> ChatModel:
        if config.adapter == "plugin":
            return PluggedChat(self.plugins.load("backends", config.name))
        if config.adapter == "scripted":
            return build_player(role, config)
        patience = self.config.runtime.patience
        return OpenAIChat(config, self.pictures.load, patience=patience)

    def _build_batched(self, role: str, config: ModelConfig) -> ChatModel:
        def is_recorded(key: str) -> bool:
            return self.replies.read(key) is not None

        epoch, folder = self.find_epoch(role), self.workspace.batches
        pace = replace(self.pace, patience=self.config.runtime.patience)
        model = BatchChat(config, folder, is_recorded, epoch, self.pictures.load, self.say, pace)
        self._batched.append(model)
        return model

    def ask(self, role: str, prompt: str, version: int = 0) -> RoleClient:
        """Return a role's model with a prompt."""
        own = find_prompt_folder(self.config)
        loaded = load_prompt(prompt, version, own)
        if self.language != "en" and prompt in WORDED:
            loaded = speak(loaded, load_prompt("in_language", 1, own), self.language)
        return RoleClient(self.find_model(role), loaded, make_sampling(self.config.models[role]))

    def make_jury(self) -> Jury:
        """Return the jury: the typed comparer, and the judge, if there is one, of answers that it leaves open."""
        return Jury((self.ask("judge", "judge_answer"),) if "judge" in self.config.roles else ())


def count_in_flight(config: RunConfig, stage: AnyStage) -> int:
    """Return how many records of a stage are in flight.

    They fill a batch of any of its roles. Otherwise they are as many as keep its models busy: with more all its shards
    end late, and the stage that follows begins late.
    """
    asked = [config.models[role] for role in {entry.role for entry in stage.models()} & set(config.roles)]
    most = config.runtime.concurrency
    if any(model.mode == "batch" for model in asked):
        return max(most, BATCH_ROWS)
    return min(most, sum(model.concurrency * max(1, len(model.base_url)) for model in asked) or most)


def check_renewable(config: RunConfig, names: Sequence[str]) -> None:
    """Check the names given to ``--fresh-replies``.

    Raises:
        ConfigError: naming the roles and tools there are.
    """
    known = (*config.roles, *TOOLS)
    for name in names:
        if name not in known:
            raise ConfigError(f"--fresh-replies {name}: no such role or tool; there are: {', '.join(known)}")
