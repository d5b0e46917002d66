"""Faults amid a run on two Ray nodes: the same command is run until it ends, and what it made is compared.

As a program, in namespaces of its own (``make test-ray`` runs a few)::

    unshare --mount --net --pid --fork --kill-child --mount-proc python -m tests.ray.faults --faults 40 --seed 1

prints a line a fault and the table at the end.
"""

import argparse
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from tests.chaos.driving import SMALL, digest_outputs
from tests.ray.cluster import Cluster, kill, make_workspace, open_cluster, wait_for
from tests.ray.namespaces import SHARED, read_command

ATTEMPTS = 6
LEG = 5
"""Faults that one workspace lives through."""
LONGEST = 400.0
"""Seconds in which a run ends by itself."""
LATEST = 30.0
"""Most seconds before a fault; a run that Prefect's worker starts begins later than a command."""
FULL_FOR = 6.0
"""Seconds for which the shared folder stays full."""
MOST_RUNS = 5
"""Times that the command is run with no fault between before it is given up."""
BY_WORKER = "Prefect worker"
"""The fault before which a worker of Prefect runs the flow, not a command."""
SERVICE = ("ray::DashboardAgent", "ray::RuntimeEnvAgent", "ray::IDLE")


def make_parameters(cluster: Cluster, workspace: Path, *more: str) -> dict[str, Any]:
    """Return the parameters of the flow: a small world, a teacher that is asked, corpora of each host's own."""
    teacher = ("adapter=openai", "name=mock", "revision=r1", f"base_url={cluster.model}")
    waves = (f"rollouts.attempts={ATTEMPTS}", "rollouts.wanted=2", 'rollouts.splits=["sft", "rl", "eval"]')
    engine = ("runtime.engine=ray", f"runtime.address={cluster.ray_address}")
    roles = tuple(f"models.teacher.{setting}" for setting in teacher)
    settings = [*SMALL, *roles, *waves, *engine, *more]
    return {"workspace": str(workspace), "limit": 60, "settings": settings}


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault that happened."""

    kind: str
    in_flight: int
    """Requests that it cut off, or that were cut off since the fault before."""


@dataclass(slots=True)
class Leg:
    """A workspace that lived through faults: what they were, and what came of it."""

    strikes: list[Strike] = field(default_factory=list)
    runs: int = 0
    paid_twice: int = 0
    differing: list[str] = field(default_factory=list)
    """Files that are not those of the undisturbed run."""
    seconds: float = 0.0

    cut_off: set[tuple[str, int]] = field(default_factory=set)
    """Requests sent and not recorded when a fault struck or a run had ended: key, and which time of asking."""

    def note_open(self, address: str) -> int:
        """Note the requests that are in flight, and return how many are new."""
        before = len(self.cut_off)
        self.cut_off |= list_open(address)
        return len(self.cut_off) - before

    @property
    def in_flight(self) -> int:
        return len(self.cut_off)


class Faults:
    """What may happen to a cluster, by name; each returns whether there was something to strike."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.cluster, self.rng = cluster, rng
        self.kinds: dict[str, Callable[[], bool]] = {
            "driver": self.kill_driver,
            "worker": self.kill_worker,
            "raylet": self.kill_raylet,
            "host": self.cut_host,
            "Prefect server": self.kill_prefect,
            BY_WORKER: self.kill_prefect_worker,
            "PostgreSQL restart": self.restart_postgres,
            "full disk": self.fill_disk,
        }

    def kill_driver(self) -> bool:
        """Kill the process of the flow."""
        return any([kill(pid) for pid in self.cluster.nodes[0].host.find_processes("tests.ray.drive")])

    def kill_worker(self) -> bool:
        """Kill a process that makes a span, on any host."""
        at_work = [pid for node in self.cluster.nodes for pid in node.host.find_processes("ray::")]
        at_work = [pid for pid in at_work if not read_command(pid).startswith(SERVICE)]
        return bool(at_work) and kill(self.rng.choice(at_work))

    def kill_raylet(self) -> bool:
        """Kill the raylet of a host; that of the head takes the driver with it."""
        node = self.rng.choice(self.cluster.nodes)
        struck = any([kill(pid) for pid in node.host.find_processes("/raylet/raylet")])
        wait_for("the end of a node without raylet", node.has_ended)
        return struck

    def cut_host(self) -> bool:
        """Switch off the host that is not the head."""
        self.cluster.nodes[1].switch_off()
        return True

    def kill_prefect(self) -> bool:
        """Kill Prefect's server."""
        self.cluster.prefect.kill()
        return True

    def kill_prefect_worker(self) -> bool:
        """Kill Prefect's worker; the run that it started ends by itself."""
        host = self.cluster.nodes[0].host
        struck = any([kill(pid) for pid in host.find_processes("worker start")])
        wait_for("the end of the run of a killed worker", lambda: not host.find_processes("prefect.", "prefect "))
        return struck

    def restart_postgres(self) -> bool:
        """Restart PostgreSQL as after a crash."""
        self.cluster.postgres.control("restart", "-m", "immediate")
        return True

    def fill_disk(self) -> bool:
        """Fill the shared folder for a while."""
        ballast = SHARED / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as out:
            while True:
                out.write(bytes(1 << 16))
        time.sleep(FULL_FOR)
        ballast.unlink()
        return True


