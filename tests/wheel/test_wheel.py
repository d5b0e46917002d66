"""A wheel as .ci/Dockerfile builds and installs it, in an empty folder: demo, verify, push, load."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pipelines.release.hub_server import HubServer
from tests.pipelines.services.clients.live_servers import run_live_server

pytestmark = pytest.mark.wheel
ROOT = Path(__file__).parents[2]
REPO = "org/name"
TEXT = (ROOT / ".ci" / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
LOAD = """
import json, sys, datasets
loaded = datasets.load_dataset(sys.argv[1], sys.argv[2])
pictures = [row[name] for split in loaded.values() for row in split for name in ("image", "images") if name in row]
print(json.dumps({"rows": sum(map(len, loaded.values())), "pictures": sum(map(bool, pictures))}))
"""


def list_steps(word: str, stage: int) -> list[str]:
    """Return what follows a word of the Dockerfile in one of its stages."""
    return re.findall(rf"^{word} +(.*)$", re.split(r"^FROM ", TEXT, flags=re.M)[stage + 1], re.M)


def call(command: list[str], folder: Path, env: dict[str, str], patience: float = 3000.0) -> str:
    """Return what a command prints; a machine that others use may take long."""
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=patience)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@dataclass(frozen=True)
class Image:
    """What the first stage of the Dockerfile makes, in folders of its own, and an empty folder to work in."""

    source: Path
    venv: Path
    empty: Path

    def run(self, program: str, *arguments: object, **variables: str) -> str:
        env = {"PATH": f"{self.venv}/bin:/usr/bin:/bin", "HOME": str(self.empty), **variables}
        return call([f"{self.venv}/bin/{program}", *map(str, arguments)], self.empty, env)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    folder = tmp_path_factory.mktemp("image")
    made = Image(folder / "src", folder / "synth", folder / "empty")
    made.source.mkdir()
    made.empty.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for *sources, target in map(shlex.split, list_steps("COPY", 0)):
        for source in sources:
            place = made.source / target / source if target == "./" else made.source / target
            place.parent.mkdir(parents=True, exist_ok=True)
            copied = ROOT / source
            shutil.copytree(copied, place, ignore=ignored) if copied.is_dir() else shutil.copy(copied, place)
    (step,) = list_steps("RUN", 0)
    # As the Dockerfile says it, but with another place, this Python, pip's cache, and only the extra that is used here.
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "EXTRAS": "hub", "PIP_NO_COMPILE": "1"}
    step = step.replace("/opt/synth", str(made.venv)).replace("--no-cache-dir", "--quiet")
    call(["bash", "-c", step], made.source, env)
    return made


@pytest.fixture(scope="module")
def document(image: Image) -> dict:
    return json.loads(image.run("synth", "run", "--json"))


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    hub = HubServer(REPO)
    with run_live_server(hub.respond) as server:
        hub.url = f"http://127.0.0.1:{server.port}"
        yield hub


def test_the_wheel_carries_every_file_of_its_folders(image: Image) -> None:
    (wheel,) = image.source.glob("dist/*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    copied = {*project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
    tracked = call(["git", "ls-files", *sorted(copied)], ROOT, dict(os.environ)).splitlines()
    assert len(tracked) > 300
    assert set(tracked) <= set(zipfile.ZipFile(wheel).namelist())
    assert {path.name for path in image.source.iterdir() if path.is_dir()} == {*copied, ".ci", "dist"}


def test_nothing_comes_from_the_clone(image: Image) -> None:
    where = (
        "import flows, pipelines, prompts, schemas; print(*(m.__file__ for m in (flows, pipelines, prompts, schemas)))"
    )
    assert all(Path(path).is_relative_to(image.venv) for path in image.run("python", "-c", where).split())


def test_the_demo_runs_and_every_released_row_is_verified(image: Image, document: dict) -> None:
    assert {release["dataset"] for release in document["releases"]} >= {"sft", "rl", "vqa"}
    assert all(Path(release["path"]).is_relative_to(image.empty) for release in document["releases"])
    verified = image.run("synth", "verify").split()[-1]
    assert re.fullmatch(r"([1-9]\d*)/\1", verified)


def test_a_configuration_that_is_begun_there_is_shown_there(image: Image) -> None:
    image.run("synth", "init", "own")
    assert "opensearch-vl" in image.run("synth", "config", "recipe", "--config", "own/synth.toml")


def test_each_release_is_pushed_and_loads_with_its_rows_and_pictures(
    image: Image, document: dict, hub: HubServer
) -> None:
    there = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_none", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    for release in document["releases"]:
        image.run("synth", "push", release["path"], "--repo", REPO, "--yes", **there)
    assert len(hub.tags) == len(document["releases"])
    for release in document["releases"]:
        loaded = json.loads(image.run("python", "-c", LOAD, REPO, release["dataset"], **there))
        assert loaded == {"rows": release["rows"], "pictures": release["rows"]}, release["dataset"]


def test_what_the_dockerfile_copies_is_let_through_and_its_image_is_nobodys() -> None:
    let = [line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"]
    copied = [source for step in list_steps("COPY", 0) for source in shlex.split(step)[:-1]]
    assert sorted(let) == sorted(copied)
    assert list_steps("USER", 1) == ["1000"]
    assert list_steps("ENTRYPOINT", 1) == ['["synth"]']
    told = [re.split(r"[= ]", step)[0] for word in ("ARG", "ENV") for n in (0, 1) for step in list_steps(word, n)]
    assert told == ["EXTRAS", "PATH"]
