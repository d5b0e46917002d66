"""Named runs through the command line: what is kept, what goes on, what is shown, and a release made from itself."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.cli.naming import RunChoice, make_request
from pipelines.config.disclosure import digest_settings
from pipelines.config.loading import list_recipes, make_config, read_recipe
from pipelines.config.writing import write_toml
from pipelines.errors import ConfigError
from pipelines.release.manifest import read_release_manifest, render_manifest
from pipelines.run.naming import KeptRun, NamedRun, keep_run, list_changes, list_runs
from pipelines.run.workspace import Workspace, read_names
from tests.chaos.driving import call_here, copy_workspace, digest_files, list_settings
from tests.conftest import SETTINGS

OTHER = ("seeds.limit=6", "seed=5")


@pytest.fixture(scope="module")
def options(demo):
    """The settings of the finished demo, as a user would give them."""
    return [*list_settings([f"corpus.world={demo.world}", *SETTINGS])]


@pytest.fixture(scope="module")
def two(demo, options, tmp_path_factory):
    """A workspace of two runs: `whole` is finished, and then `part` went as far as paths."""
    root = copy_workspace(demo.root, tmp_path_factory.mktemp("runs") / "work")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root.parent)
        assert call_quietly("run", "whole", "--recipe", "demo", *options, "--workspace", root) == 0
        more = (*options, *list_settings(OTHER), "--until", "paths")
        assert call_quietly("run", "part", "--recipe", "demo", *more, "--workspace", root) == 0
    return root


def call_quietly(*arguments):
    from pipelines.cli.main import main

    try:
        main([str(argument) for argument in arguments])
    except SystemExit as error:
        return error.code or 0
    return 0


@pytest.fixture
def work(two, tmp_path):
    return copy_workspace(two, tmp_path / "work")


def read_all(root, pattern="stages/**/*"):
    return digest_files(root, pattern)


def list_run_names(capsys, root):
    return {run["name"]: run for run in call_here(capsys, "runs", "--workspace", root, "--json").document}


def test_runs_lists_each_with_its_recipe_state_time_and_rows(two, demo, capsys):
    runs = list_run_names(capsys, two)
    assert [(name, run["recipe"], run["state"]) for name, run in runs.items()] == [
        ("whole", "demo", "finished"),
        ("part", "demo", "ended early"),
    ]
    assert runs["whole"]["rows"] == {release["dataset"]: release["rows"] for release in demo.document["releases"]}
    assert runs["part"]["rows"] == {}
    assert runs["whole"]["time"] < runs["part"]["time"]
    shown = call_here(capsys, "runs", "--workspace", two).out
    assert "`synth run` goes on with part" in shown


def test_what_is_kept_makes_the_same_configuration_and_its_file_is_a_configuration(two, demo):
    run = KeptRun(Workspace(two), "whole")
    assert make_config(run.read_tables()) == demo.config
    assert make_config(tomllib.loads(run.config.read_text())) == demo.config


@pytest.mark.parametrize("recipe", list_recipes())
def test_the_tables_of_every_recipe_are_kept_as_they_are(recipe, tmp_path):
    tables = read_recipe(recipe)
    assert len(list(keep_run(Workspace(tmp_path), NamedRun(recipe, tables), recipe))) == 1
    assert KeptRun(Workspace(tmp_path), recipe).read_tables() == tables


def test_run_alone_goes_on_with_the_last_one_and_says_which(work, capsys):
    said = call_here(capsys, "run", "--until", "paths", "--workspace", work)
    assert said.code == 0
    assert said.err.count("run part goes on: recipe demo, as kept") == 1
    assert "Nothing to do" in said.out


def test_run_by_name_goes_on_with_what_was_kept_and_is_the_last_one_then(work, demo, capsys):
    said = call_here(capsys, "run", "whole", "--workspace", work)
    assert "run whole goes on: recipe demo, as kept" in said.err
    assert "Nothing to do" in said.out
    assert list(list_run_names(capsys, work)) == ["part", "whole"]
    assert Workspace(work).read_latest() == Workspace(demo.root).read_latest()


def test_a_run_up_to_an_early_stage_keeps_what_it_had_and_its_releases(work, options, capsys):
    before = Workspace(work).read_latest("whole")
    made = call_here(capsys, "run", "whole", "--until", "seeds", "--workspace", work)
    assert "Nothing to do" in made.out
    assert Workspace(work).read_latest("whole") == before
    assert call_here(capsys, "verify", "whole/vqa", "--workspace", work).code == 0
    assert call_here(capsys, "run", "whole", "--until", "corpus", "--workspace", work).code == 0
    assert Workspace(work).read_latest("whole") == before


def test_stages_shared_with_another_run_do_not_part_a_run_from_its_own(work, options, capsys):
    asked = ("run", "two", "--recipe", "demo", *options, "--set", "difficulty.attempts=3", "--workspace", work)
    assert call_here(capsys, *asked, "--until", "difficulty").code == 0
    before, whole = Workspace(work).read_latest("two"), Workspace(work).read_latest("whole")
    assert before["groundings"] == whole["groundings"]
    assert before["difficulty"] != whole["difficulty"]
    assert call_here(capsys, "run", "two", "--until", "seeds", "--workspace", work).code == 0
    assert Workspace(work).read_latest("two") == before
    # Without the note of it, too, as where a run was killed amid the stage.
    Workspace(work).note_latest({name: before[name] for name in ("corpus", "seeds")}, "two")
    assert call_here(capsys, "run", "whole", "--workspace", work).code == 0
    call_here(capsys, "prune", "--yes", "--workspace", work)
    assert Workspace(work).stage("difficulty", before["difficulty"]).path.is_dir()


def test_options_change_a_run_and_each_key_is_said(work, capsys):
    options = ("--set", "seeds.limit=7", "--set", "questions.volatile=false", "--until", "seeds", "--workspace", work)
    said = call_here(capsys, "run", "part", *options)
    assert "run part goes on: recipe demo, changed keys: 2" in said.err
    assert "run part: questions.volatile: True -> False" in said.err
    assert "run part: seeds.limit: 6 -> 7" in said.err
    assert KeptRun(Workspace(work), "part").read_tables()["seeds"]["limit"] == 7
    again = call_here(capsys, "run", "part", *options)
    assert "run part goes on: recipe demo, as kept" in again.err


def test_another_run_leaves_what_a_run_has_and_what_it_is_asked(two, demo, capsys):
    latest = Workspace(demo.root).read_latest()
    assert Workspace(two).read_latest("whole") == latest
    assert Workspace(two).read_latest() == {
        name: key for name, key in Workspace(two).read_latest("part").items() if name in ("corpus", "seeds", "paths")
    }
    sql = "select count(*) n from trajectories"
    chosen = call_here(capsys, "sql", sql, "--run", "whole", "--workspace", two, "--json")
    assert chosen.document[0]["n"] > 0
    for last in ((), ("--run", "part")):
        refused = call_here(capsys, "sql", sql, *last, "--workspace", two)
        assert refused.code == 2
        assert "trajectories of --run whole" in refused.err


def test_views_are_of_the_run_that_is_named(two, capsys, tmp_path):
    trajectory = call_here(
        capsys, "sql", "select record_id from trajectories limit 1", "--run", "whole", "--workspace", two, "--json"
    ).document[0]["record_id"]
    assert call_here(capsys, "explain", trajectory, "--run", "whole", "--workspace", two).code == 0
    assert call_here(capsys, "explain", trajectory, "--workspace", two).code == 2
    pages = {}
    for run in ("whole", "part"):
        pages[run] = tmp_path / f"{run}.html"
        assert call_here(capsys, "report", "--run", run, "--out", pages[run], "--workspace", two).code == 0
    assert "trajectories" in pages["whole"].read_text()
    assert pages["whole"].read_text() != pages["part"].read_text()
    marked = {
        run: {
            stage["stage"]
            for stage in call_here(capsys, "status", "--run", run, "--workspace", two, "--json").document["stages"]
            if stage["latest"]
        }
        for run in ("whole", "part")
    }
    assert marked["part"] == {"seeds", "paths"} < marked["whole"]


def test_plan_and_verify_are_of_the_run_that_is_named(work, capsys):
    done = {
        run: {
            stage["stage"]: stage["state"]
            for stage in call_here(capsys, "plan", "--run", run, "--workspace", work, "--json").document["stages"]
        }
        for run in ("whole", "part")
    }
    assert len(set(done["whole"].values())) == 1
    assert len(set(done["part"].values())) > 1
    assert call_here(capsys, "verify", "--workspace", work).code == 2
    assert call_here(capsys, "verify", "whole/vqa", "--workspace", work).code == 0


def test_a_release_is_named_by_its_run(two, capsys, tmp_path):
    assert call_here(capsys, "export", "whole/sft", tmp_path / "out", "--to", "trl", "--workspace", two).code == 0
    refused = call_here(capsys, "export", "whole", tmp_path / "more", "--to", "trl", "--workspace", two)
    assert refused.code == 2
    assert "name one of its releases; there are: whole/rl, whole/sft, whole/vqa" in refused.err


@pytest.mark.parametrize("command", [("sql", "from seeds"), ("report",), ("status",), ("plan",), ("doctor",)])
def test_a_run_that_is_not_kept_is_refused_with_the_nearest(two, capsys, command):
    refused = call_here(capsys, *command, "--run", "wholf", "--workspace", two)
    assert refused.code == 2
    assert "did you mean whole?" in refused.err


@pytest.mark.parametrize(("name", "said"), [("wholf", "did you mean whole?"), ("../x", "a name has up to 64")])
def test_run_refuses_a_name_that_is_neither_run_nor_recipe(two, capsys, name, said):
    refused = call_here(capsys, "run", name, "--workspace", two)
    assert (refused.code, said in refused.err) == (2, True)
    assert {run.name for run in list_runs(Workspace(two))} == {"whole", "part"}


def test_an_empty_workspace_begins_the_demo_and_a_recipe_is_a_name(tmp_path, demo, capsys):
    world = list_settings([f"corpus.world={demo.world}"])
    first = call_here(capsys, "run", *world, "--until", "corpus", "--workspace", tmp_path / "a")
    assert "run demo begins: recipe demo" in first.err
    second = call_here(
        capsys,
        "run",
        "vsearcher",
        "--set",
        "models=scripted",
        *world,
        "--until",
        "corpus",
        "--workspace",
        tmp_path / "a",
    )
    assert "run vsearcher begins: recipe vsearcher" in second.err
    assert list(list_run_names(capsys, tmp_path / "a")) == ["demo", "vsearcher"]


@pytest.mark.parametrize(
    ("text", "name"),
    [('recipe = "demo"\n', "mine"), ('recipe = "bridges"\n', "bridges"), ('extends = "demo"\n', "mine")],
)
def test_a_run_by_a_file_is_called_as_the_file_says_or_is_called(work, tmp_path, demo, capsys, text, name):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    options = ("--config", path, *list_settings([f"corpus.world={demo.world}"]), "--until", "corpus")
    said = call_here(capsys, "run", *options, "--workspace", work)
    assert f"run {name} begins" in said.err, said.err
    before = KeptRun(Workspace(work), name).read_tables().get("difficulty", {}).get("attempts", "unset")
    path.write_text(f"{text}difficulty.attempts = 3\n")
    changed = call_here(capsys, "run", *options, "--workspace", work)
    assert f"run {name}: difficulty.attempts: {before} -> 3" in changed.err
    path.write_text(text)
    back = call_here(capsys, "run", *options, "--workspace", work)
    assert f"run {name}: difficulty.attempts: 3 -> {before}" in back.err


def test_a_run_that_ends_early_is_stopped_and_goes_on(work, demo, capsys, monkeypatch):
    from pipelines.errors import Unavailable

    def fail(*_):
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.run.loop.run_stages", fail)
        stopped = call_here(capsys, "run", "whole", "--set", "seed=4", "--workspace", work)
    assert stopped.code == 3
    runs = list_run_names(capsys, work)
    assert runs["whole"]["state"] == "stopped"
    assert runs["whole"]["rows"], "what it has of before is still its own"
    back = call_here(capsys, "run", "whole", "--set", "seed=7", "--workspace", work)
    assert "Nothing to do" in back.out
    assert list_run_names(capsys, work)["whole"]["state"] == "finished"


def test_prune_keeps_what_any_kept_run_needs_until_it_is_forgotten(work, capsys):
    call_here(capsys, "run", "whole", "--workspace", work)
    part = Workspace(work).read_latest("part")
    stages = {path.name for path in work.glob("stages/*/*")}
    call_here(capsys, "prune", "--yes", "--workspace", work)
    assert {path.name for path in work.glob("stages/*/*")} == stages
    forgotten = call_here(capsys, "runs", "--forget", "part", "--workspace", work)
    assert "whole" in forgotten.out
    assert Workspace(work).stage("paths", part["paths"]).path.is_dir()
    gone = call_here(capsys, "prune", "--yes", "--workspace", work, "--json").document
    assert {entry["name"] for entry in gone if entry["kind"] == "stages"} == {"seeds", "paths"}
    assert not Workspace(work).stage("paths", part["paths"]).path.exists()
    assert "Nothing to do" in call_here(capsys, "run", "whole", "--workspace", work).out


def test_views_stay_when_the_last_run_is_forgotten(work, capsys):
    before = Workspace(work).read_latest()
    call_here(capsys, "runs", "--forget", "part", "--workspace", work)
    assert Workspace(work).read_latest() == before


def test_prune_keeps_what_a_stopped_run_has_made_and_nobody_noted(work, demo, capsys):
    """A run that was killed has no note: what it needs follows from its kept configuration alone."""
    tables = KeptRun(Workspace(work), "part").read_tables() | {"seed": 6}
    run_recipe(make_config(json.loads(json.dumps(tables))), work, "paths", ())
    made = Workspace(work).read_latest()
    list(keep_run(Workspace(work), NamedRun("killed", tables), "demo"))
    assert call_here(capsys, "run", "whole", "--workspace", work).code == 0
    call_here(capsys, "prune", "--yes", "--workspace", work)
    assert Workspace(work).stage("paths", made["paths"]).path.is_dir()


def test_a_finished_workspace_whose_run_has_no_name_is_no_demo(work, capsys):
    used = Workspace(work).read_latest("whole")
    shutil.rmtree(work / "runs")
    (work / "latest.json").unlink()
    Workspace(work).note_latest(used)
    refused = call_here(capsys, "run", "--workspace", work)
    assert refused.code == 2
    assert "has no name, so its recipe is not known" in refused.err
    assert Workspace(work).read_latest() == used
    assert call_here(capsys, "verify", "--workspace", work).code == 0


def test_a_named_run_leaves_the_note_of_one_without_a_name(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.note_latest({"seeds": "a"})
    workspace.note_latest({"seeds": "b"}, "named")
    assert [read_names(path) for path in workspace.list_latest()] == [{"run": "named"}, {"seeds": "a"}, {"seeds": "b"}]


def test_two_files_of_one_name_and_two_recipes_are_two_runs(tmp_path):
    workspace, plan = Workspace(tmp_path), {"seeds": {"limit": 3}}
    list(keep_run(workspace, NamedRun("synth", {"recipe": "demo"} | plan, chosen=False), "demo"))
    with pytest.raises(ConfigError, match="one of recipe demo, this is recipe vsearcher; give it a name"):
        list(keep_run(workspace, NamedRun("synth", {"recipe": "vsearcher"}, chosen=False), "vsearcher"))
    assert KeptRun(workspace, "synth").read_tables() == {"recipe": "demo"} | plan
    assert list(keep_run(workspace, NamedRun("synth", {"recipe": "vsearcher"}), "vsearcher"))


def test_a_name_is_chosen_where_it_is_given_or_kept(two, tmp_path):
    file = tmp_path / "synth.toml"
    file.write_text('extends = "demo"')
    for choice, chosen in (
        (RunChoice("mine", configs=(file,)), True),
        (RunChoice("whole"), True),
        (RunChoice(), True),
        (RunChoice(configs=(file,)), False),
    ):
        assert make_request(choice, two).named.chosen == chosen


def test_what_a_run_was_before_it_is_changed_is_put_aside_once(tmp_path):
    run = KeptRun(Workspace(tmp_path), "demo")
    first, second = ({"recipe": "demo", "seed": seed} for seed in (1, 2))
    kept = [list(keep_run(run.workspace, NamedRun("demo", tables), "demo")) for tables in (first, second) * 2]
    aside = [line.rpartition("; before: ")[2] for line, *_ in kept[1:]]
    assert aside == ["config-1.toml", "config-2.toml", "config-1.toml"]
    assert tomllib.loads(run.config.with_name("config-1.toml").read_text()) == first
    assert [each.name for each in list_runs(run.workspace)] == ["demo"]


def test_a_run_that_is_killed_as_it_is_kept_is_the_last_one(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)
    for name in ("new", "old"):
        list(keep_run(workspace, NamedRun(name, {"recipe": "demo"}), "demo"))

    def fail(*_):
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.run.naming.write_text", fail)
        with pytest.raises(OSError, match="killed"):
            list(keep_run(workspace, NamedRun("new", {"recipe": "demo", "seed": 2}), "demo"))
    assert [run.name for run in list_runs(workspace)] == ["old", "new"]


def test_relative_paths_lead_where_they_led_whoever_goes_on_elsewhere(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path / "work")
    for place in ("c1", "c2"):
        (tmp_path / place / "world").mkdir(parents=True)
    pools = [{"name": "mine", "path": "world"}, {"name": "far", "path": "not-there"}]
    tables = read_recipe("demo") | {"corpus": {"world": "world"}, "pools": pools}
    monkeypatch.chdir(tmp_path / "c1")
    list(keep_run(workspace, NamedRun("one", tables), "demo"))
    assert read_named(workspace) == tables
    monkeypatch.chdir(tmp_path / "c2")
    assert read_named(workspace)["corpus"] == {"world": str(tmp_path / "c1" / "world")}
    assert [pool["path"] for pool in read_named(workspace)["pools"]] == [str(tmp_path / "c1" / "world"), "not-there"]


def read_named(workspace):
    return make_request(RunChoice("one"), workspace.root).named.tables


def test_a_run_that_makes_a_release_again_is_held_to_its_corpus_when_it_goes_on(work, demo, capsys, tmp_path):
    release = copy_workspace(find_vqa(work), tmp_path / "release")
    world = list_settings([f"corpus.world={demo.world}"])
    asked = ("run", "again", "--from", release, *world, "--until", "corpus", "--workspace", work)
    assert call_here(capsys, *asked).code == 0
    assert call_here(capsys, "run", "again", "--until", "corpus", "--workspace", work).code == 0
    named = make_request(RunChoice("again"), work).named
    assert named.corpus == read_release_manifest(release).corpus
    other = list_settings(["corpus.generate.entities=60", 'corpus.world=""'])
    held = call_here(capsys, "run", "again", *other, "--until", "corpus", "--workspace", work)
    assert held.code == 2, held.err
    assert "that of the release is" in held.err


def test_what_a_release_tells_and_its_stages_are_compared_with_what_makes_it_again(work, demo, capsys, tmp_path):
    release = copy_workspace(find_vqa(work), tmp_path / "release")
    other = list_settings([f"corpus.world={demo.world}", "seeds.limit=3"])
    made = call_here(capsys, "run", "again", "--from", release, *other, "--until", "seeds", "--workspace", work)
    assert made.code == 0, made.err
    assert "run again: seeds.limit: not the value that the release was made with" in made.err
    assert "run again: seeds: from here on other rows than the release has may be made" in made.err


def test_changes_are_told_key_by_key_and_by_type():
    before, after = {"a": {"b": 1, "c": [1]}, "d": True}, {"a": {"b": 1, "c": [2]}, "d": 1, "e": "x"}
    assert list(list_changes(before, after)) == ["a.c: [1] -> [2]", "d: True -> 1", "e: unset -> 'x'"]


def test_a_deployment_has_the_name_of_its_run(two, capsys, monkeypatch):
    asked = {}
    monkeypatch.setattr("pipelines.cli.deploying.deploy_run", lambda parameters, *_: asked.update(parameters) or {})
    for arguments, name in (
        (("whole",), "whole"),
        ((), "part"),
        (("vsearcher", "--set", "models=scripted"), "vsearcher"),
    ):
        world = list_settings(["corpus.world=w"]) if name == "vsearcher" else []
        assert call_here(capsys, "deploy", *arguments, *world, "--workspace", two, "--json").code == 0
        assert asked["name"] == name


def find_vqa(root: Path) -> Path:
    return next(root.glob("releases/vqa/*"))


@pytest.mark.slow
def test_a_release_is_made_again_from_itself_byte_by_byte(work, demo, capsys, tmp_path):
    release, other = copy_workspace(find_vqa(work), tmp_path / "release"), tmp_path / "elsewhere" / "other"
    world = list_settings([f"corpus.world={demo.world}"])
    made = call_here(capsys, "run", "again", "--from", release, *world, "--workspace", other)
    assert made.code == 0, made.err
    assert read_all(other, "releases/**/*") == read_all(work, "releases/**/*")
    assert call_here(capsys, "verify", "--workspace", other).code == 0


def test_a_release_tells_its_settings_as_a_configuration_and_no_path_or_name(work, demo):
    told = (find_vqa(work) / "config.toml").read_text()
    tables = tomllib.loads(told)
    assert tables["recipe"] == "demo"
    assert tables["rewrites"]["min_alone_first"] == 2
    assert {"models", "budget", "live", "corpus"}.isdisjoint(tables)
    assert "#   models " in told
    assert str(demo.world) not in told
    assert write_toml(tables) in told


def test_a_release_with_another_config_does_not_verify(work, capsys):
    path = find_vqa(work) / "config.toml"
    path.chmod(0o644)
    path.write_text(path.read_text().replace("min_alone_first = 2", "min_alone_first = 3"))
    refused = call_here(capsys, "verify", find_vqa(work), "--workspace", work)
    assert refused.code == 1
    assert "config.toml has changed" in refused.out


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ((), 2, "that of the release is"),
        (("--recipe", "demo"), 2, "the release names its recipe"),
        (("--workspace", "{release}/workspace"), 2, "lies in the release"),
    ],
)
def test_a_release_is_not_made_again_over_another_corpus_or_recipe(work, capsys, tmp_path, more, code, said):
    release = find_vqa(work)
    small = list_settings(["corpus.generate.entities=60"])
    options = [str(part).format(release=release) for part in more]
    place = () if "--workspace" in options else ("--workspace", tmp_path / "other")
    refused = call_here(capsys, "run", "--from", release, *small, *options, *place)
    assert (refused.code, said in refused.err) == (code, True), refused.err


def test_what_a_release_does_not_tell_is_to_be_given_again(work, demo, capsys, tmp_path):
    release = copy_workspace(find_vqa(work), tmp_path / "release")
    manifest = read_release_manifest(release)
    untold = manifest.untold | {"models": "0" * 64, "budget": "0" * 64, "commons.api": "0" * 64}
    digest = digest_settings(manifest.told, untold, manifest.corpus)
    (release / "manifest.json").chmod(0o644)
    changed = manifest.model_copy(update={"untold": untold, "config_digest": digest})
    (release / "manifest.json").write_text(render_manifest(changed))
    options = ("again", "--from", release, *list_settings([f"corpus.world={demo.world}"]), "--until", "corpus")
    refused = call_here(capsys, "run", *options, "--workspace", work)
    assert refused.code == 2
    assert "made with other values of commons.api, models than recipe demo has, and does not tell them" in refused.err
    given = list_settings(["models.solver.name=mine", "commons.api=http://127.0.0.1:1/api.php", "contact=a@b.c"])
    made = call_here(capsys, "run", *options, *given, "--workspace", work)
    assert made.code == 0, made.err
    assert "run again: models: not the value that the release was made with" in made.err


def test_a_release_whose_settings_were_changed_is_not_made_again(work, capsys, tmp_path):
    release = copy_workspace(find_vqa(work), tmp_path / "release")
    path = release / "manifest.json"
    path.chmod(0o644)
    path.write_text(path.read_text().replace('"rewrites.min_alone_first": 2', '"rewrites.min_alone_first": 3'))
    refused = call_here(capsys, "run", "--from", release, "--workspace", tmp_path / "x")
    assert refused.code == 2
    assert "its settings are not those it has the digest of" in refused.err
