"""Faults one row each: how the command ends, what it says, and what the same command does after the repair.

A row with ``before`` was no clean ending when 403 faults were tried; all others were survived then, too. ``ROWS`` are
tried by ``test_listed.py``; ``HELD`` are held by tests elsewhere. ``python -m tests.faults`` prints both as a table.
"""

import bz2
import csv
import gzip
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.run.workspace import Workspace
from tests.chaos.driving import STAGES, TINY, Outcome, digest_outputs, list_settings
from tests.faults.server import FAULTS, Handle
from tests.pipelines.services.clients.sparql_server import FAULTS as ANSWERS
from tests.pipelines.services.clients.sparql_server import SparqlServer

KEY = "sk-" + "a1B2" * 8
"""No command may echo it."""
Command = tuple[str, ...]
MADE = ("run", "--recipe", "demo", *list_settings(TINY), "--json")
"""The run that the workspace of each row has behind it."""


@dataclass
class Stand:
    """Where a fault is tried: a finished workspace, a folder beside it, a model server and a SPARQL endpoint."""

    root: Path
    folder: Path
    model: Handle
    sparql: SparqlServer
    call: Callable[..., Outcome]

    def run(self, command: Command) -> Outcome:
        """Run a command; ``{work}``, ``{folder}``, ``{part}``, ``{model}`` and ``{sparql}`` stand for what is here."""
        part = next(self.root.glob("stages/paths/*/part-00000.parquet"), "")
        places = {"work": self.root, "folder": self.folder, "part": part, "model": self.model.url}
        places["sparql"] = self.sparql.url
        for name, place in places.items():
            command = tuple(word.replace(f"{{{name}}}", str(place)) for word in command)
        outcome = self.call(*command, *(() if "--workspace" in command else ("--workspace", self.root)))
        assert "Traceback" not in outcome.err, outcome.err
        assert KEY not in outcome.err + outcome.out
        return outcome


Harm = Callable[[Stand], object]


@dataclass(frozen=True)
class Row:
    """One fault."""

    fault: str
    command: Command
    code: int
    words: str
    then: Callable[[Stand, "Row", dict[str, str]], None]
    """Checks what the next run does, given the outputs that an undisturbed run has; its docstring says it."""
    harm: Harm = lambda stand: None
    repair: Harm = lambda stand: None
    before: str = ""


@dataclass(frozen=True)
class Held:
    """A fault that a test elsewhere holds."""

    fault: str
    after: str
    then: str
    test: str
    before: str = ""


# What the next run does


def end_alike(stand: Stand, row: Row, undisturbed: dict[str, str]) -> None:
    """the same command ends with the bytes of an undisturbed run"""
    again = stand.run(row.command)
    assert again.code == 0, again.err
    assert digest_outputs(stand.root) == undisturbed
    assert stand.model.count()["paid_duplicates"] == 0


def have_nothing_to_do(stand: Stand, row: Row, undisturbed: dict[str, str]) -> None:
    """the run has nothing to do; every byte is as before"""
    again = stand.run(MADE)
    assert again.code == 0, again.err
    assert not [stage["stage"] for stage in again.document["stages"] if stage["ran"]]
    assert undisturbed.items() <= digest_outputs(stand.root).items()


def be_ready(stand: Stand, row: Row, undisturbed: dict[str, str]) -> None:
    """the same command says that all is ready"""
    again = stand.run(row.command)
    assert again.code == 0, again.out


def keep_the_name(stand: Stand, row: Row, undisturbed: dict[str, str]) -> None:
    """manifests, `synth sql` and the release's card name the model that replied"""
    latest = Workspace(stand.root).read_latest()
    manifest = Workspace(stand.root).stage("difficulty", latest["difficulty"]).read_manifest()
    assert manifest is not None
    assert set(manifest.usage.served) == {"mock: other-7b fp-1"}
    told = stand.run(("sql", "select usage.served from manifests where stage = 'difficulty'"))
    assert "other-7b fp-1" in told.out, told
    made = [stand.root / "releases" / key[8:] / latest[key] for key in latest if key.startswith("release:")]
    assert made
    for name in ("README.md", "manifest.json"):
        assert all("other-7b fp-1" in (release / name).read_text() for release in made)


def have_safe_cells(stand: Stand, row: Row, undisturbed: dict[str, str]) -> None:
    """no cell of ATTRIBUTION.tsv is a formula; the same command has nothing to do"""
    paths = list(stand.root.glob("releases/*/*/ATTRIBUTION.tsv"))
    cells = [cell for path in paths for line in path.read_text().splitlines() for cell in line.split("\t")]
    assert "'=HYPERLINK(1)" in cells
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@")]
    assert not [stage["stage"] for stage in stand.run(row.command).document["stages"] if stage["ran"]]


