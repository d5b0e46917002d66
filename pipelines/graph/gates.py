"""What an article must have to be a seed, judged over columns of ``pages.parquet``: millions of articles in seconds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.reasons import SeedReason

SeedRule = Literal["opensearch-vl", "vsearcher"]
InDegree = Literal["text", "tables"]
Mask = npt.NDArray[np.bool_]

JUDGED: Final = (
    "title",
    "is_list",
    "is_disambiguation",
    "infobox",
    "type",
    "in_degree",
    "table_in_degree",
    "sitelinks",
    "statements",
    "identifiers",
    "classes",
)
"""Columns of ``pages.parquet`` that a gate looks at."""


@dataclass(frozen=True, slots=True)
class SeedGate:
    """What an article must have to be an anchor.

    By ``opensearch-vl`` (its appendix D.1) an infobox, and incoming links between two bounds. By ``vsearcher`` (its
    appendix A.2) few sitelinks, so that it is rare, and many statements, so that it is documented. By both no list and
    no disambiguation page, a type that a question can name, and the picture that the stage asks for.
    """

    rule: SeedRule = "opensearch-vl"
    min_in_degree: int = 50
    hub_in_degree: int = 10_000
    require_infobox: bool = True
    in_degree: InDegree = "text"
    """Whether links in an article's own text count, or those of the pagelinks table, which templates make too."""
    max_sitelinks: int = 10
    min_statements: int = 20
    count_identifiers: bool = True
    """Whether statements that name the entity in another database count as statements, as in the paper."""
    classes: tuple[str, ...] = ()
    """Qids, one of which the entity must be an instance of; empty for any."""
    require_image: bool = True
    min_image_side: int = 512
    """Pixels of the shorter side."""

    def without_classes(self) -> "SeedGate":
        """Return the gate for entities whose class is known to be wanted."""
        return replace(self, classes=())


@dataclass(frozen=True, slots=True)
class _Test:
    reason: SeedReason
    refused: Mask
    detail: Callable[[int], str]


def judge_pages(gate: SeedGate, pages: pa.Table) -> Iterator[tuple[SeedReason | None, str]]:
    """Yield for each row the first reason to refuse it, with what was found, or None.

    Args:
        gate: the rules; pictures are left to the caller.
        pages: the columns ``JUDGED``, one row an article.
    """
    columns = {name: pages[name].combine_chunks() for name in JUDGED}
    tests = [*_test_pages(columns), *_test_classes(gate, columns)]
    tests += _test_links(gate, columns) if gate.rule == "opensearch-vl" else _test_counts(gate, columns)
    tests.append(_Test("no-type", _is_empty(columns["type"]), _show(columns["title"])))
    first = np.full(len(pages), len(tests))
    for number in reversed(range(len(tests))):
        first[tests[number].refused] = number
    for row, number in enumerate(first.tolist()):
        yield (tests[number].reason, tests[number].detail(row)) if number < len(tests) else (None, "")


def _test_pages(columns: dict[str, pa.Array]) -> list[_Test]:
    shown = _show(columns["title"])
    return [
        _Test("list-page", _to_mask(columns["is_list"]), shown),
        _Test("disambiguation-page", _to_mask(columns["is_disambiguation"]), shown),
    ]


def _test_classes(gate: SeedGate, columns: dict[str, pa.Array]) -> list[_Test]:
    if not gate.classes:
        return []
    classes = columns["classes"]
    wanted = pc.is_in(pc.list_flatten(classes), value_set=pa.array(gate.classes, pa.string()))
    refused = np.ones(len(classes), dtype=bool)
    refused[pc.list_parent_indices(classes).filter(wanted).to_numpy(zero_copy_only=False)] = False
    return [_Test("class", refused, lambda row: ", ".join(classes[row].as_py()) or "class not known")]


def _test_links(gate: SeedGate, columns: dict[str, pa.Array]) -> list[_Test]:
    degree = columns["in_degree" if gate.in_degree == "text" else "table_in_degree"].to_numpy()
    tests = [_Test("hub", degree > gate.hub_in_degree, lambda row: f"in-degree {degree[row]} > {gate.hub_in_degree}")]
    if gate.require_infobox:
        tests.append(_Test("no-infobox", _is_empty(columns["infobox"]), _show(columns["title"])))
    low = degree < gate.min_in_degree
    return [*tests, _Test("in-degree-low", low, lambda row: f"in-degree {degree[row]} < {gate.min_in_degree}")]


def _test_counts(gate: SeedGate, columns: dict[str, pa.Array]) -> list[_Test]:
    sitelinks, statements = columns["sitelinks"].to_numpy(), columns["statements"].to_numpy()
    unknown = (sitelinks < 0) | (statements < 0)
    if not gate.count_identifiers:
        identifiers = columns["identifiers"].to_numpy()
        unknown, statements = unknown | (identifiers < 0), statements - identifiers
    known_well, poor = sitelinks > gate.max_sitelinks, statements < gate.min_statements
    return [
        _Test("counts-unknown", unknown, _show(columns["title"])),
        _Test("too-well-known", known_well, lambda row: f"sitelinks {sitelinks[row]} > {gate.max_sitelinks}"),
        _Test("too-few-statements", poor, lambda row: f"statements {statements[row]} < {gate.min_statements}"),
    ]


def _show(column: pa.Array) -> Callable[[int], str]:
    return lambda row: str(column[row].as_py())


def _is_empty(column: pa.Array) -> Mask:
    return _to_mask(pc.equal(column, ""))


def _to_mask(column: pa.Array) -> Mask:
    mask: Mask = column.to_numpy(zero_copy_only=False).astype(bool)
    return mask
