"""Named runs through the command line: what is kept, what goes on, what is shown, and a release made from itself."""

import tomllib
from pathlib import Path

import pytest

from pipelines.config.loading import list_recipes, make_config, read_recipe
from pipelines.config.writing import write_toml
from pipelines.errors import ConfigError
from pipelines.run.naming import KeptRun, NamedRun, keep_run, list_changes, list_runs
from pipelines.run.workspace import Workspace
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
    return call_here(capsys, "status", "--workspace", root, "--json").document["runs"]


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
    assert list_run_names(capsys, work) == ["part", "whole"]
    assert Workspace(work).read_latest() == Workspace(demo.root).read_latest()


def test_a_run_up_to_an_early_stage_keeps_what_it_had_and_its_releases(work, options, capsys):
    before = Workspace(work).read_latest("whole")
    made = call_here(capsys, "run", "whole", "--until", "seeds", "--workspace", work)
    assert "Nothing to do" in made.out
    assert Workspace(work).read_latest("whole") == before
    assert call_here(capsys, "verify", "whole/vqa", "--workspace", work).code == 0
    assert call_here(capsys, "run", "whole", "--until", "corpus", "--workspace", work).code == 0
    assert Workspace(work).read_latest("whole") == before


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


def test_a_release_is_named_by_its_run(two, capsys, tmp_path):
    assert call_here(capsys, "export", "whole/sft", tmp_path / "out", "--to", "trl", "--workspace", two).code == 0
    refused = call_here(capsys, "export", "whole", tmp_path / "more", "--to", "trl", "--workspace", two)
    assert refused.code == 2
    assert "name one of its releases; there are: whole/rl, whole/sft, whole/vqa" in refused.err


@pytest.mark.parametrize("command", [("sql", "from seeds"), ("status",), ("plan",)])
def test_a_run_that_is_not_kept_is_refused(two, capsys, command):
    refused = call_here(capsys, *command, "--run", "wholf", "--workspace", two)
    assert refused.code == 2
    assert "there are: whole, part" in refused.err


@pytest.mark.parametrize(("name", "said"), [("wholf", "there are: whole, part"), ("../x", "a name has up to 64")])
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
    assert list_run_names(capsys, tmp_path / "a") == ["demo", "vsearcher"]


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


def test_two_files_of_one_name_and_two_recipes_are_two_runs(tmp_path):
    workspace, plan = Workspace(tmp_path), {"seeds": {"limit": 3}}
    list(keep_run(workspace, NamedRun("synth", {"recipe": "demo"} | plan, chosen=False), "demo"))
    with pytest.raises(ConfigError, match="one of recipe demo, this is recipe vsearcher; give it a name"):
        list(keep_run(workspace, NamedRun("synth", {"recipe": "vsearcher"}, chosen=False), "vsearcher"))
    assert KeptRun(workspace, "synth").read_tables() == {"recipe": "demo"} | plan
    assert list(keep_run(workspace, NamedRun("synth", {"recipe": "vsearcher"}), "vsearcher"))


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
    config = ("--config", release / "config.toml", "--set", "models=scripted")
    made = call_here(capsys, "run", "again", *config, *world, "--workspace", other)
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
