import pytest

from pipelines.cli.audit import AuditOptions, audit_files
from tests.pipelines.cli.audit_plants import PLANTS, encode, make_clean, paint
from tests.published import WRITERS, publish


def audit(folder, kind, rows):
    path, pictures = publish(folder, kind, rows)
    (pictures / "found.png").write_bytes(encode(paint(99)))
    return audit_files([path], AuditOptions(images=pictures))


@pytest.mark.parametrize("kind", WRITERS)
def test_clean_files_raise_no_alarm(tmp_path, kind):
    report = audit(tmp_path, kind, make_clean())
    assert [(defect.name, defect.rows, defect.findings[0]) for defect in report.defects] == []
    assert report.rows == 24


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITERS)
def test_nine_in_ten_of_our_own_plants_are_found(tmp_path, kind):
    missed = []
    for number, plant in enumerate(PLANTS):
        report = audit(tmp_path / str(number), kind, plant.put(make_clean()))
        rows = {
            (defect.name, finding.row.number)
            for defect in report.defects for finding in defect.findings
        }  # fmt: skip
        if not any((name, plant.row) in rows for name in plant.found):
            missed.append((plant.name, rows))
    assert len(missed) <= 0.1 * len(PLANTS), missed
    print(kind, len(PLANTS) - len(missed), "of", len(PLANTS), missed)
