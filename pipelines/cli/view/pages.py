"""The pages of the view, served or written to one file to send. The templates escape every value."""

import base64
import io
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from math import ceil
from pathlib import Path
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipelines.cli.view.cards import ShownPicture, link_row, list_funnel, make_card
from pipelines.cli.view.queries import KINDS, PAGE, STAGE_MODELS, Choice, Explorer
from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import write_text
from pipelines.pictures import PictureStore, open_pixels
from schemas.base import Record
from schemas.datasets import Bridge, Grounding, Question, Rewrite

TEMPLATES = Path(__file__).parent / "templates"
QUESTIONS = 12
"""Questions that a page to send shows."""
SIDE = 320
_environment = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


def render(name: str, title: str, **values: object) -> str:
    """Return a page by its template."""
    return _environment.get_template(f"{name}.html.j2").render(title=title, **{"style": "", "message": ""} | values)


def _link_list(**asked: object) -> str:
    return f"/?{urlencode({name: value for name, value in asked.items() if value and value != 'kept'})}"


def show_list(explorer: Explorer, query: Mapping[str, str]) -> str:
    """Return a list of rows with its filters; the address names what it shows.

    Raises:
        ConfigError: if it names what a list has not.
    """
    choice = _read_choice(explorer, query)
    rows, total = explorer.list_rows(choice)
    stages = {}
    for found in explorer.list_stages():
        manifest = found.folder.read_manifest()
        counts = (manifest.rows_out, sum(manifest.rejected.values()), manifest.failed) if manifest else (0, 0, 0)
        stages[found.stage] = dict(zip(KINDS, counts, strict=True))
    turn: Callable[[int], str] = lambda page: _link_list(**asdict(choice) | {"page": page})  # noqa: E731
    return render(
        "list",
        f"{choice.stage}, {choice.kind}",
        choice=choice,
        rows=rows,
        total=total,
        pages=max(1, ceil(total / PAGE)),
        first=PAGE * (choice.page - 1) + 1,
        facets=explorer.count_facets(choice.stage, choice.kind),
        stages=stages,
        releases=explorer.list_releases(),
        link=_link_list,
        turn=turn,
        link_row=link_row,
    )


def _read_choice(explorer: Explorer, query: Mapping[str, str]) -> Choice:
    if unknown := sorted(query.keys() - {field.name for field in fields(Choice)}):
        raise ConfigError(f"unknown filter {unknown[0]!r}")
    page, kind = query.get("page", "1"), query.get("kind", "kept")
    if not page.isdecimal() or not 1 <= int(page) <= 10**6:
        raise ConfigError(f"page {page!r} is no page")
    if kind not in KINDS:
        raise ConfigError(f"kind {kind!r}; there are {', '.join(KINDS)}")
    given = {name: value.strip() for name, value in query.items() if name not in ("page", "kind")}
    return Choice(given.pop("stage", "") or _find_questions(explorer), kind, page=int(page), **given)


def _find_questions(explorer: Explorer) -> str:
    """Return the last stage of questions; the last one of all if there is none."""
    stages = [found.stage for found in explorer.list_stages()]
    asked = [
        stage
        for stage in stages
        if issubclass(STAGE_MODELS.get(stage, Record), Question | Rewrite | Grounding | Bridge)
    ]
    if not stages:
        raise ConfigError(f"workspace {explorer.root} has no finished stage; run `synth run` first")
    return (asked or stages)[-1]


def show_row(explorer: Explorer, stage: str, record_id: str) -> str:
    """Return the page of one row, kept or refused.

    Raises:
        ConfigError: if the stage has no such row.
    """
    card = make_card(explorer, stage, record_id)
    return render("row", f"{record_id}, {stage}", card=card, address=lambda picture: f"/picture/{picture.sha256}")


def show_funnel(explorer: Explorer) -> str:
    """Return the page of the funnel; each reason leads to its rows."""
    return render("page", "Funnel", funnel=list_funnel(explorer), cards=(), address=None)


def write_page(root: Path, out: Path) -> None:
    """Write one page that loads nothing: the funnel, the reasons and a few questions with pictures.

    Raises:
        ConfigError: if the workspace has no finished stage.
    """
    explorer = Explorer(root)
    stage = _find_questions(explorer)
    drawn = explorer.ask(f'SELECT record_id FROM "{stage}" ORDER BY md5(record_id) LIMIT {QUESTIONS}')
    cards = [make_card(explorer, stage, row["record_id"]) for row in drawn]
    store = PictureStore(explorer.root / "images")

    def embed(picture: ShownPicture) -> str:
        try:
            content = shrink(store.load(picture.sha256)[0], SIDE)
        except (CorruptInput, RecordFailed):
            # The page shows the picture's label and credit in its place.
            return "data:,"
        return f"data:image/webp;base64,{base64.b64encode(content).decode()}"

    style = Markup((TEMPLATES / "view.css").read_text(encoding="utf-8"))
    title = f"{len(cards)} rows of {stage}"
    write_text(out, render("page", title, style=style, funnel=list_funnel(explorer), cards=cards, address=embed))


def shrink(content: bytes, side: int) -> bytes:
    """Return an upright copy of a picture as WebP, of at most so many pixels a side.

    Raises:
        RecordFailed: if the picture is broken or too large to open safely.
    """
    shown = open_pixels(content, max_side=2 * side)
    shown.thumbnail((side, side))
    buffer = io.BytesIO()
    shown.save(buffer, "WEBP", quality=70)
    return buffer.getvalue()
