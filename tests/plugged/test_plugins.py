"""What plugins add runs where our own parts run, is known by key and manifest, and can be upgraded and removed."""

import importlib
import json
import shutil
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import prompts
from pipelines.checks.examination import Claim, PluggedCheck
from pipelines.checks.verdicts import CheckResult
from pipelines.cli.main import main
from pipelines.cli.view.cards import explain_record
from pipelines.config.loading import make_config, read_recipe
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.plugins import explain_absence, list_names, load_plugin
from pipelines.run.assembly import Assembly
from pipelines.run.plugins import Plugins, find_prompt_folder
from pipelines.run.views import run_sql
from pipelines.run.workspace import Workspace
from pipelines.services.prompting import check_prompts, load_prompt
from tests.chaos.driving import call_here
from tests.conftest import SETTINGS
from tests.plugged import install

NAMED = (
    'plugins.checks=["plain"]',
    'plugins.stages={brief="questions"}',
    'plugins.settings={brief={words=40}, plain={word="elevation"}}',
    'models.solver={adapter="plugin", name="shrug"}',
)


class Elsewhere:
    """A machine with two distributions installed, a workspace, and the command line."""

    def __init__(self, demo, capsys, site, root):
        self.demo, self.capsys, self.site, self.root = demo, capsys, site, root
        shutil.copytree(demo.root, self.root, ignore=shutil.ignore_patterns("releases"))

    def call(self, *arguments, code=0):
        """Run a command, to which plugins are new, and return what it printed."""
        forget_modules()
        outcome = call_here(self.capsys, *arguments, "--workspace", self.root)
        assert outcome.code == code, outcome.err[-3000:] + outcome.out[-1000:]
        return outcome.out if code == 0 else outcome.out + outcome.err

    def run(self, *settings, named=NAMED, command="run", code=0):
        said = (f"corpus.world={self.demo.world}", *SETTINGS, *named, *settings)
        told = [part for setting in said for part in ("--set", setting)]
        return self.call(command, "--recipe", "demo", *told, "--json", code=code)

    def ask(self, statement):
        return run_sql(self.root, statement).as_dicts()


def read_stages(printed):
    return {stage["stage"]: stage for stage in json.loads(printed)["stages"]}


@pytest.mark.slow
def test_plugins_are_run_upgraded_and_removed_by_the_command_line(demo, installed, tmp_path, capsys):
    elsewhere = Elsewhere(demo, capsys, installed, tmp_path / "workspace")
    first = read_stages(elsewhere.run())
    look_at_rows(elsewhere, first)
    release = next(iter(sorted((elsewhere.root / "releases" / "sft").iterdir())))
    look_at_release(elsewhere, release, tmp_path / "lines")
    upgrade(elsewhere, first, release)
    remove(elsewhere, release)
    install(elsewhere.site, "acme-words", "1.1")
    assert not any(stage["ran"] for stage in read_stages(elsewhere.run()).values())


def look_at_rows(elsewhere, first):
    """Only what the plugins decide, and what follows, was made; their reasons are told of."""
    assert [name for name, stage in first.items() if not stage["ran"]] == ["corpus", "seeds", "paths", "questions"]
    assert list(first).index("brief") == list(first).index("questions") + 1
    assert first["brief"]["rejected"].keys() == {"brief:too-many-words"}
    assert first["groundings"]["rejected"]["plain:not-plain"] > 0
    told = {row["reason"]: row["n"] for row in elsewhere.ask("select reason, count(*) n from rejections group by all")}
    assert told["brief:too-many-words"] == first["brief"]["rejected"]["brief:too-many-words"]
    assert {row["name"] for row in elsewhere.ask("select unnest(cells).solver as name from difficulty")} == {"shrug"}
    (refused,) = elsewhere.ask("select min(record_id) as id from rejections where stage = 'brief'")
    assert explain_record(elsewhere.root, refused["id"]).outcome == "brief:too-many-words"


def look_at_release(elsewhere, release, out):
    """It names the plugins, is derived again with the check, and is written by the exporter."""
    named = {entry["name"]: entry for entry in json.loads((release / "manifest.json").read_text())["plugins"]}
    assert named.keys() == {"brief", "plain", "shrug"}
    assert named["plain"]["distribution"] == "acme-words"
    assert named["brief"]["settings"] == {"words": 40}
    assert (named["plain"]["settings"], list(named["plain"]["untold"])) == ({}, ["word"])
    rows = len(elsewhere.ask("from trajectories"))
    done, of = elsewhere.call("verify", str(release)).split()[-1].split("/")
    assert 0 < int(done) == int(of) <= rows
    assert "'plain' of acme-words decided: --set plugins.checks asks it again" in elsewhere.call(
        "verify", str(release), "--set", "plugins.checks=[]", code=0
    )
    assert "brief" in elsewhere.run(command="plan")
    assert "only ids are written" in elsewhere.call("export", str(release), str(out), "--to", "lines")


