"""Runs a page's blocks in order in a folder of its own, on a small world, against servers of the tests."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pipelines.config.loading import read_layers
from pipelines.run.workspace import Workspace
from tests.chaos.driving import ROOT, Outcome, call_here, make_command
from tests.docs.blocks import PACKAGE, Block, Command, read_blocks, read_commands
from tests.mock_openai import start_mock

PARSED: Mapping[tuple[str, ...], str] = {
    ("make",): "makes environments; CI runs the targets",
    ("pip", "install"): "fetches packages",
    ("pip", "wheel"): "fetches what builds a wheel; make test-wheel runs it as .ci/Dockerfile has it",
    ("docker",): "needs a daemon; make test-wheel runs the build stage of .ci/Dockerfile",
    ("python", "-m", "venv"): "makes an environment",
    ("vllm/bin/pip", "install"): "fetches vLLM; make test-vllm runs a real one",
    (".", ".venv/bin/activate"): "changes the shell",
    ("prefect",): "needs a server; tests/flows/test_deployed.py runs these blocks, marked prefect",
    ("ray", "start"): "needs hosts; make test-ray runs two nodes",
}
"""What is parsed alone, by how it begins, and why."""
SERVED: Mapping[tuple[str, ...], str] = {
    ("synth", "deploy"): "needs a Prefect server; tests/flows/test_deployed.py runs it",
    ("synth", "serve-tools"): "serves until Ctrl-C; tests/pipelines/cli/test_tool_server.py runs it",
    ("synth", "view"): "serves until Ctrl-C; tests/pipelines/cli/test_view.py serves one, make test-browser opens it",
    ("synth", "serve-model"): "serves until Ctrl-C; tests of services have a fake vLLM, make test-vllm a real one",
}
"""Commands of synth whose options are parsed, but that are not run here, and why."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:80\d\d/v1")
QUESTION = re.compile(r"\bq-[0-9a-f]{16}\b")


def find_reason(words: Sequence[str]) -> str:
    """Return why a command is not run; empty if it is."""
    reasons = PARSED | SERVED
    return next((why for begin, why in reasons.items() if tuple(words[: len(begin)]) == begin), "")


@dataclass
class Page:
    """A page's folder while its blocks are run, and what is replaced in them: addresses of servers, ids of rows."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    set_variable: Callable[[str, str], None]
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Arguments that a command of synth gets besides, by its name."""
    replaced: dict[str, str] = field(default_factory=dict)
    apart: bool = False
    """Whether commands run in processes of their own, with what the page has written on their path."""

    def run(self, block: Block) -> None:
        if block.title:
            (self.folder / block.title).write_text(self.replace(block.text))
            if block.title == PACKAGE:
                install(self.folder)
        elif block.language == "sql":
            self.call(Command(("synth", "sql", block.text), block.place, block.code))
        elif block.language == "python":
            self.run_python(block)
        elif block.language in ("console", "bash"):
            for command in read_commands(block):
                if command.words[0] == "export":
                    self.set_variable(*command.words[1].split("=", 1))
                elif not find_reason(command.words):
                    self.call(command)

    def call(self, command: Command) -> None:
        words = [word for each in command.words[1:] for word in self.expand(self.replace(each))]
        words += self.more.get(words[0], ())
        outcome = self.call_apart(words) if self.apart else call_here(self.capture, *words)
        told = f"{command.place}: {command.text}\n{outcome.out[-1500:]}\n{outcome.err[-1500:]}"
        assert outcome.code == command.code, told

    def call_apart(self, words: Sequence[str]) -> Outcome:
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.folder)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            make_command(*words), cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def run_python(self, block: Block) -> None:
        done = subprocess.run(
            [sys.executable, "-c", self.replace(block.text)],
            cwd=self.folder, env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(self.folder)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == block.code, f"{block.place}\n{done.stderr[-3000:]}"

    def replace(self, text: str) -> str:
        """Return a text with addresses of servers that run and an id of a question that the small world has."""
        for name, here in self.replaced.items():
            text = text.replace(name, here)
        return QUESTION.sub(lambda found: self.find_question(found[0]), text)

    def find_question(self, named: str) -> str:
        import duckdb

        root = self.folder / "workspace"
        data = root / "releases" / "vqa" / Workspace(root).read_latest()["release:vqa"] / "data" / "*.parquet"
        rows = duckdb.sql(f"SELECT id FROM read_parquet('{data}') WHERE hops >= 2 ORDER BY id").fetchall()
        return str(rows[0][0]) if rows else named

    def expand(self, word: str) -> list[str]:
        """Return the paths that a pattern stands for, as a shell does."""
        if "*" not in word or " " in word:
            return [word]
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.glob(word)) or [word]


def install(folder: Path) -> None:
    """Leave what an installer leaves of a package in development: its name, version and entry points."""
    project = tomllib.loads((folder / PACKAGE).read_text())["project"]
    told = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    )
    (told / "entry_points.txt").write_text("\n".join(groups))


def place_dump(world: Path, folder: Path) -> None:
    """Put a world's files into a folder under the names of English Wikipedia's."""
    for path in world.iterdir():
        if path.is_file():
            shutil.copy(path, folder / path.name.replace("toywiki-", "enwiki-"))
    shutil.copytree(world / "images", folder / "images")


@contextmanager
def serve_models(page: Page, blocks: Sequence[Block]) -> Iterator[None]:
    """Stand a server in for each address that a configuration of the page names, under the name of its model."""
    with ExitStack() as until_done:
        for block in blocks:
            if block.language != "toml" or block.title == PACKAGE or not ADDRESS.search(block.text):
                continue
            path = page.folder / block.title
            path.write_text(block.text)
            models = read_layers("", [path]).get("models", {})
            for model in models.values():
                given = model.get("base_url", [])
                for address in [given] if isinstance(given, str) else given:
                    if ADDRESS.fullmatch(address) and address not in page.replaced:
                        started = start_mock("--model", {**models.get("default", {}), **model}["name"])
                        page.replaced[address] = until_done.enter_context(started)
        yield


def run_page(path: Path, page: Page, wanted: Callable[[Block], bool] = lambda block: True) -> int:
    """Run a page's blocks and return how many there were."""
    blocks = [block for block in read_blocks(path) if wanted(block)]
    with serve_models(page, blocks):
        for block in blocks:
            page.run(block)
    return len(blocks)
