"""Each page followed to the letter: its blocks in order, on a small world, against stand-ins for servers."""

import shutil
from contextlib import suppress

import pytest
from huggingface_hub import constants

from pipelines.cli.main import main
from tests.chaos.driving import list_settings
from tests.conftest import SETTINGS
from tests.docs.blocks import DOCS
from tests.docs.running import Page, place_dump, run_page
from tests.pipelines.release.hub_server import HubServer
from tests.pipelines.services.clients.commons_server import run_commons_of
from tests.pipelines.services.clients.live_servers import run_live_server

REPO = "org/name"
OTHERS = ("extend", "models", "push", "real-run", "recipes", "run", "scale", "start", "wiki")
"""Pages that begin otherwise than where a demo has ended."""
LONG = ("look", "proof")
"""Of the others, those that verify a workspace as a whole, and more than once."""


@pytest.fixture
def page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return Page(tmp_path, capsys, monkeypatch.setenv)


@pytest.fixture
def finished(page, demo):
    """A page that begins where a demo has ended."""
    shutil.copytree(demo.root, page.folder / "workspace")
    return page


@pytest.fixture
def downloaded(page, demo):
    """A page that begins where a dump has been fetched."""
    place_dump(demo.world, page.folder)
    return page


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in LONG),
        *sorted(path.stem for path in DOCS.glob("*.md") if path.stem not in (*OTHERS, *LONG)),
    ],
)
def test_what_looks_at_a_finished_run(finished, name):
    assert run_page(DOCS / f"{name}.md", finished) or name == "index"


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_pushing(finished, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(finished.folder / "cache"))
    hub = HubServer(REPO)
    with run_live_server(hub.respond) as server:
        hub.url = f"http://127.0.0.1:{server.port}"
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        assert run_page(DOCS / "push.md", finished)
    assert len(hub.tags) == 3


@pytest.mark.slow
def test_models(downloaded):
    assert run_page(DOCS / "models.md", downloaded)


@pytest.mark.slow
def test_the_start(finished):
    assert run_page(DOCS / "start.md", finished)


@pytest.mark.slow
def test_running_it(finished, demo):
    options = list_settings([f"corpus.world={demo.world}", *SETTINGS])
    finished.more = {"run": options}
    # What the fixture holds was run without a name.
    with suppress(SystemExit):
        main(["run", "--recipe", "demo", *options])
    assert run_page(DOCS / "run.md", finished)


@pytest.mark.slow
def test_a_wiki(downloaded, demo):
    shutil.copytree(demo.root, downloaded.folder / "workspace")
    assert run_page(DOCS / "wiki.md", downloaded)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recipes", "scale"])
def test_what_begins_in_an_empty_folder(page, name):
    assert run_page(DOCS / f"{name}.md", page)


@pytest.mark.slow
def test_extending(page):
    page.apart = True
    assert run_page(DOCS / "extend.md", page)


@pytest.mark.slow
def test_the_real_run(downloaded, demo):
    with run_commons_of(demo.world / "images") as commons:
        api = ["--set", f"commons.api=http://127.0.0.1:{commons.port}/w/api.php"]
        # A sample, targets and a review of a size that a small world has.
        downloaded.replaced["100"] = "10"
        few = [f"targets.rows.{split}={rows}" for split, rows in (("sft", 2), ("rl", 1), ("eval", 0))]
        small = [*api, "--set", "models=scripted", *(word for setting in few for word in ("--set", setting))]
        downloaded.more = {"doctor": api, "plan": small, "run": small}
        assert run_page(DOCS / "real-run.md", downloaded)
