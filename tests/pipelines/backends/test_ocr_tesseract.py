import asyncio
import shutil
import time

import pytest

from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.clients.ocr import Tesseract
from tests.pipelines.backends.signs import draw_sign

SIGN = draw_sign()
HEADER = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
LISTED = 'echo "List of available languages in \\"{models}\\" (2):"; echo eng; echo chi_sim'


def write_program(folder, reading, version="tesseract 9.9"):
    """Write a stand-in for the program: it knows two languages, and does what it is told with a picture."""
    for language in ("eng", "chi_sim"):
        (folder / f"{language}.traineddata").write_text(language)
    program = folder / "tesseract-stand-in"
    listed = LISTED.format(models=folder)
    program.write_text(
        f'#!/bin/sh\ncase "$1" in\n--version) echo "{version}";;\n--list-langs) {listed};;\n*) {reading};;\nesac\n'
    )
    program.chmod(0o755)
    return str(program)


def write_rows(*rows):
    lines = [HEADER, *("\t".join(map(str, row)) for row in rows)]
    return "cat > /dev/null; printf '" + "\\n".join(line.replace("\t", "\\t") for line in lines) + "\\n'"


def read(engine, data=SIGN, scale=1.0):
    return asyncio.run(engine.read_text(data, scale))


def test_words_are_joined_to_lines_and_those_of_no_confidence_dropped(tmp_path):
    rows = [
        (5, 1, 1, 1, 1, 1, 10, 20, 30, 10, 90.0, "Kelmor"),
        (5, 1, 1, 1, 1, 2, 50, 18, 40, 12, 70.0, "Bridge"),
        (5, 1, 1, 1, 1, 3, 95, 18, 5, 12, 12.0, "%%"),
        (5, 1, 2, 1, 1, 1, 10, 60, 30, 10, 96.5, "1875"),
        (4, 1, 2, 1, 1, 0, 10, 60, 30, 10, -1, ""),
    ]
    first, second = read(Tesseract(program=write_program(tmp_path, write_rows(*rows))))
    assert (first.text, first.label, first.box) == ("Kelmor Bridge", "text", (10.0, 18.0, 90.0, 30.0))
    assert first.confidence == pytest.approx(0.8)
    assert (second.text, second.confidence) == ("1875", pytest.approx(0.965))


def test_boxes_are_those_of_the_picture_itself_at_any_scale(tmp_path):
    program = write_program(tmp_path, write_rows((5, 1, 1, 1, 1, 1, 10, 20, 30, 10, 90.0, "Kelmor")))
    (block,) = read(Tesseract(program=program), scale=2.0)
    assert block.box == (5.0, 10.0, 20.0, 15.0)


def test_a_missing_program_is_refused_with_its_package():
    with pytest.raises(ConfigError, match=r"apt-get install tesseract-ocr$"):
        Tesseract(program="no-such-tesseract")


def test_a_missing_language_is_refused_with_its_package(tmp_path):
    program = write_program(tmp_path, ":")
    with pytest.raises(ConfigError, match="'chi_tra'; apt-get install tesseract-ocr-chi-tra"):
        Tesseract("eng+chi_tra", program=program)


def test_a_program_that_is_no_tesseract_is_refused(tmp_path):
    program = tmp_path / "broken"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(ConfigError, match="--version fails"):
        Tesseract(program=str(program))


def test_the_identity_tells_version_languages_and_models(tmp_path):
    program = write_program(tmp_path, ":")
    engine = Tesseract("eng+chi_sim", program=program)
    assert engine.identity.startswith("tesseract@1:9.9:eng-")
    assert engine.identity != Tesseract("eng", program=program).identity
    (tmp_path / "eng.traineddata").write_text("another model")
    assert engine.identity != Tesseract("eng+chi_sim", program=program).identity


def test_a_process_that_does_not_end_is_killed_and_fails_the_record(tmp_path):
    engine = Tesseract(seconds=0.2, program=write_program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60"))
    with pytest.raises(RecordFailed, match="ocr-timeout"):
        read(engine)
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_reading_that_is_cancelled_leaves_no_process(tmp_path):
    engine = Tesseract(program=write_program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60"))

    async def cancel():
        reading = asyncio.create_task(engine.read_text(SIGN))
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(cancel())
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_program_that_breaks_fails_the_record_with_what_it_said(tmp_path):
    engine = Tesseract(program=write_program(tmp_path, "echo image too small >&2; exit 1"))
    with pytest.raises(RecordFailed, match="ended with 1: 'image too small"):
        read(engine)


def test_endless_output_fails_the_record(tmp_path):
    engine = Tesseract(program=write_program(tmp_path, "cat > /dev/null; yes"))
    with pytest.raises(RecordFailed, match="bytes of output"):
        read(engine)


def test_a_row_of_another_form_fails_the_record(tmp_path):
    rows = write_rows((5, 1, 1, 1, 1, 1, "left", 20, 30, 10, 90.0, "Kelmor"))
    with pytest.raises(RecordFailed, match="another form"):
        read(Tesseract(program=write_program(tmp_path, rows)))


def test_much_on_standard_error_keeps_nobody_waiting(tmp_path):
    reading = "cat > /dev/null; head -c 1000000 /dev/zero >&2; printf 'level\\n'"
    assert read(Tesseract(seconds=30.0, program=write_program(tmp_path, reading))) == ()


def test_no_more_processes_run_at_once_than_allowed(tmp_path):
    reading = (
        f"mkdir {tmp_path}/busy || touch {tmp_path}/crowded; cat > /dev/null; sleep 0.05; rmdir {tmp_path}/busy; "
        "printf 'level\\n'"
    )
    engine = Tesseract(processes=1, program=write_program(tmp_path, reading))

    async def read_four():
        await asyncio.gather(*(engine.read_text(SIGN) for _ in range(4)))

    asyncio.run(read_four())
    assert not (tmp_path / "crowded").exists()


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="no tesseract on this machine")
def test_the_real_program_is_found_with_its_version():
    assert Tesseract().identity.startswith("tesseract@1:")


def is_running(pid):
    """Say whether a process is there, giving its end a moment."""
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - a process may go between the question and the answer
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return False
        except (FileNotFoundError, ProcessLookupError):
            return False
        time.sleep(0.02)
    return True
