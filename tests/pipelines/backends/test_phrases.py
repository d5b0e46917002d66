import itertools
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.agreement import check_timeless
from pipelines.toy.ontology import ATTRIBUTES as WORLD_ATTRIBUTES
from pipelines.toy.ontology import RELATIONS as WORLD_RELATIONS
from pipelines.toy.phrases import (
    ATTRIBUTES,
    MENTIONS,
    RELATIONS,
    SLOT,
    add_clauses,
    choose_article,
    classify_noun,
    find_attribute,
    find_head,
    find_relation,
    is_known_unit,
    name_kind,
    name_unit,
    normalise_key,
    qualify_fact,
    split_key,
    word_relation,
)
from pipelines.toy.writer import (
    STYLES,
    choose_nouns,
    cut_clause,
    elide_names,
    find_noun,
    list_frames,
    list_references,
    name_role,
)
from schemas.tasks import FactView
from tests.pipelines.backends.question_paths import make_answer


def list_pairs(key: str, table):
    return [row for row in table if key in row.keys.split()]


@pytest.mark.parametrize("row", RELATIONS, ids=lambda row: row.keys.split()[0])
def test_every_relation_has_three_wordings_and_one_that_nests_and_takes_a_qualifier(row):
    assert len(row.plains) + len(row.tails) >= 3
    assert any(tail.endswith(SLOT) and re.match(r"\{who\}|that|where|\w+ which", tail) for tail in row.tails)
    assert all(phrase.count(SLOT) == 1 for phrase in (*row.plains, *row.tails))
    assert all(plain.startswith("the ") for plain in row.plains)


@pytest.mark.parametrize("row", RELATIONS, ids=lambda row: row.keys.split()[0])
def test_every_relation_has_three_inverses_and_one_that_follows_any_fact(row):
    assert len(set(row.inverses)) >= 3
    assert all(phrase.count(SLOT) == 1 for phrase in row.inverses)
    relative = re.compile(r"(\{who\}|that|whose|where|\w+ which) .*\{s\}$")
    assert any(map(relative.match, row.inverses)), row.inverses


@pytest.mark.parametrize("row", ATTRIBUTES, ids=lambda row: row.keys.split()[0])
def test_every_attribute_is_asked_in_four_ways_that_can_end_with_its_subject(row):
    forms = {"date": ("date", "year", ""), "number": ("number", "", "m"), "word": ("string", "", "")}
    subject = row.subjects.split()[0] if row.subjects else ""
    noun = {"building": "museum", "work": "film", "event": "war", "nature": "lake", "region": "country"}.get(
        subject, subject
    )
    frames = list_frames(row.keys.split()[0], make_answer(*forms[row.form]), noun)
    assert len(set(frames)) >= 4
    assert any(frame.endswith(f"{SLOT}?") for frame in frames)
    assert all(
        frame.count(SLOT) == 1 and frame.count("?") == 1 and "{" not in frame.replace(SLOT, "") for frame in frames
    )


def test_every_relation_of_the_toy_world_has_words_of_its_own():
    for relation in WORLD_RELATIONS:
        for subject in relation.subjects:
            for target in relation.objects:
                assert find_relation(relation.key_for(subject), subject, target), (relation.name, subject, target)


def test_every_attribute_of_the_toy_world_has_words_of_its_own():
    forms = {"date": "date", "quantity": "number", "count": "number", "text": "word"}
    for attribute in WORLD_ATTRIBUTES:
        for subject in attribute.subjects:
            row = find_attribute(attribute.key_for(subject), subject)
            assert row is not None, (attribute.name, subject)
            assert row.form == forms[attribute.kind], (attribute.name, subject)


def test_the_first_row_that_fits_wins_so_no_row_hides_behind_a_general_one():
    for position, row in enumerate(RELATIONS):
        for key in row.keys.split():
            before = [other for other in RELATIONS[:position] if key in other.keys.split()]
            assert not any(not other.subjects and not other.objects for other in before), (key, row.plains)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("LargestCity", "largest_city"),
        ("Largest city", "largest_city"),
        ("max-depth", "max_depth"),
        ("leader_name1", "leader_name1"),
        ("ICD10Code", "icd10_code"),
    ],
)
def test_keys_of_any_spelling_meet_in_one(key, expected):
    assert normalise_key(key) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [("fooBarName2", "foo bar name"), ("area_km2", "area"), ("123", "entry"), ("[[x]]?", "x"), ("clubs7", "clubs")],
)
def test_unknown_keys_are_split_into_plain_words(key, expected):
    assert split_key(key) == expected


