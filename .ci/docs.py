"""Pages of the documentation that are made from code, and those that lie elsewhere; a hook of mkdocs."""

import ast
import inspect
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

from pipelines import errors
from pipelines.cli.main import app
from pipelines.cli.settings import list_keys
from pipelines.cli.view.queries import STAGE_MODELS
from pipelines.release.rows import ROW_TYPES
from pipelines.run.advice import GOVERNING
from schemas import manifest, proofs
from schemas.base import Record, derive_fields, derive_schema
from schemas.reasons import STAGE_REASONS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "data_cards" / "docs"
REASONS = DOCS / "reasons.toml"
COLUMNS = tomllib.loads((DOCS / "columns.toml").read_text("utf-8"))


@cache
def _read_notes(module: ModuleType) -> dict[tuple[str, str], str]:
    """Return what a module's source says under each field of its classes, as a string of its own."""
    notes = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, note in zip(node.body, node.body[1:], strict=False):
            told = note.value if isinstance(note, ast.Expr) else None
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(told, ast.Constant)
            ):
                notes[node.name, field.target.id] = " ".join(str(told.value).split())
    return notes


def _find_note(model: type[BaseModel], name: str) -> str:
    """Return what is said of a field where it is declared, else in columns.toml; empty if nobody says anything."""
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
    """Return a table of Markdown."""
    head = f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}\n"
    return head + "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _describe_arrow(field: Any) -> str:  # noqa: ANN401 - pyarrow has no types
    """Return a column's Arrow type; structs are told by their own table."""
    kind, many = field.type, ""
    while hasattr(kind, "value_type"):
        kind, many = kind.value_type, f"{many}list of "
    name = "struct" if str(kind).startswith("struct") else str(kind)
    return many + name + (", may be null" if field.nullable else "")


def _render_columns(model: type[BaseModel]) -> str:
    """Return a row type's columns: name, Arrow type and meaning, with a link to a part's own table."""
    schema = derive_schema(model) if issubclass(model, Record) else derive_fields(model)
    lines = []
    for field in schema:
        declared = model.model_fields.get(field.name)
        part = _find_model(declared.annotation) if declared else None
        note = _find_note(model, field.name) if declared else "Key of the stage that wrote the row."
        lines.append((f"`{field.name}`", _describe_arrow(field), f"{note} {_link(part)}"))
    return _table(("column", "Arrow type", "meaning"), lines)


def _link(part: type[BaseModel] | None) -> str:
    if part is None:
        return ""
    page = "proofs.md" if part.__module__ == proofs.__name__ else "columns.md"
    return f"See [{part.__name__}]({page}#{part.__name__.lower()})."


def _list_parts(models: Sequence[type[BaseModel]]) -> list[type[BaseModel]]:
    """Return the row types inside others, each once, in the order in which they are met."""
    found: dict[type[BaseModel], None] = {}
    waiting = list(models)
    while waiting:
        model = waiting.pop(0)
        parts = [part for field in model.model_fields.values() if (part := _find_model(field.annotation)) is not None]
        waiting += [part for part in parts if part not in found]
        found |= dict.fromkeys(parts)
    return list(found)


