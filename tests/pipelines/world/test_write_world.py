import json

import pytest

from pipelines.errors import ConfigError
from pipelines.files import make_temp_path
from pipelines.toy.names import fold_accents
from pipelines.toy.publishing import WorldConfig, write_world

SMALL = WorldConfig(entities=60, seed=3, missing=0.0)


def test_the_same_config_gives_the_same_bytes(world_full, tmp_path):
    write_world(tmp_path / "again", SMALL)
    files = sorted(path.relative_to(world_full.root) for path in world_full.root.rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*") if path.is_file()
    )
    for file in files:
        assert (world_full.root / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file


def test_world_json_repeats_config_and_counts(world_full):
    document = json.loads((world_full.root / "world.json").read_text())
    given = {"entities": 60, "seed": 3, "missing": 0.0, "snapshot": "20260101"}
    assert document["config"] == given | {"signs": 0.03, "simple": 0.02}
    assert document["counts"]["hidden_facts"] == 0
    assert document["counts"]["pages"] == len(world_full.pages())
    assert document["counts"]["pictures"] == len(world_full.image_rows())
    assert document["counts"]["lead_pictures"] == sum(each["view"] == "lead" for each in world_full.truth("pictures"))


def test_a_non_empty_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(ConfigError, match="not an empty folder"):
        write_world(tmp_path, SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "change", [{"entities": 3}, {"missing": 1.5}, {"snapshot": "2026"}, {"signs": -0.1}, {"simple": 0.6}]
)
def test_a_config_out_of_range_is_refused_before_anything_is_written(tmp_path, change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        write_world(tmp_path / "w", WorldConfig(**change))
    assert not list(tmp_path.iterdir())


def test_a_failed_run_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.toy.publishing.write_truth", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_world(tmp_path / "w", SMALL)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_is_removed_and_nothing_else(tmp_path):
    left = make_temp_path(tmp_path / "w")
    (left / "images").mkdir(parents=True)
    (tmp_path / ".tmp-other-1234").mkdir()
    write_world(tmp_path / "w", SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmp-other-1234", "w"]


def test_gzip_headers_carry_no_time_and_no_name(world_full):
    for path in world_full.root.glob("*.sql.gz"):
        head = path.read_bytes()[:10]
        assert head[3] == 0
        assert head[4:8] == b"\0\0\0\0"


@pytest.mark.parametrize(
    ("name", "folded"), [("Dvořák", "Dvorak"), ("Bjørn", "Bjorn"), ("Ærø", "Aero"), ("Plain", "Plain")]
)
def test_ascii_forms_lose_their_marks(name, folded):
    assert fold_accents(name) == folded