@given(st.text(alphabet=string.printable + "éß漢", max_size=30))
def test_words_of_any_key_are_letters_and_single_spaces(key):
    assert re.fullmatch(r"[A-Za-z]+( [A-Za-z]+)*", split_key(key))


def test_a_place_where_things_stand_take_place_or_are_based_is_told_apart():
    tails = {
        kind: word_relation("location", kind, "town").tails[0] for kind in ("bridge", "battle", "festival", "company")
    }
    assert tails == {
        "bridge": "where {s} stands",
        "battle": "where {s} took place",
        "festival": "where {s} is held",
        "company": "where {s} has its seat",
    }


def test_a_museum_holds_an_object_that_gives_it_as_location():
    assert word_relation("location", "helmet", "museum").tails[0] == "that holds {s}"
    assert word_relation("location", "telescope", "town").tails[0] == "where {s} is found"


def test_only_bridges_and_the_like_are_opened_to_traffic():
    day = make_answer("date", "day")
    assert any("to traffic" in frame for frame in list_frames("opened", day, "bridge"))
    assert not any("to traffic" in frame for frame in list_frames("opened", day, "museum"))


@pytest.mark.parametrize(
    ("precision", "words"), [("day", r"date|day, month and year"), ("month", r"month"), ("year", r"year")]
)
def test_questions_ask_at_the_precision_of_the_answer(precision, words):
    for key in ("birth_date", "opened", "unheard_of_key"):
        frames = list_frames(key, make_answer("date", precision), "person")
        assert all(re.search(words, frame) for frame in frames)
        assert precision == "day" or not any("exact date" in frame for frame in frames)
        assert precision == "day" or not any(re.search(r"\bday\b|\bdate\b", frame) for frame in frames)


def test_every_question_for_a_measure_names_its_unit():
    for key in ("height", "unheard_of_key", "area_km2", "mass"):
        assert all("square metres" in frame for frame in list_frames(key, make_answer("number", "", "m2"), "bridge"))


def test_counted_things_are_no_unit_of_measure():
    frames = list_frames("population", make_answer("number", "", "inhabitants"), "town")
    assert "How many people live in {s}?" in frames
    assert not any("in inhabitants" in frame for frame in frames)


def test_an_unlinked_name_is_asked_for_in_the_words_of_its_relation():
    frames = list_frames("architect", make_answer("name"), "bridge")
    assert "Who designed {s}?" in frames
    assert "What is the name of the architect of {s}?" in frames


@pytest.mark.parametrize(
    ("noun", "head", "kind"),
    [
        ("bridge", "bridge", "building"),
        ("the port city", "city", "settlement"),
        ("species of finch", "species", "species"),
        ("American film director", "director", "person"),
        ("ornithologist", "ornithologist", "person"),
        ("island group", "group", "nature"),
        ("body of water", "body", "nature"),
        ("opera house", "house", "building"),
        ("place", "place", "settlement"),
        ("gizmo", "gizmo", ""),
        ("", "", ""),
    ],
)
def test_nouns_are_told_apart_by_their_head(noun, head, kind):
    assert find_head(noun) == head
    assert classify_noun(noun) == kind


def test_the_weak_noun_gives_nothing_away():
    assert [name_kind(noun, "one") for noun in ("painter", "bridge", "university", "gizmo")] == [
        "person",
        "structure",
        "institution",
        "one",
    ]


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        ("m", "metres"),
        ("km²", "square kilometres"),
        ("°C", "degrees Celsius"),
        ("MW", "megawatts"),
        ("furlong", "furlong"),
    ],
)
def test_units_are_spelled_out(unit, name):
    assert name_unit(unit) == name
    assert is_known_unit(unit) == (unit != "furlong")


def test_articles_follow_the_sound():
    words = ("elevation", "university", "hour", "bridge", "unknown", "European city", "one-off")
    assert [choose_article(word) for word in words] == ["an", "a", "an", "a", "an", "a", "a"]


