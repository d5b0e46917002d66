from pipelines.checks.rollouts import fold_words, names
from tests.pipelines.checks.walking import (
    BRIDGE,
    ENGINEER,
    answer,
    call,
    fail,
    make_rollout,
    make_url,
    search,
    see,
    visit,
    walk,
)


def list_pages(trail):
    return [(sight.title, sight.opened) for leg in trail.legs for sight in leg.sights]


def test_pages_are_those_that_were_opened_or_found():
    trail = walk(search("bridges", BRIDGE, ENGINEER), visit(BRIDGE), fail(url=make_url(ENGINEER)), answer())
    assert list_pages(trail) == [(BRIDGE, False), (ENGINEER, False), (BRIDGE, True)]
    assert "mira" not in trail.legs[0].seen
    assert trail.legs[2].seen == " "


def test_what_a_call_uses_is_its_words_and_its_address_decoded():
    trail = walk(visit("A", goal="the length"), call("visit", see("x"), url="https://e.org/Ana_Kova%C4%8D"), answer())
    assert "the length" in trail.legs[0].used
    assert names(trail.legs[1].used, ENGINEER)


def test_a_question_that_a_failed_call_says_again_contaminates_nothing():
    asked = make_url("Search?q=" + make_rollout(answer()).question.replace(" ", "+"))
    refused = see(f"There is no page at {asked}.", ok=False, error="unknown-page")
    leg = walk(call("visit", refused, url=asked), answer()).legs[0]
    assert leg.flags == ()
    assert walk(call("visit", see(make_rollout(answer()).question), url="x"), answer()).legs[0].flags == (
        "question-text",
    )


def test_a_name_is_found_whole_or_by_the_words_that_tell_it():
    assert names(fold_words("the kelm-bridge's arch"), BRIDGE)
    assert names(fold_words("the Kelm architect"), BRIDGE)
    assert names(fold_words("KOVAC, Ana"), ENGINEER)
    assert not names(fold_words("Kovač alone"), ENGINEER)
    assert not names(fold_words("Kelmet Bridge"), BRIDGE)
    assert names(fold_words("in Marlow"), "Marlow (town)")
    assert not names(fold_words("anything"), "…")
