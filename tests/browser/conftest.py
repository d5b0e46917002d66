import shutil
from contextlib import contextmanager

import pytest

from pipelines.cli.view.pages import write_page
from tests.pipelines.cli.viewing import serving

PATIENCE = 300_000
"""Milliseconds for whatever is waited for: a machine may be busy."""
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert path, "no Chromium: .ci/browser.sh installs one"
    with playwright.sync_playwright() as driver:
        # Root has no sandbox; every page is one of ours on the loopback.
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(demo, tmp_path_factory):
    """The addresses of a view of the demo and of its page to send."""
    page = tmp_path_factory.mktemp("site") / "page.html"
    write_page(demo.root, page)
    with serving(demo.root) as server:
        yield server.address.rstrip("/"), page.as_uri()


@pytest.fixture
def open_page(chromium):
    """Open an address at a width and a color scheme; whatever the page complains of or loads from elsewhere fails."""

    @contextmanager
    def opening(address, width=1400, scheme="light"):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        complaints, loaded = [], []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: loaded.append(request.url))
        page.goto(address)
        page.wait_for_load_state("networkidle")
        yield page
        origin = "/".join(address.split("/")[:3])
        context.close()
        assert complaints == []
        assert [url for url in loaded if not url.startswith((origin, "data:"))] == []

    return opening
