"""``README.md``, ``croissant.json`` (MLCommons Croissant 1.1) and ``ATTRIBUTION.tsv`` of a release.

The card's prose is written in ``data_cards``; every number in it is generated. The attribution names every picture and
every page that a release draws on, with author, licence and source.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from jinja2 import Environment, StrictUndefined

from pipelines.agent.observations import Shown, read_hits, read_page
from pipelines.config.disclosure import render_told
from pipelines.corpus.addresses import make_page_url
from pipelines.errors import GateNotMet
from pipelines.ids import digest_file, digest_value
from pipelines.release.making import Example, make_chain
from pipelines.release.manifest import ArticleRights, ReleaseManifest, is_invented, list_inventions
from pipelines.release.quality import Quality, Section, render_quality, render_section
from pipelines.release.rows import ROW_TYPES, ReleaseRow, is_image, make_release_schema
from schemas.datasets import Dataset, Enhancement, Origin, Picture, Trajectory
from schemas.manifest import FileEntry
from schemas.proofs import Evidence

PAGE_AUTHOR = "Wikipedia contributors"
NOBODY = "nobody, the page is invented"
PAGE_LICENCE = "CC BY-SA 4.0"
PAGE_LICENCE_URL = "https://creativecommons.org/licenses/by-sa/4.0/"
UNCHANGED, EXCERPT, SCALED = "none", "excerpt", "scaled down"
IN_SCENE = "scaled down, in a picture composed of several"
UNKNOWN = "unknown"
"""Licence of pages and pictures of live tools; refused unless ``unknown_licences`` is set."""
SPACES = re.compile(r"[\s\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True, order=True)
class Credit:
    """One line of the attribution file."""

    kind: str
    """``image``; ``page``: evidence of a proof; ``page-read``: shown in a trajectory, opened or quoted by a search;
    ``question``: from outside."""
    title: str
    url: str
    author: str
    licence: str
    licence_url: str
    source: str
    """For a picture the sha256 of its bytes, for a page the corpus it was read from."""
    changes: str
    """Changes to a picture in order, as licences demand: ``none``, or such as ``crop``; ``excerpt`` for a page."""


def list_evidence(question: Enhancement) -> tuple[Evidence, ...]:
    """Return the evidence of a question's hops, branches and answer; none of one without a proof."""
    proof, trace = question.proof, question.trace
    if trace is not None:
        return (trace.anchor_evidence, *(link.evidence for link in trace.links))
    if not proof.nodes:
        return ()
    branched = (span for branch in proof.branches for span in (branch.evidence, branch.quote) if span is not None)
    return (*(hop.evidence for hop in proof.hops), *branched, proof.answer_evidence)


def list_credits(
    example: Example, base_url: str, corpus: str, lenient: bool = False, articles: ArticleRights | None = None
) -> Iterator[Credit]:
    """Yield each picture and page of a row; the same again for rows that share them.

    Args:
        example: a row of the release.
        base_url: of the corpus's wiki.
        corpus: its digest.
        lenient: accept what has no known licence; its lines say so.
        articles: rights in the texts, where the corpus is made of articles of the news.
    """
    question, changes = example.question, list_changes(example)
    pictures = [(picture, changes[picture.sha256]) for picture in example.list_pictures()]
    pictures += [(part.picture, IN_SCENE) for part in question.scene.parts] if question.scene else []
    pictures += [(picture, SCALED) for picture in example.list_thumbnails()]
    for picture, changed in pictures:
        yield credit_picture(picture, changed, lenient)
    if question.trace is not None:
        proved = [Shown(link.url, link.evidence.title, "") for link in question.trace.links]
    else:
        proved = [
            Shown(f"{make_page_url(base_url, span.title)}?oldid={span.revision}", span.title, "")
            for span in list_evidence(question)
        ]
    if proved and urlsplit(proved[0].url).scheme not in ("http", "https"):
        raise GateNotMet(f"attribution: base_url {base_url!r} is not an http address; every page needs a link")
    for page in proved:
        yield credit_page("page", page, base_url, corpus, lenient, articles)
    rights = None if articles is not None and articles.live else articles
    for page in list_shown_pages(example.trajectory) if example.trajectory is not None else ():
        yield credit_page("page-read", page, "" if articles else base_url, corpus, lenient, rights)
    if question.origin is not None:
        yield credit_question(question.origin, lenient)


