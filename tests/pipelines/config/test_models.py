"""Roles: what each takes from ``models.default``, whom the judge may be, and what can be sent."""

from dataclasses import dataclass

import pytest

from pipelines.config.loading import list_recipes, make_config, read_recipe
from pipelines.config.settings import ROLES
from pipelines.errors import ConfigError
from pipelines.run.assembly import list_missing_roles
from pipelines.run.models import count_in_flight
from pipelines.run.progress import Reporter
from pipelines.run.readiness import Warner, check_models
from pipelines.services.prompting import make_sampling
from schemas.manifest import ModelEntry

URL = "http://127.0.0.1:9/v1"
DUMP = "corpus.dump=d.xml"
TWO = (DUMP, "models.default.name=m", f"models.default.base_url={URL}", "models.evaluator.name=e")


def make(*settings, recipe="opensearch-vl"):
    return make_config(read_recipe(recipe), settings)


def serve(role, *more):
    return tuple(f"models.{role}.{setting}" for setting in ("name=m", f"base_url={URL}", *more))


@pytest.mark.parametrize("recipe", [name for name in list_recipes() if name != "demo"])
def test_two_models_have_all_roles_of_a_recipe(recipe):
    config = make(*TWO, recipe=recipe)
    assert {*config.roles} == {*ROLES}
    assert list_missing_roles(config) == []
    assert {config.models[role].name for role in config.roles if role not in ("evaluator", "judge")} == {"m"}
    assert (config.models["evaluator"].name, config.models["judge"].name) == ("e", "e")
    Warner(Reporter()).heed(check_models(config))
    assert list_missing_roles(make(DUMP, recipe=recipe))


def test_a_role_takes_from_the_default_what_it_does_not_set():
    config = make(
        *TWO,
        "models.default.max_tokens=9",
        "models.default.extra_body={ top_k = 5 }",
        "models.teacher.extra_body={ top_p = 0.9 }",
        "models.writer.max_tokens=7",
    )
    writer, teacher, solver = (config.models[role] for role in ("writer", "teacher", "solver"))
    assert (writer.name, writer.base_url, writer.max_tokens, teacher.max_tokens) == ("m", (URL,), 7, 9)
    assert teacher.extra_body == {"top_k": 5, "top_p": 0.9}
    assert (solver.temperature, solver.max_tokens) == (0.7, 4096)  # the recipe's own
    assert make_sampling(teacher).top_p == 0.9


def test_a_role_at_another_address_takes_nothing_that_belongs_to_the_defaults_server():
    own = ("api_key_env=KEY", "profile=vllm", "prices={ input = 1.0 }", "headers={ a = 'b' }", "timeout=7")
    config = make(*TWO, *(f"models.default.{setting}" for setting in own), "models.teacher.base_url=http://h/v1")
    teacher = config.models["teacher"]
    assert (teacher.name, teacher.timeout) == ("m", 7)
    assert (teacher.api_key_env, teacher.profile, teacher.prices, teacher.headers) == ("", "", {}, {})
    assert config.models["evaluator"].api_key_env == "KEY"


def test_a_judge_that_would_judge_itself_is_none_unless_it_is_named():
    assert "judge" not in make(*TWO, "models.solver.name=e").roles
    assert "judge" not in make("models.judge.temperature=0.0", recipe="demo").roles
    with pytest.raises(ConfigError, match="both are e"):
        Warner(Reporter()).heed(check_models(make(*TWO, "models.solver.name=e", "models.judge.name=e")))


def test_a_model_takes_the_place_of_a_scripted_player_with_all_its_abilities():
    solver = make(*serve("solver"), recipe="demo").models["solver"]
    assert (solver.adapter, solver.name, solver.extra_body, solver.temperature) == ("openai", "m", {}, 0.7)
    config = make(*serve("solver"), "models=scripted", *TWO, recipe="mars")
    assert (config.models["solver"].adapter, config.models["teacher"].adapter) == ("openai", "scripted")
    abilities = [make(DUMP, "models=scripted", recipe=name).models["solver"].extra_body for name in ("mars", "fvqa")]
    assert abilities[0]["fact_popularity"] != abilities[1]["fact_popularity"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("profile='openia'", r"models.writer: profile 'openia' does not exist; there are: openai, azure"),
        ("extra_body={ messages = [] }", r"extra_body.messages: synth words this key itself"),
        ("headers={ X-Api-Key = 'sk-1' }", r'X-Api-Key: a secret is named by its variable, as "env:VARIABLE"'),
        ("headers={ Authorization = 'env:KEY' }", r"name the variable of the API key in api_key_env"),
        ("headers={ 'a b' = 'x' }", r"should match pattern"),
        ("base_url='127.0.0.1:8000'", r"models.writer.base_url.*should match pattern"),
        (f"base_url=['{URL}', 'http://h/v1']", r"models.writer.base_url has several addresses.*models.writer.revision"),
        ("base_url=[]", r"models.writer.base_url is empty; name the server"),
    ],
)
def test_what_cannot_be_sent_is_refused_when_it_is_read(said, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make(*serve("writer"), f"models.writer.{said}", recipe="demo")
    assert "sk-1" not in str(caught.value)


@pytest.mark.parametrize("role", ROLES)
def test_roles_that_converse_are_not_asked_in_batches(role):
    settings = serve(role, "mode=batch")
    if role not in ("teacher", "summariser"):
        assert make(*settings, recipe="demo").models[role].mode == "batch"
        return
    with pytest.raises(ConfigError, match=rf"models.{role}.mode is batch: each turn of a rollout waits"):
        make(*settings, recipe="demo")


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("adapter=plugin", "knows no batches"),
        ("serve.own=true", "vLLM's server"),
        (f"base_url=['{URL}', 'http://h/v1']", "base_url has several"),
    ],
)
def test_what_knows_no_batches_is_refused(setting, word):
    with pytest.raises(ConfigError, match=word):
        make(*serve("writer", "mode=batch", "revision=r1", setting), recipe="demo")


@dataclass
class StageOf:
    """A stage that asks roles."""

    roles: tuple[str, ...]

    def models(self):
        return tuple(ModelEntry(role=role, name="m", revision="r", sampling={}) for role in self.roles)


def test_as_many_rows_are_in_flight_as_fill_a_batch_or_keep_the_addresses_busy():
    addresses = f"base_url=['{URL}', 'http://h/v1']"
    few = serve("rewriter", "concurrency=3", "revision=r1", addresses)
    config = make(*serve("writer", "mode=batch"), *few, recipe="demo")
    asked = {role: count_in_flight(config, StageOf((role, "ranker"))) for role in ("writer", "rewriter", "none")}
    assert asked == {"writer": 5000, "rewriter": 6, "none": 256}
