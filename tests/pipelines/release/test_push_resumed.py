"""Pushing with the real client over HTTP: what arrived before a push was cut off is not sent a second time."""

from contextlib import contextmanager

import huggingface_hub
import pytest
from huggingface_hub import HfApi

from pipelines.errors import Unavailable
from pipelines.ids import digest_file
from pipelines.release import publish
from pipelines.release.publish import publish_releases
from pipelines.release.push import plan_push
from tests.pipelines.release.builders import make_context, make_material
from tests.pipelines.release.hub import push_release
from tests.pipelines.release.hub_server import HubServer
from tests.pipelines.services.clients.live_servers import run_live_server

REPO = "org/name"
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # the client's own, of httpx2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "SHARD_BYTES", 1)
    made = publish_releases(tmp_path, *make_material(tmp_path), make_context())
    return next(release.path for release in made if release.dataset == "sft")


@contextmanager
def open_hub():
    hub = HubServer(REPO)
    with run_live_server(hub.respond) as server:
        hub.url = f"http://127.0.0.1:{server.port}"
        yield hub, HfApi(hub.url, token="hf_none")


@pytest.fixture(autouse=True)
def _over_plain_http(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


def list_large(folder):
    return sorted(digest_file(path) for path in folder.rglob("*.parquet"))


def test_the_real_client_pushes_in_one_commit_and_again_sends_nothing(folder):
    with open_hub() as (hub, api):
        receipt = push_release(folder, REPO, api)
        assert sorted(hub.uploads) == list_large(folder)
        assert (len(hub.trees), hub.tags) == (2, {receipt.tag: receipt.commit})
        assert plan_push(folder, REPO, api).done
        assert push_release(folder, REPO, api).commit == receipt.commit
        assert sorted(hub.uploads) == list_large(folder)


@pytest.mark.parametrize(("refuse", "arrived"), [("/put/", 2), ("/commit/", None), ("/tag/", None)])
def test_a_push_that_was_cut_off_goes_on_without_sending_again_what_arrived(folder, refuse, arrived):
    large = list_large(folder)
    with open_hub() as (hub, api):
        hub.refuse, hub.after = refuse, arrived or 0
        with pytest.raises(Unavailable, match="run the same command again"):
            push_release(folder, REPO, api)
        first = list(hub.uploads)
        assert len(first) == (arrived or len(large))
        assert hub.tags == {}
        hub.refuse = ""
        receipt = push_release(folder, REPO, api)
        assert sorted(hub.uploads) == large, "each file was sent once"
        assert hub.tags == {receipt.tag: hub.head}
        assert len(hub.trees) == 2
        assert plan_push(folder, REPO, api).done
