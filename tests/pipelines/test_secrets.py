from contextlib import nullcontext

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.secrets import MASK, mask_keys

KEYS = (
    "sk-" + "a1B2" * 8,
    "sk-proj-" + "a1B2_" * 8,
    "sk-ant-api03-" + "x9Y-" * 10,
    "hf_" + "aBcDeF12" * 4,
    "AIza" + "SyA1b2C3-" * 4,
    "ghp_" + "a1B2" * 9,
    "AKIA" + "ABCD1234" * 2,
    "gsk_" + "a1B2" * 9,
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
)
BARE = ("0123456789abcdef" * 2, "d34db33f" * 5)
NAMES = ("OPENAI_API_KEY", "HF_TOKEN", "SERPER_KEY", "my_key_2", "KEY")


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_told_by_its_shape_wherever_it_stands(key):
    for text in (key, f"KEY={key}", f"no such variable '{key}'", f'{{"k": "{key}"}}', f"https://a.org/?key={key}&x=1"):
        assert key not in mask_keys(text)
        assert MASK in mask_keys(text)


@pytest.mark.parametrize(
    "text", ["http://db:80/a@b", "task-based sk-learn", "a risk-free hf_model", "stages/seeds/0f3a", *NAMES]
)
def test_what_is_no_key_stays(text):
    assert mask_keys(text) == text


@pytest.mark.parametrize("key", [*KEYS, *BARE])
@pytest.mark.parametrize("place", ["models.solver.api_key_env", "live.key_envs.search"])
def test_a_key_in_the_place_of_a_variables_name_is_refused_and_never_echoed(key, place):
    with pytest.raises(ConfigError, match="looks like a key itself") as refused:
        make_config(read_recipe("demo"), [f"{place}={key}"])
    assert key[6:] not in str(refused.value)


def test_what_is_neither_is_refused_without_an_echo():
    with pytest.raises(ConfigError, match="no name of an environment variable") as refused:
        make_config(read_recipe("demo"), ["models.solver.api_key_env=two words"])
    assert "two words" not in str(refused.value)


@pytest.mark.parametrize(
    ("told", "allowed"),
    [("word = 'depth'", True), ("api_key_env = 'ACME_KEY'", True), ("api_key = 'env:ACME_KEY'", True),
     ("api_key = 'hush'", False), ("password = 'hush'", False)],
)  # fmt: skip
def test_a_plugin_is_told_the_variable_of_a_secret_and_never_the_secret(told, allowed):
    with (
        nullcontext() if allowed else pytest.raises(ConfigError, match=r"plugins.settings.plain.*: a secret may stand")
    ):
        assert make_config(read_recipe("demo"), [f"plugins.settings={{ plain = {{ {told} }} }}"]).plugins.settings


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hush@db/synth",
        "postgresql://me:hu/sh@db/synth",
        "postgresql://me@db/synth?password=hush",
        "postgresql://me@db/synth?sslmode=require&sslpassword=hush",
        "postgresql://me@db/synth?p%61ssword=hush",
    ],
)
def test_a_password_in_the_address_of_a_database_is_refused_and_never_echoed(address):
    with pytest.raises(ConfigError, match=r"replies: .*password") as refused:
        make_config(read_recipe("demo"), [f"replies={address}"])
    assert "hu" not in str(refused.value)


def test_an_address_that_a_variable_holds_is_never_echoed(monkeypatch):
    pytest.importorskip("psycopg")
    from pipelines.services.clients.replies import resolve_address

    monkeypatch.setenv("DB", "postgresql//me:hu:sh@x@db/synth")
    with pytest.raises(ConfigError, match="no address of a PostgreSQL database") as refused:
        resolve_address("env:DB")
    assert "hu" not in str(refused.value)
    assert refused.value.__context__ is None
