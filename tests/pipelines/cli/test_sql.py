import json
import shutil

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigError
from pipelines.run.views import QueryRows, open_views, render_result, run_sql, write_catalogue


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
    latest = json.loads((workspace / "latest.json").read_text())
    (workspace / "latest.json").write_text(json.dumps(latest | {"corpus": "toy"}))
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
    with pytest.raises(ConfigError, match="views: difficulty, failures, funnel"):
        run_sql(workspace, "select * from rollouts")


def test_failures_keep_their_detail(workspace):
    assert run_sql(workspace, "select error, detail from failures").rows == (("unparseable-reply", "<script>"),)


def test_corpus_tables_are_views(corpus):
    assert run_sql(corpus, "select title from pages").rows == (("Kelm Bridge",),)


def test_an_empty_workspace_has_empty_rejections(tmp_path):
    assert run_sql(tmp_path, "select count(*) from rejections").rows == ((0,),)


@pytest.mark.parametrize(
    "statement",
    [
        "copy (select 1) to 'out.csv'",
        "create table t as select 1",
        "attach 'x.duckdb'",
        "set threads = 1",
        "select 1; select 2",
        "",
        "install httpfs",
        "selec 1",
    ],
)
def test_only_one_reading_statement_is_run(workspace, statement):
    with pytest.raises(ConfigError):
        run_sql(workspace, statement)


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.txt"])
def test_a_query_cannot_read_outside_the_workspace(workspace, path):
    (workspace.parent / "secret.txt").write_text("secret")
    with pytest.raises(ConfigError):
        run_sql(workspace, f"select * from read_text('{workspace}/{path}')" if path[0] == "." else f"from '{path}'")


def test_a_query_cannot_see_variables_of_the_program(workspace):
    table = pa.table({"a": [1]})
    with pytest.raises(ConfigError, match="table"):
        run_sql(workspace, "select * from table")
    assert table.num_rows == 1


def test_a_missing_workspace_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        open_views(tmp_path / "nowhere")


def test_the_catalogue_moves_with_its_workspace(catalogue, tmp_path, monkeypatch):
    moved = tmp_path / "moved"
    shutil.move(catalogue.parent, moved)
    monkeypatch.chdir(moved)
    with duckdb.connect("synth.duckdb", read_only=True) as connection:
        assert connection.execute("select count(*) from difficulty").fetchall() == [(7,)]
        assert connection.execute("select count(*) from rejections").fetchall() == [(2,)]


def test_the_catalogue_is_found_from_elsewhere_by_its_search_path(catalogue):
    with duckdb.connect(str(catalogue), read_only=True) as connection:
        quoted = str(catalogue.parent).replace("'", "''")
        connection.execute(f"set file_search_path = '{quoted}'")
        assert connection.execute("select count(*) from difficulty").fetchall() == [(7,)]


def test_the_catalogue_can_be_written_again(catalogue):
    assert write_catalogue(catalogue.parent) == catalogue
    assert not list(catalogue.parent.glob(".tmp-*"))


def test_rows_render_as_json_and_csv_without_loss():
    rows = QueryRows(("a", "b"), ((1, "x,y"), (None, "[bold]")))
    assert json.loads(render_result(rows, "json")) == [{"a": 1, "b": "x,y"}, {"a": None, "b": "[bold]"}]
    assert render_result(rows, "csv") == 'a,b\n1,"x,y"\n,[bold]\n'


def test_markup_in_a_cell_is_shown_not_obeyed():
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as capture:
        console.print(render_result(QueryRows(("[red]a",), (("[bold]x[/bold]",),))))
    assert "[bold]x[/bold]" in capture.get()
    assert "[red]a" in capture.get()