def run_to_end(cluster: Cluster, parameters: Mapping[str, Any]) -> int:
    """Run the command and return its code."""
    child = cluster.run(parameters)
    return child.wait(timeout=LONGEST)


def wait_to_strike(cluster: Cluster, child: "subprocess.Popen[bytes]", rng: random.Random, longest: float) -> None:
    """Wait for a random time of a run, more often than not one at which requests are under way."""
    amid, until = rng.random() < 0.7, time.monotonic() + rng.uniform(5.0, longest)
    while child.poll() is None and time.monotonic() < until:
        if amid and cluster.count_requests()["in_flight"]:
            time.sleep(rng.uniform(0.0, 4.0))
            return
        time.sleep(0.1)


def list_open(address: str) -> set[tuple[str, int]]:
    """Return the requests that were sent and have no recorded reply: a key, and how often it was asked by now."""
    asked = "SELECT key, count(*) FROM asks WHERE key NOT IN (SELECT key FROM replies) GROUP BY key"
    with psycopg.connect(address) as connection:
        exists = connection.execute("SELECT to_regclass('asks')").fetchone()
        return set(connection.execute(asked).fetchall()) if exists is not None and exists[0] else set()


def endure(faults: Faults, kinds: Sequence[str], parameters: Mapping[str, Any], address: str) -> Leg:
    """Run the command until it ends well, with these faults on the way."""
    cluster, leg, waiting, began, idle = faults.cluster, Leg(), list(kinds), time.monotonic(), 0
    while idle < MOST_RUNS:
        by_worker = waiting[:1] == [BY_WORKER]
        child = cluster.run_by_worker(parameters) if by_worker else cluster.run(parameters)
        leg.runs, idle = leg.runs + 1, idle + 1
        while waiting and child.poll() is None and (waiting[0] == BY_WORKER) == by_worker:
            wait_to_strike(cluster, child, faults.rng, LATEST * (2 if by_worker else 1))
            if child.poll() is None and faults.kinds[waiting[0]]():
                leg.strikes.append(Strike(waiting.pop(0), leg.note_open(address)))
                say(f"{leg.strikes[-1].kind}, {leg.strikes[-1].in_flight} in flight")
                idle = 0
                cluster.mend()
        code = child.wait(timeout=LONGEST)
        leg.note_open(address)
        say(f"run {leg.runs} ended {code}")
        cluster.mend()
        if code == 0:
            break
    assert code == 0, cluster.read_log()[-4000:]
    leg.seconds = time.monotonic() - began
    return leg