@pytest.mark.parametrize(
    ("key", "text", "kind", "expected"),
    [
        ("birth_date", "5 April 1931", "architect", "born on 5 April 1931"),
        ("birth_date", "April 1931", "architect", "born in April 1931"),
        ("opened", "1931", "museum", "opened in 1931"),
        ("opened", "1930s", "museum", "opened in the 1930s"),
        ("death_date", "20th century", "architect", "who died in the 20th century"),
        ("format", "octavo pamphlet", "newspaper", "that is printed as an octavo pamphlet"),
        ("medium", "bronze", "sculptor", "who worked in bronze"),
        ("height", "120 m", "tower", "that has a height of 120 m"),
        ("elevation", "120 m", "town", "that has an elevation of 120 m"),
        ("material", "granite", "bridge", "that is built of granite"),
        ("motto", "Salt and honour", "town", "whose motto is “Salt and honour”"),
        ("foo_bar", "x", "town", "whose foo bar is x"),
    ],
)
def test_facts_become_qualifiers(key, text, kind, expected):
    assert qualify_fact(FactView(relation=key, text=text), kind) == expected


@pytest.mark.parametrize(
    ("qualifiers", "tail", "phrase"),
    [
        ([], "designed by X", "the N designed by X"),
        (["born in 1871"], "who studied at X", "the N born in 1871 who studied at X"),
        (["who died in 1931"], "who studied at X", "the N who died in 1931 and studied at X"),
        (["who died in 1931"], "whose teacher was X", "the N who died in 1931 and whose teacher was X"),
        (
            ["who died in 1931", "born in 1871"],
            "who studied at X",
            "the N born in 1871 who died in 1931 and studied at X",
        ),
        (["founded in 1871"], "founded by X", "the N founded in 1871 by X"),
        (["opened in 1871"], "designed by X", "the N opened in 1871 and designed by X"),
        (["who died in the 1920s"], "who died in X", "the N who died in the 1920s in X"),
        (["of the Y movement"], "born in X", "the N of the Y movement born in X"),
        (["whose genre is Z", "who died in 1931"], "known for X", None),
        (["opened in 1871"], "in X", None),
        (["that is built of Z"], "that [subject] designed", "the N that is built of Z and that [subject] designed"),
    ],
)
def test_clauses_follow_their_noun_in_order_and_each_thing_is_said_once(qualifiers, tail, phrase):
    assert add_clauses("the N", qualifiers, [tail]) == ([] if phrase is None else [phrase])


def test_a_tail_that_repeats_the_verb_of_a_fact_is_taken_only_for_want_of_another():
    tails = ["who was born in X", "whose birthplace is X"]
    assert add_clauses("the N", ["born in 1871"], tails) == ["the N born in 1871 whose birthplace is X"]
    assert add_clauses("the N", ["born in 1871"], tails[:1]) == ["the N born in 1871 who was born in X"]


@pytest.mark.parametrize(
    ("text", "kind", "noun"),
    [
        ("the town where [subject] was born", "town", "town"),
        ("the film director who directed [subject]", "film director", "film director"),
        ("the species of finch that lives in [subject]", "species of finch", "species"),
        ("the birthplace of [subject]", "town", "place"),
        ("the husband or wife of [subject]", "painter", "spouse"),
        ("the star of [subject]", "actor", "person"),
        ("the owner of [subject]", "company", "organisation"),
        ("the owner of [subject]", "", "owner"),
        ("the employer of [subject]", "newspaper", "publication"),
        ("the work adapted into [subject]", "novel", "work"),
        ("the key figure named for [subject]", "politician", "person"),
        ("the person after whom [subject] is named", "general", "person"),
        ("the body of water at the mouth of [subject]", "lake", "body of water"),
        ("the person, born in 1931, who designed [subject]", "architect", "person"),
        ("the chief claim to fame of [subject]", "novel", ""),
        ("Ana Kovač", "architect", ""),
    ],
)
def test_an_entity_is_called_later_what_its_phrase_called_it(text, kind, noun):
    assert find_noun(text, kind) == noun


CALLED = [
    "person",
    "place",
    "town",
    "river",
    "painter",
    "spouse",
    "owner",
    "institution",
    "museum",
    "work",
    "novel",
    "",
]


@given(st.lists(st.sampled_from(CALLED), min_size=2, max_size=11), st.text(max_size=3))
def test_a_plain_that_is_said_only_of_what_no_earlier_entity_may_be(nouns, variety):
    references = list_references(nouns, "found", variety)
    wider = {
        "person": {"painter", "spouse", "owner"},
        "place": {"town"},
        "institution": {"owner", "museum"},
        "work": {"novel"},
    }
    for index, (noun, reference) in enumerate(zip(nouns, references, strict=True)):
        rivals = {noun, *wider.get(noun, ())} & set(nouns[:index])
        assert (reference == f"that {noun}") == bool(noun and not rivals)
        assert f" {noun}" in reference or not noun
        assert bool(reference) == bool(noun)