def lack_what_was_dropped(stand: Stand, row: Row, undisturbed: dict[str, str]) -> None:
    """the dropped stages are gone; the run has nothing to do; every byte is as before"""
    assert len(list(stand.root.glob("stages/paths/*"))) == 1
    have_nothing_to_do(stand, row, undisturbed)


# What is done to a workspace, a server or an input


def fail(fault: str) -> Harm:
    return lambda stand: stand.model.fail(fault)


def mend(stand: Stand) -> None:
    stand.model.mend()


def run(*commands: Command) -> Harm:
    return lambda stand: [stand.run(command) for command in commands]


def change_file(pattern: str, change: Callable[[bytes], bytes]) -> Harm:
    """Return what changes the first file of a pattern below the stand's folder."""

    def harm(stand: Stand) -> None:
        path = next(iter(sorted(stand.folder.glob(pattern))))
        path.chmod(0o644)
        path.write_bytes(change(path.read_bytes()))

    return harm


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


def find_world(stand: Stand) -> Path:
    return next(stand.root.glob("worlds/*/world.json")).parent


def lay_world(stand: Stand) -> None:
    """Copy the generated world to ``folder/world``, as a user's own input."""
    shutil.rmtree(stand.folder / "world", ignore_errors=True)
    shutil.copytree(find_world(stand), stand.folder / "world")


def lay_world_with(harm: Harm) -> Harm:
    def lay(stand: Stand) -> None:
        lay_world(stand)
        harm(stand)

    return lay


def credit_all(**cells: str) -> Harm:
    """Return what lays a world whose pictures are all credited so."""

    def harm(stand: Stand) -> None:
        lay_world(stand)
        table = stand.folder / "world" / "images" / "images.tsv"
        with table.open(encoding="utf-8", newline="") as source:
            rows = list(csv.DictReader(source, delimiter="\t", quoting=csv.QUOTE_NONE))
        lines = ["\t".join((row | cells).values()) for row in rows]
        table.write_text("\n".join(["\t".join(rows[0]), *lines, ""]), encoding="utf-8")

    return harm


DUMP = "badwiki-20260101-pages-articles.xml.bz2"


def lay_dump(change: Callable[[bytes], bytes] = lambda data: data) -> Harm:
    def harm(stand: Stand) -> None:
        data = next(find_world(stand).glob("*-multistream.xml.bz2")).read_bytes()
        (stand.folder / DUMP).write_bytes(change(data))

    return harm


def ask_sparql(fault: str) -> Harm:
    def harm(stand: Stand) -> None:
        stand.sparql.always = ANSWERS[fault]

    return harm


def mend_sparql(stand: Stand) -> None:
    stand.sparql.always = None


# Commands


def make_run(*settings: str, until: str = "releases") -> Command:
    return ("run", "--recipe", "demo", *list_settings((*TINY, *settings)), "--until", until, "--json")


def serve(role: str, *more: str) -> tuple[str, ...]:
    """Return the settings of a role that is served by the stand's model server."""
    # No row lets a request hang: a busy machine may take its time.
    settings = ("adapter=openai", "name=mock", "revision=r1", "timeout=60")
    own = (f"models.{role}.{setting}" for setting in (*settings, *more, "base_url={model}"))
    return ("runtime.patience=10", *own)


def run_served(role: str, *settings: str) -> Command:
    return make_run(*serve(role), *settings, until=STAGES[role])


def ask_doctor(role: str) -> Command:
    return ("doctor", "--recipe", "demo", *list_settings((*TINY, *serve(role))), "--json")


def run_world(*settings: str, until: str = "releases") -> Command:
    """Return the run over ``folder/world``, with the settings of the run that was made."""
    kept = [setting for setting in TINY if not setting.startswith("corpus.")]
    given = ("corpus.world={folder}/world", *kept, *settings)
    return ("run", "--recipe", "demo", *list_settings(given), "--until", until, "--json")


RUN_DUMP = ("run", "--recipe", "demo", "--set", f"corpus.dump={{folder}}/{DUMP}", "--until", "corpus", "--json")
RUN_WORLD = run_world(until="corpus")
DRAWN = ("classes=['Q5', 'Q12280']", "require_image=false",
         "endpoint={sparql}")  # fmt: skip
RUN_SPARQL = make_run("contact=x@example.org", *(f"seeds.{setting}" for setting in DRAWN), until="seeds")
CUT_SHORT = ("truncated JSON", "text with 200", "a page with 200")
UNUSABLE = "had no usable reply"
SAYS_OK = "says `chat ok`"

