"""Diagrams in SVG: the path that proves a question, and the funnel. Every text goes through an XML writer.

The pages beside them have templates that escape every value, and small copies of pictures.
"""

import io
import math
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipelines.cli.facets import shorten_text
from pipelines.pictures import open_pixels
from schemas.base import Record
from schemas.datasets import Bridge, Grounding, Question, Rewrite
from schemas.datasets import Path as WalkedPath
from schemas.proofs import Evidence, Hop, PathNode, Proof, Trace

WIDTHS = {"wide": 760, "narrow": 330}
"""Widths in pixels at which each diagram is drawn; a page shows one of them by its own width."""
PADDING = 10
INDENT = 44
SPINE = 18
LONGEST_EVIDENCE = 260
FUNNEL_ROW = 44
FUNNEL_WIDTHS = {"wide": 1060, "narrow": 330}


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A box: what it is called, what it is, and whether the question hides its name."""

    title: str
    note: str
    kind: str
    """``picture``, ``anchor``, ``bridge``, ``branch`` or ``answer``."""
    hidden: bool = False
    depth: int = 0
    """0 on the chain; a branch is one deeper than what it is about."""


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """The arrow into a node: its relation and the words that prove it."""

    relation: str
    evidence: str = ""
    backward: bool = False


DrawnStep = tuple[DrawnEdge | None, DrawnNode]


def list_steps(record: Record) -> list[DrawnStep]:
    """Return what a record's path is drawn of, from the picture to the answer; nothing without a path."""
    if isinstance(record, Grounding | Bridge) and record.trace is not None:
        return list(_follow_trace(record.trace, record.picture is not None))
    if isinstance(record, Question | Rewrite | Grounding) and record.proof.nodes:
        shown = isinstance(record, Grounding) and record.picture is not None
        steps = list(_follow_proof(record.proof, shown, isinstance(record, Grounding)))
        asked = record.proof.answer_gloss or record.proof.answer_relation
        return [*steps, _end(record.answer.surface, record.answer.type, asked, record.proof.answer_evidence)]
    if isinstance(record, WalkedPath):
        steps = list(_follow_chain(record.nodes, record.hops, lambda node, _: (node.type, False)))
        asked = record.answer_gloss or record.answer_relation
        return [*steps, _end(record.answer_text, "", asked, record.answer_evidence)]
    return []


def _end(answer: str, note: str, asked: str, evidence: Evidence) -> DrawnStep:
    return DrawnEdge(asked, _quote(evidence)), DrawnNode(answer, f"answer {note}".strip(), "answer", hidden=True)


def _quote(evidence: Evidence) -> str:
    if evidence.kind == "statement":
        return f"Wikidata on {evidence.title}: {evidence.key}"
    return f"“{shorten_text(' '.join(evidence.text.split()), LONGEST_EVIDENCE)}” ({evidence.title})"


def _follow_chain(
    nodes: Sequence[PathNode], hops: Sequence[Hop], describe: Callable[[PathNode, int], tuple[str, bool]]
) -> Iterator[DrawnStep]:
    for place, node in enumerate(nodes):
        edge = None
        if place:
            hop = hops[place - 1]
            edge = DrawnEdge(hop.gloss or hop.relation, _quote(hop.evidence), hop.backward)
        note, hidden = describe(node, place)
        yield edge, DrawnNode(node.title, note, "anchor" if place == 0 else "bridge", hidden)


def _follow_proof(proof: Proof, shown: bool, grounded: bool) -> Iterator[DrawnStep]:
    def describe(node: PathNode, place: int) -> tuple[str, bool]:
        told = proof.descriptors[place - 1] if 0 < place <= len(proof.descriptors) else ""
        said = f"{node.type}: hidden as “{told}”" if told else node.type
        return said, bool(told) or place == len(proof.nodes) - 1 or (place == 0 and grounded)

    if shown:
        yield None, DrawnNode("picture", "shown with the question", "picture")
    for place, (edge, node) in enumerate(_follow_chain(proof.nodes, proof.hops, describe)):
        yield DrawnEdge("shows") if shown and place == 0 else edge, node
        yield from _follow_branches(proof, place, 1)


