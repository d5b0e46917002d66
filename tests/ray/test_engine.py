"""Engine ray on two nodes that share the workspace, a Prefect server and PostgreSQL, and nothing else."""

import json
import os
import random
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.driving import call, digest_outputs, make_run
from tests.ray.cluster import Cluster, Node, wait_for
from tests.ray.faults import Faults, Ordeal, draw_kinds, make_parameters, name_store, run_to_end, write_table
from tests.ray.namespaces import ROOT, SHARED

pytestmark = pytest.mark.ray
FAULTS = int(os.environ.get("SYNTH_RAY_FAULTS", "4"))
CODE = ("flows", "pipelines", "prompts", "schemas", "tests", "data_cards")


@pytest.fixture
def workspace(ordeal: Ordeal, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A workspace on the shared folder whose stages before rollouts are done."""
    folder = SHARED / request.node.name
    shutil.copytree(ordeal.seeds[-1], folder)
    ordeal.cluster.forget_requests()
    yield folder
    shutil.rmtree(folder)


def test_two_nodes_make_the_bytes_of_one_process(ordeal: Ordeal, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(ordeal.seeds[0], alone)
    settings = [s for s in make_parameters(ordeal.cluster, alone)["settings"] if not s.startswith("runtime.engine")]
    outcome = call(make_run(alone, "--limit", "60", settings=settings), timeout=400)
    assert outcome.code == 0, outcome.err[-2000:]
    assert len(outcome.document["releases"]) == 2
    assert digest_outputs(alone) == ordeal.calm


def test_three_workers_on_the_same_shards_pay_nothing_twice(ordeal: Ordeal, workspace: Path) -> None:
    cluster = ordeal.cluster
    parameters = make_parameters(cluster, workspace, *name_store(cluster))
    command = [sys.executable, "-m", "tests.ray.twin", json.dumps(parameters)]
    hosts = (cluster.nodes[0].host, cluster.nodes[0].host, cluster.nodes[1].host)
    twins = [host.start(command, cluster.environment, "twin") for host in hosts]
    assert [twin.wait(timeout=400) for twin in twins] == [0, 0, 0], cluster.read_log("twin")[-3000:]
    counts = cluster.count_requests()
    assert counts["most_in_flight"] > 1
    assert (counts["paid"], counts["paid_duplicates"]) == (ordeal.requests, 0)
    assert run_to_end(cluster, parameters) == 0, cluster.read_log()[-3000:]
    assert digest_outputs(workspace) == ordeal.calm
    assert cluster.count_requests()["paid_duplicates"] == 0


@contextmanager
def joined(cluster: Cluster, code: str = "") -> Iterator[Node]:
    """Have a third host in the cluster for the block, which has no corpus.

    Args:
        cluster: to join.
        code: a command of sed that changes its code of the stage rollouts; empty: it has the code of the others.
    """

    def change(node: Node) -> None:
        own = Path("/mnt/own/code")
        node.host.call("mkdir", own)
        node.host.call("cp", "-r", *(ROOT / name for name in CODE), own)
        node.host.call("sed", "-i", code, own / "pipelines/stages/rollouts.py")
        node.host.call("mount", "--bind", own, ROOT)

    node = cluster.add_node("gamma", 4, change if code else None)
    try:
        yield node
    finally:
        cluster.nodes.remove(node)
        node.switch_off()
        wait_for("that the cluster has noticed", lambda: cluster.count_nodes() == len(cluster.nodes))


def read_refusal(cluster: Cluster, parameters: dict, words: str) -> str:
    """Run the command, which must end as a wrong configuration does, and return its line with these words."""
    assert run_to_end(cluster, parameters) == 2, cluster.read_log()[-3000:]
    lines = [line for line in cluster.read_log().splitlines() if line.startswith("synth: ") and words in line]
    assert lines, cluster.read_log()[-3000:]
    return lines[-1]


def test_a_host_without_its_copy_of_the_corpus_is_named_with_what_it_lacks(ordeal: Ordeal, workspace: Path) -> None:
    parameters = make_parameters(ordeal.cluster, workspace, *name_store(ordeal.cluster))
    with joined(ordeal.cluster) as node:
        line = read_refusal(ordeal.cluster, parameters, "host gamma")
        (corpus,) = (workspace / "corpus").iterdir()
        assert f"rsync -a --delete {corpus}/ gamma:" in line
        node.corpora = ordeal.seeds[0] / "corpus"
        node.copy_corpora()
        assert run_to_end(ordeal.cluster, parameters) == 0, ordeal.cluster.read_log()[-3000:]
    assert digest_outputs(workspace) == ordeal.calm
    assert ordeal.cluster.count_requests()["paid_duplicates"] == 0


def test_a_host_with_other_code_is_refused_by_name_before_it_writes(ordeal: Ordeal, workspace: Path) -> None:
    parameters = make_parameters(ordeal.cluster, workspace, *name_store(ordeal.cluster))
    with joined(ordeal.cluster, "s/version: int = [0-9]*/version: int = 99/") as node:
        node.corpora = ordeal.seeds[0] / "corpus"
        node.copy_corpora()
        line = read_refusal(ordeal.cluster, parameters, "worker gamma")
        keys = re.search(r"rollouts has the key (\w+) here and (\w+) in the run", line)
        assert keys is not None
        assert not (workspace / "stages" / "rollouts" / keys[1]).exists()
    assert run_to_end(ordeal.cluster, parameters) == 0, ordeal.cluster.read_log()[-3000:]
    assert (workspace / "stages" / "rollouts" / keys[2] / "manifest.json").is_file()
    assert digest_outputs(workspace) == ordeal.calm


def test_after_faults_the_same_command_ends_with_the_undisturbed_bytes(ordeal: Ordeal) -> None:
    rng = random.Random(int(os.environ.get("SYNTH_RAY_SEED", "11")))
    kinds = draw_kinds(FAULTS, list(Faults(ordeal.cluster, rng).kinds), rng)
    legs = ordeal.try_legs(kinds, rng)
    sys.stdout.write(f"\n{write_table(legs)}\n")
    assert sum(len(leg.strikes) for leg in legs) == FAULTS
    assert [leg.differing for leg in legs] == [[] for _ in legs]
    assert all(leg.paid_twice <= leg.in_flight for leg in legs), write_table(legs)
