"""Pages of the documentation that are made from code, and those that lie elsewhere; a hook of mkdocs."""

import ast
import inspect
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel

from pipelines.cli.main import app
from pipelines.cli.settings import list_keys
from pipelines.cli.view.queries import STAGE_MODELS
from pipelines.release.rows import ROW_TYPES
from schemas.base import Record, derive_fields, derive_schema
from schemas.manifest import Manifest
from schemas.reasons import STAGE_REASONS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "data_cards" / "docs"
COLUMNS = tomllib.loads((DOCS / "columns.toml").read_text("utf-8"))


@cache
def _read_notes(module: ModuleType) -> dict[tuple[str, str], str]:
    """Return what a module's source says under each field of its classes, as a string of its own."""
    notes = {}
    for node in ast.parse(inspect.getsource(module)).body:
        body = node.body if isinstance(node, ast.ClassDef) else []
        for field, note in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr) and isinstance(note.value, ast.Constant):
                notes[node.name, ast.unparse(field.target)] = " ".join(str(note.value.value).split())
    return notes


def _find_note(model: type[BaseModel], name: str) -> str:
    """Return what is said of a field where it is declared, else in columns.toml."""
    owner = next(each for each in model.__mro__ if name in inspect.get_annotations(each))
    own = _read_notes(sys.modules[owner.__module__]).get((owner.__name__, name), "")
    return own or COLUMNS.get(owner.__name__, {}).get(name) or COLUMNS.get(name, "")


def _find_model(annotation: object) -> type[BaseModel] | None:
    """Return the row type that a field holds, alone, optional or many times."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_find_model, get_args(annotation))), None)


def _cell(text: object) -> str:
    parts = re.split(r"(`+[^`]*`+)", " ".join(str(text).split()).replace("|", "\\|"))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


def _table(headings: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    head = f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}\n"
    return head + "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _render_model(title: str, model: type[BaseModel]) -> str:
    """Return a row type's columns: name, Arrow type and meaning, with a link to the table of a part."""
    said = " ".join((model.__doc__ or "").strip().split("\n\n")[0].split())
    lines = []
    for field in derive_schema(model) if issubclass(model, Record) else derive_fields(model):
        declared = model.model_fields.get(field.name)
        part = _find_model(declared.annotation) if declared else None
        note = _find_note(model, field.name) if declared else "Key of the stage that wrote the row."
        link = f" See [{part.__name__}](#{part.__name__.lower()})." if part else ""
        kind = re.sub(r"struct<.*>", "struct", str(field.type)).replace("list<item: ", "list of ").rstrip(">")
        kind = kind.replace(" not null", "") + (", may be null" if field.nullable else "")
        lines.append((f"`{field.name}`", kind, f"{note}{link}"))
    return f"\n### {title}\n\n{said}\n\n" + _table(("column", "Arrow type", "meaning"), lines)


def write_columns() -> str:
    """Return the page of the columns of every dataset, proofs included."""
    text = (
        "# Columns\n\nMade from the row types in `schemas/` and `pipelines/release/rows.py`; the Arrow schemas "
        "are derived from the same types. `synth sql` has each stage of the last run as a view of its name. "
        "[Reading a proof](../proof.md) walks through one.\n"
    )
    models: Mapping[str, Mapping[str, type[BaseModel]]] = {"Stages": STAGE_MODELS, "Releases": ROW_TYPES}
    for heading, named in models.items():
        text += f"\n## {heading}\n"
        for model in dict.fromkeys(named.values()):
            text += _render_model(", ".join(name for name, each in named.items() if each is model), model)
    text += "\n## Parts\n"
    waiting, found = [*STAGE_MODELS.values(), *ROW_TYPES.values()], dict[type[BaseModel], None]()
    while waiting:
        parts = (_find_model(field.annotation) for field in waiting.pop(0).model_fields.values())
        new = [part for part in dict.fromkeys(parts) if part is not None and part not in found]
        found |= dict.fromkeys(new)
        waiting += new
    text += "".join(_render_model(part.__name__, part) for part in found)
    lines = [(f"`{name}`", _find_note(Manifest, name)) for name in Manifest.model_fields]
    return f"{text}\n## Manifest of a stage\n\n{_table(('key', 'meaning'), lines)}"


def write_reasons() -> str:
    """Return the glossary of reasons: what each means, which stages give it, and what to do."""
    told = tomllib.loads((DOCS / "reasons.toml").read_text("utf-8"))
    text = (
        "# Why rows are refused\n\nA refused row is kept with its reason and a detail:\n\n"
        '```console\nsynth sql "select stage, reason, count(*) n from rejections group by all order by n desc"\n```\n\n'
        "Most reasons need no action: a gate did its work. *What to do* is for a reason that takes more rows than "
        "you can spare; what a key means says [the configuration](configuration.md).\n"
    )
    for reason in sorted(told):
        stages = ", ".join(stage for stage, reasons in STAGE_REASONS.items() if reason in reasons)
        means, do = told[reason]["means"], told[reason]["do"]
        text += f"\n## {reason}\n\n{means}\n\n*Stages:* {stages}. *What to do:* {do}\n"
    return text


def write_configuration() -> str:
    """Return the page of every key of a configuration."""
    text = (
        "# Configuration\n\nEvery key, as a TOML table's name and the key in it. `NAME` is a name of your own. "
        "`synth config` prints the same list with a recipe's values.\n"
    )
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for key in (key for key in list_keys() if not key.key.startswith("models.") or ".NAME." in key.key):
        section = key.key.partition(".")[0] if "." in key.key else "top level"
        sections.setdefault(section, []).append((f"`{key.key}`", f"`{key.default!r}`", key.meaning))
    tables = (f"\n## {name}\n\n{_table(('key', 'default', 'meaning'), lines)}" for name, lines in sections.items())
    return text + "".join(tables)


def _walk_commands(command: Any, words: str = "synth") -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    inner = getattr(command, "commands", {})
    if not inner:
        yield words, command
    for name in sorted(inner):
        yield from _walk_commands(inner[name], f"{words} {name}")


def write_commands() -> str:
    """Return the page of commands and options."""
    text = "# Commands\n\n`synth COMMAND --help` says the same in a terminal.\n"
    for name, command in _walk_commands(typer.main.get_command(app)):
        lines = [
            (
                f"`{', '.join(each.opts) if each.param_type_name == 'option' else each.metavar or each.name.upper()}`",
                each.help,
            )
            for each in command.params
            if "--help" not in each.opts
        ]
        text += f"\n## {name}\n\n{command.help}\n\n{_table(('', 'meaning'), lines)}"
    return text


PAGES = {
    "reference/columns.md": write_columns,
    "reference/reasons.md": write_reasons,
    "reference/configuration.md": write_configuration,
    "reference/commands.md": write_commands,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made from code, the papers' tables, and the picture of README's row."""
    for path, write in PAGES.items():
        files.append(File.generated(config, path, content=write()))
    for paper in sorted((ROOT / "data_cards" / "papers").glob("*.md")):
        files.append(File.generated(config, f"papers/{paper.name}", content=paper.read_text("utf-8")))
    files.append(File.generated(config, "example.jpg", content=(ROOT / "data_cards" / "example.jpg").read_bytes()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with links to what lies beside the pages in the repository, and among them in the site."""
    return re.sub(r"\]\(\.\./(papers/|example\.jpg)", r"](\1", markdown)
