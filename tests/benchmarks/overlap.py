"""Measures what stages at once save: three services of different speed, one stage after another and all at once.

The demo's players stand behind the latency and the places of services: a solver of 50 ms, a teacher of 2 s, and Commons
of 500 ms a picture. Both runs begin with the same sealed rewrites, end with releases, and are a process of their own.
"""

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pipelines.agent.depicting import CandidateList, CandidateLister
from pipelines.cli.commands import load_config
from pipelines.corpus.store import Corpus
from pipelines.run.assembly import Assembly
from pipelines.run.chains import run_stages
from pipelines.run.loop import finish_run
from pipelines.run.models import Roles
from pipelines.run.progress import make_reporter
from pipelines.run.runner import PlannedStage
from pipelines.run.workspace import Workspace
from pipelines.services.clients.recorded import RecordedChat
from pipelines.services.protocols import ChatModel, ChatReply, ChatRequest
from pipelines.stages.groundings import Groundings
from tests.benchmarks.measured import Measured
from tests.chaos.driving import ROOT, digest_files, list_settings, make_command

SETTINGS = (
    "corpus.generate.entities=300",
    "groundings.min_answers=2",
    "difficulty.attempts=8",
    "models.writer.concurrency=4",
    "models.evaluator.concurrency=4",
    "models.rewriter.concurrency=4",
    "models.solver.concurrency=1",
    "models.teacher.concurrency=12",
    "runtime.shard_rows=8",
    "seed=9",
)
FIRST = "rewrites"
"""Last stage that both runs find sealed: those before it ask none of the three services."""
MOST = 0.6
"""Wanted share of the time of one stage after another."""


@dataclass(slots=True)
class Service:
    """A stand-in for a service: so many requests at a time, each of so many seconds."""

    seconds: float
    places: int
    asked: int = 0
    _free: asyncio.Semaphore | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def answer(self) -> None:
        """Take as long as the service takes."""
        loop = asyncio.get_running_loop()
        if self._free is None or loop is not self._loop:
            self._free, self._loop = asyncio.Semaphore(self.places), loop
        self.asked += 1
        async with self._free:
            await asyncio.sleep(self.seconds)


@dataclass(slots=True)
class Services:
    """The three services; their places give them about the same weight in this world."""

    solver: Service = field(default_factory=lambda: Service(0.05, 1))
    teacher: Service = field(default_factory=lambda: Service(2.0, 12))
    commons: Service = field(default_factory=lambda: Service(0.5, 1))


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A scripted player behind a service; it answers what it answers without."""

    model: ChatModel
    service: Service

    @property
    def name(self) -> str:
        """The player's."""
        return self.model.name

    @property
    def identity(self) -> str:
        """The player's."""
        return self.model.identity

    @property
    def reads_inputs(self) -> bool:
        """The player's."""
        return self.model.reads_inputs

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Wait, and let the player answer."""
        await self.service.answer()
        return await self.model.chat(request)


@dataclass(frozen=True, slots=True)
class ServedLister:
    """The lister of candidate pictures behind a service that each picture is fetched from."""

    lister: CandidateLister
    service: Service

    @property
    def identity(self) -> str:
        """The lister's."""
        return self.lister.identity

    async def list_candidates(self, node: int, lead: str) -> CandidateList:
        """List them, and wait for each."""
        listed = await self.lister.list_candidates(node, lead)
        for _ in listed.found:
            await self.service.answer()
        return listed


@dataclass
class ServedRoles(Roles):
    """Roles of which solver and teacher stand behind services."""

    services: Services = field(default_factory=Services)

    def find_model(self, role: str) -> RecordedChat:
        """Return the model in a role."""
        model = super().find_model(role)
        service = {"solver": self.services.solver, "teacher": self.services.teacher}.get(role)
        return model if service is None else replace(model, model=ServedModel(model.model, service))


