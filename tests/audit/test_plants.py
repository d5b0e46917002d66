"""``synth audit`` over every published layout: what it finds of thirty planted defects, what it says of clean files."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.audit.bank import make_question
from tests.audit.plants import BATCHES, ROWS, File, list_plants, make_clean, plant_batch
from tests.audit.published import LAYOUTS
from tests.chaos.driving import call_here

WANTED, PLANTED, FALSE_ALARMS = 27, 30, 0.02

Report = dict[str, set[str]]
"""The rows that are named under each defect, as they are spelt."""


def collect(document: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of every defect in a document with the rows of the first file that it names."""
    if isinstance(document, dict):
        if "name" in document and "findings" in document:
            pairs = [(finding["row"], finding.get("other")) for finding in document["findings"]]
            yield str(document["name"]), [row["id"] for pair in pairs for row in pair if row and row["file"] == 0]
        elif "name" in document and "examples" in document:
            yield str(document["name"]), [json.dumps(each) for each in document["examples"]]
        for value in document.values():
            yield from collect(value)
    elif isinstance(document, list):
        for value in document:
            yield from collect(value)


def audit(file: File, folder: Path, capture: pytest.CaptureFixture[str]) -> Report:
    paths = file.write(folder)
    images = () if file.layout.kind == "bytes" else ("--images", folder / "images")
    outcome = call_here(capture, "audit", *paths, *images, "--json", "--workspace", folder / "workspace")
    assert outcome.code in (0, 1), outcome.err
    found: Report = {}
    for name, examples in collect(json.loads(outcome.out)):
        found.setdefault(name, set()).update(examples)
    return found


CLEAN: dict[str, Report] = {}
"""Reports on clean files, made once for both tests of a layout."""


def audit_clean(layout: str, folder: Path, capture: pytest.CaptureFixture[str]) -> Report:
    if layout not in CLEAN:
        CLEAN[layout] = audit(make_clean(layout), folder / "clean", capture)
    return CLEAN[layout]


def name_row(report: Report, mark: str) -> set[str]:
    """Return the defects under which a row is named."""
    pattern = re.compile(rf"(?<![0-9A-Za-z]){re.escape(mark)}(?![0-9A-Za-z])")
    return {name for name, examples in report.items() if any(pattern.search(example) for example in examples)}


def find_plants(layout: str, folder: Path, capture: pytest.CaptureFixture[str]) -> dict[str, set[str]]:
    """Return for every plant the defects that name a spoilt row and did not name it before, and name the trouble."""
    clean, before = make_clean(layout), audit_clean(layout, folder, capture)
    found = {}
    for batch in range(BATCHES):
        file, planted = plant_batch(layout, batch)
        report = audit(file, folder / str(batch), capture)
        for name, places, words in planted:
            new = {word for at in places
                   for word in name_row(report, file.mark(at)) - name_row(before, clean.mark(at))}  # fmt: skip
            found[name] = {defect for defect in new if any(word in defect.casefold() for word in words)}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_audit_finds_27_of_30_planted_defects_in_every_layout(layout, tmp_path, capsys):
    found = find_plants(layout, tmp_path, capsys)
    missed = [name for name, defects in found.items() if not defects]
    assert len(found) == PLANTED
    assert PLANTED - len(missed) >= WANTED, f"{layout}: {PLANTED - len(missed)} of {PLANTED}; missed {missed}; {found}"


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_audit_alarms_on_hardly_any_row_of_a_clean_file(layout, tmp_path, capsys):
    report = audit_clean(layout, tmp_path, capsys)
    named = set().union(*report.values())
    assert len(named) <= FALSE_ALARMS * ROWS, f"{layout}: {report}"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_thirty_plants_of_different_names(layout):
    names = Counter(name for name, _, _ in list_plants(layout))
    assert len(names) == PLANTED
    assert set(names.values()) == {1}


def test_clean_questions_are_all_different_point_at_their_picture_and_do_not_tell_their_answer():
    asked = [make_question(number) for number in [*range(ROWS), *range(100, 112), *range(200, 264), *range(300, 312)]]
    assert len({question for question, _ in asked}) == len(asked)
    assert all(re.search(r"picture|photo|image|this|shown|seen|depicted", question) for question, _ in asked)
    assert not [pair for pair in asked if pair[1].casefold() in pair[0].casefold()]
    assert max(Counter(answer for _, answer in asked[:ROWS]).values()) <= 2
