import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigError
from pipelines.run.views import open_views, run_sql, write_catalogue
from pipelines.run.workspace import Workspace
from tests.pipelines.cli.conftest import make_workspace


@pytest.fixture
def corpus(workspace):
    folder = workspace / "corpus" / "toy"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"node": [0], "title": ["Kelm Bridge"]}), folder / "pages.parquet")
    refused = {"record_id": ["page:1"], "reason": ["namespace"], "detail": [""]}
    pq.write_table(pa.table(refused), folder / "rejected-00000.parquet")
    failed = pa.schema([("record_id", pa.string()), ("error", pa.string()), ("detail", pa.string())])
    pq.write_table(failed.empty_table(), folder / "failed-00000.parquet")
    counts = {"rows_in": 2, "kept": 1, "rejected": {"namespace": 1}, "failed": 0, "counts": {"articles": 1}}
    manifest = {"name": "toy", "builder_version": 1, "digest": "c" * 64} | counts
    (folder / "manifest.json").write_text(json.dumps(manifest))
    Workspace(workspace).note_latest(Workspace(workspace).read_latest() | {"corpus": "toy"})
    return workspace


def test_rejections_can_be_counted_by_stage_and_reason(corpus):
    found = run_sql(corpus, "select stage, reason, count(*) from rejections group by all order by all")
    assert found.rows == (
        ("corpus", "namespace", 1),
        ("difficulty", "solved-without-tools", 1),
        ("difficulty", "unscored", 1),
    )


def test_the_funnel_is_conserved(corpus):
    found = run_sql(corpus, "select stage, rows_in, kept, rejected, failed from funnel")
    assert [row[0] for row in found.rows] == ["corpus", "difficulty", "trajectories", "releases"]
    assert found.rows[0][1:] == (2, 1, 1, 0)
    assert all(rows_in == kept + rejected + failed for _, rows_in, kept, rejected, failed in found.rows)


def test_views_show_the_key_of_the_last_run_not_the_newest_folder(workspace):
    assert run_sql(workspace, "select count(*), any_value(key) from difficulty").rows == ((7, "d" * 16),)


def test_an_unsealed_stage_has_no_view(workspace):
    with pytest.raises(ConfigError, match="views: costs, difficulty, failures, funnel"):
        run_sql(workspace, "select * from rollouts")


def test_failures_keep_their_detail(workspace):
    assert run_sql(workspace, "select error, detail from failures").rows == (("unparseable-reply", "<script>"),)


def test_corpus_tables_are_views(corpus):
    assert run_sql(corpus, "select title from pages").rows == (("Kelm Bridge",),)


def test_an_empty_workspace_has_empty_rejections(tmp_path):
    assert run_sql(tmp_path, "select count(*) from rejections").rows == ((0,),)


WRITING = (
    "copy (select 1) to '{part}'",
    "copy difficulty to '{made}' (format csv)",
    "explain analyze copy (select 1) to '{part}'",
    "with made as (insert into t values (1) returning *) from made",
    "create or replace view difficulty as select 1",
    "insert into t values (1)",
    "attach '{made}' as other",
    "export database '{made}'",
    "load '{made}'",
    "set enable_external_access = true",
    "pragma enable_profiling",
    "call enable_logging(storage = 'file', storage_path = '{made}')",
    "from query('copy (select 1) to ''made.txt''')",
    "select 1 as a; -- one more\n/* hidden */ delete from t",
    "select 1; select 2",
    "",
    "selec 1",
)
"""Statements that write, or would if a reader of words let them pass."""
READING_ELSEWHERE = (
    "from '{root}/../secret.csv'",
    "select * from read_text('{root}/stages/../../secret.csv')",
    "from read_json('/proc/self/environ')",
    "from read_parquet('{root}/../*.parquet')",
    "from glob('/etc/*')",
    "from read_text('~/.ssh/*')",
    "from read_blob('{root}/replies/replies.db')",
    "from read_text('{root}/latest.json')",
    "from 'https://127.0.0.1/x.parquet'",
    "from 's3://bucket/x.parquet'",
    "summarize '{root}/../secret.csv'",
    "explain from read_text('{root}/../secret.csv')",
    "select getenv('HOME')",
    "from query('from read_text(''secret.csv'')')",
    "with a as (from read_text('{root}/../secret.csv')) from a",
)
"""Statements that read files which are none of the workspace's datasets, services or the program's environment."""