def credit_page(
    kind: str, page: Shown, base_url: str, corpus: str, lenient: bool = False, articles: ArticleRights | None = None
) -> Credit:
    """Return the line of a page of the corpus's wiki, of an article of the news, or of a page found by a live tool."""
    author, licence, licence_url, source = urlsplit(page.url).netloc, "", "", f"corpus {corpus}"
    if articles is not None:
        licence, licence_url = articles.licence.strip(), articles.licence_url
    elif base_url and page.url.startswith(base_url):
        author, licence, licence_url = PAGE_AUTHOR, PAGE_LICENCE, PAGE_LICENCE_URL
    if not licence and not lenient:
        raise GateNotMet(
            f"attribution: page {page.url!r} has no known licence; if you have the right to publish what is quoted, "
            "say so: news.licence, or releases.unknown_licences"
        )
    author = NOBODY if is_invented(page.url) else author
    return Credit(kind, page.title, page.url, author, licence or UNKNOWN, licence_url, source, EXCERPT)


def list_changes(example: Example) -> dict[str, str]:
    """Return what was done to each of an example's pictures by sha256: its degradation, then the tools behind it."""
    question, trajectory = example.question, example.trajectory
    trial = question.trial
    first = UNCHANGED if trial is None else f"{trial.degradation} of strength {trial.strength:g}"
    first = first if question.scene is None else IN_SCENE
    changes = {"img_1": first}
    for step in trajectory.steps if trajectory else ():
        for made in step.observation.images if step.observation else ():
            if step.tool == "image_search":
                changes[made] = SCALED
                continue
            before = changes.get(json.loads(step.arguments).get("image", "img_1"), first)
            changes[made] = step.tool if before == UNCHANGED else f"{before}; {step.tool}"
    pictures = {image.id: image.picture for image in trajectory.images} if trajectory else {}
    told = {picture.sha256: changes.get(name, first) for name, picture in pictures.items()}
    return told | ({question.picture.sha256: first} if question.picture else {})


def credit_question(origin: Origin, lenient: bool = False) -> Credit:
    """Return the line of a question from outside."""
    licence = origin.licence.strip() or UNKNOWN
    if licence == UNKNOWN and not lenient:
        whose = f"question {origin.row!r} of the pool {origin.pool}"
        raise GateNotMet(f"attribution: {whose} has no licence; set the pool's, or releases.unknown_licences")
    return Credit("question", origin.row, origin.source, origin.pool, licence, "", origin.source, UNCHANGED)


def credit_picture(picture: Picture, changes: str, lenient: bool = False) -> Credit:
    """Return a picture's line; an address that a browser would run is refused."""
    if picture.licence.strip() in ("", UNKNOWN) and not lenient:
        raise GateNotMet(f"attribution: picture {picture.file!r} has no licence; it cannot be released")
    for url in (picture.source_url, picture.licence_url):
        if urlsplit(url.strip()).scheme not in ("", "http", "https"):
            raise GateNotMet(f"attribution: picture {picture.file!r} has the address {url[:80]!r}, no page of the web")
    author = picture.author.strip() or "author not stated at the source"
    licence = (picture.licence.strip() or UNKNOWN, picture.licence_url)
    return Credit("image", picture.file, picture.source_url, author, *licence, picture.sha256, changes)


def list_shown_pages(trajectory: Trajectory) -> Iterator[Shown]:
    """Yield every page whose text an observation shows: the one that was opened, or each that a search quotes."""
    for step in trajectory.steps:
        if step.observation is None or not step.observation.ok:
            continue
        page = read_page(step.observation.text)
        # A page's own text may look like hits, and is not read as such.
        yield from (page,) if page is not None else read_hits(step.observation.text)


