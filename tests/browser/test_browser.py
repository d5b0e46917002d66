"""The view and the page to send in a real Chromium: what people do with them, and what axe finds."""

import re

import pytest

from tests.pipelines.cli.viewing import HOSTILE, serving, write_hostile

pytestmark = pytest.mark.browser
PHONE, DESK = 390, 1400
PAGES = {
    "list": "/",
    "refused": "/?stage=paths&kind=rejected",
    "row": "/?stage=selections",
    "trajectory": "/?stage=trajectories",
    "refused row": "/?stage=groundings&kind=rejected",
    "funnel": "/funnel",
    "page to send": "",
}
ROWS = ("row", "trajectory", "refused row")


def find_serious(page):
    """Return what axe finds that is serious or critical, as rule and element."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response
    assert len(found["passes"]) > 10
    return [
        (violation["id"], node["html"][:200])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_its_width_and_axe_finds_nothing_serious(site, open_page, name, width, scheme):
    address, sent = site
    with open_page(address + PAGES[name] if PAGES[name] else sent, width, scheme) as page:
        if name in ROWS:
            page.locator("a.row").first.click()
            page.wait_for_url("**/row/**")
        page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
        assert find_serious(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        red = int(re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[0])
        assert (red < 60) == (scheme == "dark")


def test_axe_finds_what_is_planted(site, open_page):
    with open_page(f"{site[0]}/?stage=selections") as page:
        page.evaluate("document.querySelector('a.row img').removeAttribute('alt')")
        page.evaluate("document.querySelector('h1').style.color = '#eeeeee'")
        assert {rule for rule, _ in find_serious(page)} == {"image-alt", "color-contrast"}


def test_a_filter_shows_its_rows_and_stands_in_the_address(site, open_page):
    with open_page(f"{site[0]}/?stage=difficulty") as page:
        before = page.locator("a.row").count()
        page.select_option("select[name=hops]", "3")
        page.click("text=Filter")
        assert "hops=3" in page.url
        tags = page.locator("a.row .soft").all_inner_texts()
        assert 0 < len(tags) < before
        assert all("3 hops" in tag for tag in tags)
        page.reload()
        assert page.locator("a.row").count() == len(tags)
        assert page.input_value("select[name=hops]") == "3"
        page.click("text=clear")
        assert page.locator("a.row").count() == before


def test_a_row_shows_its_picture(site, open_page):
    with open_page(f"{site[0]}/?stage=trajectories") as page:
        page.locator("a.row").first.click()
        page.wait_for_url("**/row/trajectories/*")
        assert page.locator(".pictures img").first.evaluate("image => image.naturalWidth") > 0


def test_a_reason_leads_from_the_funnel_to_its_rows_and_to_what_the_check_saw(site, open_page):
    with open_page(f"{site[0]}/funnel") as page:
        page.click("a:text-is('no-walk')")
        assert page.locator("a.row .reason").first.inner_text() == "no-walk"
        page.locator("a.row").first.click()
        page.wait_for_url("**/row/paths/*")
        assert "Refused by paths: no-walk" in page.locator(".refused").inner_text()


def test_hostile_text_stays_text(tmp_path, open_page):
    write_hostile(tmp_path)
    with serving(tmp_path) as server, open_page(server.address + "?stage=difficulty") as page:
        for target in ("?stage=difficulty", "?stage=difficulty&kind=rejected", "?stage=rollouts"):
            page.goto(server.address + target)
            assert HOSTILE[:40] in page.locator("a.row").first.inner_text()
            page.locator("a.row").first.click()
            page.wait_for_url("**/row/**")
            assert page.title().endswith("· synth")
            assert page.locator("script, [onerror]").count() == 0
