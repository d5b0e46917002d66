"""Wrong input and wrong configuration: exit 2, one line with what is allowed, and nothing that a later run trusts."""

import bz2
import gzip
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.driving import call_here, check_one_line, list_trusted, run_small, share_small_run

PAGES = "<html><head><title>Not here</title></head><body>moved</body></html>\n"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace, _ = share_small_run(tmp_path_factory.getbasetemp())
    return next(workspace.glob("worlds/*/*-multistream.xml.bz2"))


Refuse = Callable[..., str]


@pytest.fixture
def refuse_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refuse:
    return partial(run_on_bytes, tmp_path, capsys)


def run_on_bytes(folder: Path, capsys: pytest.CaptureFixture[str], data: bytes, suffix: str = ".xml.bz2") -> str:
    """Run on a dump with these bytes, which must be refused; return the line it was refused with."""
    dump = folder / f"badwiki-20260101-pages-articles{suffix}"
    dump.write_bytes(data)
    outcome = call_here(capsys, "run", "--workspace", folder / "work", "--set", f"corpus.dump={dump}")
    line = check_one_line(outcome, 2)
    assert list_trusted(folder / "work") == []
    assert not list(folder.glob("work/corpus/*"))
    return line


@pytest.mark.parametrize("share", [0.3, 0.97])
def test_a_truncated_dump_is_refused(refuse_dump: Refuse, dump: Path, share: float) -> None:
    whole = dump.read_bytes()
    assert "badwiki" in refuse_dump(whole[: int(len(whole) * share)])


def test_a_dump_with_a_flipped_byte_is_refused(refuse_dump: Refuse, dump: Path) -> None:
    broken = bytearray(dump.read_bytes())
    broken[len(broken) // 2] ^= 0xFF
    refuse_dump(bytes(broken))


def test_a_dump_cut_between_two_streams_is_refused(refuse_dump: Refuse, dump: Path) -> None:
    whole = dump.read_bytes()
    refuse_dump(whole[: whole.rindex(b"BZh")])


@pytest.mark.parametrize(
    ("data", "suffix"),
    [
        (random.Random(7).randbytes(5000), ".xml.bz2"),
        (b"", ".xml.bz2"),
        (b"", ".xml"),
        (gzip.compress(PAGES.encode()), ".xml.bz2"),
        (PAGES.encode(), ".xml.bz2"),
        (PAGES.encode(), ".xml"),
        (bz2.compress(PAGES.encode()), ".xml.bz2"),
    ],
    ids=["random", "empty bz2", "empty xml", "gzip", "html as bz2", "html", "html in bz2"],
)
def test_what_is_no_dump_is_refused(refuse_dump: Refuse, data: bytes, suffix: str) -> None:
    refuse_dump(data, suffix)


def test_after_a_refused_dump_the_whole_one_is_built(tmp_path: Path, refuse_dump: Refuse, dump: Path) -> None:
    refuse_dump(dump.read_bytes()[:2000])
    document = run_small(tmp_path / "work", "--until", "corpus", settings=(f"corpus.dump={dump}",))
    assert [stage["ran"] for stage in document["stages"]] == [True]
