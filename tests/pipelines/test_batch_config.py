"""Which roles may be asked in batches, and how many rows are then in flight."""

from dataclasses import dataclass

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.run.models import count_in_flight
from schemas.manifest import ModelEntry


def play(role, *more):
    own = ("adapter=openai", "name=m", "base_url=http://127.0.0.1:9/v1", "settings={}", "mode=batch", *more)
    return tuple(f"models.{role}.{setting}" for setting in own)


@pytest.mark.parametrize("role", ["teacher", "summariser"])
def test_roles_that_converse_are_not_asked_in_batches_and_the_reason_is_said(role):
    with pytest.raises(ConfigError, match=rf"models.{role}.mode is batch, but each turn of a rollout waits"):
        make_config(read_recipe("demo"), play(role))


@pytest.mark.parametrize(
    "role", ["writer", "rewriter", "evaluator", "solver", "path_judge", "judge", "second_judge", "process_judge"]
)
def test_roles_of_single_turns_are(role):
    assert make_config(read_recipe("demo"), play(role)).models.get(role).mode == "batch"


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("adapter=templates", "knows no batches"),
        ("serve.own=true", "vLLM's server"),
        ('more_urls=["http://127.0.0.1:10/v1"]', "more_urls names others"),
    ],
)
def test_what_knows_no_batches_is_refused(setting, word):
    with pytest.raises(ConfigError, match=word):
        make_config(read_recipe("demo"), play("writer", setting, "revision=r1"))


@dataclass
class StageOf:
    """A stage that asks roles."""

    roles: tuple[str, ...]

    def models(self):
        return tuple(ModelEntry(role=role, name="m", revision="r", sampling={}) for role in self.roles)


def test_as_many_rows_are_in_flight_as_fill_a_batch_of_a_role_that_the_stage_asks():
    config = make_config(read_recipe("demo"), [*play("writer", "batch.rows=3000"), *play("judge", "batch.rows=7")])
    asked = {
        roles: count_in_flight(config, StageOf(roles)) for roles in [("writer", "solver"), ("judge",), ("ranker",)]
    }
    assert asked == {("writer", "solver"): 3000, ("judge",): 256, ("ranker",): 256}
