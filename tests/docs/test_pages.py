"""What the pages say can be typed as it stands: options exist, configurations load, links lead somewhere."""

import re
import subprocess
import sys
import tomllib

import pytest
import typer

from pipelines.cli.commands import load_config
from pipelines.cli.main import app
from schemas.reasons import STAGE_REASONS
from tests.docs.blocks import DOCS, PACKAGE, ROOT, list_commands, list_pages, read_blocks
from tests.docs.running import PARSED, find_reason

PAGES = list_pages()
README_LINES = 110
"""One screen of why, two commands, one row, the map and links; generated blocks included."""


def parse(words):
    """Parse a command of synth as its command line would, without running it."""
    command, name, rest = typer.main.get_command(app), "synth", list(words[1:])
    while rest and rest[0] in getattr(command, "commands", {}):
        command, name = command.commands[rest[0]], rest.pop(0)
    with command.make_context(name, rest):
        pass


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_command_of_synth_has_the_options_that_a_page_gives_it(path):
    for command in list_commands(path):
        if command.words[0] == "synth":
            parse(command.words)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_other_command_is_of_a_closed_list_with_a_reason_why_it_is_not_run(path):
    others = [command for command in list_commands(path) if command.words[0] not in ("synth", "export")]
    assert [command.text for command in others if not find_reason(command.words)] == []


def test_make_has_the_targets_that_pages_name():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        word for path in PAGES for each in list_commands(path) if each.words[0] == "make" for word in each.words[1:]
    }
    assert {word for word in named if "=" not in word} <= targets


def test_no_reason_is_given_for_what_no_page_names():
    commands = [command.words for path in PAGES for command in list_commands(path)]
    assert [begin for begin in PARSED if not any(words[: len(begin)] == begin for words in commands)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_configuration_has_a_name_and_loads(path, tmp_path):
    for block in read_blocks(path):
        if block.language != "toml" or block.title == PACKAGE:
            continue
        assert block.title.endswith(".toml"), f"{block.place}: a configuration needs the name of its file"
        (tmp_path / block.title).write_text(block.text)
        recipe = "" if "extends" in tomllib.loads(block.text) else "demo"
        assert load_config(recipe, [tmp_path / block.title], [], last="corpus"), block.place


def test_the_site_builds_without_a_dead_link_and_asks_nothing_of_anybody(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", ".ci/mkdocs.yml"]
    done = subprocess.run(
        [*command, "--site-dir", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")}
    assert {f"{path.stem}.html" for path in DOCS.glob("*.md")} | {"reference/reasons.html", "papers/mars.html"} <= made
    told = (tmp_path / "reference" / "columns.html").read_text("utf-8")
    assert re.findall(r"<td><code>(\w+)</code></td>\s*<td>[^<]*</td>\s*<td>\s*(?:See <a|</td>)", told) == []
    loads = re.compile(r'(?:<(?:script|img|iframe)[^>]*src|<link[^>]*href)="?(https?:[^">\s]+)|@import[^;]*https?:')
    assert [found[0] for path in tmp_path.rglob("*.html") for found in loads.finditer(path.read_text("utf-8"))] == []


def test_the_glossary_tells_every_reason_and_no_other():
    told = tomllib.loads((DOCS / "reasons.toml").read_text("utf-8"))
    assert set(told) == {reason for reasons in STAGE_REASONS.values() for reason in reasons}
    assert [reason for reason, entry in told.items() if set(entry) != {"means", "do"} or not all(entry.values())] == []


def test_readme_links_to_files_that_are_there():
    linked = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert [path for path in linked if not (ROOT / path).is_file()] == []
    assert len(linked) > len(PAGES)


def test_readme_fits_a_screen():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= README_LINES
    assert len([line for line in lines if line.startswith(("```console", "```bash"))]) <= 2
