"""BridgeVQA on a small generated world: questions about its news, from articles to verified releases."""

import csv
import json
import shutil
from collections import Counter

import pyarrow.parquet as pq
import pytest

from pipelines.checks.traces import write_steps
from pipelines.cli.commands import run_recipe
from pipelines.config.loading import make_config, read_recipe
from pipelines.corpus.store import Corpus
from pipelines.errors import GateNotMet
from pipelines.graph.proofs import NO_PROOF, make_question_id
from pipelines.graph.query import Indexes
from pipelines.release.verify import verify_release
from pipelines.run.workspace import Workspace
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from schemas.proofs import Answer, Trace
from tests.pipelines.release.tampering import edit_rows, reseal

pytestmark = pytest.mark.slow


def configure(world, *settings):
    own = ("models=scripted", f"corpus.world={world}", 'groundings.ocr=["layer"]', "rollouts.attempts=2")
    return make_config(read_recipe("bridgevqa"), [*own, *settings])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("news") / "world"
    write_world(folder, WorldConfig(entities=400))
    return folder


@pytest.fixture(scope="module")
def finished(world, tmp_path_factory):
    root = tmp_path_factory.mktemp("news-workspace")
    return root, run_recipe(configure(world), root, "", ()).as_dict()


def find_release(finished, dataset):
    root, document = finished
    return root / next(release["path"] for release in document["releases"] if release["dataset"] == dataset)


@pytest.fixture(scope="module")
def ground(finished):
    root, _ = finished
    return Indexes(Corpus.open(root / "corpus" / Workspace(root).read_latest()["corpus"]))


