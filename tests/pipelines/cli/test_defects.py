import os
import subprocess
import sys

import pytest

from pipelines.cli.console import guarded
from pipelines.errors import ConservationError
from tests.chaos.driving import ROOT
from tests.pipelines.test_secrets import KEYS


def end(error, *arguments):
    """Return the exit code of a command that ends with an error."""

    def call():
        raise error

    with pytest.raises(SystemExit) as ending:
        guarded(call, arguments)
    return ending.value.code


@pytest.mark.parametrize("error", [KeyError("no such row"), ConservationError("paths: 3 in, 2 out"), OSError("odd")])
@pytest.mark.parametrize("form", ["--workspace {}", "--workspace={}"])
def test_a_defect_is_one_line_with_its_log_and_exit_code_4(error, form, tmp_path, capsys):
    assert end(error, "run", *form.format(tmp_path).split(" ")) == 4
    (log,) = (tmp_path / "logs").glob("defect-*.log")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(log) in said
    assert "report it" in said
    assert "Traceback" not in said
    assert "Traceback" in log.read_text()
    assert "synth run --workspace" in log.read_text()


def test_a_defect_without_a_workspace_leaves_its_log_in_the_folder_of_temporary_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pipelines.cli.defects.gettempdir", lambda: str(tmp_path / "temp"))
    assert end(ValueError("odd"), "status") == 4
    (log,) = (tmp_path / "temp").glob("defect-*.log")
    assert str(log) in capsys.readouterr().err


def test_a_defect_tells_no_key(tmp_path, capsys):
    assert end(ValueError(f"bad header {KEYS[0]}"), "run", "--set", f"a={KEYS[1]}", "--workspace", str(tmp_path)) == 4
    (log,) = (tmp_path / "logs").glob("defect-*.log")
    assert not [key for key in KEYS[:2] if key in capsys.readouterr().err + log.read_text()]


def test_a_log_that_cannot_be_written_leaves_the_traceback(tmp_path, capsys):
    (tmp_path / "logs").write_text("a file")
    assert end(ValueError("odd"), "--workspace", str(tmp_path)) == 4
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.splitlines()[-1].startswith("synth: a defect of synth: ValueError: odd; no log")


def test_too_little_memory_is_no_defect(capsys):
    assert end(MemoryError()) == 3
    assert "out of memory" in capsys.readouterr().err


def run_python(*arguments, **environment):
    given = os.environ | environment
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=given, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_a_defect_of_a_command_that_the_locale_cannot_read_has_its_log(tmp_path):
    place = tmp_path / "wörk"
    place.mkdir()
    fail = "import sys; from pipelines.cli.console import guarded; guarded(lambda: 1 / 0, ['--workspace', sys.argv[1]])"
    done = run_python("-c", fail, place, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    (log,) = (place / "logs").glob("defect-*.log")
    assert done.returncode == 4
    assert log.name in done.stderr
    assert "ZeroDivisionError" in log.read_text()


def test_names_that_the_terminals_encoding_lacks_end_no_command(tmp_path):
    place = tmp_path / "wörk日本"
    place.mkdir()
    done = run_python("-m", "pipelines.cli.main", "status", "--workspace", place, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"w\xf6rk\u65e5\u672c" in "".join(done.stdout.split())
