"""Advice about files of a workspace heals: each message that says what to remove, restore or repair is followed here.

The messages are collected from the source. One that is followed nowhere fails the suite, and so does a scenario whose
message is gone.
"""

import ast
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.corpus.build import build_corpus
from pipelines.errors import ConfigError, CorruptInput
from pipelines.services.clients.batch import BatchNotes
from pipelines.services.clients.replies import note_address, read_address, read_epochs
from pipelines.services.clients.sqlite import FILE
from pipelines.services.clients.vendors import read_vendors
from tests.chaos.driving import (
    ROOT,
    SMALL,
    Outcome,
    call_here,
    copy_workspace,
    digest_files,
    list_settings,
    share_small_run,
)

Capture = pytest.CaptureFixture[str]
RUN = ("run", *list_settings((*SMALL, "runtime.workers=1")), "--limit", 60)
ADVICE = re.compile(
    r"\b(remove (it|them|the|\{\})|delete (it|the)|repair`|restore (it|the)|[Bb]ring (it|them) back|move the folder"
    r"|move that file|copy it (again|there)|copy the corpus|make an empty|mend (that|the|it)|write replies"
    r"|makes (it|this \w+) again|make the release|builds this|generates this|publishes (this|again)"
    r"|writes (it|these|this)\b.* again|notes again|hashes the|learns again|counts again|goes on without|keep it anew"
    r"|install \w+ anew|(?<!is )run (it )?again|same command again|free (some )?space|--check`)"
)
"""What a message says that tells to change files, or which command does."""
MENDING, INTEGRITY = "pipelines/run/test_mending.py", "chaos/test_integrity.py"
MADE_AGAIN = f"{INTEGRITY}::test_damage_is_named_by_a_check_and_by_the_next_run_which_makes_it_again"
GONE_ON_LATER = (
    "pipelines/run/test_chains.py::test_a_service_away_in_one_stage_stops_all_and_a_later_run_goes_on_with_their_shards"
)
KEPT_ANEW = "pipelines/cli/test_runs.py::test_a_kept_configuration_with_other_bytes_is_refused_and_can_be_kept_anew"
NOTED = "pipelines/cli/test_runs.py::test_a_damaged_note_of_a_run_is_told_and_written_again"
REVIEWED = (
    "pipelines/cli/test_review.py::"
    "test_a_flip_in_what_people_decided_or_were_asked_is_named_and_gone_once_it_is_made_again"
)
BATCHES, CLIENTS = "pipelines/services/clients/test_batch.py", "pipelines/services/clients"
DAMAGED_PICTURE = f"{CLIENTS}/test_news.py::test_a_damaged_picture_of_which_all_files_are_removed_is_gone_on_without"
ENDPOINT = "pipelines/stages/test_seeds_wikidata.py"
SAVED = "pipelines/services/clients/test_ledger.py::test_a_damaged_file_is_told_and_what_can_be_read_is_saved"
GONE_ON = "chaos/test_full_disk.py::test_a_full_disk_amid_the_stages_is_gone_on_from"
UNMET = "pipelines/test_stopping.py::test_an_interrupt_that_no_command_meets_is_one_line_and_exit_code_3"
ELSEWHERE = {
    "interrupted; run the same command again": UNMET,
    "run `synth run`, which makes it again": MADE_AGAIN,
    "`synth run` makes it again": MADE_AGAIN,
    "`synth run` makes it again from recorded": MADE_AGAIN,
    "it makes this part again from recorded": MADE_AGAIN,
    "builds this corpus again": MADE_AGAIN,
    "generates this world again": MADE_AGAIN,
    "publishes this version again": MADE_AGAIN,
    "publishes again, and what is the same": MADE_AGAIN,
    "notes again what it uses": MADE_AGAIN,
    "hashes the inputs again": MADE_AGAIN,
    "`synth replies repair` saves": SAVED,
    "say `synth replies repair`": SAVED,
    "free space and run the same command again": GONE_ON,
    "run the same command again once this is fixed": GONE_ON,
    "mend that and run the same command": "chaos/test_full_disk.py::"
    "test_a_disk_full_at_the_catalogue_is_said_in_one_line",
    "the budget of this run is spent": "chaos/test_model_runs.py::"
    "test_a_budget_that_is_spent_ends_the_run_in_order_and_a_larger_one_goes_on_from_there",
    "make an empty file there": f"{MENDING}::test_a_lost_store_of_replies_stops_a_run_before_it_makes_an_empty_one",
    "is it mounted, or was it moved": f"{MENDING}::"
    "test_a_kind_of_files_that_is_gone_as_a_whole_is_asked_for_and_not_made_again",
    "nothing here makes it again": f"{MENDING}::"
    "test_a_damaged_picture_that_the_corpus_lacks_stays_until_its_shard_makes_it_again",
    "no run can make it": f"{MENDING}::"
    "test_a_corpus_whose_file_is_whole_when_it_is_read_again_is_kept_and_no_file_is_tried_for_ever",
    "it is no file of this workspace": f"{MENDING}::test_what_no_run_makes_is_not_taken_away",
    "a batch of {} requests is under way": f"{BATCHES}::test_a_batch_at_another_server_is_not_paid_again",
    "was cancelled; run again to ask the rest": f"{BATCHES}::"
    "test_a_cancelled_batch_gives_what_it_has_and_stops_the_run",
    "; run again later": GONE_ON_LATER,
    "check the network and run again later": GONE_ON_LATER,
    ", or run again later": GONE_ON_LATER,
    "run again in {} s": GONE_ON_LATER,
    "see ulimit -n, and run again": GONE_ON_LATER,
    "worker processes end before a shard is made": GONE_ON_LATER,
    "run again after that": f"{ENDPOINT}::test_a_run_that_the_endpoint_stopped_goes_on_and_asks_only_what_is_missing",
    "times; run again to continue": f"{ENDPOINT}::"
    "test_a_run_that_the_endpoint_stopped_goes_on_and_asks_only_what_is_missing",
    "addresses replied; run again when they do": f"{CLIENTS}/test_news.py::"
    "test_a_network_that_is_down_stops_the_run_and_the_next_one_fetches",
    "where none does, remove {}*": DAMAGED_PICTURE,
    "remove {}* and go on without it": DAMAGED_PICTURE,
    "`synth run {}` writes it again": NOTED,
    "writes these articles again": "pipelines/test_inputs.py::"
    "test_articles_with_a_flipped_byte_are_named_and_written_again_from_their_source",
    "keep it anew with": KEPT_ANEW,
    "remove it and import the forms again": REVIEWED,
    "for a changed mind remove": "pipelines/cli/test_review.py::"
    "test_a_second_import_adds_what_is_new_and_refuses_what_was_said_otherwise_before",
    "move the folder away": "pipelines/release/test_publish.py::"
    "test_a_folder_with_another_content_stops_publishing_until_it_is_moved_away",
}
"""Parts of messages that a test elsewhere follows, and that test."""
OUTSIDE = {
    "mend the database": "PostgreSQL is the user's own",
    "restore the database": "PostgreSQL is the user's own",
    "free space, then run again": "PostgreSQL's disk",
    "free some space and run again": "the disk of temporary files while a dump is sorted",
    "free space or end the other run": "another run holds the store, and ends",
    "copy the corpus again: rsync": "files of another host",
    "copy it there: rsync": "files of another host",
    "a process that reads the dump was killed": "nothing is to be changed",
    "is there a network, and a token": "the Hub",
    "publishes this with what is released": "no damage: decisions are kept for the next release",
    "picture {}: {}; restore it": "a picture of the input: its folder is mounted again",
    "{}; restore it and run again": "a picture of the input: its folder is mounted again",
    "bring it back and run again": "a picture of the input: its folder is mounted again",
    "see that it runs, then run again": "PostgreSQL is the user's own",
    "of the Ray cluster did not begin": "the cluster is the user's own",
    "run again, one build at a time": "another build runs, and ends",
    "out of memory; allow more": "the machine's memory",
    "mend it and push again": "a card that the user wrote",
    "mend it there, or say --replace": "a file of the Hub",
    "install synth anew": "a file of the package",
    "{}: {}; make the release again": "a release of another version of synth",
}
"""Parts of messages about what is no file of a workspace, and what they are about."""
FOLLOWED: dict[str, str] = {}


