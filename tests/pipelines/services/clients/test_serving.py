import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import ModelConfig, RunConfig, ServeConfig
from pipelines.errors import ConfigError, Unavailable
from pipelines.services.clients.serving import (
    ModelServer,
    make_serve_command,
    owned_servers,
    place_log,
    running,
    serve_model,
)
from pipelines.services.clients.supervisor import start_supervised
from tests.fake_vllm import is_alive, write_fake_vllm
from tests.ports import find_port

ROOT = Path(__file__).parents[4]
PATIENCE = 300.0


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> str:
    return str(write_fake_vllm(tmp_path_factory.mktemp("fake")))


@pytest.fixture
def make_model(python):
    def make(*arguments: str, name: str = "tiny", port: int = 0, **settings) -> ModelConfig:
        port = port or find_port()
        serve = ServeConfig(**({"own": True, "python": python, "arguments": arguments} | settings))
        return ModelConfig(adapter="openai", name=name, base_url=f"http://127.0.0.1:{port}/v1", serve=serve)

    return make


@pytest.fixture
def make_server(make_model, tmp_path):
    servers = []

    def make(*arguments: str, **settings) -> ModelServer:
        model = make_model(*arguments, **settings)
        servers.append(ModelServer("solver", model, place_log(tmp_path / "logs", "solver")))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


def find_worker(log: Path) -> int:
    """Return the process that the fake server started in turn."""
    return int(re.search(r"worker (\d+)", log.read_text())[1])


