import pytest

from pipelines.errors import ConfigError, CorruptInput
from pipelines.services.clients.replies import GENERATIONS, name_generation, read_generations, renew


def test_before_anything_is_renewed_every_role_is_in_generation_0(tmp_path):
    assert read_generations(tmp_path / "replies") == {}


def test_each_renewal_begins_one_generation_of_the_roles_named_and_no_other(tmp_path):
    folder = tmp_path / "replies"
    assert renew(folder, ["solver"]) == {"solver": 1}
    assert renew(folder, ["solver", "judge", "solver"]) == {"solver": 2, "judge": 1}
    assert renew(folder, iter(["judge"])) == read_generations(folder) == {"solver": 2, "judge": 2}
    assert [path.name for path in folder.iterdir()] == [GENERATIONS]


def test_nothing_to_renew_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no role"):
        renew(tmp_path, [])


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="not a folder"):
        renew(tmp_path / "file" / "replies", ["solver"])


@pytest.mark.parametrize(
    "damaged",
    [b"", b"\xff", b"[]", b"null", b'{"solver": 0}', b'{"solver": true}', b'{"solver": "1"}', b'{"solver": 1.5}'],
)
def test_a_damaged_file_is_refused_and_left_alone(tmp_path, damaged):
    (tmp_path / GENERATIONS).write_bytes(damaged)
    for read in (lambda: read_generations(tmp_path), lambda: renew(tmp_path, ["solver"])):
        with pytest.raises(CorruptInput, match=GENERATIONS):
            read()
    assert (tmp_path / GENERATIONS).read_bytes() == damaged


def test_an_identity_names_its_generation_from_the_first_renewal_on():
    assert [name_generation("model", fresh) for fresh in (0, 1, 2)] == ["model", "model#1", "model#2"]