def _follow_branches(proof: Proof, host: int, depth: int) -> Iterator[DrawnStep]:
    for number, branch in enumerate(proof.branches, len(proof.nodes)):
        if branch.host == host:
            note = "named" if branch.named else f"hidden as “{branch.descriptor}”"
            node = DrawnNode(branch.node.title, note, "branch", not branch.named, depth)
            yield DrawnEdge(branch.relation, _quote(branch.quote or branch.evidence)), node
            yield from _follow_branches(proof, number, depth + 1)


def _follow_trace(trace: Trace, shown: bool) -> Iterator[DrawnStep]:
    if shown:
        yield None, DrawnNode("picture", "shown with the question", "picture")
    shows = DrawnEdge("shows", _quote(trace.anchor_evidence)) if shown else None
    yield shows, DrawnNode(trace.anchor, trace.anchor_kind, "anchor", hidden=True)
    for place, link in enumerate(trace.links, 1):
        last = place == len(trace.links)
        note = "answer" if last else f"{link.source}, {link.published}"
        node = DrawnNode(link.object, note, "answer" if last else "bridge", hidden=True)
        yield DrawnEdge(link.relation, _quote(link.evidence)), node


def draw_path(steps: Sequence[DrawnStep]) -> Markup:
    """Return a diagram of a path for wide and for narrow pages."""
    said = " ".join(f"{edge.relation if edge else ''} {node.title}".strip() for edge, node in steps)
    return Markup("").join(
        _write(name, _PathDrawing(width).draw(steps), f"Path: {said}") for name, width in WIDTHS.items()
    )


def _write(name: str, svg: ElementTree.Element, label: str) -> Markup:
    svg.set("class", f"drawing {name}")
    svg.set("role", "img")
    svg.set("aria-label", _clean(label))
    return Markup(ElementTree.tostring(svg, encoding="unicode"))


def _clean(text: str) -> str:
    """Return text without what XML cannot carry."""
    return "".join(letter for letter in text if letter.isprintable())


def _wrap(text: str, pixels: float, em: float) -> list[str]:
    """Return lines that fit; letters of East Asia count twice."""
    clean = _clean(text)
    wide = any(unicodedata.east_asian_width(letter) in "WF" for letter in clean)
    return textwrap.wrap(clean, max(8, int(pixels / em / (2 if wide else 1))), break_long_words=True) or [""]


def _text(parent: ElementTree.Element, x: float, y: float, style: str, text: str) -> None:
    ElementTree.SubElement(parent, "text", {"x": f"{x:g}", "y": f"{y:g}", "class": style}).text = text


def _shape(parent: ElementTree.Element, tag: str, style: str, **attributes: object) -> None:
    ElementTree.SubElement(parent, tag, {"class": style} | {name: str(value) for name, value in attributes.items()})


