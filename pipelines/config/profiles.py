"""Profiles of vendors: which keys of a chat request their servers take (``profiles.toml``)."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from pydantic import Field

from pipelines.config.settings import ModelConfig, Replies, Section
from pipelines.errors import ConfigError


class KeyRules(Section):
    """How the keys of a request change on their way to a server.

    Attributes:
        rename: key and what the server calls it.
        drop: keys that are left out.
        apart: pairs of keys that may not come together; the second is left out then.
    """

    rename: dict[str, str] = Field(default_factory=dict)
    drop: tuple[str, ...] = ()
    apart: tuple[tuple[str, str], ...] = ()

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body with these keys."""
        kept = {self.rename.get(key, key): value for key, value in body.items() if key not in self.drop}
        late = {second for first, second in self.apart if first in kept and second in kept}
        return {key: value for key, value in kept.items() if key not in late}


class Profile(KeyRules):
    """A vendor's rules, and what a role has there that sets nothing of its own: ``defaults`` are keys and values."""

    defaults: dict[str, Any] = Field(default_factory=dict)
    replies: Replies = "schema"
    prompt_cache: bool = False
    key_header: str = "Authorization"
    picture_bytes: int = 0
    """Largest file of a picture that it takes; larger ones are scaled down. 0: any."""


@cache
def load_profiles() -> dict[str, Profile]:
    """Return the shipped profiles by name."""
    text = (resources.files("pipelines.config") / "profiles.toml").read_text()
    return {name: Profile.model_validate(table) for name, table in tomllib.loads(text).items()}


def find_profile(settings: ModelConfig) -> Profile:
    """Return the profile of a model, an empty one if it names none.

    Raises:
        ConfigError: if there is no such profile.
    """
    if not settings.profile:
        return Profile()
    if settings.profile not in load_profiles():
        raise ConfigError(f"profile {settings.profile!r} does not exist; there are: {', '.join(load_profiles())}")
    return load_profiles()[settings.profile]


def find_replies(settings: ModelConfig) -> Replies:
    """Return how a reply's shape is asked for: as the role says, else as its profile does."""
    return settings.replies or find_profile(settings).replies
