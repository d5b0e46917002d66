"""What plugins add runs where our own parts run, is known by key and manifest, and can be upgraded and removed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli.main import main
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.plugins import explain_absence, list_names, load_plugin
from pipelines.run.plugins import Plugins
from tests.conftest import SETTINGS
from tests.plugged import install

ROOT = Path(__file__).parents[2]
NAMED = (
    'plugins.checks=["plain"]',
    'plugins.stages={brief="questions"}',
    "plugins.settings={brief={words=40}}",
    'models.solver={adapter="plugin", plugin="shrug", name="shrug"}',
)


class Elsewhere:
    """A machine with two distributions installed, a workspace, and the command line."""

    def __init__(self, demo, folder):
        self.demo, self.site, self.root = demo, folder / "site", folder / "workspace"
        install(self.site, "acme-words")
        install(self.site, "acme-parts")
        shutil.copytree(demo.root, self.root, ignore=shutil.ignore_patterns("releases"))

    def call(self, *arguments, code=0):
        """Run a command and return what it printed."""
        path = os.pathsep.join([str(ROOT), str(self.site)])
        command = [sys.executable, "-m", "pipelines.cli.main", *arguments, "--workspace", str(self.root)]
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
        assert done.returncode == code, done.stderr[-3000:] + done.stdout[-1000:]
        return done.stdout if code == 0 else done.stdout + done.stderr

    def run(self, *settings, named=NAMED, command="run", code=0):
        said = (f"corpus.world={self.demo.world}", *SETTINGS, *named, *settings)
        told = [part for setting in said for part in ("--set", setting)]
        return self.call(command, "--recipe", "demo", *told, "--json", code=code)

    def ask(self, statement):
        return json.loads(self.call("sql", statement, "--json"))


@pytest.fixture(scope="module")
def elsewhere(demo, tmp_path_factory):
    return Elsewhere(demo, tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="module")
def first(elsewhere):
    """The stages of a run with a check, a stage and a backend of plugins, by name."""
    return read_stages(elsewhere.run())


def read_stages(printed):
    return {stage["stage"]: stage for stage in json.loads(printed)["stages"]}


@pytest.mark.slow
def test_plugins_are_run_upgraded_and_removed_by_the_command_line(elsewhere, first, tmp_path):
    # Where they run: only what they decide, and what follows, is made.
    assert [name for name, stage in first.items() if not stage["ran"]] == ["corpus", "seeds", "paths", "questions"]
    assert list(first).index("brief") == list(first).index("questions") + 1
    assert first["brief"]["rejected"].keys() == {"brief:too-many-words"}
    assert first["groundings"]["rejected"]["plain:not-plain"] > 0
    told = {row["reason"]: row["n"] for row in elsewhere.ask("select reason, count(*) n from rejections group by all")}
    assert told["brief:too-many-words"] == first["brief"]["rejected"]["brief:too-many-words"]
    assert elsewhere.ask("select distinct plugin, reason, meaning from plugins where reason = 'plain:not-plain'") == [
        {
            "plugin": "plain",
            "reason": "plain:not-plain",
            "meaning": "the question holds a word that its readers do not know",
        }
    ]
    assert {row["name"] for row in elsewhere.ask("select unnest(cells).solver as name from difficulty")} == {"shrug"}
    assert [row["stage"] for row in elsewhere.ask("from funnel")][4:6] == ["brief", "rewrites"]

    # What it released is derived with the check, named in the manifest, and written by the exporter.
    release = next(iter(sorted((elsewhere.root / "releases" / "sft").iterdir())))
    named = {entry["name"]: entry for entry in json.loads((release / "manifest.json").read_text())["plugins"]}
    assert named.keys() == {"brief", "plain", "shrug"}
    assert named["plain"]["distribution"] == "acme-words"
    assert named["brief"]["settings"] == {"words": 40}
    assert elsewhere.call("verify", str(release)).strip().splitlines()[-1].count("/")
    out = tmp_path / "lines"
    assert "only ids are written" in elsewhere.call("export", str(release), str(out), "--to", "lines")
    assert "nothing against it" in elsewhere.call("validate", str(out), "--to", "lines")

    # Another version of the check: what it decides is made again, and nothing before.
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

    # Without it: what is affected, what to install, and nothing is lost.
    shutil.rmtree(next(elsewhere.site.glob("acme_words-*.dist-info")))
    shutil.rmtree(elsewhere.site / "acme_words")
    before = sorted(path for path in elsewhere.root.rglob("part-*"))
    for command in ("run", "plan"):
        gone = elsewhere.run(command=command, code=2)
        assert "plugin 'plain' of synth.checks is not installed" in gone
        assert "stage groundings was decided by the plugin 'plain' of acme-words 1.1" in gone
        assert "pip install 'acme-words==1.1'; difficulty, enhancements, selections" in gone
    assert "groundings was decided by the plugin 'plain'" in elsewhere.call("status", code=2)
    unasked = elsewhere.call("verify", str(release), code=1)
    assert "the check 'plain' of acme-words 1.0 is not installed: pip install 'acme-words==1.0'" in unasked
    assert "0/" in unasked.strip().splitlines()[-1]
    assert sorted(path for path in elsewhere.root.rglob("part-*")) == before
    install(elsewhere.site, "acme-words", "1.1")
    assert not any(stage["ran"] for stage in read_stages(elsewhere.run()).values())


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder of installed plugins that this process sees."""
    install(tmp_path, "acme-words")
    install(tmp_path, "acme-parts")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[name]


def test_only_what_a_configuration_names_is_imported(installed, demo, capsys):
    assert "broken" in list_names("checks")
    with pytest.raises(SystemExit):
        main(["--help"])
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


def test_a_name_in_two_distributions_is_refused(installed):
    copied = installed / "other_words-2.0.dist-info"
    shutil.copytree(installed / "acme_words-1.0.dist-info", copied)
    (copied / "METADATA").write_text("Metadata-Version: 2.1\nName: other-words\nVersion: 2.0\n")
    with pytest.raises(ConfigError, match=r"'plain' of synth.checks is in acme-words 1.0 and other-words 2.0"):
        load_plugin("checks", "plain")


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
