import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.observations import GAP, choose_passages, cut_page

FILLER = "\n\n".join(f"Paragraph {number} speaks of nothing in particular, as most do." for number in range(60))
PAGE = f"Kelm is a town.\n\n{FILLER}\n\nThe mill burned down in 1871.\n\n{FILLER}"


def test_what_fits_the_goal_comes_first_and_then_the_page_from_its_beginning():
    shown = choose_passages(PAGE, "When did the mill burn?", 1000)
    assert shown.startswith(f"The mill burned down in 1871.\n\n{GAP}\n\nKelm is a town.")
    assert len(shown) <= 1000


def test_a_page_is_cut_between_sentences_in_its_order_with_its_first_sentence():
    served = "Ana Kovač served under Dwight D. Roan, who owned the mill."
    page = f"Kelm is a town. It has rain. {PAGE} {served}\n\n{FILLER}"
    shown = cut_page(page, "Who owned the mill that burned under Dwight?", 1100)
    parts = [part.strip() for part in shown.split(GAP)]
    assert parts[0].startswith("Kelm is a town.")
    assert shown.index("The mill burned down in 1871.") < shown.index(served)
    kept = {line for part in parts for line in part.splitlines() if line}
    assert all(line in page and line.endswith(".") for line in kept)


@pytest.mark.parametrize("cut", [choose_passages, cut_page])
@given(st.text(max_size=3000), st.text(max_size=50), st.integers(min_value=1, max_value=2000))
def test_no_more_is_shown_than_is_allowed_and_the_same_each_time(cut, text, goal, limit):
    shown = cut(text, goal, limit)
    assert len(shown) <= limit
    assert shown == cut(text, goal, limit)
