import io

import pytest
from rich.table import Table

from pipelines.cli.console import emit_prose, emit_table


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


@pytest.mark.parametrize("columns", ["60", "120"])
def test_no_text_of_a_table_is_cut_or_taken_for_markup(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    table = Table("[dim]what", "number", title="of a[1]")
    table.add_row("synth[clip] in run[bold] :key:", "1,234,567,890")
    emit_table(table)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= int(columns)
    assert all(word in text for word in ("[dim]what", "of a[1]", "synth[clip]", "run[bold]", ":key:", "1,234,567,890"))
