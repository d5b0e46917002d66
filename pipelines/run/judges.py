"""Who judges whom: a judge is never the model it judges, and an evaluator never reads its own words."""

import re
from dataclasses import dataclass
from typing import Literal

from pipelines.config.settings import RunConfig
from pipelines.errors import ConfigError

State = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, and what to do about it."""

    what: str
    state: State
    detail: str


def list_roles_in_use(config: RunConfig) -> list[str]:
    """Return the roles that the run has work for: further solvers only where difficulty names them."""
    named = {*config.difficulty.solvers, config.difficulty.text_solver}
    roles = [role for role in config.models.list_roles() if role not in config.models.solvers or role in named]
    return [role for role in roles if role != "namer" or config.method == "news"]


def check_judges(config: RunConfig) -> None:
    """Refuse a judge that is the very model it judges, or its own second.

    Raises:
        ConfigError: naming the roles.
    """
    wrong = [finding for finding in look_at_judges(config) if finding.state == "problem"]
    if wrong:
        raise ConfigError(f"models: {wrong[0].what}: {wrong[0].detail}; two models of one name need a revision each")


def look_at_judges(config: RunConfig) -> list[Finding]:
    """Say whether a judge is a model it judges, and whether two judges are of one family."""
    models = config.models
    judged = {role: models.get(role) for role in list_roles_in_use(config) if role in models.solvers}
    judged |= {"solver": models.solver, "teacher": models.teacher}
    pairs = [("judge", other) for other in judged] + [("second_judge", other) for other in judged]
    pairs += [("process_judge", "teacher"), ("evaluator", "writer"), ("evaluator", "rewriter")]
    found = [_compare(config, role, other) for role, other in pairs]
    first, second = models.judge, models.second_judge
    if first and second:
        what = "judge and second_judge"
        family = name_family(first.name)
        if (first.name, first.revision) == (second.name, second.revision):
            found.append(Finding(what, "problem", f"both are {first.name}; they will always agree"))
        elif family and family == name_family(second.name):
            detail = f"{first.name} and {second.name} look like one family, {family}: they err alike"
            found.append(Finding(what, "warning", detail))
        else:
            found.append(Finding(what, "ok", f"{first.name} and {second.name}"))
    return [finding for finding in found if finding]


def _compare(config: RunConfig, role: str, other: str) -> Finding | None:
    judge, model = getattr(config.models, role), config.models.get(other)
    if judge is None or not judge.name or judge.name != model.name:
        return None
    what = f"{role} and {other}"
    if judge.revision == model.revision:
        rule = (
            "an evaluator never reads its own words" if role == "evaluator" else "a judge is never the model it judges"
        )
        return Finding(what, "problem", f"both are {judge.name}; {rule}")
    detail = f"both are {judge.name}, of the revisions {judge.revision!r} and {model.revision!r}"
    return Finding(what, "warning", f"{detail}; a judge flatters its own kind")


def name_family(name: str) -> str:
    """Return the first word of a model's name up to a digit, such as ``qwen`` of Qwen/Qwen3-VL: a rule of thumb."""
    word = re.search(r"[^\W\d_]+", name.rstrip("/").rsplit("/", 1)[-1])
    return word.group().lower() if word else ""
