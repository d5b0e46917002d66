import pytest

from pipelines.checks.rollouts import LONGEST_END, check_claims
from tests.pipelines.checks.rollouts.walking import CLEAN, answer, visit, walk

PAGE = visit(
    "Velm",
    "Velm has 12,500 people and 3.5 million trees on 1,931 hectares. The Saint John Hospital of J. R. Oder opened on "
    "16 December 1881, the U.S. Embassy in 1956. The tower is 320 m high, it has twelve bells. Beaulieu lies on a "
    "firth that is no Firth of Oder. Mount Kelm was climbed in the 20th century.",
)


def judge(thought, text="5 April 1204", **settings):
    return check_claims(walk(*CLEAN[:-1], PAGE, answer(text, thought)), **settings)


@pytest.mark.parametrize(
    "thought",
    [
        "So it is 5 April 1204.", "It was founded on April 5th, 1204, as the page says.",
        "Ana Kovač was born in Marlow; Kelm Bridge is hers.", "Kovač’s town, Marlow, was founded then.",
        "According to Wikipedia, Saint John Hospital opened in December 1881.",
        "St. John Hospital of J.R. Oder it is.", "For it was J. R. Oder who came, by the St. John Hospital.",
        "The US Embassy dates from the 1950s, the 20th century.",
        "Velm has 12500 people, 3,500,000 trees and 12 bells.", "The tower is 320 metres (0.32 km) high.",
        "Between 1881 and 1956 lie 75 years.", "Step 1 led to img_1 and 7 hits; see https://example.org/Nowhere_99.",
        "Opening the page helped. Nothing else did. I am sure.",
        "Engineer Ana Kovač of Marlow and the Kelm Bridge of Velm.", "ANA KOVAČ, that is.",
        "I am 100% sure. Confidence: 95 %. I'm 99 percent certain, with a confidence level of 90%.",
        "## Summary\nBased on the Image Search Results, it is Kelm Bridge.",
        "The User asks for the Town. The JSON result and the Infobox say so. Let me VERIFY: yes.", "",
    ],
)  # fmt: skip
def test_what_was_shown_in_other_words_is_no_new_claim(thought):
    assert judge(thought or ".").passed


@pytest.mark.parametrize(
    ("thought", "claim"),
    [
        ("It was founded in 1307.", "1307"), ("The town has 12,501 people.", "12,501"),
        ("It opened on 17 December 1881.", "17 December 1881"), ("It opened in January 1881.", "January 1881"),
        ("The tower is 321 m high.", "321"), ("It was built by Hans Oder.", "Hans Oder"),
        ("It lies on the Beaulieu Firth.", "Beaulieu Firth"), ("As I know, Lumby is near.", "Lumby"),
        ("The Tollmark Consortium paid for it.", "The Tollmark Consortium"), ("The share is 47 percent.", "47"),
        ("Surely 47% of it.", "47"), ("It is by Hans Oder, Ana Kovač and the Velm " + "Kelm " * 30, "Hans Oder"),
    ],
)  # fmt: skip
def test_a_claim_that_nothing_shows_is_named(thought, claim):
    result = judge(thought)
    assert (result.outcome, result.code) == ("FAIL", "unseen-claim")
    assert repr(claim) in result.detail


def test_the_answer_is_a_claim_unless_it_was_found_right():
    assert not judge("So it is.", "Port Nowhere").passed
    assert judge("So it is.", "Port Nowhere", right=True).passed


def test_only_the_end_is_looked_at():
    early = visit("Velm", thought="Hans Oder may have built it in 1307.")
    assert check_claims(walk(*CLEAN[:-1], early, answer())).passed
    assert check_claims(walk(*CLEAN[:-1])).passed


@pytest.mark.parametrize(
    "said",
    ["Kelm of ", "Kelm and ", "Ana Kovač, and ", "THE A ", "A. ", "Marlow ", "5 April 1204, ", "12,500 ", "The "],
)
def test_a_model_that_is_caught_in_a_loop_is_looked_through_to_its_end(said):
    thought = (said * LONGEST_END)[: LONGEST_END - 100]
    assert judge(thought).outcome in ("PASS", "FAIL")
    assert not judge(f"{thought}. It was built by Hans Oder.").passed


def test_an_end_too_long_to_look_through_is_unknown():
    assert judge("so " * LONGEST_END).outcome == "UNKNOWN"
