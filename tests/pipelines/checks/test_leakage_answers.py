"""The answer in the question, in every way to write it (research/quality.md L5)."""

import pytest

from pipelines.checks.leakage import check_answer, check_file_names
from pipelines.graph.answers import type_answer

TOLD = {
    "5 April 1931": ["in 1931", "the fifth of April", "April the fifth", "April 5", "5th day of April", "1931.04.05",
        "5/4/31", "31-04-05", "19310405", "'31", "nineteen thirty-one", "nineteen hundred and thirty-one", "MCMXXXI",
        "mcmxxxi", "1 9 3 1", "l931", "in 19\u200b31", "１９３１", "1931/04/05", "5.IV.1931", "Apr. 5th", "April, 5"],
    "9 September 1905": ["nineteen oh five", "nineteen-oh-five", "9 Sept", "ninth of September", "Sep 9"],
    "31 May 1870": ["the thirty-first of May", "31st May", "May thirty-one"],
    "1,204": ["1204", "1 204", "1'204", "1.204", "1_204", "twelve hundred and four",
        "one thousand two hundred and four", "MCCIV", "1204th", "1,204.0", "1.204,0"],
    "320 m": ["1,050 ft", "1050 feet", "0.32 km", "320m", "350 yards", "three hundred and twenty",
        "one thousand and fifty feet", "320th", "32,000 cm", "0.199 mi"],
    "1.88 m": ["6 ft 2 in", "6'2\"", "6 feet 2 inches", "188 cm", "1,88 m", "74 inches"],
    "72 kg": ["159 lb", "158.7 pounds", "72,000 g", "11 st 5 lb", "LXXII"],
    "12 m": ["39 ft", "39.4 feet", "13.1 yards"],
    "50 km2": ["5,000 ha", "19.3 sq mi", "12,355 acres", "5000 hectares"],
    "45 %": ["0.45", "forty-five percent", "45 per cent", "45%", "9/20"],
    "3.5 kg": ["3,5", "3 1/2", "three and a half", "3½", "7/2", "7.7 lb"],
    "9,000,000": ["9 million", "9M", "9 mn", "90 lakh", "9×10^6", "9e6", "9.000.000", "nine million"],
    "36": ["three dozen", "thirty-sixth", "XXXVI", "36th"], "30": ["thirtieth"],
    "100": ["hundredth", "a hundred", "C. hundred"], "20 °C": ["68 °F", "293 K", "twenty"],
    "United Nations": ["U.N.", "united-nations"], "Florence": ["Florentine", "FLORENCE"],
    "pale blue": ["pale-blue", "PALE BLUE", "paleblue"], "Ana Dvořák": ["Dvorak", "Dvořák, Ana"],
    "The Hague": ["Hague", "the hague"],
}  # fmt: skip
NODES = (("Kelmor Bridge", "KB"), ("Ana Dvořák",))


def typed(text):
    answer = type_answer(text, "", "label")
    assert answer is not None
    return answer


def test_an_answer_is_found_in_every_writing():
    for answer, texts in TOLD.items():
        told = [check_answer(f"What stands near {text} in the image?", typed(answer)).code for text in texts]
        assert told == ["answer-leak"] * len(texts), answer


@pytest.mark.parametrize(
    "name",
    [
        "File:Kelmor_Bridge.jpg", "KelmorBridge01.JPG", "https://x.example/a/a7/320px-Kelmor%20Bridge.jpg",
        "https://x.example/view?title=Kelmor+Bridge&width=640", "kelmor-bridge-2019.png", "IMG_Dvorak.jpeg",
        "View of Dvo%C5%99%C3%A1k's house", "Kelmorian_market.jpg", "granite_wall.png", "A wall of granite, 2019",
        "oldKELMORview.tif",
    ],
)  # fmt: skip
def test_a_file_name_that_tells_a_node_or_the_answer_is_refused(name):
    assert check_file_names((name,), NODES, typed("granite")).code == "file-leak"


@pytest.mark.parametrize(
    "name",
    ["File:Old_view_01.jpg", "https://x.example/a/a7/320px-Tarn%20Castle.jpg", "IMG_20190405.jpg", "Tarn in the fog"],
)
def test_a_file_name_of_something_else_passes(name):
    assert check_file_names((name,), NODES, typed("granite")).outcome == "PASS"


def test_words_of_the_anchor_and_type_words_are_known():
    names = (("Xan Tannery",),)
    assert check_file_names(("Tarn_Tannery.jpg",), names, typed("granite")).outcome == "FAIL"
    known = frozenset({"tarn", "tannery"})
    assert check_file_names(("Tarn_Tannery.jpg",), names, typed("granite"), known).outcome == "PASS"


@pytest.mark.parametrize(("names", "aliases"), [((), NODES), (("", ".jpg"), NODES), (("a.jpg",), ((),))])
def test_nothing_to_look_in_or_for_in_file_names_is_unknown(names, aliases):
    assert check_file_names(names, aliases, typed("granite")).outcome == "UNKNOWN"
