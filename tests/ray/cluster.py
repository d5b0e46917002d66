"""Two Ray nodes with all that a run needs around them: a Prefect server, PostgreSQL, a model that counts requests."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.mock_teacher import Manner, start_teacher
from tests.postgres import Postgres, start_postgres
from tests.ray.namespaces import ROOT, SHARED, SWITCH, Host, open_switch

BIN = Path(sys.prefix) / "bin"
PREFECT = (sys.executable, "-m", "prefect")
"""The environment of Ray sees the package of the tests' own, without its script."""
RAY_PORT, PREFECT_PORT, POSTGRES_PORT = 6379, 4200, 5432
WAIT = 180.0
"""Seconds for whatever starts."""
OBJECTS = 80_000_000
"""Bytes of a node's object store, the least that Ray takes; spans travel as names."""
COPIES = "/mnt/own/corpora"
MANNER = Manner(calls=3, fastest=0.4, slowest=1.2)
"""How the model answers, in seconds."""


def wait_for(what: str, check: Callable[[], object]) -> None:
    """Return when something is true; fail after a generous time."""
    until = time.monotonic() + WAIT
    while not check():
        assert time.monotonic() < until, f"{what}: not within {WAIT:.0f} s"
        time.sleep(0.2)


def answers(url: str) -> bool:
    """Whether a page is served."""
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def read_json(url: str, body: Mapping[str, Any] | None = None) -> Any:
    """Ask a server of these tests."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=30) as response:
        return json.load(response)


@dataclass
class PrefectServer:
    """A Prefect server at the switch; it keeps its database when it is killed."""

    folder: Path
    child: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://{SWITCH}:{PREFECT_PORT}/api"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PREFECT_HOME": str(self.folder),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_UI_ENABLED": "false",
        }

    def launch(self) -> None:
        """Start."""
        command = [*PREFECT, "server", "start", "--host", SWITCH, "--port", str(PREFECT_PORT), "--no-ui"]
        with (self.folder / "server.log").open("ab") as out:
            self.child = subprocess.Popen(
                command, env=make_environment() | self.environment, stdout=out, stderr=out, start_new_session=True
            )

    def wait(self) -> None:
        """Wait until it answers."""
        wait_for("Prefect's server", lambda: answers(f"{self.url}/health"))

    def kill(self) -> None:
        """End it at once, with what it started."""
        assert self.child is not None
        os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()


def make_environment() -> dict[str, str]:
    """Return what every process here is told."""
    return {
        "PATH": f"{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray gives its workers way to every other process of a machine; here all hosts are one.
        "RAY_worker_niceness": "0",
        "DO_NOT_TRACK": "1",
    }


@dataclass
class Node:
    """A host of the cluster."""

    host: Host
    head: str
    """Address of the head's host."""
    environment: Mapping[str, str]
    ray: "subprocess.Popen[bytes] | None" = None
    began: int = 0
    corpora: Path | None = None
    """What the host has its own copies of."""

    @property
    def is_head(self) -> bool:
        return self.host.address == self.head

    def start(self) -> None:
        """Start Ray here; it ends when its raylet does."""
        role = ["--head", f"--port={RAY_PORT}", "--include-dashboard=false"]
        if not self.is_head:
            role = [f"--address={self.head}:{RAY_PORT}"]
        size = [f"--object-store-memory={OBJECTS}", "--num-cpus=1", "--disable-usage-stats"]
        command = [BIN / "ray", "start", *role, f"--node-ip-address={self.host.address}", *size, "--block"]
        self.began = self.count_starts()
        self.ray = self.host.start(command, self.environment, "ray")

    def count_starts(self) -> int:
        """Return how often Ray has said here that it stands."""
        path = self.host.logs / f"{self.host.name}-ray.log"
        return path.read_text(errors="replace").count("Ray runtime started") if path.exists() else 0

    def stands(self) -> bool:
        """Whether Ray stands here since its last start; where it could not start, it is tried once more."""
        if self.has_ended():
            self.start()
        return self.count_starts() > self.began

    def switch_off(self) -> None:
        """End everything here at once."""
        self.host.switch_off()
        if self.ray is not None:
            self.ray.wait()

    def copy_corpora(self) -> None:
        """Give the host its own copies of corpora."""
        if self.corpora is not None:
            self.host.call("mkdir", "-p", COPIES)
            self.host.call("cp", "-r", f"{self.corpora}/.", COPIES)

    def has_ended(self) -> bool:
        """Whether Ray ended here."""
        return self.ray is None or self.ray.poll() is not None

    def revive(self) -> None:
        """Switch the host on where it is off, and start Ray where it has ended, as a supervisor does."""
        if self.host.root.poll() is not None:
            self.host.switch_on()
            self.copy_corpora()
        if self.has_ended():
            for pid in self.host.find_processes("ray"):
                kill(pid)
            self.start()


