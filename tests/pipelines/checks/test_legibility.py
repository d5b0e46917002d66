import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.checks.legibility import check_readable
from pipelines.names import is_common_word
from schemas.proofs import Answer

NAMES = (("Kelmor Bridge", "Kelmor crossing"), ("Jelena Vandrossa (painter)",), ("Ely",), ("Rose Garden",))
WORDS = frozenset({"bridge", "painter", "city", "garden"})


def answer(value="Tavish Ornquell", type_="name", **changes):
    given = {"precision": "", "unit": "", "surface": value, "aliases": (), "key": value.lower()} | changes
    return Answer(type=type_, value=value, **given)


def check(*lines, names=NAMES, said=None, words=WORDS):
    return check_readable(lines, names, said or answer(), words)


@pytest.mark.parametrize(
    "line",
    [
        "KELM0R BRIDGE", "Keimor Bridge", "Ke|mor Bridge", "Kelrnor Bridge", "KelmorBridge", "Kel mor Bri dge",
        "WelcometoKelmorBridgeWalk", "Kelnor Bridge", "Kelmr Bridge", "Kelmoor", "Vandr0ssa", "JELENA VANDR055A",
        "Vandrosa 1821", "Van drossa", "Vandrössá", "Tavlsh Omquell", "Ornquel", "Rose Garden", "R0se Garden",
    ],
)  # fmt: skip
def test_a_name_that_was_misread_is_readable_still(line):
    assert check("Open daily", line, "Exit").outcome == "FAIL"


@pytest.mark.parametrize(
    "line",
    [
        "City Bridge", "Bridge", "Brldge", "Garden", "Rose", "Museum of Art", "Kelp Museum", "Elm", "E1y", 
        "Roze Gardem",        "Kalmer Bridge", "Quinnory Tower", "1875", "& ~ | l1", "Vendors", "Painter", "Helen",
    ],
)  # fmt: skip
def test_common_words_and_other_names_give_nothing_away(line):
    assert check("Open daily", line).passed


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        ("3", "FAIL"), ("No. 3", "PASS"), ("3 m", "FAIL"), ("max. height 3 m", "FAIL"), ("Tram 3 to Exit", "PASS"),
        ("Tel. 555 3 10", "PASS"), ("III", "FAIL"), ("three", "FAIL"), ("13 m", "PASS"), ("Exit", "PASS"),
    ],
)  # fmt: skip
def test_a_small_number_tells_the_answer_alone_on_its_line_or_before_its_unit(line, outcome):
    said = answer("3", "number", unit="m", surface="3 m")
    assert check("Open daily", line, said=said).outcome == outcome


@given(st.text("abcdefghkmnopqstuwxyz", min_size=7, max_size=20), st.data())
def test_any_rare_name_is_found_with_one_letter_wrong(name, data):
    assume(not is_common_word(name))
    place = data.draw(st.integers(0, len(name) - 1))
    wrong = name[:place] + "j" + name[place + 1 :]
    assert check("qqq", wrong, names=((name.capitalize(),),), words=frozenset()).outcome == "FAIL"
