import pytest

from pipelines.agent.contamination import Watched, find_flags, holds_question, is_blocked

HOSTS = ("huggingface.co", "github.com", "bücher.example")
QUESTION = "When was the birthplace of the designer of the bridge in the image founded?"
LEADS_THERE = [
    "https://huggingface.co/datasets/x",
    "https://huggingface.co./x",
    "https://user:word@huggingface.co/",
    "https://en.wikipedia.org@huggingface.co/x",
    "//huggingface.co/x",
    "https:/huggingface.co/x",
    "\thttps://hugging\nface.co/",
    "https://ｈuggingface。co/",
    "https://huggingface.co\\@en.wikipedia.org/",
    "https://xn--bcher-kva.example/",
    "https://r.jina.ai/https://huggingface.co/d",
    "https://web.archive.org/web/2024/https://huggingface.co/",
    "https://other.org/?u=https%3A%2F%2Fhuggingface.co%2Fd",
    "https://other.org/#https://github.com/a",
    "https://huggingface-co.translate.goog/x",
]
LEADS_ELSEWHERE = [
    "https://en.wikipedia.org/wiki/GitHub",
    "https://nothuggingface.co/",
    "https://huggingface.co.other.org/",
    "https://en.wikipedia.org/wiki/A%2Fb",
    "",
]


@pytest.mark.parametrize("url", LEADS_THERE)
def test_an_address_that_leads_to_a_blocked_host_is_blocked_however_it_is_written(url):
    assert is_blocked(url, HOSTS)


@pytest.mark.parametrize("url", LEADS_ELSEWHERE)
def test_an_address_that_merely_resembles_a_blocked_one_is_not(url):
    assert not is_blocked(url, HOSTS)


def test_a_page_that_quotes_the_question_holds_it_whatever_its_marks_and_breaks():
    page = "Q17: WHEN was the birthplace of the\ndesigner — of the bridge, in the image founded? A: 1204"
    assert holds_question(page, QUESTION)
    assert holds_question("the\u200b birthplace of the ｄesigner of the bridge\u00a0in the", QUESTION)


def test_an_id_is_found_as_a_whole_word_and_a_short_one_not_at_all():
    about = Watched("", ("question-0a1b2c3d", "42"))
    assert find_flags('{"id": "QUESTION-0a1b2c3d"}', about) == ("row-id",)
    assert find_flags("question-0a1b2c3d4", about) == ()
    assert find_flags("42", about) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Summary: <think> Okay, the user",
        "</tool_call>",
        "< / THINK >",
        "<|im_start|>assistant",
        "<｜end▁of▁sentence｜>",
    ],
)
def test_tags_of_an_agents_protocol_are_flagged_without_a_question(text):
    assert find_flags(text, None) == ("protocol-tags",)


def test_what_a_question_quotes_from_a_page_gives_it_away_only_with_words_of_its_own():
    line = "A series of stamps shows the city together with its river"
    question = f"How long is the river that completes the line “{line}” from the article about the city shown?"
    assert not holds_question(f"Stamps. {line}. They were issued in 1910.", question)
    assert holds_question(f"How long is the river that completes the line “{line}”", question)
    assert holds_question("its river” from the article about the city shown?", question)
