from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.observations import GAP, PASSAGE, choose_passages, choose_sentences

FILLER = "\n\n".join(f"Paragraph {number} speaks of nothing in particular, as most do." for number in range(60))
PAGE = f"Kelm is a town.\n\n{FILLER}\n\nThe mill burned down in 1871.\n\n{FILLER}"


def test_a_page_within_the_limit_comes_as_it_is():
    assert choose_passages("Kelm is a town.", "mill", 100) == "Kelm is a town."


def test_what_fits_the_goal_comes_first_and_then_the_page_from_its_beginning():
    shown = choose_passages(PAGE, "When did the mill burn?", 1000)
    assert shown.startswith(f"The mill burned down in 1871.\n\n{GAP}\n\nKelm is a town.")
    assert len(shown) <= 1000


def test_without_a_goal_or_a_fit_a_long_page_is_its_beginning():
    for goal in ("", "zeppelins"):
        shown = choose_passages(PAGE, goal, 500)
        assert shown.startswith("Kelm is a town.\n\nParagraph 0")
        assert len(shown) <= 500


def test_words_that_stand_everywhere_do_not_count():
    shown = choose_passages(PAGE, "paragraph speaks of mill", 400)
    assert shown.startswith("The mill burned")


def test_a_paragraph_without_end_is_cut_at_words():
    text = "word " * 1000 + "the harbour " + "word " * 1000
    shown = choose_passages(text, "harbour", 3 * PASSAGE)
    assert "harbour" in shown[:PASSAGE]
    assert shown.split()[0] in ("word", "the", "harbour")


@given(st.text(max_size=3000), st.text(max_size=50), st.integers(min_value=1, max_value=2000))
def test_no_more_is_shown_than_is_allowed_and_the_same_each_time(text, goal, limit):
    shown = choose_passages(text, goal, limit)
    assert len(shown) <= limit
    assert shown == choose_passages(text, goal, limit)


def test_sentences_that_fit_come_in_the_order_of_the_page():
    text = "Kelm is a town. It has a mill.\nOwner: Ana Kovač\nThe mill burned in 1871! Rain falls."
    assert choose_sentences(text, "who is the owner of the mill", 3) == (
        "It has a mill.",
        "Owner: Ana Kovač",
        "The mill burned in 1871!",
    )
    assert choose_sentences(text, "zeppelin", 1) == ("Kelm is a town.",)
    assert choose_sentences("", "mill", 3) == ()


def test_a_huge_page_is_read_once():
    assert choose_passages("a. " * 500_000 + "mill", "mill", 100)
