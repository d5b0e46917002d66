from random import Random

import pytest

from tests.planted.catalogue import DEMANDS
from tests.planted.disguises import DISGUISES, convert_measure, spell_number, spell_ordinal, spell_year, write_roman
from tests.planted.text_plants import DEFECTS, MEASURED
from tests.planted.words import HALVES, load_half

PAIRS = 60


def plant(defect, half, seed=5):
    rng = Random(f"{seed}:{defect.title}:{half}")
    return [defect.plant(load_half(half), rng) for _ in range(PAIRS)]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("defect", DEFECTS, ids=[f"{defect.code}-{defect.title}" for defect in DEFECTS])
def test_a_check_tells_the_twins_of_its_defect_apart(defect, half):
    pairs = plant(defect, half)
    missed = [pair.plant for pair in pairs if not pair.caught and not pair.undecided]
    alarmed = [(pair.plant, pair.clean) for pair in pairs if not pair.clean.passed]
    assert len(missed) <= (1 - DEMANDS[defect.code].recall) * PAIRS, missed
    assert len(alarmed) <= DEMANDS[defect.code].false_alarm * PAIRS, alarmed


def test_the_defects_of_text_are_all_planted():
    assert {defect.code for defect in DEFECTS} == {"D01", "D02", "D03", "D04", "D05", "D13", "D14", "D16"}
    assert {defect.code for defect in MEASURED} == {"L4"}
    kinds = {defect.title: defect for defect in (*DEFECTS, *MEASURED)}
    for half in HALVES:
        assert [pair.plant for pair in plant(kinds["title of ordinary words"], half) if not pair.caught] == []
        assert {pair.codes for pair in plant(kinds["answer form"], half)} == {("answer-untyped",), ("answer-too-long",)}


def test_one_seed_gives_the_same_pairs_and_another_gives_others():
    assert plant(DEFECTS[2], "open") == plant(DEFECTS[2], "open")
    assert plant(DEFECTS[2], "open") != plant(DEFECTS[2], "open", 6)


def test_values_are_written_in_other_ways():
    names = ("Orla M\u00fcnov Bridge", "Ana Kelmor", "Tarn")
    assert [place for place, disguise in enumerate(DISGUISES) if all(disguise(name) == name for name in names)] == []
    numbers = {0: "zero", 21: "twenty-one", 104: "one hundred and four", 1204: "one thousand two hundred and four",
               90_000: "ninety thousand", 3001: "three thousand and one"}  # fmt: skip
    assert {number: spell_number(number) for number in numbers} == numbers
    ordinals = {3: "third", 12: "twelfth", 20: "twentieth", 21: "twenty-first", 103: "one hundred and third"}
    assert {number: spell_ordinal(number) for number in ordinals} == ordinals
    years = {1931: "nineteen thirty-one", 1905: "nineteen oh five", 1900: "nineteen hundred",
             2001: "two thousand and one"}  # fmt: skip
    assert {year: spell_year(year) for year in years} == years
    assert write_roman(1949) == "MCMXLIX"
    assert convert_measure(320, "m")[0] == "1,050 ft"
    assert convert_measure(7, "") == ()
