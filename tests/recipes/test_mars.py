"""MARS on a generated world with scripted players: the rules of the paper, read off what is released."""

import hashlib
import json
import shutil
from collections import Counter

import pytest

from pipelines.agent.tools import cut_picture
from pipelines.cli.commands import load_config, run_recipe
from pipelines.corpus.store import Corpus
from pipelines.graph.query import Indexes
from pipelines.pictures import compute_phash, measure_distance, read_header
from pipelines.release.exporters.base import ExportOptions
from pipelines.release.exporters.registry import export_release
from pipelines.release.scenes import find_view_problems
from pipelines.release.verify import verify_release
from pipelines.run.assembly import list_missing_roles
from pipelines.run.workspace import Workspace
from schemas.datasets import Difficulty, Enhancement, Rollout, Trajectory
from tests.conftest import DemoRun
from tests.pipelines.release.tampering import edit_rows, read_rows, reseal

pytestmark = pytest.mark.slow
SMALL = ("seeds.limit=220", "enhancements.high_resolution=0.4", "splits={sft=0.5, rl=0.4, eval=0.1}")


@pytest.fixture(scope="module")
def mars(recipe_world, tmp_path_factory) -> DemoRun:
    run = DemoRun(tmp_path_factory.mktemp("mars"))
    config = load_config("mars", None, ["models=scripted", f"corpus.world={recipe_world}", *SMALL])
    document = run_recipe(config, run.root, "", ())
    (run.folder / "document.json").write_text(json.dumps(document.as_dict()))
    return run


@pytest.fixture(scope="module")
def ground(mars):
    corpus = Corpus.open(mars.root / "corpus" / Workspace(mars.root).read_latest()["corpus"])
    yield Indexes(corpus)
    corpus.close()


@pytest.fixture(scope="module")
def scenes(mars):
    return [row for row in mars.rows("enhancements", Enhancement) if row.scene is not None]


def test_every_release_has_rows_and_verifies(mars, ground):
    for dataset in ("sft", "rl", "vqa"):
        report = verify_release(mars.release(dataset), ground)
        assert report.passed, report.problems[:3]


def test_hard_is_at_most_one_right_of_eight_with_the_picture_alone(mars):
    for row in mars.rows("difficulty", Difficulty):
        (cell,) = row.cells
        assert (cell.condition, cell.planned) == ("image", 8)
        assert cell.correct <= 1


def test_a_question_has_at_most_one_trajectory_of_at_most_ten_turns(mars):
    trajectories = mars.rows("trajectories", Trajectory)
    assert max(Counter(each.parent_id for each in trajectories).values()) == 1
    assert 3 < max(len(each.steps) for each in trajectories) <= 10
    assert max(len(each.steps) for each in mars.rows("rollouts", Rollout)) <= 10
    assert {each.verified for each in trajectories} == {("coherence", "plausibility")}


def test_planted_ways_are_refused_each_for_its_own_reason(mars):
    reasons = Counter(code for row in mars.rejections("trajectories") for code in row["codes"])
    assert reasons["incoherent"] > 0
    assert reasons["implausible"] > 0
    codes = {row["record_id"]: row["codes"] for row in mars.rejections("trajectories")}
    for rollout in mars.rows("rollouts", Rollout):
        told = {word for form in (rollout.reference.surface, *rollout.reference.aliases) for word in form.split()}
        if rollout.stop_reason == "answered" and not told & set(rollout.answer.split()):
            assert {"wrong-answer", "no-answer"} & set(codes[rollout.record_id])


def test_a_scene_is_large_its_part_is_small_and_only_the_part_is_found(mars, scenes, ground):
    assert scenes
    share = len(scenes) / len(mars.rows("enhancements", Enhancement))
    assert 0.2 < share < 0.6
    store = Workspace(mars.root).images
    for row in scenes[:6]:
        data = (store / row.picture.sha256[:2] / f"{row.picture.sha256}.jpg").read_bytes()
        header = read_header(data)
        assert (header.width, header.height) == (3840, 2160)
        assert 0 < row.scene.share < 0.05
        assert (row.scene.whole, row.scene.cropped) == (False, True)
        assert measure_distance(compute_phash(cut_picture(data, row.scene.box)), row.original.phash) <= 10
        assert measure_distance(compute_phash(data), row.original.phash) > 10
        domains = {ground.corpus.page(ground.corpus.find(part.title)).domain for part in row.scene.parts}
        assert row.domain not in domains
        assert {part.picture.licence for part in row.scene.parts} == {row.picture.licence}


def test_the_teacher_cuts_the_part_out_and_looks_it_up(mars, scenes):
    boxes = {row.record_id: list(row.scene.box) for row in scenes}
    taught = [each for each in mars.rows("trajectories", Trajectory) if each.parent_id in boxes]
    assert taught
    for each in taught:
        first, second = each.steps[:2]
        assert (first.tool, json.loads(first.arguments)["box"]) == ("crop", boxes[each.parent_id])
        assert (second.tool, json.loads(second.arguments)) == ("image_search", {"image": "img_2"})