@given(st.lists(st.sampled_from(CALLED), min_size=2, max_size=11), st.text(max_size=3))
def test_two_steps_that_follow_each_other_are_never_called_the_same(nouns, variety):
    references = list_references(nouns, "reached", variety)
    assert not [one for one, other in itertools.pairwise(references) if one and one == other]


@given(st.lists(st.sampled_from(CALLED), min_size=2, max_size=11), st.text(max_size=3))
def test_entities_are_counted_only_where_all_have_one_noun_and_none_is_in_the_picture(nouns, variety):
    for index, reference in enumerate(list_references(nouns, "reached", variety)):
        counted = re.match(r"(?:that|the) (second|third|fourth|latter) ", reference)
        if counted:
            assert nouns[0] != nouns[index]
            place = {"second": 2, "latter": 2, "third": 3, "fourth": 4}[counted[1]]
            assert nouns[: index + 1].count(nouns[index]) == place


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("the person who married [subject]", "spouse"),
        ("the writer who died in 1931 and was married to [subject]", "spouse"),
        ("the film director who is the son or daughter of [subject]", "child"),
        ("the scientist who advised the doctoral work of [subject]", "doctoral advisor"),
        ("the scientist whose doctoral advisor was [subject]", ""),
        ("the person who drew the plans for [subject]", "designer"),
        ("the town where [subject] was born", ""),
        ("the composer who wrote the music of [subject]", ""),
    ],
)
def test_a_person_is_called_by_what_the_phrase_makes_of_them(text, role):
    assert name_role(text) == role


def test_a_role_is_used_only_where_the_noun_may_mean_another():
    assert choose_nouns(["bridge", "person", "person"], ["", "designer", "spouse"]) == ["bridge", "person", "spouse"]
    assert choose_nouns(["person", "person", "person"], ["", "spouse", "spouse"]) == ["person", "spouse", "person"]
    assert choose_nouns(["person", "person"], ["", ""]) == ["person", "person"]


def test_no_wording_says_what_is_so_at_present_or_outdoes_others():
    texts = [phrase for row in RELATIONS for phrase in (*row.plains, *row.tails, *row.inverses)]
    texts += [ask for row in ATTRIBUTES for ask in (row.noun, row.qualifier, *row.asks)]
    texts += [word for style in STYLES for word in (*style.openings, *style.links, style.found)]
    assert not [text for text in texts if text and not check_timeless(text).passed]


def test_an_eponym_is_never_said_to_have_done_the_naming():
    for target in ("general", "ship"):
        row = word_relation("named_after", "species", target)
        assert not [phrase for phrase in (*row.plains, *row.tails) if "gave a name" in phrase or "behind" in phrase]


def test_a_clause_is_cut_around_its_blank_on_word_boundaries():
    clause = " ".join([*(f"a{n}" for n in range(30)), "____", *(f"b{n}" for n in range(30))])
    assert cut_clause(clause, 5) == "… a28 a29 ____ b0 b1 …"


@given(st.lists(st.text(alphabet='ab?"“” ,.', max_size=6), max_size=40), st.integers(0, 40), st.integers(1, 25))
def test_a_cut_clause_keeps_its_blank_and_stays_within_the_limit(words, place, limit):
    clause = " ".join([*words[:place], "____", *words[place:]])
    cut = cut_clause(clause, limit)
    assert cut.count("____") == 1
    assert "?" not in cut
    assert len([word for word in cut.split() if word != "…"]) <= limit
    assert not set(cut) & set('“"”')


def test_names_in_a_clause_are_elided_whole():
    clause = "Kelm Bridge, the pride of Kelm, was paid for by ____ of kelm bridge fame."
    assert elide_names(clause, ["Kelm Bridge"]) == "…, the pride of Kelm, was paid for by ____ of … fame."


def test_every_wording_for_a_sentence_nests_and_quotes_the_clause():
    assert len(MENTIONS) >= 3
    assert all(tail.endswith(SLOT) and tail.count("“{clause}”") == 1 for tail in MENTIONS)
