"""Names, demonyms and answers in a text (research/quality.md L3, L5); hostile text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.leakage import (
    check_answer,
    check_demonyms,
    check_names,
)
from pipelines.graph.answers import type_answer
from schemas.proofs import Answer

NODES = (
    ("Kelmor Bridge (river crossing)", "Kelmor Crossing", "KB", "bridge", "the bridge", "Мост"),
    ("Ana Dvořák", "A. Dvořák", "Lady Orn", "designer"),
    ("Nice", "Nizza"),
    ("U.N.", "United Orns"),
    ("St. Mary's Church, Tarn", "Orn Church"),
)
QUESTION = "Who designed the bridge that crosses the river near the church in the image?"


def typed(text, relation="label"):
    answer = type_answer(text, "", relation)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("text", "names"), [("", NODES), (QUESTION, ()), (QUESTION, ((),)), (QUESTION, (("Kelm",), (" ",)))]
)
def test_nothing_to_look_in_or_for_is_unknown(text, names):
    assert check_names(text, names).outcome == "UNKNOWN"


LEAKS = [
    (("Australia Zoo", "Beerwah Reptile Park"), "the Australia-Zoo"), (("Australia Zoo",), "AUSTRALIAZOO"),
    (("Buddhism",), "a Buddhist temple"), (("United Nations", "UN"), "a U.N. agency"),
    (("United Nations",), "a U.N. agency"), (("United Nations",), "the U. N. agency"),
    (("UNESCO", "United Nations Educational, Scientific and Cultural Organization"), "unesco"),
    (("St. Mary's Church",), "Saint Marys church"), (("Sainte-Chapelle",), "the Ste Chapelle"),
    (("Müller Tower",), "Mueller built it"), (("Mueller Tower",), "Müller built it"),
    (("Øresund Bridge",), "the Oeresund"), (("Åland",), "Aaland"), (("Łódź",), "Lodz"), (("Reykjavík",), "REYKJAVIK"),
    (("Kelmor Bridge",), "Kel-\nmor"), (("Kelmor Bridge",), "Ke1mor"), (("Goethe",), "G0ethe"),
    (("Kelmor Bridge",), "Kel\ufe0fmor"), (("Kelmor Bridge",), "K\u20dde\u20ddl\u20ddm\u20ddo\u20ddr\u20dd"),
    (("Kelmor Bridge",), "Ｋｅｌｍｏｒ"), (("Kelmor Bridge",), "Kelmor%20Bridge"),
    (("Dvořák Hall",), "Dvo&#345;&aacute;k"), (("Kelmor Bridge",), "Kelmor_Bridge"),
    (("Kelmor Bridge",), "K\u0301elmor"), (("Kelmor Bridge",), "Kel\x00mor"), (("Kelmor Bridge",), "ꮶelmor"),
    (("Oneal",), "O'Neal’s house"), (("Xi'an",), "in Xian"), (("Xian",), "in Xi’an"), (("Hawaiʻi",), "Hawaii"),
    (("Charles Dickens",), "Dickens's house"), (("World War II",), "World War Two"),
    (("Old Bridge 2",), "the Old Bridge II"), (("Nice", "Nizza"), "in Nice"), (("Nice",), "in Niçe"),
    (("Nice",), "in Νice"), (("Reading, Berkshire",), "the town of Reading"), (("Estonia", "ES"), "code ES."),
    (("World Health Organization", "WHO"), "the WHO says"), (("The Who",), "a song by the Who"),
    (("Pirate", "🏴\u200d☠\ufe0f"), "the 🏴\u200d☠\ufe0f flag"), (("東京", "Tokyo"), "where is 東京駅"),
    (("東京スカイツリー",), "東京 スカイツリー"), (("Tokyo (東京)",), "東京"),
    (("กร\u0e38งเทพ",), "ในกร\u0e38งเทพมหานคร"),
    (("Mark Twain", "Samuel Langhorne Clemens"), "Mr Clemens"), (("John Fitzgerald Kennedy",), "J.F.K."),
    (("Kelmor (river)",), "the Kelmor's mouth"), (("Mount Wood",), "Mt. Wood"), (("Fort Wood",), "Ft. Wood"),
    (("Netherlands",), "a Dutch painter"), (("Kingdom of the Netherlands",), "the Dutchman"),
    (("France",), "a Frenchwoman"), (("Poland",), "the Polish king"), (("London",), "a Londoner"),
    (("China",), "Sino-Indian war"), (("Kelmor",), "Kelmorian"), (("Ostrania",), "the Ostranian painter"),
    (("Goethe",), "G\u200boethean"), (("Sikhism",), "Sikh"), (("Israel",), "Israelis"),
    (("Corsica",), "Corsicans"), (("Bank of England",), "Anglo-Saxon"), (("Siena",), "Sienese"),
    (("Darwin",), "Darwinism"), (("Martin Luther",), "Lutheran"),
]  # fmt: skip
CLEAN = [
    (("Nice", "Nizza"), "a nice old bridge"), (("Reading, Berkshire",), "the reading room"),
    (("Norway", "NO"), "No one"), (("Norway", "NO"), "with no roof"), (("Indiana", "IN"), "In which town"),
    (("Spain", "🇪🇸"), "the flag 🇩🇪🇸🇪"), (("Fo",), "for the food"), (("The Who",), "Who built the tower"),
    (("Who", "WHO"), "who is"), (("Italy",), "the Gothic organic vital"), (("Goethe",), "gothic"),
    (("Titan (moon)",), "titanic effort"), (("Rome",), "the romantic garden"), (("Paris",), "the parish church"),
    (("Kelmor",), "kelm rock"), (("Ana Dvořák",), "in AD 79"), (("Brel Castle",), "in 44 BC"),
    (("Kelmor Bridge", "the bridge", "bridge"), "the bridge"), (("August Strindberg",), "in August"),
    (("Turkey",), "the turkey farm"), (("Saint Kelmor",), "the saint's day"), (("John Smith",), "the smithy"),
    (("United Nations",), "the united front"), (("Iran",), "the i"), (("Denmark",), "the mark of the den"),
    (("Peter Stone",), "stone bridge"), (("George Kelm",), "a Georgian house"), (("China",), "the chin"),
]  # fmt: skip


def is_found(names, text):
    return "FAIL" in (check_names(text, (names,)).outcome, check_demonyms(text, (names,)).outcome)


def test_each_leak_is_found():
    assert [leak for leak in LEAKS if not is_found(leak[0], f"What stands near {leak[1]} in the image?")] == []


def test_no_look_alike_alarms():
    for names, text in CLEAN:
        again = "" if text[0].isupper() else f" near {text}"
        question = f"{text[0].upper()}{text[1:]}, and what stands{again} in the image?"
        results = check_names(question, (names,)), check_demonyms(question, (names,))
        assert [result.outcome for result in results] == ["PASS", "PASS"], (names, text)


SYLLABLES = st.lists(st.sampled_from("kel mor tarn vask zig r\u0159ek l\u00fcn dov".split()), min_size=2, max_size=3)
INVENTED = SYLLABLES.map("".join).map(str.capitalize).filter(lambda name: len(name) >= 6)
CHANGES = st.sampled_from([
    str.upper, str.lower, "\u200b".join, "\u00ad".join, " ".join, "-".join, ".".join,
    lambda name: unicodedata.normalize("NFD", name), lambda name: unicodedata.normalize("NFC", name),
    lambda name: f"{name}\u2019s", lambda name: f"{name}s", lambda name: f"{name[:3]} {name[3:]}",
    lambda name: name.replace("k", "\u043a").replace("o", "\u043e"),
])  # fmt: skip


@given(INVENTED, CHANGES, st.sampled_from(["{} Bridge", "{}", "Ana {}", "{} (river)", "Lake {}, Tarn"]))
def test_a_change_of_case_form_or_spacing_hides_no_name(name, change, shape):
    text = f"Who built the house of {change(name)} in the image?"
    assert check_names(text, ((shape.format(name),),)).code == "alias-leak"


@given(
    INVENTED,
    st.sampled_from("ian ese er ean ish i ist ite esque".split()),
    st.sampled_from([str, str.upper, str.lower]),
)
def test_every_regular_demonym_is_found(name, suffix, change):
    text = f"Who is the {change(name + suffix)} painter of the image?"
    assert check_demonyms(text, ((f"Castle of {name}",),)).code == "demonym-leak"


TOLD = {
    "5 April 1931": ["in 1931", "the fifth of April", "April the fifth", "April 5", "5th day of April", "1931.04.05",
        "5/4/31", "31-04-05", "19310405", "'31", "nineteen thirty-one", "nineteen hundred and thirty-one", "MCMXXXI",
        "mcmxxxi", "1 9 3 1", "l931", "in 19\u200b31", "１９３１", "1931/04/05", "5.IV.1931", "Apr. 5th", "April, 5"],
    "9 September 1905": ["nineteen oh five", "nineteen-oh-five", "9 Sept", "ninth of September", "Sep 9"],
    "1,204": ["1204", "1 204", "1'204", "1.204", "1_204", "twelve hundred and four",
        "one thousand two hundred and four", "MCCIV", "1204th", "1,204.0", "1.204,0"],
    "320 m": ["1,050 ft", "1050 feet", "0.32 km", "320m", "350 yards", "three hundred and twenty",
        "one thousand and fifty feet", "320th", "32,000 cm", "0.199 mi"],
    "1.88 m": ["6 ft 2 in", "6'2\"", "6 feet 2 inches", "188 cm", "1,88 m", "74 inches"],
    "72 kg": ["159 lb", "158.7 pounds", "72,000 g", "11 st 5 lb", "LXXII"],
    "45 %": ["0.45", "forty-five percent", "45 per cent", "45%", "9/20"],
    "3.5 kg": ["3,5", "3 1/2", "three and a half", "3½", "7/2", "7.7 lb"],
    "9,000,000": ["9 million", "9M", "9 mn", "90 lakh", "9×10^6", "9e6", "9.000.000", "nine million"],
    "United Nations": ["U.N.", "united-nations"], "Florence": ["Florentine", "FLORENCE"],
    "The Hague": ["Hague", "the hague"],
}  # fmt: skip


def test_an_answer_is_found_in_every_writing():
    for answer, texts in TOLD.items():
        told = [check_answer(f"What stands near {text} in the image?", typed(answer)).code for text in texts]
        assert told == ["answer-leak"] * len(texts), answer


@pytest.mark.parametrize(
    ("answer", "text"), [("Switzerland", "Swiss"), ("Vask Tarnov", "Tarnovian"), ("Italy", "Italians")]
)
def test_a_demonym_of_the_answer_is_the_answer(answer, text):
    typed = type_answer(answer, "", "label")
    assert check_answer(f"Where did the {text} live?", typed).code == "answer-leak"
    assert check_answer("Where did the Belgians live?", typed).outcome == "PASS"


def make_answer(kind, value, surface):
    return Answer(type=kind, value=value, precision="", unit="", surface=surface, aliases=(value + surface,), key=value)


@pytest.mark.parametrize(
    "unit", ["one ", "hundred and ", "1 2-", "12,345,", "NO", "k e l ", "%41", "&amp;", "\U0001f1ea", "'"]
)
def test_a_long_text_of_one_kind_is_read_to_its_end(unit):
    names = (("Kelmor Bridge", "KB", "\U0001f1ea\U0001f1f8", "Nice"), ("Henry VIII",))
    text = unit * 5000 + " the Kelmorian Kelmor of 7 m"
    assert check_names(text, names).code == "alias-leak"
    assert check_demonyms(text, names).code == "demonym-leak"
    assert check_answer(text, type_answer("7 m", "", "label")).code == "answer-leak"


@pytest.mark.parametrize(("kind", "value"), [("number", "about 3"), ("date", "spring")])
def test_an_answer_that_cannot_be_read_is_unknown_and_never_passes(kind, value):
    assert check_answer("How many are there?", make_answer(kind, value, value)).outcome == "UNKNOWN"