def test_everything_in_a_scene_is_credited(mars, scenes):
    told = (mars.release("vqa") / "ATTRIBUTION.tsv").read_text("utf-8")
    released = {row["id"] for row in read_rows(mars.release("vqa"), "data")}
    parts = [part for row in scenes if row.record_id in released for part in row.scene.parts]
    assert parts
    assert all(part.picture.file in told for part in parts)


def move_box(row):
    row["scene"]["box"] = [edge + 9 for edge in row["scene"]["box"]]


def shrink_share(row):
    row["scene"]["share"] /= 2


def widen_share(row):
    row["scene"]["share"] = 0.06


def doubt(row):
    row["scene"]["whole"] = True


def show_the_anchor(row):
    row["scene"]["parts"][0]["title"] = row["proof"]["nodes"][0]["title"]


def swap_part(row):
    first, second = row["scene"]["parts"][:2]
    first["picture"] = second["picture"]


def cut_parts(row):
    row["scene"]["parts"] = row["scene"]["parts"][:1]


def repeat_part(row):
    row["scene"]["parts"].append(row["scene"]["parts"][0])


def move_part(row):
    row["scene"]["parts"][0]["box"] = row["scene"]["parts"][1]["box"]


def change_hash(row):
    row["scene"]["crop_phash"] = "0" * 16


def forget_scene(row):
    row["scene"] = None


@pytest.mark.parametrize(
    "tamper",
    [
        move_box,
        shrink_share,
        widen_share,
        doubt,
        show_the_anchor,
        swap_part,
        cut_parts,
        repeat_part,
        move_part,
        change_hash,
        forget_scene,
    ],
)
def test_a_tampered_scene_does_not_verify(mars, ground, tmp_path, tamper):
    folder = shutil.copytree(mars.release("rl"), tmp_path / "rl", copy_function=shutil.copyfile)
    tampered = []

    def edit(row):
        if row["scene"] is not None:
            tamper(row)
            tampered.append(row["record_id"])

    edit_rows(folder, "proofs/*.parquet", edit)
    reseal(folder)
    report = verify_release(folder, ground)
    assert tampered
    assert {problem.where for problem in report.problems} >= set(tampered)
    assert report.verified == report.rows - len(tampered)


def test_a_release_has_one_size_of_what_a_student_sees(mars, ground, tmp_path):
    folder = shutil.copytree(mars.release("rl"), tmp_path / "rl", copy_function=shutil.copyfile)
    left = []

    def edit(row):
        if row["scene"] is not None and not left:
            row["scene"]["training_pixels"] += 1
            left.append(row)

    edit_rows(folder, "proofs/*.parquet", edit)
    reseal(folder)
    assert any("sizes of what a student sees" in problem.what for problem in verify_release(folder, ground).problems)


def test_another_scenes_bytes_are_not_this_ones(mars, scenes):
    first, second = scenes[:2]
    path = Workspace(mars.root).images / second.picture.sha256[:2] / f"{second.picture.sha256}.jpg"
    problems = list(find_view_problems(first, path.read_bytes()))
    assert any("not the anchor's picture" in problem for problem in problems)


def read_manifest(path):
    """Read a manifest as SenseNova-MARS does: named files, counted lines, pictures relative to the root."""
    assert ("train" in path.name) != ("test" in path.name)
    rows = {}
    for name, entry in json.loads(path.read_text()).items():
        root = path.parent / entry["root"]
        lines = [json.loads(line) for line in (root / entry["annotation"]).read_text("utf-8").splitlines()]
        assert len(lines) == entry["length"]
        assert entry["reward_fn"]
        for row in lines:
            row["pictures"] = [(root / image).read_bytes() for image in row["images"]]
        rows[name] = lines
    return rows


def test_a_manifest_is_read_back_with_high_resolution_by_itself(mars, scenes, tmp_path):
    report = export_release(mars.release("rl"), tmp_path / "out", "mars", ExportOptions(name="kelm"))
    read = {}
    for path in sorted((tmp_path / "out").glob("t*_kelm*.json")):
        read |= read_manifest(path)
    assert sum(map(len, read.values())) == report.rows
    released = {row["id"]: row for row in read_rows(mars.release("rl"), "data")}
    large = {row.record_id for row in scenes}
    for name, rows in read.items():
        for row in rows:
            source = released[row["index"]]
            assert (source["id"] in large) == name.endswith("_4k")
            assert sum(message["content"].count("<image>") for message in row["prompt"]) == len(row["pictures"])
            assert [hashlib.sha256(data).hexdigest() for data in row["pictures"]] == [
                hashlib.sha256(image["bytes"]).hexdigest() for image in source["images"]
            ]
    assert any(name.endswith("_4k") for name in read)


def test_without_a_judge_a_run_says_at_once_what_is_missing():
    config = load_config("mars", None, ["corpus.dump=dump.xml"])
    assert "judge" in list_missing_roles(config)
    unverified = load_config("mars", None, ["corpus.dump=dump.xml", "trajectories.verifications=[]"])
    assert "judge" not in list_missing_roles(unverified)