def say(line: str) -> None:
    """Tell how far it is."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


@dataclass(slots=True)
class Ordeal:
    """An undisturbed run, and legs to compare with it."""

    cluster: Cluster
    calm: dict[str, str]
    """Digests of what the undisturbed run made."""
    requests: int
    """What it paid for."""
    seeds: tuple[Path, ...]
    """Workspaces with the corpus alone and with all stages before rollouts: what legs begin with, in turn."""

    def try_legs(self, kinds: Sequence[str], rng: random.Random) -> list[Leg]:
        """Run legs until all faults have struck: a run may end before all of its own have."""
        legs: list[Leg] = []
        while left := kinds[sum(len(leg.strikes) for leg in legs) :]:
            legs.append(self.try_leg(len(legs), left[:LEG], rng))
            say(f"leg {len(legs)}: paid twice {legs[-1].paid_twice}, differing {legs[-1].differing[:3]}")
        return legs

    def try_leg(self, number: int, kinds: Sequence[str], rng: random.Random) -> Leg:
        """Run a leg in a workspace of its own."""
        workspace = SHARED / f"leg-{number}"
        shutil.copytree(self.seeds[number % len(self.seeds)], workspace)
        (store,) = name_store(self.cluster)
        self.cluster.forget_requests()
        parameters, address = make_parameters(self.cluster, workspace, store), store.partition("=")[2]
        leg = endure(Faults(self.cluster, rng), kinds, parameters, address)
        leg.paid_twice = self.cluster.count_requests()["paid_duplicates"]
        made = digest_outputs(workspace)
        leg.differing = sorted(name for name in made.keys() | self.calm if made.get(name) != self.calm.get(name))
        shutil.rmtree(workspace)
        return leg


def name_store(cluster: Cluster) -> tuple[str, ...]:
    """Return the setting of a database of its own."""
    return (f"replies={cluster.postgres.make_address('10.77.0.1')}",)


def prepare(cluster: Cluster) -> Ordeal:
    """Build the corpus, give each host its copy, and run undisturbed."""
    calm, seeds = make_workspace("calm"), []
    parameters = make_parameters(cluster, calm, *name_store(cluster))
    for last in ("corpus", "enhancements"):
        assert run_to_end(cluster, parameters | {"until": last}) == 0, cluster.read_log()[-4000:]
        seeds.append(SHARED / f"until-{last}")
        shutil.copytree(calm, seeds[-1])
        for node in cluster.nodes if last == "corpus" else ():
            node.corpora = seeds[0] / "corpus"
            node.copy_corpora()
    cluster.forget_requests()
    assert run_to_end(cluster, parameters) == 0, cluster.read_log()[-4000:]
    made, counts = digest_outputs(calm), cluster.count_requests()
    assert counts["paid_duplicates"] == 0, counts
    shutil.rmtree(calm)
    return Ordeal(cluster, made, counts["paid"], tuple(seeds))


def draw_kinds(count: int, known: Sequence[str], rng: random.Random) -> list[str]:
    """Return so many faults, each kind as often as any other, in random order."""
    kinds = [known[number % len(known)] for number in range(count)]
    rng.shuffle(kinds)
    return kinds


def write_table(legs: Sequence[Leg]) -> str:
    """Return the table of faults by kind, and the sums of legs."""
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for leg in legs:
        for strike in leg.strikes:
            row = rows[strike.kind]
            row[0], row[1], row[2] = row[0] + 1, row[1] + (not leg.differing), row[2] + strike.in_flight
    lines = ["| fault | times | ended with the bytes | in flight |", "|---|---|---|---|"]
    lines += [f"| {kind} | {row[0]} | {row[1]} | {row[2]} |" for kind, row in sorted(rows.items())]
    for leg in legs:
        kinds = ", ".join(strike.kind for strike in leg.strikes)
        lines.append(f"{kinds}: {leg.runs} runs, {leg.seconds:.0f} s, paid twice {leg.paid_twice} <= {leg.in_flight}")
    return "\n".join(lines)


def main() -> None:
    """Run faults and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.ray.faults")
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logs", type=Path, help="folder for logs; it must not exist")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with TemporaryDirectory() as scratch, open_cluster(given.logs or Path(scratch) / "logs") as cluster:
        say("up")
        ordeal = prepare(cluster)
        say(f"undisturbed: {ordeal.requests} requests, {len(ordeal.calm)} files")
        kinds = draw_kinds(given.faults, list(Faults(cluster, rng).kinds), rng)
        legs = ordeal.try_legs(kinds, rng)
    say(f"\n{write_table(legs)}")


if __name__ == "__main__":
    main()