@dataclass
class ServedAssembly(Assembly):
    """An assembly with the services."""

    services: Services = field(default_factory=Services)

    @cached_property
    def roles(self) -> Roles:
        """The roles behind the services."""
        return ServedRoles(self.config, self.workspace, services=self.services)

    def plan_stages(self, last: str = "") -> list[PlannedStage]:
        """Plan the stages, pictures behind Commons."""
        planned: list[PlannedStage] = []
        for plan in super().plan_stages(last):
            stage = plan.stage
            if isinstance(stage, Groundings):
                lister: Any = ServedLister(stage.chooser.lister, self.services.commons)
                stage = replace(stage, chooser=replace(stage.chooser, lister=lister))
            sources = tuple(next(one for one in planned if one.name == source.name) for source in plan.sources)
            planned.append(replace(plan, stage=stage, sources=sources))
        return planned


def run_workspace(root: Path, at_once: bool) -> dict[str, Any]:
    """Run all stages and publish, in this process; say how long it took and how often each service was asked."""
    config, workspace, services = load_config("demo", None, list(SETTINGS)), Workspace(root), Services()
    (place,) = workspace.corpora.iterdir()
    started = time.monotonic()
    with closing(ServedAssembly(config, workspace, Corpus.open(place), services=services)) as assembly:
        planned = assembly.plan_stages()
        chains = [planned] if at_once else [[plan] for plan in planned]
        seconds: dict[str, float] = {}
        for chain in chains:
            reports = run_stages(chain, assembly.corpus_entry, config.runtime.shard_rows, make_reporter())
            seconds |= {report.stage: report.seconds for report in reports}
        finish_run(assembly, planned, planned)
    asked = {"solver": services.solver.asked, "teacher": services.teacher.asked, "commons": services.commons.asked}
    return {"seconds": time.monotonic() - started, "processor": time.process_time(), "stages": seconds, "asked": asked}


def measure(scratch: Path) -> list[Measured]:
    """Run one stage after another and all at once, and compare the releases."""
    base, places = scratch / "base", {"one-by-one": scratch / "one-by-one", "at-once": scratch / "at-once"}
    subprocess.run(
        make_command("run", "--workspace", base, "--until", FIRST, *list_settings(SETTINGS)), cwd=ROOT, check=True
    )
    told = {}
    for name, place in places.items():
        shutil.copytree(base, place)
        told[name] = call_run(place, *(["--at-once"] if name == "at-once" else []))
    apart, together = told["one-by-one"], told["at-once"]
    released = [digest_files(place, "releases/**/*") for place in places.values()]
    differing = sum(released[0].get(name) != released[1].get(name) for name in released[0].keys() | released[1].keys())
    return [
        *(_tell_service(name, apart) for name in ("solver", "teacher", "commons")),
        Measured("one stage after another", f"{apart['seconds']:.0f} s"),
        Measured("stages at once", f"{together['seconds']:.0f} s"),
        Measured(
            "processor time, one after another and at once", f"{apart['processor']:.0f}, {together['processor']:.0f} s"
        ),
        Measured("stages at once over one after another", f"{together['seconds'] / apart['seconds']:.2f}", f"{MOST}"),
        Measured(f"files of {len(released[0])} of the releases that differ", f"{differing}", "0"),
    ]


STAGES = {"solver": "difficulty", "teacher": "rollouts", "commons": "groundings"}


def _tell_service(name: str, told: dict[str, Any]) -> Measured:
    service = getattr(Services(), name)
    what = f"{name}: {told['asked'][name]:,} requests of {service.seconds:g} s, {service.places} at a time"
    return Measured(f"{what}; {STAGES[name]} alone", f"{told['stages'][STAGES[name]]:.0f} s")


def call_run(place: Path, *options: str) -> dict[str, Any]:
    """Run in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.overlap", str(place), *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line says and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--at-once", action="store_true")
    told = parser.parse_args(arguments)
    sys.stdout.write(json.dumps(run_workspace(told.workspace, told.at_once)) + "\n")


if __name__ == "__main__":
    main()
