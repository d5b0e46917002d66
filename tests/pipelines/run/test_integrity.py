from pathlib import Path

import pytest

from pipelines.run.integrity import find_damage
from pipelines.run.workspace import Workspace
from tests.chaos.driving import call_here, copy_workspace, digest_outputs, list_settings
from tests.conftest import SETTINGS


@pytest.fixture
def work(demo, tmp_path):
    return copy_workspace(demo.root, tmp_path / "work [1]")


def flip(path):
    data = path.read_bytes()
    path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])


def test_a_changed_part_is_named_with_the_folder_to_remove_and_made_again(demo, work, capsys):
    options = [*list_settings([f"corpus.world={demo.world}", *SETTINGS]), "--workspace", work]
    before = digest_outputs(work)
    (part,) = work.glob("stages/rewrites/*/part-00000.parquet")
    flip(part)
    for sealed in work.glob("stages/groundings/*"):
        (sealed / "manifest.json").unlink()
        (sealed / "part-00000.json").unlink()
    refused = call_here(capsys, "run", "--recipe", "demo", *options)
    assert refused.code == 2
    assert (
        f"{part}: is not the file that was sealed; remove {part.parent}: `synth run` then makes rewrites" in refused.err
    )
    examined = call_here(capsys, "doctor", "--deep", "--recipe", "demo", *options, "--json")
    found = [each["said"] for each in examined.document["findings"] if each["what"] == "files"]
    assert [line.partition(":")[0] for line in found if "rewrites" in line] == [str(part)]
    for path in part.parent.iterdir():
        path.unlink()
    part.parent.rmdir()
    assert call_here(capsys, "run", "--recipe", "demo", *options).code == 0
    assert digest_outputs(work) == before
    assert list(find_damage(Workspace(work))) == []


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("stages/paths/*/part-00000.parquet", "makes paths again"),
        ("corpus/*/pages.parquet", "builds the corpus again"),
        ("images/*/*.jpg", "remove the stages whose rows cite it"),
        ("releases/sft/*/quality.md", "publishes it again"),
    ],
)
def test_a_file_that_is_changed_or_missing_is_named_with_its_remedy(work, pattern, remedy):
    path: Path = next(iter(sorted(work.glob(pattern))))
    flip(path)
    (changed,) = find_damage(Workspace(work))
    path.unlink()
    # Which pictures there were, nobody notes.
    for line in (changed, *find_damage(Workspace(work))):
        assert path.name in line
        assert remedy in line


def test_a_corpus_with_a_file_of_another_size_is_not_opened(demo, work, capsys):
    path = next(work.glob("corpus/*/pages.arrow"))
    path.write_bytes(path.read_bytes()[:-1])
    options = [*list_settings([f"corpus.world={demo.world}", *SETTINGS]), "--workspace", work]
    refused = call_here(capsys, "run", "--recipe", "demo", *options)
    assert refused.code == 2
    assert f"pages.arrow: has {path.stat().st_size:,} bytes" in refused.err
    assert f"remove {path.parent}: `synth run` then builds the corpus again from its dump" in refused.err
