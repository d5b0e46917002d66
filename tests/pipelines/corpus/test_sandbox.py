import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.corpus.infobox import read_infobox
from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.clients.sandbox import ParserChild
from tests.pipelines.corpus import slow_parsers


@pytest.fixture(scope="module")
def child():
    with ParserChild(slow_parsers.count_or_misbehave, timeout=0.5, memory=128 << 20, wall=2.0) as started:
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


def test_the_time_limit_is_of_work_and_not_of_waiting():
    with ParserChild(slow_parsers.take_time, timeout=0.3) as patient:
        assert patient.parse("wait") == 4
        with pytest.raises(RecordFailed, match="CPU time"):
            patient.parse("hang")


def test_many_short_texts_do_not_add_up_to_a_timeout():
    with ParserChild(slow_parsers.take_time, timeout=0.3) as child:
        assert list(child.parse_all(["work"] * 8)) == [4] * 8


def test_parse_raises_the_failure(child):
    with pytest.raises(RecordFailed, match="no such text"):
        child.parse("raise")


def test_the_child_sees_no_environment(child, monkeypatch):
    monkeypatch.setenv("SYNTH_TEST_SECRET", "hidden")
    with ParserChild(slow_parsers.count_or_misbehave) as fresh:
        assert fresh.parse("secret") == 0


def test_dataclasses_come_back_equal():
    text = "{{Infobox bridge|length=[[A]]}}"
    with ParserChild("pipelines.corpus.infobox.read_infobox") as parser:
        assert parser.parse(text) == read_infobox(text)


def test_what_is_not_importable_is_refused():
    with pytest.raises(ConfigError, match="top-level"):
        ParserChild(lambda text: text)
    with pytest.raises(ConfigError, match="cannot load"), ParserChild("pipelines.no_such_module.function"):
        pass


def test_a_text_costs_less_than_a_millisecond():
    with ParserChild(slow_parsers.count) as parser:
        start = time.perf_counter()
        assert sum(parser.parse_all(["x" * 2000] * 2000)) == 4_000_000
        assert time.perf_counter() - start < 2


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_the_child_dies_with_its_parent():
    script = (
        "import sys\n"
        "from tests.pipelines.corpus import slow_parsers\nfrom pipelines.services.clients.sandbox import ParserChild\n"
        "child = ParserChild(slow_parsers.count_or_misbehave, timeout=60)\nchild.__enter__()\n"
        "sys.stdout.write(f'{child.pid}\\n')\nsys.stdout.flush()\nchild.parse('hang')\n"
    )
    path = ":".join([*sys.path, str(Path(__file__).parents[3])])
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env={"PYTHONPATH": path}) as parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