LISTED = (
    Row("teacher: content null", run_served("teacher"), 3, UNUSABLE, end_alike, fail("null"), mend,
        "423 of 423 rollouts rejected as format, exit 0, sealed; after the repair: nothing to do"),
    Row("solver: content null, below min_attempts", run_served("solver"), 3, UNUSABLE, end_alike, fail("null"), mend,
        "all unscored, exit 0, sealed"),
    Row("solver: content null, above min_attempts",
        run_served("solver", "runtime.unscored=0.9"), 3, UNUSABLE, end_alike,
        fail("null"), mend, "exit 1; after the repair it fails again by the recorded empty replies"),
    Row("rewriter: content null", run_served("rewriter"), 3, UNUSABLE, end_alike, fail("null"), mend,
        "12 of 12 asked rows failed, exit 0, sealed"),
    *(Row(f"doctor: content null of the {role}", ask_doctor(role), 2, "replies without content", be_ready,
          fail("null"), mend, SAYS_OK) for role in STAGES),
    *(Row(f"doctor: reasoning and no content of the {role}", ask_doctor(role), 2,
          "replies without content", be_ready, fail("reasoning only"), mend, SAYS_OK)
      for role in ("solver", "teacher")),
    Row("doctor: another model replies", ask_doctor("solver"), 0, "answers as other-7b fp-1, and mock was asked",
        be_ready, fail("other model"), mend, SAYS_OK),
    Row("another model replies", make_run(*serve("solver")), 0, "the server says that 'other-7b fp-1' replied",
        keep_the_name, fail("other model"), mend, "neither noticed nor kept"),
    Row("a reply of 12 MB to max_tokens = 512", make_run(*serve("solver", "max_tokens=512"), until=STAGES["solver"]), 3,
        "a reply of 12,000,233 bytes; allowed are 1,048,576", end_alike, fail("12 MB"), mend,
        "read whole: 8 of them took 1.18 GB"),
    Row("`synth sql` with explain analyze copy", ("sql", "explain analyze copy (select 1 as a) to '{part}'"), 2,
        "one SELECT, FROM, DESCRIBE, SUMMARIZE or SHOW is allowed", have_nothing_to_do,
        before="a sealed part is overwritten; `synth run`: nothing to do"),
    Row("a key where a variable's name belongs", ("run", "--set", f"models.solver.api_key_env={KEY}"), 2,
        "looks like a key itself", have_nothing_to_do, before="the key is echoed"),
    Row("an author that begins with =", run_world(), 0, "", have_safe_cells, credit_all(author="=HYPERLINK(1)"),
        before="a formula in ATTRIBUTION.tsv"),
    Row("a source URL of javascript:", RUN_WORLD, 2, "'javascript:alert(1)'; expected http(s)", end_alike,
        credit_all(source_url="javascript:alert(1)"), lay_world, "released"),
    Row("stages of an old configuration", ("prune", "--yes", "--json"), 0, "no run and no release uses this key",
        lack_what_was_dropped, run(make_run("seeds.limit=20", until="paths"), MADE), before="nothing removes them"),
)  # fmt: skip
"""Cases that the issue lists as not survived."""


def refuse(fault: str, command: Command, words: str, code: int = 2) -> Row:
    """Return the row of a command that is refused and leaves the workspace as it was."""
    return Row(fault, command, code, words, have_nothing_to_do)


def stop_on_dump(fault: str, words: str, change: Callable[[bytes], bytes]) -> Row:
    return Row(f"dump: {fault}", RUN_DUMP, 2, words, end_alike, lay_dump(change), lay_dump())


def stop_on_side_file(fault: str, pattern: str, words: str, change: Callable[[bytes], bytes]) -> Row:
    harm = lay_world_with(change_file(f"world/{pattern}", change))
    return Row(f"side file: {fault}", RUN_WORLD, 2, words, end_alike, harm, lay_world)


PAGE = b"<html><body>moved</body></html>\n"
SURVIVED = (
    stop_on_dump("cut", "is truncated inside a bz2 stream", cut),
    stop_on_dump("a byte turned over", "cannot be decompressed", flip),
    stop_on_dump("empty", "is not a bz2 file", lambda data: b""),
    stop_on_dump("random bytes", "is not a bz2 file", lambda data: random.Random(7).randbytes(5000)),
    stop_on_dump("a page of HTML", "has no <mediawiki> element at its start", lambda data: bz2.compress(PAGE)),
    stop_on_dump("gzip by the name of bz2", "is not a bz2 file", lambda data: gzip.compress(bz2.decompress(data))),
    stop_on_side_file("page_props cut", "toywiki-*-page_props.sql.gz", "is truncated or no gzip file", cut),
    stop_on_side_file("page_props of HTML", "toywiki-*-page_props.sql.gz", "has no table page_props",
                      lambda _: gzip.compress(PAGE)),
    stop_on_side_file("Wikidata's page_props with a byte turned over", "wikidatawiki-*-page_props.sql.gz",
                      "is truncated or no gzip file", flip),
    stop_on_side_file("images.tsv without its columns", "images/images.tsv", "has no column author",
                      lambda _: b"file\nA.jpg\n"),
    *(Row(f"SPARQL: {fault}", RUN_SPARQL, 3, words, end_alike, ask_sparql(fault), mend_sparql)
      for fault, words in (("500", "HTTP 500"), ("503", "HTTP 503"), ("no reply", "run again to continue"),
                           *((fault, "that are no complete reply") for fault in CUT_SHORT))),
    refuse("configuration: a judge that judges itself",
           make_run(*serve("solver"), *serve("judge"), until="difficulty"), "the judge never judges itself"),
    Row("configuration: fewer seeds, and back", make_run("seeds.limit=20", until="paths"), 0, "", have_nothing_to_do),
)  # fmt: skip