def _first(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").strip().split("\n\n")[0].split())


def _render_all(models: Mapping[str, type[BaseModel]]) -> str:
    """Return the tables of row types by the datasets that have them; some share one."""
    named: dict[type[BaseModel], list[str]] = {}
    for dataset, model in models.items():
        named.setdefault(model, []).append(dataset)
    return "".join(
        f"\n### {', '.join(datasets)}\n\n{_first(model)}\n\n{_render_columns(model)}"
        for model, datasets in named.items()
    )


def write_columns() -> str:
    """Return the page of every dataset's columns."""
    text = (
        "# Columns\n\nMade from the row types in `schemas/` and `pipelines/release/rows.py`; the Arrow schemas "
        "are derived from the same types. `synth sql` has each stage of the last run as a view of its name.\n"
        "\n## Stages\n"
    )
    text += _render_all(STAGE_MODELS) + "\n## Releases\n" + _render_all(ROW_TYPES) + "\n## Parts\n"
    for part in _list_parts([*STAGE_MODELS.values(), *ROW_TYPES.values()]):
        if part.__module__ != proofs.__name__:
            text += f"\n### {part.__name__}\n\n{_first(part)}\n\n{_render_columns(part)}"
    text += f"\n## Manifest of a stage\n\n{_first(manifest.Manifest)}\n\n" + _table(
        ("key", "meaning"),
        [(f"`{name}`", _find_note(manifest.Manifest, name)) for name in manifest.Manifest.model_fields],
    )
    return text


def write_proofs() -> str:
    """Return the page of a proof's fields."""
    text = (
        "# Fields of a proof\n\nA row of `proofs/` holds the proof of one released question; "
        "[Reading a proof](../proof.md) walks through one.\n"
    )
    models = [model for _, model in inspect.getmembers(proofs, inspect.isclass) if model.__module__ == proofs.__name__]
    models.sort(key=lambda model: (model is not proofs.Proof, inspect.getsourcelines(model)[1]))
    for model in models:
        text += f"\n## {model.__name__}\n\n{_first(model)}\n\n{_render_columns(model)}"
    return text


def write_reasons() -> str:
    """Return the glossary of reasons: what each means, which stages give it, and what to do."""
    told = tomllib.loads(REASONS.read_text("utf-8"))
    text = (
        "# Why rows are refused\n\nA closed list, `schemas/reasons.py`. A refused row is kept with its reason, a "
        "detail and, where a stage looked for more than one, all codes that applied:\n\n"
        '```console\nsynth sql "select stage, reason, count(*) n from rejections group by all order by n desc"\n```\n\n'
        "Most reasons need no action: a gate did its work. *What to do* is for a reason that takes more rows than "
        "you can spare; what a key means says [the configuration](configuration.md).\n"
    )
    stages: dict[str, list[str]] = {}
    for stage, reasons in STAGE_REASONS.items():
        for reason in reasons:
            stages.setdefault(reason, []).append(stage)
    for reason in sorted(stages):
        keys = dict.fromkeys(key for stage in stages[reason] if (key := GOVERNING.get(stage, {}).get(reason)))
        where = ", ".join(stages[reason])
        decided = f" Decided by `{'`, `'.join(', '.join(keys).split(', '))}`." if keys else ""
        text += f"\n## {reason}\n\n{told[reason]['means']}\n\n*Stages:* {where}.{decided}\n"
        text += f"\n*What to do:* {told[reason]['do']}\n"
    return text


def write_configuration() -> str:
    """Return the page of every key of a configuration."""
    text = (
        "# Configuration\n\nEvery key, as a TOML table's name and the key in it. `NAME` is a name of your own. "
        "`synth config` prints the same list with a recipe's values.\n"
    )
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for key in (key for key in list_keys() if not key.key.startswith("models.") or ".NAME." in key.key):
        section, _, _ = key.key.partition(".")
        line = (f"`{key.key}`", f"`{key.default!r}`", key.meaning)
        sections.setdefault(section if "." in key.key else "top level", []).append(line)
    for section, lines in sections.items():
        text += f"\n## {section}\n\n" + _table(("key", "default", "meaning"), lines)
    return text


def walk_commands(command: Any, path: tuple[str, ...] = ("synth",)) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield every command of the command line by its words, groups before what is in them."""
    inner = getattr(command, "commands", {})
    if not inner or getattr(command, "invoke_without_command", False):
        yield " ".join(path), command
    for name in sorted(inner):
        yield from walk_commands(inner[name], (*path, name))


def write_commands() -> str:
    """Return the page of commands and options."""
    text = "# Commands\n\n`synth COMMAND --help` says the same in a terminal.\n"
    for name, command in walk_commands(typer.main.get_command(app)):
        options = [each for each in command.params if each.param_type_name == "option" and "--help" not in each.opts]
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        words = [each.metavar or each.name.upper() for each in arguments]
        lines = [(f"`{word}`", each.help or "") for word, each in zip(words, arguments, strict=True)]
        lines += [(f"`{', '.join(each.opts)}`", each.help or "") for each in options]
        usage = " ".join([name, *words, "[OPTIONS]"])
        text += f"\n## {name}\n\n{command.help}\n\n    {usage}\n\n{_table(('', 'meaning'), lines)}"
    return text


def write_exits() -> str:
    """Return the page of exit codes, with the errors that have each."""
    meanings = {
        0: "Done; also where there was nothing to do.",
        1: "A gate was not met: `verify`, `audit`, `validate`, `diff`, `status --check` or a release's quality gates.",
        2: "Your configuration or input; nothing was written. The message names the place and what is allowed.",
        3: "A service, disk or lock away, the budget spent, or a signal. The same command goes on from there.",
        errors.DEFECT: "A defect of synth. The message names a log to report it with.",
    }
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.SynthError)]
    lines = []
    for code, meaning in meanings.items():
        named = [each for each in classes if each.exit_code == code and each is not errors.SynthError]
        lines.append((code, meaning, ", ".join(f"`{each.__name__}`" for each in named)))
    text = "# Exit codes\n\n" + _table(("code", "meaning", "errors"), lines)
    return text + "\n" + _table(("error", "what it says"), [(f"`{each.__name__}`", _first(each)) for each in classes])


PAGES = {
    "reference/columns.md": write_columns,
    "reference/proofs.md": write_proofs,
    "reference/reasons.md": write_reasons,
    "reference/configuration.md": write_configuration,
    "reference/commands.md": write_commands,
    "reference/exits.md": write_exits,
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages that the navigation does not name at its end."""
    named = str(config.nav)
    rest = [page.name for page in sorted(DOCS.glob("*.md")) if f"'{page.name}'" not in named]
    if rest and config.nav is not None:
        config.nav.append({"More": rest})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made from code, the papers' tables, and the pictures of README's row and the benchmarks."""
    for path, write in PAGES.items():
        files.append(File.generated(config, path, content=write()))
    for paper in sorted((ROOT / "data_cards" / "papers").glob("*.md")):
        files.append(File.generated(config, f"papers/{paper.name}", content=paper.read_text("utf-8")))
    files.append(File.generated(config, "example.jpg", content=(ROOT / "data_cards" / "example.jpg").read_bytes()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with links to what lies beside the pages in the repository, and among them in the site."""
    return re.sub(r"\]\(\.\./(papers/|example\.jpg)", r"](\1", markdown)