def upgrade(elsewhere, first, release):
    """Another version of the check: what it decides is made again, and nothing before."""
    install(elsewhere.site, "acme-words", "1.1")
    second = read_stages(elsewhere.run())
    ran = [name for name, stage in second.items() if stage["ran"]]
    assert ran[0] == "groundings"
    assert [second[name]["key"] for name in ("brief", "rewrites")] == [
        first[name]["key"] for name in ("brief", "rewrites")
    ]
    assert second["groundings"]["key"] != first["groundings"]["key"]
    stale = elsewhere.call("verify", str(release), code=1)
    assert "'plain' of acme-words 1.0 is wanted, acme-words 1.1 is installed: pip install 'acme-words==1.0'" in stale


def remove(elsewhere, release):
    """Without the check: what is affected, what to install, and nothing is lost."""
    shutil.rmtree(next(elsewhere.site.glob("acme_words-*.dist-info")))
    shutil.rmtree(elsewhere.site / "acme_words")
    before = sorted(path for path in elsewhere.root.rglob("part-*"))
    for command in ("run", "plan"):
        gone = elsewhere.run(command=command, code=2)
        assert "plugin 'plain' of synth.checks is not installed" in gone
    unasked = elsewhere.call("verify", str(release), code=1)
    assert "the check 'plain' of acme-words 1.0 is not installed: pip install 'acme-words==1.0'" in unasked
    assert "0/" in unasked.strip().splitlines()[-1]
    assert sorted(path for path in elsewhere.root.rglob("part-*")) == before


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder of installed plugins that this process sees."""
    site = tmp_path / "site"
    install(site, "acme-words")
    install(site, "acme-parts")
    monkeypatch.syspath_prepend(str(site))
    yield site
    forget_modules()


def forget_modules():
    for name in [name for name in sys.modules if name.startswith(("acme_", "own_"))]:
        del sys.modules[name]
    importlib.invalidate_caches()


def plan(demo, *settings):
    """The planned stages of the demo with settings over it, by name."""
    config = make_config(read_recipe("demo"), [f"corpus.world={demo.world}", *SETTINGS, *settings])
    workspace = Workspace(demo.root)
    corpus = Corpus.open(workspace.corpora / workspace.read_latest()["corpus"])
    with closing(Assembly(config, workspace, corpus)) as assembly:
        return {stage.name: stage for stage in assembly.plan_stages()}


def find_changed(before, after):
    return [name for name in before if before[name].key != after[name].key]


@pytest.mark.parametrize(
    ("setting", "first", "kind"),
    [
        ('plugins.checks=["plain"]', "groundings", "checks"),
        ('plugins.stages={brief="enhancements"}', "selections", "stages"),
        ('models.solver={adapter="plugin", name="shrug"}', "difficulty", "backends"),
        ('plugins.tools={text_search="silence"}', "difficulty", "backends"),
        ('plugins.prompts="wording"', "questions", "prompts"),
    ],
)
def test_a_plugin_changes_the_keys_of_what_it_decides_and_of_what_follows(demo, installed, setting, first, kind):
    words = (Path(prompts.__file__).parent / "write_question" / "v4.md").read_text()
    (installed / "acme_parts" / "wording" / "write_question").mkdir(exist_ok=True)
    (installed / "acme_parts" / "wording" / "write_question" / "v1.md").write_text(words.replace("walking", "going"))
    before, after = plan(demo), plan(demo, setting)
    assert find_changed(before, after) == list(before)[list(before).index(first) :]
    decided = [name for name, stage in after.items() if any(entry.kind == kind for entry in stage.plugins)]
    assert decided[0] == ("brief" if kind == "stages" else first)
    install(installed, "acme-parts", "1.1")
    install(installed, "acme-words", "1.1")
    again = find_changed(after, plan(demo, setting))
    # A prompt is known by its file: the same words under another version make nothing again.
    assert again == ([] if kind == "prompts" else list(after)[list(after).index(decided[0]) :])


def test_a_plugin_that_fails_or_answers_otherwise_stops_the_run_and_is_named(demo, installed):
    check = PluggedCheck(load_plugin("checks", "plain"))
    claim = Claim(text="How high?", answer=None, proof=None)
    assert check.make_check(None, claim)().passed
    told = PluggedCheck(replace(check.plugin, made=lambda ground, claim: CheckResult("FAIL", "made-up")))
    with pytest.raises(
        ConfigError, match=r"plugin 'plain' of acme-words 1.0 returned .*made-up.*; its reasons are not-plain"
    ):
        told.make_check(None, claim)()
    failing = PluggedCheck(replace(check.plugin, made=lambda ground, claim: claim.proof.nodes))
    with pytest.raises(ConfigError, match=r"plugin 'plain' of acme-words 1.0 failed at 'How high\?': AttributeError"):
        failing.make_check(None, claim)()
    refused = PluggedCheck(load_plugin("checks", "plain", {"word": "high"})).make_check(None, claim)()
    assert (refused.outcome, refused.code) == ("FAIL", "plain:not-plain")


def test_a_source_reads_a_pool_and_is_part_of_its_identity(demo, installed, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("Who made it?\nIlse Tarn\nWhere is it?\nOstrel\n")
    pool = f'name="pairs", plugin="pairs", path="{path}", share=0.5'
    planned = plan(demo, f"pools=[{{{pool}}}]")
    stage = planned["pools"].stage
    assert stage.count_candidates() == 2
    assert [(row.reason, row.record_id) for row in stage()] == [
        ("no-picture", "pool:pairs:0"),
        ("no-picture", "pool:pairs:1"),
    ]
    assert [entry.name for entry in planned["pools"].plugins] == ["pairs"]
    install(installed, "acme-parts", "1.1")
    assert plan(demo, f"pools=[{{{pool}}}]")["pools"].key != planned["pools"].key


def test_the_highest_version_of_a_prompt_is_taken(installed):
    folder = installed / "acme_parts" / "wording" / "write_question"
    folder.mkdir(exist_ok=True)
    words = (Path(prompts.__file__).parent / "write_question" / "v4.md").read_text()
    for number in (1, 2):
        (folder / f"v{number}.md").write_text(words.replace("walking", f"going {number} times over"))
    found = find_prompt_folder(make_config(read_recipe("demo"), ["plugins.prompts=wording"]))
    assert check_prompts(found) == 1
    assert load_prompt("write_question", 4, found).label == "write_question/own-v2"


def test_only_what_a_configuration_names_is_imported(installed, demo, capsys):
    assert "broken" in list_names("checks")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert list_names("stages") == ("brief",)
    assert not [name for name in sys.modules if name.startswith("acme_")]
    config = make_config(read_recipe("demo"), [f"corpus.world={demo.world}", 'plugins.checks=["plain"]'])
    assert Plugins(config).checks[0].plugin.entry.distribution == "acme-words"
    assert "acme_parts" not in sys.modules


@pytest.mark.parametrize(
    ("kind", "name", "settings", "message"),
    [
        (
            "checks",
            "broken",
            {},
            r"'broken' of synth.checks, from acme-parts 1.0 .* cannot be loaded: ModuleNotFoundError",
        ),
        ("checks", "plain", {"wrd": "x"}, r"'plain' of synth.checks, from acme-words 1.0 .*TypeError: .*wrd"),
        ("checks", "absent", {}, r"'absent' of synth.checks is not installed; installed are: broken, plain"),
    ],
)
def test_a_plugin_that_is_broken_or_missing_is_a_config_error_that_names_its_distribution(
    installed, kind, name, settings, message
):
    with pytest.raises(ConfigError, match=message):
        load_plugin(kind, name, settings)


def test_the_identity_follows_version_settings_and_every_file_of_the_package(installed):
    before = load_plugin("checks", "plain")
    assert load_plugin("checks", "plain").identity == before.identity
    assert load_plugin("checks", "plain", {"word": "depth"}).identity != before.identity
    install(installed, "acme-words", "1.1")
    upgraded = load_plugin("checks", "plain")
    assert (upgraded.entry.sha256, upgraded.identity == before.identity) == (before.entry.sha256, False)
    (installed / "acme_words" / "words.txt").write_text("elevation\n")
    assert load_plugin("checks", "plain").entry.sha256 != before.entry.sha256
    assert "its sources have changed" in explain_absence(upgraded.entry)