def wait_until(holds, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


# What is run


def test_the_command_is_vllms_server_on_the_loopback_interface_alone():
    serve = ServeConfig(
        python="/opt/vllm/bin/python",
        model="org/big",
        gpus=4,
        arguments=("--x",),
    )
    model = ModelConfig(adapter="openai", name="big", base_url="http://127.0.0.1:8001/v1", serve=serve)
    command = make_serve_command("solver", model)
    assert command[:5] == ["/opt/vllm/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"]
    text = " ".join(command)
    assert "--port 8001 --served-model-name big" in text
    assert text.endswith("--model org/big --tensor-parallel-size 4 --x")


# One server's life


def test_a_server_is_ready_inside_and_gone_after_with_its_workers(make_server):
    server = make_server()
    with running([server]):
        with urllib.request.urlopen(f"{server.address}/models") as reply:
            assert b'"tiny"' in reply.read()
        worker = find_worker(server.log)
        assert server.is_running
        assert is_alive(worker)
    assert not server.is_running
    wait_until(lambda: not is_alive(worker))


def test_a_key_is_asked_for_and_stands_in_no_argument_and_no_log(make_model, tmp_path, monkeypatch):
    monkeypatch.setenv("TINY_KEY", "sk-zq-secret")
    model = make_model().model_copy(update={"api_key_env": "TINY_KEY"})
    server = ModelServer("solver", model, tmp_path / "log")
    with running([server]):
        assert "zq-secret" not in server.log.read_text() + " ".join(server.command)
        assert "key sk-z" in server.log.read_text()


def test_a_port_that_is_taken_is_refused(make_server):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = make_server(port=other.getsockname()[1])
        with pytest.raises(ConfigError, match=r"models\.solver\.base_url: port \d+: Address already in use; stop what"):
            server.start()
    assert not server.is_running


def test_a_server_that_ends_at_its_start_or_serves_another_model_is_refused(make_server):
    ended = r"(?s)ended while starting; .*serve-solver\.log ends:.*no memory for the model"
    for fault, error, why in (("die", Unavailable, ended), ("other-name", ConfigError, "serves another, not tiny")):
        server = make_server("--fake", fault)
        with pytest.raises(error, match=why), running([server]):
            pytest.fail("it was started")
        assert not server.is_running


def test_a_server_that_is_not_ready_in_time_is_ended(make_server):
    server = replace(make_server("--fake", "hang"), start_seconds=1.0)
    with pytest.raises(Unavailable, match="is not ready after 1 s"), running([server]):
        pytest.fail("it is not ready")
    assert not server.is_running


# A run's servers


def test_a_run_starts_the_servers_it_owns_and_no_others(make_model, tmp_path):
    attached = make_model().model_copy(update={"serve": ServeConfig()})
    models = {"solver": make_model(), "judge": make_model(name="umpire"), "teacher": attached}
    with owned_servers(models, ["solver", "judge", "teacher"], tmp_path) as servers:
        assert sorted(servers) == ["judge", "solver"]
        assert all(server.is_running for server in servers.values())
    assert not any(server.is_running for server in servers.values())


def test_when_one_cannot_start_the_others_are_ended(make_model, tmp_path):
    models = {"solver": make_model(), "judge": make_model("--fake", "die")}
    with pytest.raises(Unavailable, match=r"models\.judge"), owned_servers(models, ["solver", "judge"], tmp_path):
        pytest.fail("it was started")
    worker = find_worker(place_log(tmp_path, "solver"))
    wait_until(lambda: not is_alive(worker))


# The command


def make_run(model: ModelConfig) -> RunConfig:
    config = make_config(read_recipe("demo"))
    return config.model_copy(update={"models": {"solver": model}})


def test_serving_a_role_says_where_and_when_it_is_ready(make_model, tmp_path):
    said: list[str] = []

    def stop_when_ready(line: str) -> None:
        said.append(line)
        if "is ready" in line:
            raise KeyboardInterrupt

    model = make_model()
    with pytest.raises(KeyboardInterrupt):
        serve_model(make_run(model), "solver", tmp_path, stop_when_ready)
    assert said[0] == f"starting tiny for solver; log {tmp_path / 'serve-solver.log'}"
    assert said[1] == f"tiny is ready at {model.base_url[0]}; Ctrl-C ends it"
    worker = find_worker(place_log(tmp_path, "solver"))
    wait_until(lambda: not is_alive(worker))


def test_a_server_that_leaves_while_served_is_a_service_away(make_model, tmp_path):
    with pytest.raises(Unavailable, match=r"(?s)ended; .*out of memory"):
        serve_model(make_run(make_model("--fake", "leave")), "solver", tmp_path, lambda line: None)


OWNER = """
import signal, sys, time
from pathlib import Path
from pipelines.services.clients.serving import ModelServer, running
from pipelines.config.settings import ModelConfig

# One that was started in the background inherits that interrupts are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with running([ModelServer("solver", ModelConfig.model_validate_json(sys.argv[1]), Path(sys.argv[2]))]):
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_outlives_whoever_started_it(make_model, tmp_path, number):
    log = tmp_path / "log"
    command = [sys.executable, "-c", OWNER, make_model().model_dump_json(), str(log)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, env=environment
    ) as owner:
        assert owner.stdout.readline() == b"ready\n"
        worker = find_worker(log)
        owner.send_signal(number)
        owner.wait(PATIENCE)
    wait_until(lambda: not is_alive(worker))


STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(worker.pid, flush=True)
time.sleep(600)
"""


def run(command: list[str], log: Path, grace: float = 0.3):
    return start_supervised(command, os.environ, log, grace)


def read_number(log: Path) -> int:
    end = time.monotonic() + PATIENCE
    while not log.read_text().endswith("\n"):
        assert time.monotonic() < end
        time.sleep(0.05)
    return int(log.read_text())


def test_a_command_that_will_not_end_is_killed_with_all_it_started(tmp_path):
    log = tmp_path / "log"
    with run([sys.executable, "-c", STUBBORN], log) as process:
        worker = read_number(log)
        process.stdin.close()
        assert process.wait(PATIENCE) == 128 + 9
    end = time.monotonic() + PATIENCE
    while is_alive(worker):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_roles_that_name_one_server_share_it(make_model, tmp_path):
    model = make_model()
    with owned_servers({"solver": model, "judge": model}, ["solver", "judge"], tmp_path) as servers:
        assert servers["solver"] is servers["judge"]
    assert [path.name for path in tmp_path.iterdir()] == ["serve-solver.log"]
