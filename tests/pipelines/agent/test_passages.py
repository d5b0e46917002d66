from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.observations import GAP, choose_passages

FILLER = "\n\n".join(f"Paragraph {number} speaks of nothing in particular, as most do." for number in range(60))
PAGE = f"Kelm is a town.\n\n{FILLER}\n\nThe mill burned down in 1871.\n\n{FILLER}"


def test_what_fits_the_goal_comes_first_and_then_the_page_from_its_beginning():
    shown = choose_passages(PAGE, "When did the mill burn?", 1000)
    assert shown.startswith(f"The mill burned down in 1871.\n\n{GAP}\n\nKelm is a town.")
    assert len(shown) <= 1000


@given(st.text(max_size=3000), st.text(max_size=50), st.integers(min_value=1, max_value=2000))
def test_no_more_is_shown_than_is_allowed_and_the_same_each_time(text, goal, limit):
    shown = choose_passages(text, goal, limit)
    assert len(shown) <= limit
    assert shown == choose_passages(text, goal, limit)