def fill(statement, **paths):
    return statement.format(**{name: str(path).replace("'", "''") for name, path in paths.items()})


def list_contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A workspace that no statement may change, with a secret beside it."""
    root = make_workspace(tmp_path_factory.mktemp("asked") / "it's a workspace")
    (root.parent / "secret.csv").write_text("word\nhush\n")
    (root / "replies").mkdir(exist_ok=True)
    (root / "replies" / "replies.db").write_bytes(b"paid")
    return root


@pytest.mark.parametrize("statement", WRITING + READING_ELSEWHERE)
def test_a_statement_that_writes_or_reads_elsewhere_is_refused(asked, statement, monkeypatch):
    monkeypatch.chdir(asked.parent)
    part = next(asked.glob("stages/difficulty/*/part-*.parquet"))
    before = list_contents(asked.parent)
    with pytest.raises(ConfigError) as refused:
        run_sql(asked, fill(statement, root=asked, part=part, made=part.with_name("made.txt")))
    assert "hush" not in str(refused.value)
    assert list_contents(asked.parent) == before


@pytest.mark.parametrize(
    "statement",
    [
        "select stage, reason, count(*) from rejections group by all order by all",
        "from funnel",
        "describe difficulty",
        "show tables",
        "-- how many\nselect count(*) as n from difficulty;",
        "from read_parquet('{root}/stages/difficulty/*/part-*.parquet') limit 2",
        "select file from glob('{root}/stages/*/*/manifest.json')",
        "values (1, 'explain analyze copy')",
    ],
)
def test_a_usual_question_is_answered(asked, statement):
    found = run_sql(asked, fill(statement, root=asked))
    assert found.columns
    assert found.rows


def test_a_query_cannot_see_variables_of_the_program(workspace):
    table = pa.table({"a": [1]})
    with pytest.raises(ConfigError, match="table"):
        run_sql(workspace, "select * from table")
    assert table.num_rows == 1


def test_a_folder_on_the_way_is_no_column(tmp_path):
    """DuckDB takes ``split=train`` in a path for a column of every row, and of every manifest."""
    plain = make_workspace(tmp_path / "plain")
    root = make_workspace(tmp_path / "split=train" / "seed=9" / "stage=none" / "workspace")
    for view in ("difficulty", "trajectories", "rejections", "failures", "manifests", "funnel", "releases"):
        here, there = (run_sql(folder, f"describe {view}").rows for folder in (root, plain))
        assert here == there
    for query in (
        "select split, count(*) from difficulty group by 1 order by 1",
        "select split, count(*) from releases group by 1 order by 1",
        "select stage, rows_in from manifests",
    ):
        assert run_sql(root, query) == run_sql(plain, query)
        with duckdb.connect(str(write_catalogue(root)), read_only=True) as connection:
            assert connection.execute(query).fetchall() == list(run_sql(plain, query).rows)


def test_a_missing_workspace_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        open_views(tmp_path / "nowhere")


def test_the_catalogue_is_read_from_anywhere(catalogue, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect(str(catalogue), read_only=True) as connection:
        assert connection.execute("select count(*) from difficulty").fetchall() == [(7,)]
        assert connection.execute("select count(*) from rejections").fetchall() == [(2,)]


def test_the_catalogue_can_be_written_again(catalogue):
    assert write_catalogue(catalogue.parent) == catalogue
    assert not list(catalogue.parent.glob(".tmp-*"))