def render_credits(credit_lines: Sequence[Credit]) -> str:
    """Return the file: a header, then one tab-separated line each, by :func:`render_cell`."""
    header = "\t".join(field.name for field in fields(Credit))
    lines = ["\t".join(map(render_cell, astuple(credit))) for credit in credit_lines]
    return "\n".join([header, *lines]) + "\n"


def render_cell(value: str) -> str:
    """Return a value on one line; one that a spreadsheet would take for a formula begins with an apostrophe."""
    cell = SPACES.sub(" ", value).strip()
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell


PART = re.compile(r"^([a-z_]+):\n", re.MULTILINE)
PARTS = ("title", "summary", "uses", "out_of_scope", "columns", "loading", "rationale", "limits")
LONGEST_TEXT = 300
LONGEST_LIST = 6
SIZES = ((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
TASKS: Mapping[Dataset, list[str]] = {
    "sft": ["visual-question-answering", "image-text-to-text"],
    "rl": ["visual-question-answering", "reinforcement-learning"],
    "vqa": ["visual-question-answering", "question-answering"],
    "bridgevqa": ["visual-question-answering", "question-answering"],
    "exam": ["visual-question-answering", "question-answering"],
}
OPTIONAL_TABLES = {"news": "news", "agreement": "review by people", "found_wrong": "found wrong by people"}
"""Sections that not every release has, by their names in the template."""
SOURCE, NEWS, TOY = "wikipedia", "news", "toy"
TAGS = ("synthetic", "multi-hop", "image", "parquet", SOURCE, "proof-carrying")
"""Of a generated world, :data:`TOY` takes the place of :data:`SOURCE`."""


@dataclass(frozen=True, slots=True)
class Prose:
    """The written part of a card: text by part name, and the template that both are rendered with."""

    parts: Mapping[str, str]
    template: str

    @property
    def text(self) -> str:
        """Everything written, for the digest of the release."""
        return self.template + "".join(f"{name}:\n{self.parts[name]}" for name in PARTS)


def find_cards() -> Path:
    """Return the folder of written cards, beside the code folders: in a clone and where a wheel is installed."""
    return Path(__file__).parents[2] / "data_cards"


def read_prose(dataset: Dataset) -> Prose:
    """Return a dataset's prose and the template."""
    pieces = PART.split((find_cards() / f"{dataset}.md").read_text(encoding="utf-8"))
    parts = {pieces[i]: pieces[i + 1].strip() for i in range(1, len(pieces) - 1, 2)}
    return Prose(parts, (find_cards() / "template.md.j2").read_text(encoding="utf-8"))


def digest_prose() -> str:
    """Return a digest of everything written for the cards: changed words are published as a new version."""
    return digest_value([[path.name, digest_file(path)] for path in sorted(find_cards().glob("*.md*"))])


def render_card(manifest: ReleaseManifest, quality: Quality, prose: Prose, shown: Example, row: ReleaseRow) -> str:
    """Return the README."""
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, trim_blocks=True)
    return environment.from_string(prose.template).render(
        prose=prose.parts,
        manifest=manifest,
        pools=quality["pools"],
        reviewed="review by people" in quality,
        inventions=list_inventions(manifest),
        invented=is_invented(manifest.base_url),
        commit=f", commit `{manifest.git_commit}`" if manifest.git_commit else "",
        front=_make_front(manifest, prose),
        tables=_make_tables(manifest, quality),
        example=_make_example(shown.question, row),
    )


def _make_front(manifest: ReleaseManifest, prose: Prose) -> dict[str, str]:
    described = {
        "config_name": manifest.dataset,
        "splits": [{"name": s.name, "num_bytes": s.bytes, "num_examples": s.rows} for s in manifest.splits],
        "download_size": sum(entry.bytes for entry in manifest.files if entry.name.startswith("data/")),
        "dataset_size": sum(split.bytes for split in manifest.splits),
    }
    configs = [
        {"config_name": name}
        | ({"default": True} if folder == "data" else {})
        | {"data_files": [{"split": s.name, "path": f"{folder}/{s.name}-*.parquet"} for s in manifest.splits]}
        for name, folder in ((manifest.dataset, "data"), ("proofs", "proofs"))
    ]
    edition = EDITION.match(manifest.base_url)
    return {
        "pretty_name": json.dumps(prose.parts["title"]),
        "tasks": json.dumps(TASKS[manifest.dataset]),
        "size": next((name for limit, name in SIZES if manifest.rows < limit), "1M<n<10M"),
        "language": json.dumps(edition["language"] if edition else "en"),
        "tags": json.dumps([_name_source(manifest) if tag == SOURCE else tag for tag in TAGS]),
        "licence": "cc-by-sa-4.0" if manifest.articles is None else "other",
        "configs": json.dumps(configs),
        "dataset_info": json.dumps([described]),
    }


def _name_source(manifest: ReleaseManifest) -> str:
    if is_invented(manifest.base_url):
        return TOY
    return SOURCE if manifest.articles is None else NEWS


def _make_tables(manifest: ReleaseManifest, quality: Quality) -> dict[str, str]:
    names = (
        "splits",
        "overlap",
        "benchmarks",
        "near duplicates",
        "hops",
        "answer types",
        "funnel",
        "rejections",
        "guessability",
        "proof counts",
        "difficulty",
        "standing",
        "pools",
        "grounding",
        "enhancements",
    )
    tables = {name.replace(" ", "_"): render_section(quality[name]) for name in names}
    tables |= {name: render_section(quality.get(section, {})) for name, section in OPTIONAL_TABLES.items()}
    models: Section = {
        model.role: {
            "model": model.name,
            "revision": model.revision,
            "replied": ", ".join(model.served) or "not said",
            "sampling": json.dumps(model.sampling),
        }
        for model in manifest.models
    }
    prompts: Section = {label: {"sha256": digest} for label, digest in manifest.prompts.items()}
    return tables | {
        "models": render_section(models),
        "prompts": render_section(prompts),
        "licences": render_section(quality["picture licences"]),
        "not_measured": render_section(quality["not measured"]),
    }


def _make_example(question: Enhancement, row: ReleaseRow) -> str:
    shown = {
        "question": question.text,
        "answer": question.answer.surface,
        "chain": [f"{link.subject} -{link.relation}-> {link.object}" for link in make_chain(question)],
        "evidence": [
            {"page": span.title, "revision": span.revision, "start": span.start, "text": span.text}
            for span in list_evidence(question)
        ],
        "row": shorten_value(row.model_dump()),
    }
    return json.dumps(shown, indent=1, ensure_ascii=False)


def shorten_value(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Return a JSON value for reading: bytes as their count, long texts and lists cut with a note."""
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


EDITION = re.compile(r"https://(?P<language>(?!simple)[a-z]{2,3})(?:-[a-z-]+)?\.wikipedia\.org/")
LICENCE = "https://creativecommons.org/licenses/by-sa/4.0/"
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
DATA_TYPES = {pa.string(): "sc:Text", pa.int64(): "sc:Integer", pa.float64(): "sc:Float", pa.bool_(): "sc:Boolean"}
TERMS = """citeAs column conformsTo data dataType equivalentProperty examples extract field fileObject fileProperty
fileSet format includes isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace
samplingRate separator source subField transform"""
CONTEXT: dict[str, Any] = dict(
    sorted(
        (
            {name: f"cr:{name}" for name in TERMS.split()}
            | {
                "@language": "en",
                "@vocab": "https://schema.org/",
                "conformsTo": "dct:conformsTo",
                "cr": "http://mlcommons.org/croissant/",
                "data": {"@id": "cr:data", "@type": "@json"},
                "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
                "dct": "http://purl.org/dc/terms/",
                "examples": {"@id": "cr:examples", "@type": "@json"},
                "rai": "http://mlcommons.org/croissant/RAI/",
                "sc": "https://schema.org/",
            }
        ).items()
    )
)
"""JSON-LD context of Croissant 1.1, in the order of its names."""


def make_croissant(manifest: ReleaseManifest, prose: Prose) -> dict[str, Any]:
    """Return the JSON-LD document; each data file is one FileObject and one record set."""
    schema = make_release_schema(ROW_TYPES[manifest.dataset])
    name, version = f"synth-{manifest.dataset}", manifest.version.split("-")[0]
    files = [entry for entry in manifest.files if entry.name.startswith("data/")]
    invented = is_invented(manifest.base_url)
    source = "Wikipedia" if manifest.articles is None else "articles of the news"
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": name,
        "description": prose.parts["summary"],
        "version": version,
        "license": LICENCE if manifest.articles is None else manifest.articles.licence_url or UNKNOWN,
        "url": manifest.base_url,
        "creator": {"@type": "sc:Organization", "name": "synth"},
        "citeAs": f"{name}, version {version}",
        "isLiveDataset": False,
        "rai:dataCollection": f"Made by synth from {'an invented wiki' if invented else source}, "
        f"snapshot {manifest.snapshot}.",
        "rai:dataLimitations": prose.parts["limits"],
        "rai:personalSensitiveInformation": "None: every person is invented."
        if invented
        else f"Facts and pictures of people, as {source} shows them.",
        "distribution": [_make_file(entry) for entry in files],
        "recordSet": [_make_records(entry, schema) for entry in files],
    }
    if DATE.fullmatch(manifest.snapshot):
        document["datePublished"] = manifest.snapshot
    return document


def _name_file(entry: FileEntry) -> str:
    return entry.name.rsplit("/", 1)[-1].removesuffix(".parquet")


def _make_file(entry: FileEntry) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": entry.name,
        "name": _name_file(entry),
        "contentUrl": entry.name,
        "contentSize": f"{entry.bytes} B",
        "encodingFormat": "application/x-parquet",
        "sha256": entry.sha256,
    }


def _make_records(entry: FileEntry, schema: pa.Schema) -> dict[str, Any]:
    name = _name_file(entry)
    fields = [made for field in schema if (made := _make_field(name, entry.name, field)) is not None]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "key": {"@id": f"{name}/id"}, "field": fields}


def _make_field(records: str, file: str, field: pa.Field) -> dict[str, Any] | None:
    # Structs other than pictures have no form that loaders agree on.
    repeated = pa.types.is_list(field.type)
    kind = field.type.value_type if repeated else field.type
    source: dict[str, Any] = {"fileObject": {"@id": file}, "extract": {"column": field.name}}
    if is_image(kind):
        source["transform"] = {"jsonPath": "[*].bytes" if repeated else "bytes"}
    elif kind not in DATA_TYPES:
        return None
    made: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{records}/{field.name}",
        "name": field.name,
        "dataType": "sc:ImageObject" if is_image(kind) else DATA_TYPES[kind],
        "source": source,
    }
    return made | ({"repeated": True} if repeated else {})


DOCUMENTS = ("quality.json", "quality.md", "croissant.json", "config.toml", "README.md")


def render_documents(
    manifest: ReleaseManifest, quality: Quality, prose: Prose, shown: Example, row: ReleaseRow
) -> dict[str, str]:
    """Return the text of each of :data:`DOCUMENTS` by its name; the card has ``shown`` and its row as an example."""
    return {
        "quality.json": json.dumps(quality, indent=1, ensure_ascii=False) + "\n",
        "quality.md": render_quality(quality, f"Quality of {manifest.dataset} {manifest.version}"),
        "croissant.json": json.dumps(make_croissant(manifest, prose), indent=1, ensure_ascii=False) + "\n",
        "config.toml": render_told(manifest.told, manifest.untold, manifest.corpus),
        "README.md": render_card(manifest, quality, prose, shown, row),
    }
