import os
import signal
import threading
import time
from pathlib import Path

import pytest

from pipelines.corpus.build import build_corpus, place_unfinished
from pipelines.corpus.store import Corpus
from pipelines.errors import CorruptInput, Unavailable

TEXT = "See [[Article 1]] and [[Article 2]]. " * 300


def write_articles(write_dump, count):
    return write_dump(*((f"Article {number}", f"{number} {TEXT}") for number in range(count)))


@pytest.mark.slow
def test_a_damaged_range_stops_the_build_and_leaves_nothing(write_dump, tmp_path):
    dump = write_articles(write_dump, 200)
    source = bytearray(dump.read_bytes())
    source[len(source) // 2 : len(source) // 2 + 40] = bytes(40)
    dump.write_bytes(source)
    with pytest.raises(CorruptInput):
        build_corpus(dump, tmp_path / "made" / "out", workers=2, range_bytes=4000)
    assert list((tmp_path / "made").iterdir()) == []


def find_workers():
    """Return the child processes of this one that read ranges: those spawned by multiprocessing."""
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid() and "spawn_main" in command:
            children.append(int(folder.name))
    return children


@pytest.mark.slow
def test_a_killed_worker_stops_the_build_and_the_next_one_goes_on(write_dump, tmp_path):
    dump, out = write_articles(write_dump, 2000), tmp_path / "made" / "out"

    def kill_a_worker():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(place_unfinished(out.parent).glob("*/*/part.json")):
            time.sleep(0.01)
        os.kill(find_workers()[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_a_worker)
    killer.start()
    with pytest.raises(Unavailable, match="run the same command again"):
        build_corpus(dump, out, workers=2, range_bytes=20_000)
    killer.join()
    assert not out.exists()
    assert list(place_unfinished(out.parent).glob("*/*/part.json"))
    build_corpus(dump, out, range_bytes=20_000)
    assert Corpus.open(out).manifest.counts.articles == 2000
    assert [path.name for path in out.parent.iterdir()] == ["out"]