def kill(pid: int) -> bool:
    """Kill a process of a host; return whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@dataclass
class Cluster:
    """Everything that runs."""

    folder: Path
    model: str
    postgres: Postgres
    prefect: PrefectServer
    nodes: list[Node] = field(default_factory=list)

    @cached_property
    def environment(self) -> dict[str, str]:
        """What processes of the hosts are told."""
        return make_environment() | {"PREFECT_API_URL": self.prefect.url, "PREFECT_HOME": "/root/prefect"}

    @property
    def ray_address(self) -> str:
        return f"{self.nodes[0].head}:{RAY_PORT}"

    def add_node(self, name: str, number: int, prepare: Callable[[Node], None] | None = None) -> Node:
        """Switch a host on, prepare it, and start Ray there."""
        host = Host(name, number, self.folder)
        node = Node(host, self.nodes[0].head if self.nodes else host.address, self.environment)
        self.nodes.append(node)
        if prepare is not None:
            prepare(node)
        node.start()
        wait_for(f"Ray on {name}", node.stands)
        return node

    def count_nodes(self) -> int:
        """Return how many nodes Ray takes for alive."""
        script = (
            f"import ray; ray.init('{self.ray_address}', logging_level='ERROR', log_to_driver=False); "
            "print('alive:', sum(node['Alive'] for node in ray.nodes()))"
        )
        command = self.nodes[0].host.enter([sys.executable, "-c", script])
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        # Ray says things there, too.
        return int(done.stdout.rpartition("alive:")[2].split()[0])

    def mend(self) -> None:
        """Have everything run again, and wait until it does: the head first, since its nodes end with it."""
        if self.prefect.child is None or self.prefect.child.poll() is not None:
            self.prefect.launch()
        self.prefect.wait()
        if self.nodes[0].has_ended():
            for node in self.nodes:
                for pid in node.host.find_processes("ray") if node.host.root.poll() is None else []:
                    kill(pid)
                if node.ray is not None:
                    node.ray.wait()
        for node in self.nodes:
            node.revive()
            if node.is_head:
                wait_for("Ray's head", node.stands)
        wait_for("all Ray nodes", lambda: all(node.stands() for node in self.nodes))

    def count_requests(self) -> dict[str, Any]:
        """Return what the model was asked: see ``tests.mock_openai``."""
        counts: dict[str, Any] = read_json(self.model.removesuffix("/v1") + "/counts")
        return counts

    def forget_requests(self) -> None:
        """Start the counts anew."""
        read_json(self.model.removesuffix("/v1") + "/reset", {})

    def run(self, parameters: Mapping[str, Any], log: str = "flow") -> "subprocess.Popen[bytes]":
        """Start the flow on the head's host."""
        command = [sys.executable, "-m", "tests.ray.drive", json.dumps(parameters)]
        return self.nodes[0].host.start(command, self.environment, log)

    def run_by_worker(self, parameters: Mapping[str, Any]) -> "subprocess.Popen[bytes]":
        """Deploy the flow, start a worker of Prefect on the head's host, and have it run the flow once."""
        host, asked = self.nodes[0].host, ("--workspace", parameters["workspace"], "--limit", str(parameters["limit"]))
        settings = [part for setting in parameters["settings"] for part in ("--set", setting)]
        for command in (
            [BIN / "synth", "deploy", "--name", "faults", *asked, *settings],
            [*PREFECT, "deployment", "run", "synthesize/faults-nightly"],
        ):
            done = host.start(command, self.environment, "deploy")
            assert done.wait(timeout=WAIT) == 0, self.read_log("deploy")[-3000:]
        return host.start([*PREFECT, "worker", "start", "--pool", "cpu"], self.environment, "worker")

    def read_log(self, log: str = "flow") -> str:
        """Return what runs said."""
        path = self.folder / f"{self.nodes[0].host.name}-{log}.log"
        return path.read_text(errors="replace") if path.exists() else ""


@contextmanager
def open_cluster(folder: Path, hosts: int = 2) -> Iterator[Cluster]:
    """Start everything, and end it with the block.

    Args:
        folder: for logs.
        hosts: how many Ray nodes.
    """
    open_switch()
    (folder / "prefect").mkdir(parents=True)
    prefect = PrefectServer(folder / "prefect")
    with ExitStack() as stack:
        postgres = stack.enter_context(start_postgres(listen=SWITCH, port=POSTGRES_PORT))
        trust_hosts(postgres)
        model = stack.enter_context(start_teacher(MANNER, SWITCH))
        prefect.launch()
        stack.callback(prefect.kill)
        cluster = Cluster(folder, model, postgres, prefect)
        stack.callback(lambda: [node.switch_off() for node in cluster.nodes if node.host.root.poll() is None])
        for number in range(hosts):
            cluster.add_node(("alpha", "beta", "gamma")[number], number + 2)
        prefect.wait()
        cluster.mend()
        yield cluster


def trust_hosts(postgres: Postgres) -> None:
    """Let hosts ask without a password."""
    with (postgres.folder / "data" / "pg_hba.conf").open("a") as out:
        out.write("host all all 10.77.0.0/24 trust\n")
    postgres.control("reload")


def make_workspace(name: str) -> Path:
    """Return an empty workspace in the folder that all hosts share."""
    folder = SHARED / name
    folder.mkdir()
    return folder
