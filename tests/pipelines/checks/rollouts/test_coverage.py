import pytest

from pipelines.checks.rollouts import check_path
from tests.pipelines.checks.rollouts.walking import (
    BRIDGE,
    CLEAN,
    ENGINEER,
    PAGES,
    TOWN,
    answer,
    look,
    search,
    see,
    visit,
    walk,
)


def test_pages_that_link_every_node_cover_the_path():
    assert check_path(walk()).passed


def test_snippets_that_show_the_facts_are_enough():
    assert check_path(walk(look(BRIDGE), search("Ana Kovač", ENGINEER), search("Marlow", TOWN), answer())).passed


@pytest.mark.parametrize(
    ("steps", "missing"),
    [
        (
            (look(BRIDGE), search("Marlow", TOWN), visit(TOWN), answer()),
            "no page links 'Ana Kovač' and 'Marlow (town)'",
        ),
        ((search("Marlow", TOWN), visit(TOWN), answer()), "no page links 'Kelm Bridge' and 'Ana Kovač'"),
        ((*CLEAN[:4], answer()), "no page gives the answer for 'Marlow (town)'"),
        ((*CLEAN[:4], visit("Ister", "It froze on 5 April 1204."), answer()), "no page gives the answer"),
        ((answer(),), "no page links"),
    ],
)
def test_a_link_that_was_not_seen_is_named(steps, missing):
    result = check_path(walk(*steps))
    assert (result.outcome, result.code) == ("FAIL", "path-not-covered")
    assert missing in result.detail


def test_pages_of_both_ends_are_enough_when_both_were_opened():
    steps = [visit(title, text) for title, text in zip(PAGES, ("A.", "B.", PAGES[TOWN]), strict=True)]
    assert check_path(walk(*steps, answer())).passed
    shown = (look(BRIDGE), *steps[1:])
    hidden = shown[0].model_copy(update={"observation": see("[1] Kelm Bridge\nURL: https://e.org/k\nA.")})
    assert not check_path(walk(hidden, *steps[1:], answer())).passed


def test_a_failed_call_shows_no_page():
    blind = [
        step.model_copy(update={"observation": step.observation.model_copy(update={"ok": False})})
        for step in CLEAN[:-1]
    ]
    assert not check_path(walk(*blind, answer())).passed


def test_without_a_path_nothing_is_known():
    assert check_path(walk(path=())).outcome == "UNKNOWN"