CHAOS, PIPELINES = "tests/chaos", "tests/pipelines"
HELD_LISTED = (
    Held("SIGTERM, SIGHUP, SIGINT at five moments each", "exit 3, interrupted",
         "the same command goes on; paid twice: 0",
         f"{CHAOS}/test_signals.py::test_signals_at_five_moments_of_a_run_make_nothing_be_paid_twice",
         "SIGTERM, SIGHUP not handled: 48 of 48 requests in flight paid twice; SIGINT: 0 of 48"),
    Held("an uncaught defect", "exit 4, one line with its log and where to report it", "the log has the traceback",
         f"{PIPELINES}/cli/test_defects.py::test_a_defect_is_one_line_with_its_log_and_exit_code_4",
         "exit 1, which means a gate not met"),
)  # fmt: skip
HELD_SURVIVED = (
    Held(f"{len(FAULTS)} faults of a model server in {len(STAGES)} roles", "exit 2 or 3; no stage is sealed",
         "the same command ends with the bytes of an undisturbed run; paid twice: 0",
         "tests/faults/test_services.py::"
         "test_a_fault_of_a_service_seals_no_stage_and_the_same_command_goes_on_after_the_repair",
         "empty, null and cut replies ended with exit 0, sealed"),
    Held("kill -9 at any moment, from world to release, 8 times", "nothing half made is trusted",
         "the bytes of an undisturbed run", f"{CHAOS}/test_kill.py::test_kills_leave_the_same_bytes"),
    Held("kill -9 amid requests, 10 times", "no recorded reply is lost", "paid twice: only what was in flight",
         f"{CHAOS}/test_paid_replies.py::test_what_is_paid_twice_was_in_flight_at_a_kill"),
    Held("kill -9 of a worker", "it is replaced", "the bytes of an undisturbed run",
         f"{CHAOS}/test_workers.py::test_a_worker_that_is_killed_is_replaced_and_the_run_ends_with_the_same_bytes"),
    Held("hostile lead pictures", "the seed is refused as image-unusable; no row fails", "rows are accounted for",
         f"{CHAOS}/test_hostile_pictures.py::test_a_hostile_lead_picture_refuses_its_seed_with_the_reason"),
    Held("a fifth of all replies spoilt, in 22 ways", "the row fails by name", "kept rows are those of a clean run",
         "tests/faults/test_hostile_replies.py::"
         "test_every_row_that_is_kept_is_the_row_of_a_run_without_a_bad_reply"),
    Held(f"{len(ANSWERS)} faults of a SPARQL endpoint amid a draw", "no candidate is lost or doubled", "the same seeds",
         f"{PIPELINES}/stages/test_seeds_wikidata.py::test_a_fault_of_the_endpoint_changes_no_seed"),
    Held("SSRF: ways to write a private address", "refused as forbidden-address", "nothing was asked",
         f"{PIPELINES}/services/test_visit_addresses.py::test_visit_refuses_what_is_not_of_the_public_web"),
    Held("SSRF: redirects to a private address", "refused as forbidden-address", "nothing was asked there",
         f"{PIPELINES}/services/test_visit_addresses.py::"
         "test_visit_refuses_a_public_page_that_redirects_there"),
    Held("markup and scripts in what the view shows", "shown as text", "no script in the page",
         "tests/browser/test_browser.py::test_hostile_text_stays_text"),
    Held("a full disk amid the stages", "exit 3, the disk is full", "the bytes of an undisturbed run",
         f"{CHAOS}/test_full_disk.py::test_a_full_disk_amid_the_stages_is_gone_on_from"),
    Held("a disk full at publishing", "exit 3, no part of a release", "the release",
         f"{CHAOS}/test_full_disk.py::test_a_disk_full_at_publishing_leaves_no_part_of_a_release"),
    Held("two runs at the same time", "exit 3, another run holds it", "the other one ends",
         f"{PIPELINES}/run/test_workspace.py::test_two_runs_in_one_workspace_do_not_mix"),
)  # fmt: skip
ROWS, HELD = (*LISTED, *SURVIVED), (*HELD_LISTED, *HELD_SURVIVED)
