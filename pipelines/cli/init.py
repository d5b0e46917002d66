"""``synth config init``: a commented configuration for a recipe, to be filled in and given to ``--config``."""

import json
from pathlib import Path

from pipelines.cli.doctor import SEEING
from pipelines.config.loading import make_config, read_recipe
from pipelines.config.profiles import load_profiles
from pipelines.config.schema import make_schema
from pipelines.config.settings import ModelsConfig, RunConfig
from pipelines.errors import ConfigError
from pipelines.files import explain_os_error, write_text
from pipelines.run.assembly import list_missing_roles

FILE = "synth.toml"
SCHEMA = "synth.schema.json"
"""Beside the file, whose first line names it as Taplo and Even Better TOML want it."""
DUMP = "wiki-pages-articles-multistream.xml.bz2"
_HEAD = """\
#:schema ./{schema}
# Configuration of your runs of the recipe {recipe}. Fill it in, look whether all is there, ask what it costs, run:
#   synth doctor --config {path}
#   synth plan --config {path} --sample 20
#   synth run --config {path}
# Keys that are missing here have the recipe's values; `synth config keys --recipe {recipe}` lists them all, and
# `synth config show --config {path}` says where each value comes from. Further --config files override this one, and
# --set overrides all. extends = "FILE.toml" lies over a file of your own instead.
extends = "{recipe}"
"""
_DUMP = """
[corpus]
dump = "{dump}"  # English, or see "Other languages" in data_cards/docs/wiki.md; tables and images/ are found beside it
"""
_TOY = """
[corpus.generate]  # a toy Wikipedia; for a dump put `[corpus]` and `dump = "FILE"` here
entities = {entities}
"""
_PICTURES = """
[commons]  # pictures that do not lie beside the dump
fetch = false  # true: fetched from Commons, each once; rows without a picture are refused
# contact = "you@example.org"  # Commons wants one
# search = true  # searches Commons for further candidates, too
# api = "https://commons.wikimedia.org/w/api.php"  # another one than Commons' own

[encoder]  # says which picture shows what is meant; needs `pip install 'synth[clip]'`
pretrained = ""  # "openai", or a checkpoint's file; empty: pictures are ranked by their metadata

[prompts]
dir = ""  # your own prompts, as NAME/v1.md; the highest version of a name takes the place of the shipped one

[budget]
money = 0.0  # ends a run in order when it is spent; 0 is no limit
"""
_MODELS = """
# Models. Any server that speaks OpenAI's /chat/completions will do. Parameters that are not set are not sent.
# Each table takes these keys, too:
#   profile = "openai"  # vendor: {profiles}
#   api_key_env = "OPENAI_API_KEY"  # name of the environment variable that holds the key
#   temperature = 0.0, top_p = 0.9, max_tokens = 4096, reasoning_effort = "low"
#   extra_body = {{ top_k = 20 }}, chat_template_kwargs = {{ enable_thinking = false }}
#   headers = {{ X-Title = "synth", X-Gateway-Key = "env:GATEWAY_KEY" }}
#   replies = "json"  # where the server forces no JSON schema; "text" where it forces nothing
# A pool: one model at several addresses, and how many requests each may have in flight.
#   more_urls = ["http://127.0.0.1:8001/v1"], revision = "r1", concurrency = 64
# Prices are of a million tokens; an own GPU is counted by the hour instead: gpus = 1, gpu_price = 2.5
"""
_ROLE = """
[models.{role}]  # {meaning}
name = "{name}"
base_url = "http://127.0.0.1:8000/v1"
price_in = 0.0
price_out = 0.0
"""
_SEES = """
[models.{role}.image]  # it is shown pictures
detail = ""  # low, high or auto; empty: not said
max_pixels = 0  # larger pictures are scaled down before they are sent; 0: as they are
"""
_SCRIPTED = """
# Scripted players play this recipe, without a server. This puts a model in the place of one:
"""


def write_starter(folder: Path, recipe: str) -> Path:
    """Write a configuration for a recipe that loads as it is, with its schema for editors, and return its path.

    Raises:
        ConfigError: if there is no such recipe, or the folder has such a file already.
    """
    path = folder / FILE
    if path.exists():
        raise ConfigError(f"init {path}: exists already; remove it, or choose another folder")
    text, schema = compose_starter(recipe, path), json.dumps(make_schema(), indent=1) + "\n"
    try:
        write_text(folder / SCHEMA, schema)
        write_text(path, text)
    except OSError as error:
        raise explain_os_error(error, f"init {folder}") from error
    return path


def compose_starter(recipe: str, path: Path) -> str:
    """Return the configuration's text for a file at ``path``."""
    tables = read_recipe(recipe)
    toy = "generate" in tables.get("corpus", {})
    config = make_config(tables, () if toy else (f"corpus.dump={DUMP}",))
    text = _HEAD.format(recipe=recipe, path=path, schema=SCHEMA)
    generated = config.corpus.generate
    text += _TOY.format(entities=generated.entities) if generated is not None else _DUMP.format(dump=DUMP)
    text += _PICTURES + _MODELS.format(profiles=", ".join(load_profiles()))
    roles = _list_roles(config)
    if roles:
        return text + "".join(_write_role(role) for role in roles)
    return text + _SCRIPTED + "".join(f"#{line}\n" for line in _write_role("solver").strip().splitlines())


def _list_roles(config: RunConfig) -> list[str]:
    """Return the roles that the recipe needs a model for, and those that every run with models wants."""
    missing = list_missing_roles(config)
    wanted = {
        "judge": True,
        "process_judge": True,
        "image_judge": config.method == "injection" or bool(config.high_resolution.share),
        "summariser": bool(config.tools.summarise),
    }
    return list(dict.fromkeys([*missing, *(role for role in wanted if wanted[role])])) if missing else []


def _write_role(role: str) -> str:
    meaning = ModelsConfig.model_fields[role].description or ""
    table = _ROLE.format(role=role, meaning=meaning, name=f"NAME-OF-{role.upper().replace('_', '-')}")
    return table + (_SEES.format(role=role) if role in SEEING else "")
