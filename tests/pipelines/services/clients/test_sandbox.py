import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.errors import RecordFailed
from pipelines.services.clients.sandbox import ParserPool
from tests.pipelines.services.clients import slow_parsers


@pytest.fixture(scope="module")
def child():
    with ParserPool(slow_parsers.count_or_misbehave, seconds=1.0, memory=128 << 20) as started:
        yield started


def test_values_come_back_in_order(child):
    texts = ["x" * length for length in range(200)]
    assert list(child.parse_all(texts)) == list(range(200))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("hang", "parse-timeout"),
        ("sleep", "parse-timeout"),
        ("eat", "parse-memory"),
        ("die", "parse-crash"),
        ("raise", "parse-crash"),
        ("refuse", "too-odd"),
    ],
)
def test_a_bad_text_costs_only_itself(child, text, error):
    before, bad, after = child.parse_all(["abc", text, "abcd"])
    assert (before, bad.error, after) == (3, error, 4)


def test_one_pool_serves_one_event_loop_after_another(child):
    assert [asyncio.run(child.parse(text)) for text in ("a", "bb", "ccc")] == [1, 2, 3]


def test_parse_raises_the_failure(child):
    with pytest.raises(RecordFailed, match="no such text"):
        asyncio.run(child.parse("raise"))


def test_the_child_sees_no_environment(child, monkeypatch):
    monkeypatch.setenv("SYNTH_TEST_SECRET", "hidden")
    with ParserPool(slow_parsers.count_or_misbehave) as fresh:
        assert list(fresh.parse_all(["secret"])) == [0]


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_the_child_dies_with_its_parent():
    script = (
        "import sys\n"
        "from tests.pipelines.services.clients import slow_parsers\n"
        "from pipelines.services.clients.sandbox import ParserPool\n"
        "child = ParserPool(slow_parsers.count_or_misbehave, seconds=60)\n"
        "pid, = child.parse_all(['pid'])\n"
        "sys.stdout.write(f'{pid}\\n')\nsys.stdout.flush()\nlist(child.parse_all(['hang']))\n"
    )
    path = ":".join([*sys.path, str(Path(__file__).parents[4])])
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env={"PYTHONPATH": path}) as parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 300
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
