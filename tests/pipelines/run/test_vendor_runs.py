"""Whole runs with each vendor's strict server in all roles."""

import shutil
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import ModelConfig, RunConfig
from pipelines.run.assembly import Assembly
from pipelines.run.chains import run_stages
from pipelines.run.models import Roles
from pipelines.run.progress import Reporter
from pipelines.run.runner import StageReport
from pipelines.run.workspace import Workspace
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.recorded import RecordedChat
from tests.conftest import SETTINGS
from tests.pipelines.services.clients.vendors import STRICT, Script, ServedPlayer, VendorServer, run_vendor

ASKED = ("temperature=0.7", "extra_body.top_p=0.9", "max_tokens=4096")
ROLES = ("writer", "rewriter", "evaluator", "solver", "teacher")
REFUSED = {
    "openai": ["max_tokens", "stop", "temperature", "top_p"],
    "azure": ["max_tokens", "stop", "temperature", "top_p"],
    "anthropic": ["temperature+top_p"],
    "gemini": ["seed"],
    "openrouter": ["temperature+top_p"],
    "deepseek": [],
    "vllm": [],
    "sglang": [],
}
"""What a run without a profile is refused."""


@dataclass
class ServedRoles(Roles):
    """Roles whose scripted players speak through a server."""

    server: VendorServer = field(kw_only=True)
    script: Script = field(kw_only=True)
    settings: dict = field(kw_only=True)

    def find_model(self, role: str) -> RecordedChat:
        player = super().find_model(role)
        if role not in ROLES:
            return player
        asked = self.config.models[role].model_dump(include={"temperature", "max_tokens"})
        config = ModelConfig(name="tiny", base_url=self.server.url, **(asked | self.settings))
        chat = OpenAIChat(config, self.pictures.load, vendors=self.vendors)
        return RecordedChat(ServedPlayer(player.model, chat, self.script), self.replies)


@dataclass(kw_only=True)
class ServedAssembly(Assembly):
    server: VendorServer
    settings: dict

    @cached_property
    def roles(self) -> Roles:
        return ServedRoles(self.config, self.workspace, server=self.server, script=Script(), settings=self.settings)


def configure(demo) -> RunConfig:
    asked = [f"models.{role}.{setting}" for role in ROLES for setting in ASKED]
    return make_config(read_recipe("demo"), [f"corpus.world={demo.world}", *SETTINGS, *asked, "seeds.limit=9"])


@pytest.fixture(scope="module")
def begun(demo, demo_corpus, tmp_path_factory) -> Path:
    """A workspace with the stages that ask nobody."""
    root = tmp_path_factory.mktemp("begun")
    with closing(Assembly(configure(demo), Workspace(root), demo_corpus)) as assembly:
        run_stages(assembly.plan_stages("paths"), assembly.corpus_entry, 64, Reporter())
    return root


def run_served(demo, corpus, begun: Path, root: Path, server: VendorServer, **settings) -> list[StageReport]:
    """Run all stages with the players of all roles behind a server, as a process of its own would."""
    shutil.copytree(begun / "stages", root / "stages")
    config = configure(demo)
    with closing(ServedAssembly(config, Workspace(root), corpus, server=server, settings=settings)) as assembly:
        server.say = assembly.roles.script.find
        return run_stages(assembly.plan_stages(""), assembly.corpus_entry, 64, Reporter())


def check_whole(reports: list[StageReport]) -> None:
    """Check that rows came through to the end, and that none failed."""
    assert reports[-1].stage == "releases"
    assert reports[-1].rows_out > 0
    assert [report.stage for report in reports if report.failed] == []


@pytest.mark.parametrize(
    "vendor", ["openai", *(pytest.param(name, marks=pytest.mark.slow) for name in STRICT if name != "openai")]
)
def test_a_run_with_a_vendor_in_all_roles_is_whole_and_no_key_is_refused_twice(
    demo, demo_corpus, begun, tmp_path, vendor
):
    forced = {"replies": "json"} if vendor == "deepseek" else {}
    with run_vendor(STRICT[vendor]) as server:
        first = run_served(demo, demo_corpus, begun, tmp_path / "first", server, **forced)
        check_whole(first)
        assert sorted(server.refused) == REFUSED[vendor]
        # Another process that pays for everything anew knows what was learned.
        (tmp_path / "second").mkdir()
        (tmp_path / "first" / "vendors.json").rename(tmp_path / "second" / "vendors.json")
        asked = len(server.asked)
        check_whole(run_served(demo, demo_corpus, begun, tmp_path / "second", server, **forced))
        assert len(server.refused) == len(REFUSED[vendor])
        assert len(server.asked) > asked
        check_whole(run_served(demo, demo_corpus, begun, tmp_path / "profile", server, profile=vendor))
        assert len(server.refused) == len(REFUSED[vendor])