def follows(*parts: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Note which messages a test follows, by a part of each."""

    def note(test: Callable[..., None]) -> Callable[..., None]:
        FOLLOWED.update(dict.fromkeys(parts, test.__name__))
        return test

    return note


def list_advice() -> Iterator[str]:
    """Yield the texts of the product that tell to change files, values as ``{}``; docstrings are none."""
    for path in sorted(path for top in ("pipelines", "flows") for path in (ROOT / top).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = "" if id(node) in inner else read_text(node)
            if " " in text and ADVICE.search(text):
                yield text


def read_text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(read_text(part) or "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_every_piece_of_advice_is_followed_by_a_test() -> None:
    known = (*FOLLOWED, *ELSEWHERE, *OUTSIDE)
    advice = list(list_advice())
    assert [text for text in advice if not any(part in text for part in known)] == []
    assert [part for part in known if not any(part in text for text in advice)] == []


@pytest.mark.parametrize("test", sorted(set(ELSEWHERE.values())))
def test_a_test_that_is_named_is_there(test: str) -> None:
    path, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / "tests" / path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share_small_run(tmp_path_factory.getbasetemp())[0]


@pytest.fixture
def own(shared: Path, tmp_path: Path) -> Path:
    return copy_workspace(shared, tmp_path / "work [1]space")


def check(capsys: Capture, root: Path) -> Outcome:
    return call_here(capsys, "status", "--check", "--workspace", root, "--json")


def expect(capsys: Capture, root: Path, path: Path, remedy: str) -> None:
    """Assert that a check names one file, and what to do about it."""
    found = check(capsys, root)
    assert found.code == 1
    assert [Path(each["path"]) for each in found.document["findings"]] == [path]
    assert remedy in found.document["findings"][0]["remedy"]


@follows(
    "remove it: the next flow run writes it",
    "remove it, and name --fresh-replies again",
    "remove it: its requests are asked",
)
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("flow-run.txt", "remove it: the next flow run writes it"),
        ("replies/fresh.json", "remove it, and name --fresh-replies again"),
        ("batches/a.json", "remove it: its requests are asked, and paid, again"),
    ],
)
def test_a_note_that_is_removed_as_advised_is_missed_by_nobody(
    name: str, remedy: str, own: Path, capsys: Capture
) -> None:
    (own / name).parent.mkdir(exist_ok=True)
    before = digest_files(own / "releases", "**/*")
    (own / name).write_text("{")
    expect(capsys, own, own / name, remedy)
    (own / name).unlink()
    assert check(capsys, own).code == 0
    run = call_here(capsys, *RUN, "--workspace", own)
    assert (run.code, "Nothing to do" in run.out) == (0, True)
    assert digest_files(own / "releases", "**/*") == before


@follows("learns again what servers refuse", "counts again without it", "goes on without it; name --retry again")
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("vendors.json", "`synth run` learns again what servers refuse"),
        ("stages/questions/*/stopped-a.json", "`synth run` counts again without it; nothing else is lost"),
        ("stages/questions/*/retry-00000.json", "`synth run` goes on without it; name --retry again"),
    ],
)
def test_a_note_that_a_run_deals_with_is_gone_after_it(name: str, remedy: str, own: Path, capsys: Capture) -> None:
    folder, _, note = name.rpartition("/")
    path = (next(own.glob(folder)) if folder else own) / note
    path.write_text("{")
    before = digest_files(own / "releases", "**/*")
    expect(capsys, own, path, remedy)
    run = call_here(capsys, *RUN, "--workspace", own)
    assert run.code == 0, run.err
    assert check(capsys, own).code == 0
    assert digest_files(own / "releases", "**/*") == before


@follows("bring it back: claims of the workspace")
def test_the_name_of_a_workspace_is_brought_back(own: Path, capsys: Capture) -> None:
    (own / ".name").write_text("a" * 32)
    assert check(capsys, own).code == 0
    (own / ".name").write_text("?")
    expect(capsys, own, own / ".name", "bring it back")
    (own / ".name").write_text("a" * 32)
    assert check(capsys, own).code == 0


@follows("{}: it is damaged, and {} of the {} recorded replies")
def test_a_damaged_stage_whose_replies_are_gone_is_asked_for_again_once_its_folder_is_removed(
    own: Path, capsys: Capture
) -> None:
    before = digest_files(own / "releases", "**/*")
    used = next(own.glob("stages/questions/*/used-*.txt"))
    with sqlite3.connect(own / "replies" / FILE) as store:
        store.executemany("DELETE FROM replies WHERE key = ?", [(key,) for key in used.read_text().split()])
    used.with_name(used.name.replace("used", "part").replace("txt", "parquet")).write_bytes(b"damaged")
    refused = call_here(capsys, *RUN, "--workspace", own)
    assert refused.code == 2
    said = f"{used.parent}: it is damaged"
    assert said in refused.err
    assert "or remove the folder to ask, and pay, for them again" in refused.err
    shutil.rmtree(used.parent)
    assert call_here(capsys, *RUN, "--workspace", own).code == 0
    assert check(capsys, own).code == 0
    assert digest_files(own / "releases", "**/*") == before


@follows("view {}: {}; `synth status --check` names what is damaged")
def test_rows_that_no_view_can_be_made_of_are_named_by_the_check_and_made_by_the_run(
    own: Path, capsys: Capture
) -> None:
    part = next(own.glob("stages/paths/*/part-00000.parquet"))
    before = part.read_bytes()
    part.write_bytes(b"damaged")
    asked = call_here(capsys, "sql", "from paths", "--workspace", own)
    assert asked.code == 2
    assert "`synth status --check` names what is damaged, `synth run` makes it again" in asked.err
    expect(capsys, own, part, "`synth run` makes it again")
    assert call_here(capsys, *RUN, "--workspace", own).code == 0
    assert call_here(capsys, "sql", "from paths", "--workspace", own).code == 0
    assert part.read_bytes() == before


@follows("{}: damaged; remove it and run again", "it must map roles to numbers from 1; remove it")
@pytest.mark.parametrize("text", ["{", '{"writer": 0}'])
def test_epochs_are_read_again_once_a_damaged_note_is_removed(text: str, tmp_path: Path) -> None:
    (tmp_path / "fresh.json").write_text(text)
    with pytest.raises(CorruptInput, match="remove it and run again"):
        read_epochs(tmp_path)
    (tmp_path / "fresh.json").unlink()
    assert read_epochs(tmp_path) == {}


@follows("damaged; without it its requests are paid again: remove it", "remove it and run again: what servers refuse")
@pytest.mark.parametrize("read", [lambda path: BatchNotes(path.parent, "b", "s", bool).read(), read_vendors])
def test_a_damaged_note_of_services_tells_to_remove_it(read: Callable[[Path], object], tmp_path: Path) -> None:
    without = read(tmp_path / "note.json")
    (tmp_path / "note.json").write_text("{")
    with pytest.raises(CorruptInput, match="remove it"):
        read(tmp_path / "note.json")
    (tmp_path / "note.json").unlink()
    assert read(tmp_path / "note.json") == without


@follows("the workspace's replies are in PostgreSQL", "write replies.address of the configuration", "or move that file")
def test_replies_are_kept_elsewhere_once_what_says_otherwise_is_gone(own: Path, capsys: Capture) -> None:
    folder, address = own / "replies", "env:SYNTH_REPLIES"
    with pytest.raises(ConfigError, match="or move that file away to begin a new store"):
        note_address(folder, address)
    (folder / FILE).rename(own / "away.db")
    note_address(folder, address)
    noted = (folder / "address").read_bytes()
    (folder / "address").write_text("?")
    expect(capsys, own, folder / "address", "write replies.address of the configuration into it")
    (folder / "address").write_text(address)
    assert read_address(folder) == address
    note_address(folder, address)
    assert (folder / "address").read_bytes().split() == noted.split()
    with pytest.raises(ConfigError, match=f"or remove {re.escape(str(folder / 'address'))} to begin a new store"):
        note_address(folder, "")
    (folder / "address").unlink()
    note_address(folder, "")
    (own / "away.db").rename(folder / FILE)
    assert check(capsys, own).code == 0
    run = call_here(capsys, *RUN, "--workspace", own)
    assert (run.code, "Nothing to do" in run.out) == (0, True)


@follows("remove it and export the sample again")
def test_a_damaged_sample_is_given_out_again_once_it_is_removed(own: Path, capsys: Capture) -> None:
    export = ("review", "export", "--size", 8, "--workspace", own)
    assert call_here(capsys, *export).code == 0
    sample, before = own / "review/questions/sample.json", digest_files(own / "review", "**/*")
    sample.write_text("[")
    expect(capsys, own, sample, "bring it back, or remove it and export the sample again")
    refused = call_here(capsys, *export)
    assert refused.code == 2
    assert f"{sample}: is not what was exported; bring it back, or remove it and export the sample again" in refused.err
    sample.unlink()
    assert call_here(capsys, *export).code == 0
    assert digest_files(own / "review", "**/*") == before
    assert check(capsys, own).code == 0


@follows("prune: run {} cannot be planned, so what it needs is not known")
@pytest.mark.parametrize("names", [("config.toml",), ("config.toml", "latest.json")])
def test_a_run_whose_kept_files_are_damaged_is_forgotten_and_kept_again(
    names: tuple[str, ...], own: Path, capsys: Capture
) -> None:
    before = digest_files(own / "releases", "**/*")
    for name in names:
        (own / "runs/demo" / name).write_text("?")
    for command in (("prune",), RUN):
        refused = call_here(capsys, *command, "--workspace", own)
        assert refused.code == 2
        assert "`synth runs --forget demo`" in refused.err
    assert call_here(capsys, "runs", "--forget", "demo", "--workspace", own).code == 0
    run = call_here(capsys, *RUN, "--recipe", "demo", "--workspace", own)
    assert run.code == 0, run.err
    assert digest_files(own / "releases", "**/*") == before
    assert check(capsys, own).code == 0


@follows("exists already; remove it")
def test_a_starter_is_written_once_the_old_one_is_removed(tmp_path: Path, capsys: Capture) -> None:
    assert call_here(capsys, "init", tmp_path / "a").code == 0
    refused = call_here(capsys, "init", tmp_path / "a")
    assert refused.code == 2
    assert "exists already; remove it" in refused.err
    (tmp_path / "a" / "synth.toml").unlink()
    assert call_here(capsys, "init", tmp_path / "a").code == 0


@pytest.mark.slow
@follows("a corpus is never changed: choose another name or remove it")
def test_a_corpus_is_built_once_the_old_one_is_removed(shared: Path, tmp_path: Path) -> None:
    (dump,) = (path for path in shared.glob("worlds/*/*-pages-articles*.xml.bz2") if "-index" not in path.name)
    out = tmp_path / "corpus"
    out.mkdir()
    with pytest.raises(ConfigError, match="choose another name or remove it"):
        build_corpus(dump, out)
    out.rmdir()
    build_corpus(dump, out)
    assert (out / "manifest.json").is_file()
