"""The view and the report in a real Chromium: what people do with them, and what axe finds."""

import re

import pytest

from tests.pipelines.cli.viewing import HOSTILE, serving, write_hostile

pytestmark = pytest.mark.browser
PHONE, DESK = 390, 1400
PAGES = ("list", "refused", "row", "trajectory", "refused row", "funnel", "compare", "report")
TALLEST_REPORT = 12_000
"""Pixels on a phone; it was 55,724."""


def find_address(site, name, page):
    """Return the address of a page; of a row, that of the first of a list."""
    lists = {
        "row": f"{site.address}/?stage=selections",
        "trajectory": f"{site.address}/?stage=trajectories",
        "refused row": f"{site.address}/?stage=groundings&kind=rejected",
    }
    if name in lists:
        page.goto(lists[name])
        return site.address + page.locator("a.row").first.get_attribute("href")
    return {
        "list": f"{site.address}/",
        "refused": f"{site.address}/?stage=paths&kind=rejected",
        "funnel": f"{site.address}/funnel",
        "compare": site.comparison,
        "report": site.report,
    }[name]


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
def test_every_page_fits_its_width_and_axe_finds_nothing_serious(site, chromium, open_page, name, width, scheme):
    with chromium.new_context() as context:
        address = find_address(site, name, context.new_page())
    with open_page(address, width, scheme) as page:
        page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
        assert find_serious(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        red = int(re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[0])
        assert (red < 60) == (scheme == "dark")
        drawn = "narrow" if width == PHONE else "wide"
        diagrams = page.locator(f"svg.{drawn}")
        assert all(diagram.is_visible() for diagram in diagrams.all())
        assert (diagrams.count() > 0) == (name not in ("list", "refused", "compare"))


def test_axe_finds_what_is_planted(site, open_page):
    with open_page(f"{site.address}/funnel") as page:
        page.evaluate("document.querySelector('svg').removeAttribute('aria-label')")
        page.evaluate("document.querySelector('h1').style.color = '#eeeeee'")
        assert {rule for rule, _ in find_serious(page)} == {"svg-img-alt", "color-contrast"}


def test_a_filter_shows_its_rows_and_stands_in_the_address(site, open_page):
    with open_page(f"{site.address}/?stage=difficulty") as page:
        before = page.locator("a.row").count()
        page.select_option("select[name=hops]", "3")
        page.click("text=Filter")
        assert "hops=3" in page.url
        tags = page.locator("a.row .tags").all_inner_texts()
        assert 0 < len(tags) < before
        assert all("3 hops" in tag for tag in tags)
        page.reload()
        assert page.locator("a.row").count() == len(tags)
        assert page.input_value("select[name=hops]") == "3"
        page.click("text=clear")
        assert page.locator("a.row").count() == before


def test_a_row_opens_and_its_address_is_its_own(site, open_page):
    with open_page(f"{site.address}/?stage=trajectories") as page:
        page.locator("a.row").first.click()
        page.wait_for_url("**/row/trajectories/*")
        heading = page.locator("h1").inner_text()
        marked = page.locator("mark").count()
        page.reload()
        assert (page.locator("h1").inner_text(), page.locator("mark").count()) == (heading, marked)
        assert marked > 0
        assert page.locator(".pictures img").first.evaluate("image => image.naturalWidth") > 0


def test_a_reason_leads_from_the_funnel_to_its_rows_and_to_what_the_check_saw(site, open_page):
    with open_page(f"{site.address}/funnel") as page:
        page.click("a:text-is('no-walk')")
        assert page.locator("a.row .reason strong").first.inner_text() == "no-walk"
        page.locator("a.row").first.click()
        page.wait_for_url("**/row/paths/*")
        assert page.locator("h1").inner_text() == "Rejected by paths: no-walk"
        assert "walks" in page.locator("dd").first.inner_text()


def test_the_keyboard_is_enough(site, open_page):
    with open_page(f"{site.address}/?stage=seeds") as page:
        rows = [row.get_attribute("href") for row in page.locator("a.row").all()]

        def press(*keys):
            for key in keys:
                page.keyboard.press(key)
            return page.evaluate("document.activeElement.getAttribute('href')")

        assert press("j", "ArrowDown", "j") == rows[2]
        assert press("k", "ArrowUp") == rows[0]
        press("?")
        assert page.locator("dialog").is_visible()
        press("Escape")
        assert not page.locator("dialog").is_visible()
        page.keyboard.press("n")
        page.wait_for_url("**page=2*")
        page.keyboard.press("p")
        page.wait_for_url(lambda url: "page=2" not in url)
        press("j", "j")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{rows[1]}")
        page.keyboard.press("g")
        page.wait_for_url(f"{site.address}/")
        page.keyboard.press("/")
        page.keyboard.type("nothing has j and k and these words")
        page.keyboard.press("Enter")
        page.wait_for_url("**text=nothing*")
        assert page.locator("a.row").count() == 0


def test_two_outputs_are_compared_side_by_side(site, open_page):
    with open_page(site.comparison) as page:
        cells = page.locator("details.card[open] table.sides tbody tr").first.locator("pre").all_inner_texts()
        assert cells[1] == "Was it changed?"
        assert cells[0].endswith("?")
        assert page.locator(".tag").all_inner_texts()[1:] == ["added 0", "removed 1", "changed 1"]


def test_hostile_text_stays_text(tmp_path, open_page):
    write_hostile(tmp_path)
    with serving(tmp_path) as server, open_page(server.address + "?stage=difficulty") as page:
        for target in ("?stage=difficulty", "?stage=difficulty&kind=rejected", "?stage=rollouts"):
            page.goto(server.address + target)
            assert HOSTILE[:40] in page.locator("a.row").first.inner_text()
            page.locator("a.row").first.click()
            page.wait_for_url("**/row/**")
            assert "synth view" in page.title()
            assert page.locator("script").count() == 1
            assert page.locator("[onerror]").count() == 0


def test_the_report_is_short_on_a_phone_and_its_links_lead_within(site, open_page):
    with open_page(site.report, PHONE) as page:
        assert page.evaluate("document.documentElement.scrollHeight") < TALLEST_REPORT
        for link in page.locator("nav a").all():
            assert page.locator(link.get_attribute("href")).count() == 1
        page.locator("#refused > summary").click()
        page.locator("#refused details summary").first.click()
        assert page.locator("#refused td.seen").first.is_visible()
