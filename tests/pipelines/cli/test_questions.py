"""The page of questions: each of its queries answers in a workspace, in one that was moved, and for other clients."""

import re
import shutil
from collections import Counter
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from pipelines.run.views import QueryRows, run_sql, write_catalogue
from pipelines.run.workspace import Workspace
from tests.chaos.driving import ROOT, call_here

PAGE = (ROOT / "data_cards" / "docs" / "questions.md").read_text(encoding="utf-8")
QUESTIONS = dict(re.findall(r"^## (.+\?)\n\n```sql\n(.+?)\n```$", PAGE, flags=re.MULTILINE))
VIEWS = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", PAGE, flags=re.MULTILINE))


@pytest.fixture(scope="module")
def moved(demo, tmp_path_factory) -> Path:
    """A workspace at another place than the one it was made at, which is gone."""
    folder = tmp_path_factory.mktemp("moved")
    shutil.copytree(demo.root, folder / "before")
    write_catalogue(folder / "before")
    return (folder / "before").rename(folder / "it's [1] after")


def ask_from_elsewhere(workspace: Path, statement: str) -> QueryRows:
    """Ask as a client of DuckDB does that knows nothing of synth."""
    with duckdb.connect(str(workspace / "synth.duckdb"), read_only=True) as connection:
        asked = connection.execute(statement)
        return QueryRows(tuple(column[0] for column in asked.description or ()), tuple(asked.fetchall()))


def test_the_page_asks_ten_questions_of_less_than_120_characters() -> None:
    assert len(QUESTIONS) == 10
    assert all(len(query) < 120 and "\n" not in query for query in QUESTIONS.values()), QUESTIONS


def test_every_question_is_answered_from_anywhere_once_the_catalogue_of_a_moved_workspace_is_written_again(
    moved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(duckdb.IOException):
        ask_from_elsewhere(moved, "from seeds")
    write_catalogue(moved)
    for query in QUESTIONS.values():
        here, there = run_sql(moved, query), ask_from_elsewhere(moved, query)
        assert here.rows
        assert here.columns == there.columns
        assert sorted(map(repr, here.rows)) == sorted(map(repr, there.rows))


def test_a_workspace_that_stays_has_its_catalogue_written_once(moved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_here(capsys, "sql", "select 1", "--workspace", moved)
    before = (moved / "synth.duckdb").stat()
    call_here(capsys, "sql", "select 1", "--workspace", moved)
    assert (moved / "synth.duckdb").stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("view", ["groundings", "difficulty", "trajectories", "pictures", "released", "images"])
def test_pictures_are_files_that_can_be_opened(moved: Path, view: str) -> None:
    paths = [path for (path,) in run_sql(moved, f"select distinct picture_path from {view}").rows if path]
    assert paths
    assert [path for path in paths if not Path(path).is_file()] == []


@pytest.mark.parametrize("view", [name for name, columns in VIEWS.items() if columns.startswith("`")])
def test_the_page_names_the_columns_of_a_view(demo, view: str) -> None:
    assert re.findall(r"`(\w+)`", VIEWS[view]) == list(ask_from_elsewhere(demo.root, f"from {view} limit 0").columns)


def test_released_has_one_row_for_each_question_of_each_release(demo) -> None:
    given = run_sql(demo.root, "select dataset, question_id from released").rows
    made = run_sql(demo.root, "select distinct dataset, parent_id from releases").rows
    assert sorted(given) == sorted(made)


def test_a_question_of_two_datasets_is_counted_and_shown_once(demo) -> None:
    """Counted by hand from the files of the releases, where it has a row in each."""
    proofs = [
        row
        for name in Workspace(demo.root).read_latest()
        if name.startswith("release:")
        for path in demo.release(name.partition(":")[2]).glob("proofs/*.parquet")
        for row in pq.read_table(path, columns=["record_id", "text", "answer"]).to_pylist()
    ]
    answers = {row["record_id"]: (row["answer"]["type"], row["answer"]["surface"]) for row in proofs}
    assert len(answers) < len(proofs)
    told = run_sql(demo.root, QUESTIONS["How are the answers distributed?"]).rows
    assert {row[:2]: row[2] for row in told} == Counter(answers.values())
    shown = run_sql(demo.root, QUESTIONS["Which questions are the hardest?"].replace("limit 10", "")).rows
    assert Counter(row[2] for row in shown) == Counter({row["record_id"]: row["text"] for row in proofs}.values())


def test_costs_account_for_every_request(demo) -> None:
    told = "select stage, sum(calls), sum(cached) from costs group by 1 order by 1"
    used = (
        "select stage, usage.calls + stopped.calls, usage.cached_calls + stopped.cached_calls from manifests "
        "where usage.calls + usage.cached_calls > 0 order by 1"
    )
    assert run_sql(demo.root, told).rows == run_sql(demo.root, used).rows
    assert {"writer", "solver", "teacher", ""} <= {row[0] for row in run_sql(demo.root, "select role from costs").rows}


def test_attempts_at_refused_questions_add_up_to_what_the_refusal_says(demo) -> None:
    made = {
        (row[0], row[1]): row[2:]
        for row in run_sql(
            demo.root,
            "select question_id, condition, count(*) filter (verdict = 'correct'), count(*) from rejected_attempts "
            "group by all",
        ).rows
    }
    told = {
        (row["record_id"], condition): (int(correct), int(done))
        for row in demo.rejections("difficulty")
        for correct, done, condition in re.findall(r"(\d+) of (\d+) correct[^(]*\((\S+)\)", row["detail"])
    }
    assert made
    assert made == told


def test_fates_follow_every_seed_to_a_release_or_to_the_reason_against_it(demo) -> None:
    seeds = run_sql(demo.root, "select count(*) from seeds").rows[0][0]
    fates = run_sql(demo.root, "select released, reason from fates").rows
    assert len(fates) == seeds
    assert {released for released, _ in fates} == {True, False}
    assert [fate for fate in fates if fate[0] == bool(fate[1])] == []