class _PathDrawing:
    """Boxes one below the other; the words of an arrow stand beside it."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._svg = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "width": str(width)})
        self._bottoms: list[float] = []
        self._y = 2.0

    def draw(self, steps: Sequence[DrawnStep]) -> ElementTree.Element:
        for edge, node in steps:
            start = self._bottoms[max(node.depth - 1, 0)] if edge else 0.0
            if edge:
                self._label(edge, node)
            top = self._y
            self._box(node)
            if edge:
                self._arrow(edge, node, start, top)
            self._bottoms[node.depth :] = [self._y]
        self._svg.set("viewBox", f"0 0 {self._width} {self._y + 4:g}")
        self._svg.set("height", f"{self._y + 4:g}")
        return self._svg

    def _label(self, edge: DrawnEdge, node: DrawnNode) -> None:
        x = 2 + INDENT * node.depth + (SPINE + 14 if node.depth == 0 else 0)
        self._y += 4
        for text, style, em in ((edge.relation, "relation", 7.4), (edge.evidence, "evidence", 6.5)):
            for line in _wrap(text, self._width - x - 4, em) if text else ():
                self._y += 17
                _text(self._svg, x, self._y, style, line)
        self._y += 9

    def _box(self, node: DrawnNode) -> None:
        x = 2 + INDENT * node.depth
        width = min(self._width - x - 2, 560)
        title = _wrap(node.title, width - 2 * PADDING, 8.2)
        note = _wrap(node.note, width - 2 * PADDING, 6.7) if node.note else []
        height = 12 + 19 * len(title) + 16 * len(note)
        style = f"node {node.kind}{' hidden' if node.hidden else ''}"
        _shape(self._svg, "rect", style, x=x, y=self._y, width=width, height=height, rx=8)
        y = self._y + 2
        for line, kind, step in (*((line, "title", 19) for line in title), *((line, "note", 16) for line in note)):
            y += step
            _text(self._svg, x + PADDING, y, kind, line)
        self._y += height

    def _arrow(self, edge: DrawnEdge, node: DrawnNode, start: float, top: float) -> None:
        if node.depth:
            x, end = 2 + INDENT * (node.depth - 1) + SPINE, top + 16
            _shape(self._svg, "path", "edge", d=f"M{x} {start:g}V{end:g}H{2 + INDENT * node.depth}")
            return
        x = 2 + SPINE
        _shape(self._svg, "path", "edge", d=f"M{x} {start:g}V{top:g}")
        tip, wing = (start, start + 8) if edge.backward else (top, top - 8)
        _shape(self._svg, "path", "tip", d=f"M{x} {tip:g}L{x - 5} {wing:g}H{x + 5}Z")


def draw_funnel(funnel: Sequence[Mapping[str, Any]]) -> Markup:
    """Return a diagram of the funnel: a bar is as long as the logarithm of a stage's rows, its parts as their shares.

    Args:
        funnel: of each stage ``stage``, ``rows_in``, ``kept``, ``rejected`` (reason to rows), ``failed``, ``rows_out``.
    """
    said = ", ".join(f"{row['stage']} {row['rows_in']} in, {row['kept']} kept" for row in funnel)
    label = f"Funnel: {said}"
    return Markup("").join(_write(name, _draw_bars(funnel, width), label) for name, width in FUNNEL_WIDTHS.items())


def _draw_bars(funnel: Sequence[Mapping[str, Any]], width: int) -> ElementTree.Element:
    height = FUNNEL_ROW * len(funnel) + 4
    size = {"width": str(width), "height": str(height), "viewBox": f"0 0 {width} {height}"}
    svg = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg"} | size)
    longest = math.log10(max((row["rows_in"] for row in funnel), default=0) + 1) or 1.0
    for place, row in enumerate(funnel):
        y = FUNNEL_ROW * place
        rejected = sum(row["rejected"].values())
        _text(svg, 0, y + 15, "title", row["stage"])
        made = "" if row["rows_out"] == row["kept"] else f", {row['rows_out']:,} out"
        _text(svg, width, y + 15, "note end", f"{row['rows_in']:,} in, {row['kept']:,} kept{made}")
        length = width * math.log10(row["rows_in"] + 1) / longest
        x = 0.0
        for kind, rows in (("kept", row["kept"]), ("rejected", rejected), ("failed", row["failed"])):
            part = length * rows / max(row["rows_in"], 1)
            if part:
                _shape(svg, "rect", kind, x=f"{x:.2f}", y=y + 22, width=f"{part:.2f}", height=12, rx=2)
            x += part
    return svg


def draw_thumbnail(content: bytes, side: int, quality: int) -> bytes:
    """Return an upright copy of a picture as WebP, of at most so many pixels a side.

    Raises:
        RecordFailed: if the picture is broken or too large to open safely.
    """
    shown = open_pixels(content, max_side=2 * side)
    shown.thumbnail((side, side))
    buffer = io.BytesIO()
    shown.save(buffer, "WEBP", quality=quality)
    return buffer.getvalue()


def open_templates(folder: str = "") -> Environment:
    """Return the templates in a folder below this module's; they escape every value."""
    loader = FileSystemLoader(Path(__file__).parent / folder)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
