from dataclasses import replace

import pytest

from pipelines.cli.audit import AuditOptions, audit_files
from tests.pipelines.cli.audit_plants import PLANTS, encode, make_clean, paint
from tests.published import WRITERS, publish

SOURCES = 6
"""First rows of a file, which stay clean: others are copies of them."""
AT_ONCE = 18
"""Plants of a file, each in a row of its own."""


def audit(folder, kind, rows):
    path, pictures = publish(folder, kind, rows)
    (pictures / "found.png").write_bytes(encode(paint(99)))
    return audit_files([path], AuditOptions(images=pictures))


@pytest.mark.parametrize("kind", WRITERS)
def test_clean_files_raise_no_alarm(tmp_path, kind):
    report = audit(tmp_path, kind, make_clean())
    assert [(defect.name, defect.rows, defect.findings[0]) for defect in report.defects] == []
    assert report.rows == len(make_clean())


def list_missed(tmp_path, kind, plants):
    """Plant each in a row of its own; return those that were not found, and the rows that others were found in."""
    clean = make_clean()
    planted = [plant.put(clean[SOURCES + at], clean) for at, plant in enumerate(plants)]
    report = audit(tmp_path, kind, [*clean[:SOURCES], *planted, *clean[SOURCES + len(plants) :]])
    found = {(defect.name, finding.row.number) for defect in report.defects for finding in defect.findings}
    missed = [
        plant.name for at, plant in enumerate(plants) if not any((name, SOURCES + at) in found for name in plant.found)
    ]
    return missed, {number for _, number in found} - set(range(SOURCES, SOURCES + len(plants)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITERS)
def test_nine_in_ten_of_our_own_plants_are_found_and_nothing_in_clean_rows(tmp_path, kind):
    missed, alarms = [], set()
    for start in range(0, len(PLANTS), AT_ONCE):
        lost, alarmed = list_missed(tmp_path / str(start), kind, PLANTS[start : start + AT_ONCE])
        missed += lost
        alarms |= alarmed
    assert len(missed) <= 0.1 * len(PLANTS), missed
    assert not alarms


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        ({"answer": "Bexley"}, "answer-too-often"),
        ({"question": "What is the name of the thing in this image?"}, "template-too-often"),
    ],
)
def test_what_half_of_a_file_shares_is_found(tmp_path, changes, defect):
    rows = [replace(row, **changes) if at % 2 else row for at, row in enumerate(make_clean())]
    assert [found.name for found in audit(tmp_path, "columns", rows).defects] == [defect]
