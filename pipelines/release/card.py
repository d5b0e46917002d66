"""``README.md`` of a release: written prose from ``data_cards``, every number generated."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from jinja2 import Environment, StrictUndefined

from pipelines.errors import ConfigError, GateNotMet
from pipelines.ids import digest_file, digest_value
from pipelines.release.attribution import list_evidence
from pipelines.release.features import describe_columns
from pipelines.release.making import Example, make_chain
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.quality import Quality, Section, render_section
from pipelines.release.rows import ReleaseRow
from schemas.releases import Dataset

PART = re.compile(r"^([a-z_]+):\n", re.MULTILINE)
PARTS = ("title", "summary", "uses", "out_of_scope", "columns", "loading", "rationale", "limits")
MISSING = "[More Information Needed]"
LONGEST_TEXT = 300
LONGEST_LIST = 6
SIZES = ((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
TASKS: Mapping[Dataset, list[str]] = {
    "sft": ["visual-question-answering", "image-text-to-text"],
    "rl": ["visual-question-answering", "reinforcement-learning"],
    "bridgevqa": ["visual-question-answering", "question-answering"],
}
TAGS = ("synthetic", "multi-hop", "image", "parquet", "wikipedia", "proof-carrying")


@dataclass(frozen=True, slots=True)
class Prose:
    """The written part of a card: text by part name, and the template that both are rendered with."""

    parts: Mapping[str, str]
    template: str

    @property
    def text(self) -> str:
        """Everything written, for the digest of the release."""
        return self.template + "".join(f"{name}:\n{self.parts[name]}" for name in PARTS)


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What the generated part of a card is made from."""

    manifest: ReleaseManifest
    quality: Quality
    schema: pa.Schema
    example: Example
    row: ReleaseRow


def find_cards() -> Path:
    """Return the folder of written cards, beside the code folders of the clone."""
    return Path(__file__).parents[2] / "data_cards"


def read_prose(dataset: Dataset, cards: Path) -> Prose:
    """Return a dataset's prose and the template.

    Raises:
        ConfigError: if a file or a part is missing, or a part is no part.
    """
    path = cards / f"{dataset}.md"
    if not path.is_file() or not (cards / "template.md.j2").is_file():
        raise ConfigError(f"card of {dataset}: {path} or template.md.j2 is missing; run from a clone of synth")
    pieces = PART.split(path.read_text(encoding="utf-8"))
    parts = {pieces[i]: pieces[i + 1].strip() for i in range(1, len(pieces) - 1, 2)}
    if sorted(parts) != sorted(PARTS):
        raise ConfigError(f"card {path}: its parts are {sorted(parts)}; there must be {sorted(PARTS)}")
    return Prose(parts, (cards / "template.md.j2").read_text(encoding="utf-8"))


def digest_prose() -> str:
    """Return a digest of everything written for the cards: changed words are published as a new version."""
    return digest_value([[path.name, digest_file(path)] for path in sorted(find_cards().glob("*.md*"))])


def render_card(prose: Prose, facts: CardFacts) -> str:
    """Return the README.

    Raises:
        GateNotMet: if a placeholder for missing information or an empty licence is left.
    """
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    card = environment.from_string(prose.template).render(
        prose=prose.parts,
        manifest=facts.manifest,
        commit=f", commit `{facts.manifest.git_commit}`" if facts.manifest.git_commit else "",
        front=_make_front(prose, facts),
        tables=_make_tables(facts),
        example=_make_example(facts),
    )
    check_card(card, facts.quality)
    return card


def check_card(card: str, quality: Quality) -> None:
    """Refuse a card that leaves something open.

    Raises:
        GateNotMet: if a placeholder for missing information or an empty licence is left.
    """
    if MISSING in card:
        raise GateNotMet(f"card: {MISSING} is left; every part must be written or generated")
    if any(not licence.strip() for licence in quality["picture licences"]):
        raise GateNotMet("card: a picture has an empty licence; it cannot be released")


def _make_front(prose: Prose, facts: CardFacts) -> dict[str, str]:
    """Return the front matter's values as JSON, which is YAML's flow style."""
    manifest = facts.manifest
    splits = [split.name for split in manifest.splits]
    data = [entry.bytes for entry in manifest.files if entry.name.startswith("data/")]
    configs = [
        {"config_name": manifest.dataset, "default": True, "data_files": _list_globs("data", splits)},
        {"config_name": "proofs", "data_files": _list_globs("proofs", splits)},
    ]
    described = {
        "config_name": manifest.dataset,
        "features": describe_columns(facts.schema),
        "splits": [{"name": s.name, "num_bytes": s.bytes, "num_examples": s.rows} for s in manifest.splits],
        "download_size": sum(data),
        "dataset_size": sum(split.bytes for split in manifest.splits),
    }
    return {
        "pretty_name": json.dumps(prose.parts["title"]),
        "tasks": json.dumps(TASKS[manifest.dataset]),
        "size": next((name for limit, name in SIZES if manifest.rows < limit), "1M<n<10M"),
        "tags": json.dumps(TAGS),
        "configs": json.dumps(configs),
        "dataset_info": json.dumps([described]),
    }


def _list_globs(folder: str, splits: Sequence[str]) -> list[dict[str, str]]:
    return [{"split": split, "path": f"{folder}/{split}-*.parquet"} for split in splits]


def _make_tables(facts: CardFacts) -> dict[str, str]:
    quality = facts.quality
    names = (
        "splits",
        "overlap",
        "hops",
        "answer types",
        "funnel",
        "rejections",
        "proof counts",
        "difficulty",
        "standing",
        "grounding",
        "enhancements",
    )
    tables = {name.replace(" ", "_"): render_section(quality[name]) for name in names}
    models: Section = {
        model.role: {"model": model.name, "revision": model.revision, "sampling": json.dumps(model.sampling)}
        for model in facts.manifest.models
    }
    prompts: Section = {label: {"sha256": digest} for label, digest in facts.manifest.prompts.items()}
    return tables | {
        "models": render_section(models),
        "prompts": render_section(prompts),
        "licences": render_section(quality["picture licences"]),
        "not_measured": render_section(quality["not measured"]),
    }


def _make_example(facts: CardFacts) -> str:
    question = facts.example.question
    shown = {
        "question": question.text,
        "answer": question.answer.surface,
        "chain": [f"{link.subject} -{link.relation}-> {link.object}" for link in make_chain(question)],
        "evidence": [
            {"page": span.title, "revision": span.revision, "start": span.start, "text": span.text}
            for span in list_evidence(facts.example)
        ],
        "row": shorten_value(facts.row.model_dump()),
    }
    return json.dumps(shown, indent=1, ensure_ascii=False)


def shorten_value(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Return a JSON value for reading: bytes by their count, long texts and lists cut with a note of what is left."""
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]} ... ({len(value) - LONGEST_TEXT} more characters)"
    if isinstance(value, dict):
        return {name: shorten_value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        rest = [f"({len(value) - LONGEST_LIST} more)"] if len(value) > LONGEST_LIST else []
        return [shorten_value(inner) for inner in value[:LONGEST_LIST]] + rest
    return value
