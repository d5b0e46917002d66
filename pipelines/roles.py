"""Who plays each role of a run: its model, recorded, priced and held to the run's budget, built once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Protocol, runtime_checkable

from pipelines.adapters import build_model
from pipelines.agent.judging import Jury
from pipelines.backends.metering import Price, Purse
from pipelines.backends.protocols import Sampling
from pipelines.backends.recorded import RecordedChat
from pipelines.backends.replies import ReplyStore, open_replies
from pipelines.config import RunConfig
from pipelines.errors import ConfigError
from pipelines.freshness import read_generations
from pipelines.pictures import PictureStore
from pipelines.prompting import Asking, load_prompt
from pipelines.workspace import Workspace


@runtime_checkable
class Closing(Protocol):
    """A model that holds something until it is told to let go, such as a process with its GPUs."""

    def close(self) -> None:
        """Let go; nothing happens a second time."""


TOOLS = ("text_search", "image_search", "pages", "wikidata", "commons", "ocr")
"""What is recorded beside the models of roles."""
JUDGES = ("judge", "second_judge")


@dataclass
class Roles:
    """The models of one run. Requests of all stages and threads to one role share its connections and its limits."""

    config: RunConfig
    workspace: Workspace
    _models: dict[str, RecordedChat] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock, repr=False, compare=False)

    @cached_property
    def replies(self) -> ReplyStore:
        """The workspace's recorded replies."""
        return open_replies(self.workspace.replies)

    @cached_property
    def pictures(self) -> PictureStore:
        """The workspace's image store."""
        return PictureStore(self.workspace.images)

    @cached_property
    def purse(self) -> Purse:
        """What the run may spend, of all roles together."""
        budget = self.config.budget
        return Purse(budget.money, budget.tokens, budget.gpu_hours)

    @cached_property
    def generations(self) -> dict[str, int]:
        """How often each role and tool was asked for fresh replies."""
        return read_generations(self.workspace.replies)

    def count_renewals(self, name: str) -> int:
        """Return how often a role or tool was asked for fresh replies: part of what its recordings are found by."""
        return self.generations.get(name, 0)

    def close(self) -> None:
        """End what was begun for models: the recording's thread and file, and workers of this run."""
        for model in self._models.values():
            if isinstance(model.model, Closing):
                model.model.close()
        if "replies" in self.__dict__:
            self.replies.close()

    def find_model(self, role: str) -> RecordedChat:
        """Return the model in a role.

        Raises:
            ConfigError: if its settings are not its adapter's, or its key is not to be had.
        """
        with self._lock:
            if role not in self._models:
                self._models[role] = self._build_model(role)
            return self._models[role]

    def _build_model(self, role: str) -> RecordedChat:
        config = self.config.models.get(role)
        price = Price(config.price_in, config.price_out, config.gpu_price)
        model = build_model(role, config, self.pictures)
        return RecordedChat(model, self.replies, price, self.purse, fresh=self.count_renewals(role))

    def ask(self, role: str, prompt: str, version: int = 1) -> Asking:
        """Return a role's model with a prompt."""
        return Asking(self.find_model(role), load_prompt(prompt, version), self.make_sampling(role))

    def make_sampling(self, role: str) -> Sampling:
        """Return a role's sampling settings."""
        model = self.config.models.get(role)
        return Sampling(model.temperature, model.top_p, model.max_tokens, model.presence_penalty)

    def list_judges(self) -> tuple[Asking, ...]:
        """Return the judges of answers that are configured: none, one or two."""
        return tuple(self.ask(role, "judge_answer") for role in JUDGES if getattr(self.config.models, role) is not None)

    def make_jury(self) -> Jury:
        """Return who scores answers: the typed comparer, and the judges for what it leaves open."""
        return Jury(self.list_judges())


def check_renewable(config: RunConfig, names: Sequence[str]) -> None:
    """Refuse names of which no fresh replies can be asked.

    Raises:
        ConfigError: naming what there is.
    """
    known = (*config.models.list_roles(), *TOOLS)
    for name in names:
        if name not in known:
            raise ConfigError(f"--fresh-replies {name}: no such role or tool; there are: {', '.join(known)}")
