"""Tables on narrow terminals: whole headings, whole numbers, no line that is too long."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from pipelines.cli.commands import describe_stages, render_run
from pipelines.cli.console import emit_prose, emit_table
from pipelines.cli.doctor import examine_run, render_examination
from pipelines.cli.explain import explain_record, render_explanation
from pipelines.cli.fitting import LONGEST_WORD, fit
from pipelines.cli.naming import render_runs
from pipelines.cli.plan import estimate_run, measure_sample, render_estimate
from pipelines.cli.preview import read_preview, render_preview
from pipelines.cli.pruning import prune_workspace, render_leftovers
from pipelines.cli.settings import list_keys, render_keys
from pipelines.cli.status import render_damage, render_replies, render_status, summarise_replies, summarise_workspace
from pipelines.cli.yields import render_targets, render_yield
from pipelines.run.integrity import Finding
from pipelines.run.loop import RunDocument
from pipelines.run.naming import RunSummary
from pipelines.run.quotas import TargetRow
from pipelines.run.runner import StageReport
from pipelines.run.views import render_result, run_sql
from schemas.manifest import Usage

LARGE = 1_234_567_890
WORDS = st.text(alphabet="abcdefgh", min_size=1, max_size=16)
NUMBERS = st.integers(0, 10**9).map(lambda number: f"{number:,}")


def print_fitted(rendered, width):
    console = Console(width=width, file=io.StringIO())
    console.print(fit(rendered, console))
    return console.file.getvalue()


def list_tables(rendered):
    if isinstance(rendered, Table):
        return [rendered]
    return (
        [table for part in rendered.renderables for table in list_tables(part)] if isinstance(rendered, Group) else []
    )


def list_words(cell):
    """Return the words of a cell that may not be cut."""
    return [word for word in str(cell.plain if isinstance(cell, Text) else cell).split() if len(word) <= LONGEST_WORD]


def check_fits(rendered, width):
    text = print_fitted(rendered, width)
    assert max(map(len, text.splitlines())) <= width
    shown = set(re.sub(r"[│┃┏┓┗┛└┘┌┐━─┡╇┩]", " ", text).split())
    for table in list_tables(rendered):
        for column in table.columns:
            assert set(list_words(column.header)) <= shown
            numbers = {
                word for cell in column.cells for word in list_words(cell) if re.fullmatch(r"[\d,.%-]*\d%?", word)
            }
            assert numbers <= shown


@given(
    headings=st.lists(st.lists(WORDS, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=14),
    rows=st.lists(st.lists(st.one_of(NUMBERS, st.lists(WORDS, max_size=12).map(" ".join)), min_size=14, max_size=14)),
    rights=st.sets(st.integers(0, 13)),
    width=st.integers(40, 140),
)
def test_no_heading_and_no_number_of_any_table_is_cut(headings, rows, rights, width):
    table = Table(title="a title", caption="what it says")
    for place, heading in enumerate(headings):
        is_right = place in rights and all(len(row[place]) <= 16 for row in rows)
        table.add_column(heading, justify="right" if is_right else "left")
    for row in rows:
        table.add_row(*row[: len(headings)])
    check_fits(table, width)
    assert print_fitted(table, width).count("a title") == 1


def test_a_table_that_fits_is_left_as_it_is():
    table = Table("stage", "rows", title="rows")
    table.add_row("seeds", "12")
    console = Console(width=80)
    assert fit(table, console) is table


def test_each_part_of_a_table_that_is_too_wide_begins_with_its_first_column():
    table = Table(*(f"heading{number}" for number in range(12)))
    table.add_row("seeds", *map(str, range(LARGE, LARGE + 11)))
    assert sum(line.startswith("seeds") for line in print_fitted(table, 60).splitlines()) == 3


def make_run_document():
    used = Usage(calls=LARGE, cached_calls=LARGE, tokens_in=LARGE, gpu_seconds=12_345.6, cost=12_345.6789)
    report = StageReport("enhancements", "k", True, LARGE, LARGE, {"over-quota": LARGE}, 12_345, LARGE, 12_345.6, used)
    return RunDocument("demo", None, (report,), (), False, 1.0, "", ())


@pytest.mark.parametrize("width", [80, 120])
def test_tables_of_large_runs_fit(width):
    targets = [TargetRow("hops 3, domain geography, solved never", LARGE, LARGE, LARGE, "full", 12.5, 12_345.0, 1.5)]
    check_fits(render_run(make_run_document()), width)
    check_fits(render_targets(targets), width)
    check_fits(describe_stages()[1], width)
    rows = {"sft": LARGE, "rl": LARGE, "vqa": LARGE}
    run = RunSummary("opensearch-vl-of-november", "opensearch-vl", "done", "2026-11-27", rows, {}, 12.5, Path("c.toml"))
    check_fits(render_runs([run]), width)


@pytest.mark.parametrize("width", [80, 120])
def test_tables_of_all_commands_fit(demo, tmp_path, width):
    """Of a small run that is done, as each command renders them."""
    config = demo.config
    row = run_sql(demo.root, "select record_id from selections limit 1").rows[0][0]
    tables = [
        render_estimate(estimate_run(config, demo.root)),
        render_yield(measure_sample(config, demo.root)),
        render_examination(examine_run(config, demo.root)),
        render_status(summarise_workspace(demo.root)),
        render_replies(summarise_replies(demo.root)),
        render_keys(list_keys(config, ()), "configuration"),
        render_leftovers(prune_workspace(demo.root, None, (), False), False),
        render_explanation(explain_record(demo.root, row)),
        render_result(run_sql(demo.root, "select * from funnel")),
        render_preview(read_preview(config, demo.root, 3)),
        render_damage(
            demo.root, [Finding(demo.root / "stages" / ("0" * 64) / "part-00000.parquet", "is damaged", "run again")]
        ),
    ]
    for table in tables:
        check_fits(table, width)


@pytest.mark.parametrize("is_watched", [True, False])
def test_lines_are_wrapped_at_words_on_a_terminal_and_left_alone_elsewhere(is_watched, monkeypatch):
    said, path = "paths rejected: " + ", ".join(["no-answer-in-reach 55"] * 9), "/a" * 60
    out = io.StringIO()
    out.isatty = lambda: is_watched
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("COLUMNS", "80")
    emit_prose(f"{said}\n{path}")
    *lines, last = out.getvalue().splitlines()
    assert last == path
    assert " ".join(lines) == said
    assert (max(map(len, lines)) <= 80) == is_watched


@pytest.mark.parametrize("columns", ["30", "120"])
def test_what_looks_like_markup_is_printed_as_it_is(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    table = Table("[dim]what", title="of a[1]")
    table.add_row("synth[clip] in run[bold] :key:")
    emit_table(table)
    said = " ".join(capsys.readouterr().out.split())
    assert all(word in said for word in ("[dim]what", "of a[1]", "synth[clip]", "run[bold]", ":key:"))
