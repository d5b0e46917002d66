"""Who judges whom: a judge is never the model it judges, and an evaluator never reads its own words."""

from dataclasses import dataclass
from typing import Literal

from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError

State = Literal["ok", "warning", "problem"]
PAIRS = (("judge", "solver"), ("judge", "teacher"), ("evaluator", "writer"), ("evaluator", "rewriter"))
"""Each role with one whose work it looks at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, and what to do about it."""

    what: str
    state: State
    detail: str


def check_judges(config: RunConfig) -> None:
    """Refuse a judge that is the very model it judges.

    Raises:
        ConfigError: naming the roles.
    """
    wrong = [finding for finding in look_at_judges(config) if finding.state == "problem"]
    if wrong:
        raise ConfigError(f"models: {wrong[0].what}: {wrong[0].detail}; two models of one name need a revision each")


def look_at_judges(config: RunConfig) -> list[Finding]:
    """Return where a judge bears the name of a model whose work it looks at."""
    found = []
    for pair in PAIRS:
        judge, other = (config.models[role] if role in config.roles else None for role in pair)
        if judge is None or other is None or judge.name != other.name:
            continue
        what = " and ".join(pair)
        if judge.revision == other.revision:
            rule = (
                "an evaluator never reads its own words"
                if pair[0] == "evaluator"
                else "a judge is never the model it judges"
            )
            found.append(Finding(what, "problem", f"both are {judge.name}; {rule}"))
        else:
            detail = f"both are {judge.name}, of the revisions {judge.revision!r} and {other.revision!r}"
            found.append(Finding(what, "warning", f"{detail}; a judge flatters its own kind"))
    return found
