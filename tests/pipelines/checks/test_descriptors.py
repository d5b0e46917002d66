import pytest

from pipelines.checks.descriptors import check_counted, find_constraint_problems, list_constraints, offer_facts
from schemas.proofs import Constraint
from schemas.tasks import Descriptor, FactView
from tests.toy import PAGES, box, build_toy_corpus

MIRA = "Mira Tolland"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    twin = box("bridge", "'''Twin Bridge''' is a bridge.", "opened = 3 May 1911", "spans = 3", "material = stone")
    return build_toy_corpus(tmp_path_factory.mktemp("toy"), PAGES | {"Twin Bridge": twin})


def say(toy, title, text, *facts):
    descriptor = Descriptor(text=text, facts=tuple(FactView(relation=r, text=v) for r, v in facts))
    found = list_constraints(toy, toy.find(title), 1, descriptor)
    return [(constraint.relation, constraint.value) for constraint in found]


def test_a_descriptor_says_its_type_its_facts_and_what_was_not_declared(toy):
    assert say(toy, MIRA, "the one") == []
    assert say(toy, MIRA, "the architect of [subject]") == [("type", "architect")]
    declared = say(toy, MIRA, "the Valdonian architect", ("nationality", "Valdonian"))
    assert (
        declared == say(toy, MIRA, "the Valdonian architect") == [("type", "architect"), ("nationality", "Valdonian")]
    )


@pytest.mark.parametrize(
    ("constraints", "named"),
    [
        ([], "the type constraints are []"),
        ([("type", "architect")], "it says 'Valdonian'"),
        ([("type", "architect"), ("nationality", "Valdonian"), ("birth_date", "2 April 1880")], "does not stand in it"),
        ([("type", "architect"), ("nationality", "Valdonian"), ("nationality", "Valdonian")], "occurs twice"),
        ([("type", "banker"), ("nationality", "Valdonian")], "the type constraints are ['banker']"),
    ],
)
def test_constraints_that_are_not_the_descriptors_are_named(toy, constraints, named):
    given = [Constraint(node=1, relation=relation, value=value) for relation, value in constraints]
    problems = find_constraint_problems(toy, toy.find(MIRA), given, "the Valdonian architect of [subject]")
    assert any(named in problem for problem in problems), problems


def offer(toy, title, max_tokens=6):
    return [(fact.relation, fact.text) for fact in offer_facts(toy, toy.find(title), max_tokens)]


def test_a_descriptor_may_add_literals_and_of_dates_the_decade_and_the_century(toy):
    assert offer(toy, "Twin Bridge") == [
        ("opened", "3 May 1911"),
        ("opened", "1910s"),
        ("opened", "20th century"),
        ("spans", "3"),
        ("material", "stone"),
    ]
    assert offer(toy, "Twin Bridge", max_tokens=1) == [("spans", "3"), ("material", "stone")]


@pytest.fixture(scope="module")
def laden(tmp_path_factory):
    """One page whose fields share values, link to articles, and show a measure."""
    pages = PAGES | {
        "Ada Brill": box(
            "painter",
            "'''Ada Brill''' was a painter.",
            "birth_date = {{birth date|1871|4|2}}",
            "teacher = [[Jon Vask]]",
            "employers = {{ubl|[[Marn]]|[[Lumby]]}}",
            "award = Bron",
            "prize = Bron",
            "height = 170 cm",
            "works_count = 12",
        )
    }
    return build_toy_corpus(tmp_path_factory.mktemp("laden"), pages)


def find_untold(corpus, text, *constraints):
    number = corpus.find("Ada Brill")
    descriptor = Descriptor(text=text, facts=tuple(FactView(relation=r, text=v) for r, v in constraints))
    return find_constraint_problems(corpus, number, list_constraints(corpus, number, 1, descriptor), text)


@pytest.mark.parametrize(
    "text",
    [
        "the painter taught by Jon Vask in [subject]", "the painter taught by JON  VASK in [subject]",
        "the painter employed at Lumby, of [subject]", "the painter of [subject], 1.7 metres tall",
        "the painter of [subject], one hundred and seventy centimetres tall",
        "the painter of twelve works in [subject]", "the nineteenth-century painter of [subject]",
        "the painter of the eighteen-seventies in [subject]", "the painter of the 1870's in [subject]",
        "the painter of the '70s in [subject]", "the painter born in [subject] in eighteen seventy-one",
    ],
)  # fmt: skip
def test_what_no_constraint_can_follow_is_a_problem(laden, text):
    (problem, *_) = find_untold(laden, text)
    assert problem.endswith("which nothing counts")
    result = check_counted(laden, laden.find("Ada Brill"), list_of(laden, text), text)
    assert (result.outcome, result.code) == ("FAIL", "no-descriptor")


def list_of(corpus, text):
    return list_constraints(corpus, corpus.find("Ada Brill"), 1, Descriptor(text=text))
