import asyncio
import os
import time
from pathlib import Path

import pytest

from pipelines.errors import RecordFailed
from pipelines.services.clients.pages import CHILDREN, PageChildren, extract_text

pytest.importorskip("trafilatura")

THIS = "tests.pipelines.backends.test_page_children"


def name_child(html):
    return str(os.getpid()), html


def work_for_ever(html):
    while html == "hang":
        continue
    return "", html


def eat(html):
    return "", str(len([bytes(1 << 20) for _ in range(4096 if html == "eat" else 1)]))


def crash(html):
    if html == "crash":
        os.abort()
    return "", html


def linger(html):
    time.sleep(0.2)
    return str(os.getpid()), html


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def list_children():
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_pages_are_read_by_few_children_that_end_with_the_loop():
    children = PageChildren(f"{THIS}.name_child")

    async def convert_many():
        return await asyncio.gather(*(children.convert(f"page {number}") for number in range(12)))

    found = asyncio.run(convert_many())
    pids = {int(pid) for pid, _ in found}
    assert [text for _, text in found] == [f"page {number}" for number in range(12)]
    assert 1 <= len(pids) <= CHILDREN
    assert os.getpid() not in pids
    assert not any(map(is_running, pids))
    assert not children.by_loop


def test_each_loop_has_its_own_children():
    children = PageChildren(f"{THIS}.name_child")
    first, _ = asyncio.run(children.convert("a"))
    second, _ = asyncio.run(children.convert("a"))
    assert first != second


@pytest.mark.parametrize(
    ("function", "page", "error"),
    [("work_for_ever", "hang", "parse-timeout"), ("eat", "eat", "parse-memory"), ("crash", "crash", "parse-crash")],
)
def test_a_hostile_page_costs_itself_alone(function, page, error):
    children = PageChildren(f"{THIS}.{function}", seconds=0.2, memory=256 << 20)

    async def convert_three():
        return await asyncio.gather(*(children.convert(each) for each in ("a", page, "b")), return_exceptions=True)

    before, hostile, after = asyncio.run(convert_three())
    assert isinstance(hostile, RecordFailed)
    assert hostile.error == error
    assert (before[0], after[0]) == ("", "")


def test_a_page_that_nobody_waits_for_any_more_leaves_no_child_behind():
    children = PageChildren(f"{THIS}.linger")

    async def give_up():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await children.convert("a")
        return await children.convert("b")

    pid, text = asyncio.run(give_up())
    assert text == "b"
    assert not is_running(int(pid))


def test_a_page_that_is_still_being_read_at_the_end_leaves_no_child_behind():
    children = PageChildren(f"{THIS}.name_child", seconds=0.2)
    hung = PageChildren(f"{THIS}.work_for_ever", seconds=0.2)

    async def leave():
        pid, _ = await children.convert("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.gather(*(hung.convert("hang") for _ in range(5)))
        return int(pid)

    before = list_children()
    assert not is_running(asyncio.run(leave()))
    assert list_children() <= before
    assert not hung.by_loop


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 100_000,
        "<a href=x>" * 20_000,
        "<table><tr><td>" * 5_000,
        "<p>&#x" + "0" * 100_000,
        "\x00<p>",
        "<" * 9999,
    ],
    ids=["deep", "links", "tables", "entity", "zero", "angles"],
)
def test_a_hostile_page_ends_by_itself_or_is_ended(page):
    async def convert():
        return await PageChildren().convert(page)

    try:
        title, text = asyncio.run(convert())
    except RecordFailed as error:
        title, text = "", error.error.removeprefix("parse-")
    assert len(title) + len(text) <= len(page)


def test_a_short_page_has_its_text_too():
    assert extract_text("<html><head><title>A</title></head><body><p>Hi</p></body></html>") == ("A", "Hi")


def test_an_empty_page_has_no_text():
    assert extract_text("") == ("", "")
