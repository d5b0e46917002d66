"""A view that is served to a test, and rows to look at."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from pipelines.cli.view.server import ViewServer
from pipelines.run.workspace import Workspace
from schemas.base import Rejection
from schemas.datasets import Difficulty, Rollout, Trajectory
from tests.pipelines.cli.conftest import FakeStage, write_stage
from tests.pipelines.release.builders import make_picture, make_question, make_trajectory

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>]]>\u202e&lt;b&gt;'


class Reply(NamedTuple):
    status: int
    headers: dict
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@contextmanager
def serving(root: Path) -> Iterator[ViewServer]:
    with ViewServer(root) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: ViewServer, target: str, method: str = "GET", host: str = "") -> Reply:
    """Send one request with a host of one's own, its address byte for byte as given."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.putrequest(method, target, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
        connection.endheaders()
        reply = connection.getresponse()
        return Reply(reply.status, dict(reply.getheaders()), reply.read())
    finally:
        connection.close()


def write_hostile(root: Path) -> None:
    """Write a workspace in which every text that came from outside is markup."""
    picture = make_picture(root, 1, author=HOSTILE, file=HOSTILE, licence=HOSTILE)
    question = make_question(1, picture, text=HOSTILE, domain=HOSTILE, record_id=f"q/{HOSTILE}")
    nodes = tuple(node.model_copy(update={"title": HOSTILE, "type": HOSTILE}) for node in question.proof.nodes)
    evidence = question.proof.answer_evidence.model_copy(update={"text": HOSTILE, "title": HOSTILE})
    proof = question.proof.model_copy(update={"nodes": nodes, "answer_evidence": evidence})
    answer = question.answer.model_copy(update={"surface": HOSTILE, "aliases": (HOSTILE,)})
    question = question.model_copy(update={"proof": proof, "answer": answer})
    made = make_trajectory(1, question)
    seen = made.steps[0].observation.model_copy(update={"text": HOSTILE, "error": HOSTILE})
    step = made.steps[0].model_copy(update={"thought": HOSTILE, "arguments": HOSTILE, "observation": seen})
    fields = {name: getattr(made, name) for name in Rollout.model_fields} | {"steps": (step, *made.steps[1:])}
    refused = [Rejection(record_id=f"r/{HOSTILE}", reason="unscored", detail=HOSTILE)]
    write_stage(root, FakeStage("difficulty", Difficulty), "d" * 16, [question], refused)
    write_stage(root, FakeStage("rollouts", Rollout), "r" * 16, [Rollout(**fields)])
    write_stage(root, FakeStage("trajectories", Trajectory), "t" * 16, [])
    keys = {"difficulty": "d" * 16, "rollouts": "r" * 16, "trajectories": "t" * 16}
    Workspace(root).note_latest(keys)
