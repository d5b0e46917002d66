from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.agreement import wilson_interval
from pipelines.checks.agreement import check_alternative, type_given
from pipelines.checks.uniqueness import MAX_FITTING, list_fitting_ends
from pipelines.graph.indexes import Ground
from pipelines.graph.proofs import make_query
from tests.pipelines.checks.claims import prove
from tests.pipelines.checks.planted_alternatives import PLANTS, ask, draw, list_siblings, make_case
from tests.pipelines.painters import PAGES, born, paint
from tests.planted.scenes import OverlayCorpus, PoolSize, Scene, make_pool
from tests.toy import box, build_toy_corpus

ADA = "Her movement was Luminist. She was 170 cm tall. She was born on 2 April 1871. Her patron was Jon Vask."
WIKI = {
    **PAGES,
    "Ada Brill": paint(
        "Ada Brill",
        "birth_place = [[Ostrel]]",
        born(1871),
        "movement = Luminist",
        "height = 170 cm",
        "patron = Jon Vask",
        prose=ADA,
    ),
    "Luminism": box("movement", "'''Luminism''', or '''Luminist''', is an art movement."),
    "Pell Bridge": box(
        "bridge",
        "'''Pell Bridge''' is a bridge. It was designed by [[Ada Brill]]. It is 95 m long, and was opened in 1931.",
        "designer = [[Ada Brill]]",
        "length = 95 m",
        "opened = {{start date|1931|5|9}}",
    ),
}
REDIRECTS = {"Luminist": "Luminism", "Lumists": "Luminism", "Old Ostrel": "Ostrel"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    corpus = build_toy_corpus(tmp_path_factory.mktemp("wiki"), WIKI, REDIRECTS)
    yield corpus
    corpus.close()


def claim(ground, attribute="movement", **changes):
    """Return the question for a fact of the painter of the 1870s who was born in Ostrel."""
    asked = {"asking": "What of hers", "descriptors": ("the painter of the 1870s born in [subject]",)} | changes
    return prove(ground, ["Ostrel", "Ada Brill"], ["<birth_place"], attribute, **asked)


def check(corpus, text, attribute="movement", edits=(), added=(), later=None, **changes):
    """Return what is said of an alternative after some pages were changed and added; the proof is that of before."""
    said = claim(Ground(corpus), attribute, **changes)
    overlay = OverlayCorpus(corpus, {corpus.find(title): page for title, page in dict(edits).items()}, added)
    after = OverlayCorpus(corpus, {corpus.find(title): page for title, page in later.items()}) if later else None
    return check_alternative(Ground(overlay, after), said.proof, said.answer, text)


def edit(corpus, old, new, title="Ada Brill"):
    text = corpus.text(corpus.find(title))
    assert old in text
    return {title: text.replace(old, new)}


@pytest.mark.parametrize(
    ("attribute", "text"),
    [("movement", "Tonalist"), ("height", "171 cm"), ("birth_date", "3 April 1871"), ("birth_date", "2 April 1872")],
)
def test_what_nothing_supports_where_infobox_and_prose_agree_is_refuted(corpus, attribute, text):
    assert check(corpus, text, attribute).passed


def test_another_value_of_the_field_is_confirmed(corpus):
    edits = edit(corpus, "movement = Luminist", "movement = {{ubl|Luminist|Tonalist}}")
    result = check(corpus, "Tonalist", edits=edits)
    assert (result.outcome, result.code) == ("FAIL", "alternative-answer")
    assert "Ada Brill has 'Tonalist' for movement" in result.detail


def test_a_sentence_of_the_page_that_states_it_confirms(corpus):
    edits = edit(corpus, "She was 170", "Later, her movement was Tonalist. She was 170")
    assert check(corpus, "Tonalist", edits=edits).outcome == "FAIL"


def bridge(ground):
    return prove(ground, ["Orsa Bridge", "Ada Brill"], ["designer"], "movement", ("",), "To which movement")


@pytest.mark.parametrize(
    ("page", "outcome"),
    [
        ("designer = {{ubl|[[Ada Brill]]|[[Cleo Dahl]]}}", "FAIL"),
        ("designer = [[Ada Brill]]\n| designer2 = [[Cleo Dahl]]", "FAIL"),
        ("designer = {{ubl|[[Ada Brill]]|Cleo Dahl}}", "UNKNOWN"),
        ("designer = [[Ada Brill]]\n| sponsor = [[Cleo Dahl]]", "PASS"),
    ],
)
def test_a_hop_with_several_values_leads_to_several_answers(corpus, page, outcome):
    said = bridge(Ground(corpus))
    edits = edit(corpus, "designer = [[Ada Brill]]", page, "Orsa Bridge")
    overlay = OverlayCorpus(corpus, {corpus.find(title): text for title, text in edits.items()})
    assert check_alternative(Ground(overlay), said.proof, said.answer, "Tonalist").outcome == outcome


def test_what_another_dump_says_is_confirmed(corpus):
    later = edit(corpus, "movement = Luminist", "movement = Tonalist")
    result = check(corpus, "Tonalist", later=later)
    assert (result.outcome, result.detail[:15]) == ("FAIL", "in another dump")


def test_another_name_of_the_answer_says_that_its_forms_are_too_narrow(corpus):
    result = check(corpus, "Lumists")
    assert result.outcome == "FAIL"
    assert "too narrow" in result.detail


def test_a_name_that_nothing_here_bears_may_be_another_one_of_the_answer(corpus):
    """Twain is Clemens, and no spelling says so; a name that an article bears is told from the answer's."""
    found = {name: check(corpus, name, "patron") for name in ("Samuel Clemens", "Cleo Dahl")}
    assert {name: result.outcome for name, result in found.items()} == {
        "Samuel Clemens": "UNKNOWN",
        "Cleo Dahl": "PASS",
    }
    assert "another wording" in found["Samuel Clemens"].detail


@pytest.mark.parametrize(
    ("attribute", "text", "changes"),
    [
        ("birth_date", "3 April 1871", {"derivation": "year"}), ("birth_date", "April 1871", {}),
        ("birth_date", "1871", {}), ("height", "5.5 ft", {}), ("movement", "Early Luminist", {}),
        ("movement", "Vorticist", {"edit": "silent"}),
    ],
)  # fmt: skip
def test_what_may_be_the_answer_itself_or_cannot_be_told_stays_open(corpus, attribute, text, changes):
    edits = edit(corpus, "Her movement was Luminist. ", "") if changes.pop("edit", "") else ()
    assert check(corpus, text, attribute, edits=edits, **changes).outcome == "UNKNOWN"


@pytest.mark.parametrize(
    "text",
    ["", " ", "Tonalist or Luminist", "Tonalist; Cubist", "perhaps Tonalist", "x" * 4000, "a, " * 1300, "\x00", "[[x]]",
     "{{" * 2000, "<" * 4000, "https://x.example/y", "not Luminist", "It was Tonalist. She was born there."],
)  # fmt: skip
def test_what_is_no_single_short_value_stays_open(corpus, text):
    assert check(corpus, text).outcome == "UNKNOWN"


@given(text=st.text(max_size=400))
def test_no_text_is_confirmed_that_the_wiki_does_not_hold(corpus, text):
    # "Luminist", "Lumists" and "Luminism" are all it says of movements of painters who fit.
    if not text.strip().casefold().startswith("lum"):
        assert check(corpus, text).outcome != "FAIL"


def test_a_proof_about_another_wiki_leaves_everything_open(corpus, tmp_path):
    said = claim(Ground(corpus))
    other = build_toy_corpus(tmp_path / "other")
    result = check_alternative(Ground(other), said.proof, said.answer, "Tonalist")
    other.close()
    assert result.outcome == "UNKNOWN"
    assert "no page" in result.detail


def test_more_entities_than_are_followed_leave_everything_open(corpus):
    crowd = [
        (f"Painter Number {n}", paint(f"Painter Number {n}", "birth_place = [[Ostrel]]", born(1871 + n % 9)))
        for n in range(MAX_FITTING + 1)
    ]
    result = check(corpus, "Tonalist", added=crowd)
    assert (result.outcome, result.detail) == ("UNKNOWN", "too many entities may fit the chain")
    said = claim(Ground(corpus))
    overlay = OverlayCorpus(corpus, {}, crowd)
    ends = list_fitting_ends(Ground(overlay), make_query(overlay, said.proof))
    assert (ends.capped, len(ends.certain)) == (True, MAX_FITTING)


@pytest.mark.parametrize(
    ("attribute", "text", "key"),
    [
        ("height", "171", "number:171 cm"),
        ("height", "5 ft", "number:5 ft"),
        ("birth_date", "1872", "date:1872"),
        ("movement", "Tonalist", "text:tonalist"),
    ],
)
def test_an_answer_is_read_as_a_value_of_what_is_asked(corpus, attribute, text, key):
    answer = claim(Ground(corpus), attribute).answer
    assert type_given(text, answer, attribute).key == key


# measured on a generated world

QUESTIONS = 100


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    pool = make_pool(tmp_path_factory.mktemp("pool"), 7, 0.1, PoolSize(400, {"paths": 300, "injection": 20}))
    yield pool
    pool.corpus.close()


@pytest.mark.parametrize("kind", PLANTS)
def test_planted_alternatives_are_confirmed_and_never_refuted(pool, kind):
    outcomes = Counter(ask(case, planted.scene, planted.given).outcome for case, planted in draw(pool, kind))
    assert outcomes["PASS"] == 0
    assert sum(outcomes.values()) >= QUESTIONS
    assert wilson_interval(outcomes["FAIL"], sum(outcomes.values()))[0] >= 0.95


def test_values_of_other_entities_are_refuted_and_never_confirmed(pool):
    outcomes = Counter()
    for number, question in enumerate(pool.questions):
        case = make_case(pool, question)
        siblings = list_siblings(case)
        for other, _ in Random(number).sample(siblings, min(3, len(siblings))):
            outcomes[ask(case, Scene(case.claim), other.surface).outcome] += 1
    total = sum(outcomes.values())
    assert total >= 2 * QUESTIONS
    assert outcomes["FAIL"] == 0
    assert outcomes["PASS"] >= 0.9 * total