def read_rows(folder):
    return [row for path in sorted(folder.glob("data/*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_every_release_verifies_and_bridgevqa_holds_traces_of_three_hops(finished, ground):
    root, document = finished
    assert {release["dataset"] for release in document["releases"]} == {"bridgevqa", "sft", "rl"}
    for release in document["releases"]:
        report = verify_release(root / release["path"], ground)
        assert (report.problems, report.verified, report.unproved) == ((), release["rows"], 0)
        assert report.describe() == f"{release['rows']}/{release['rows']}"
    rows = read_rows(find_release(finished, "bridgevqa"))
    assert len(rows) >= 20
    assert {row["hops"] for row in rows} == {3}
    assert all(len(row["trace"]) == 4 and len(row["evidence"]) == 2 for row in rows)
    assert any(row["evidence"][0]["url"] != row["evidence"][1]["url"] for row in rows)


def test_a_row_says_what_is_quoted_and_what_is_judged(finished, ground):
    folder = find_release(finished, "bridgevqa")
    assert {row["standing"] for row in read_rows(folder)} <= {"solved", "quoted"}
    claims = verify_release(folder, ground).claims
    assert claims
    assert all("that the words ask these facts was judged by " in claim for claim in claims)


def test_rows_are_conserved_and_the_checks_have_work(finished):
    _, document = finished
    refused = Counter()
    for stage in document["stages"]:
        assert stage["rows_in"] == stage["kept"] + sum(stage["rejected"].values()) + stage["failed"]
        refused.update(stage["rejected"])
    assert {"too-old", "no-picture", "duplicate-article", "anchor-not-in-article", "undecided"} <= set(refused)


def test_what_people_decide_is_read_back_and_nothing_is_paid_again(finished, world):
    root, _ = finished
    review = root / "review" / "bridges"
    rows = list(csv.DictReader((review / "undecided.csv").read_text("utf-8").splitlines()))
    records = json.loads((review / "argilla.json").read_text("utf-8"))
    assert len(rows) == len(records) > 0
    path = root / "decisions.csv"
    lines = ["id,decision,decided_by,decided_on", *(f"{row['id']},accept,Ana Roth,2026-11-20" for row in rows)]
    path.write_text("\n".join(lines))
    again = run_recipe(configure(world, f"news.decisions={path}"), root, "groundings", ()).as_dict()
    by_name = {stage["stage"]: stage for stage in again["stages"]}
    assert by_name["groundings"]["rejected"] == {}
    assert sum(stage["calls"] - stage["cached_calls"] for stage in again["stages"]) == 0
    assert json.loads((review / "argilla.json").read_text("utf-8")) == []


def test_a_run_gives_the_same_bytes_in_another_workspace(finished, world, tmp_path):
    run_recipe(configure(world), tmp_path, "", ())
    assert Workspace(tmp_path).read_latest()["release:bridgevqa"] == find_release(finished, "bridgevqa").name


def copy_release(finished, tmp_path):
    """Return a copy of the release that may be written to."""
    folder = tmp_path / "release"
    shutil.copytree(find_release(finished, "bridgevqa"), folder)
    for path in (folder / "manifest.json", *folder.rglob("*.parquet")):
        path.chmod(0o644)
    return folder


def set_step(row):
    row["trace"]["steps"][1] += " Surely."


def set_span(row):
    row["trace"]["links"][0]["evidence"]["text"] += "!"


def set_url(row):
    row["trace"]["links"][1]["url"] = "https://elsewhere.example/"


def set_decider(row):
    row["trace"]["decided_by"] = ""


def name_bridge(row):
    row["text"] = f"{row['text'].rstrip('?')}, as {row['trace']['links'][0]['object']} is?"


def swap_picture(row):
    row["picture"]["source_url"] = "https://elsewhere.example/"


def drop_trace(row):
    row["trace"] = None


def rename(row):
    """Make the id again, as whoever changes a text or an answer would."""
    answer = Answer.model_validate(row["answer"], strict=False)
    row["record_id"] = make_question_id(row["text"], row["picture"]["sha256"], answer, NO_PROOF)


def ask_otherwise(row):
    """Ask something else in the name of the question, whose facts stay as they are."""
    row["text"] = row["fuzzy"] = row["canonical"] = "What is the name of the river beside what is in the image?"
    rename(row)


def add_alias(row):
    row["answer"]["aliases"].append("anything")
    rename(row)


def set_value(row):
    row["answer"]["value"] += " or so"
    rename(row)


def set_key(row):
    row["answer"]["key"] = "text:else"
    rename(row)


def set_relation(row):
    link = row["trace"]["links"][0]
    link["relation"] = "was painted green by"
    trace = Trace.model_validate(row["trace"], strict=False)
    row["trace"]["steps"] = list(write_steps(trace.anchor_kind, trace.anchor_evidence, trace.links))


def set_day(row):
    row["trace"]["decided_on"] = "2026-02-31"


def doubt(row):
    row["trace"] |= {"verdict": "unsure", "decided_on": ""}


def set_standing(row):
    row["standing"] = "proved"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (set_step, "the steps are not those of the links"), (set_span, "does not stand there"), (set_url, "url of"),
        (set_decider, "nobody found the reasoning sound"), (name_bridge, "alias-leak"),
        (swap_picture, "picture: source_url"),
        (drop_trace, "it has no path, and names no pool"), (ask_otherwise, "judged another text"),
        (add_alias, "is typed otherwise"), (set_value, "is typed otherwise"), (set_key, "is typed otherwise"),
        (set_relation, "of the relation is not in"), (set_day, "which is no day"),
        (doubt, "no person decided"), (set_standing, "standing: it is said to be proved"),
    ],
)  # fmt: skip
def test_a_proof_that_was_changed_is_named(finished, ground, tmp_path, edit, said):
    folder, ids = copy_release(finished, tmp_path), {}

    def change(row):
        old = row["record_id"]
        edit(row)
        ids[old] = row["record_id"]

    edit_rows(folder, "proofs/test*.parquet", change)
    edit_rows(folder, "data/test*.parquet", lambda row: row.update(id=ids[row["id"]]))
    reseal(folder)
    report = verify_release(folder, ground)
    assert not report.passed
    assert any(said in problem.what for problem in report.problems)


def test_a_row_that_says_something_else_than_its_proof_is_named(finished, ground, tmp_path):
    folder = copy_release(finished, tmp_path)
    edit_rows(folder, "data/*.parquet", lambda row: row["trace"].reverse())
    reseal(folder)
    report = verify_release(folder, ground)
    assert report.verified == 0
    assert all(problem.what.startswith("trace: the row says") for problem in report.problems)


def test_articles_of_no_known_licence_are_not_published(world, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(world / "news", source)
    lines = (source / "articles.jsonl").read_text("utf-8").replace("toywiki.example", "papers.invalid")
    (source / "articles.jsonl").write_text(lines, "utf-8")
    with pytest.raises(GateNotMet, match=r"news\.licence"):
        run_recipe(configure(world, f"news.source={source}"), tmp_path / "workspace", "", ())
