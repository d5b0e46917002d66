from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.checks.uniqueness import (
    Fit,
    NearMissSearch,
    check_answer_unchanged,
    check_fit,
    check_near_misses,
    check_single_value,
    count_fit,
    find_near_misses,
    find_redundant,
)
from pipelines.graph.indexes import Ground
from pipelines.graph.proofs import make_query
from pipelines.graph.query import Query
from schemas.datasets import Rewrite
from schemas.proofs import Constraint, Evidence, Hop
from tests.pipelines.painters import (
    DECADE,
    TYPE,
    add_pages,
    ask_back,
    born,
    build_painters,
    make_hop,
    paint,
)
from tests.planted.scenes import OverlayCorpus
from tests.toy import build_toy_corpus

NOWHERE = Evidence(page_id=0, title="", revision=0, kind="infobox", key="", start=0, end=0, text="", link_start=-1)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return build_toy_corpus(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def painters(tmp_path_factory):
    return build_painters(tmp_path_factory.mktemp("painters"))


def ask(corpus, *constraints):
    """Return the query for when the birthplace of the architect of Kelm Bridge was established."""
    hops = tuple(
        Hop(index=index, relation=relation, subject_id=0, object_id=0, clause="", evidence=NOWHERE)
        for index, relation in enumerate(("architect", "birth_place"), 1)
    )
    return Query(corpus.find("Kelm Bridge"), hops, constraints, "established_date", ())


def test_a_bridge_is_counted_with_the_chain_and_without(toy):
    assert count_fit(Ground(toy), ask(toy), 1, threshold=9) == Fit(1, 1, 3, capped=False)
    assert count_fit(Ground(toy), ask(toy), 1, threshold=2) == Fit(1, 1, 2, capped=True)


def test_a_descriptor_fact_narrows_both_counts(toy):
    valdonian = Constraint(node=1, relation="nationality", value="Valdonian")
    nobody = Constraint(node=1, relation="nationality", value="Nobody")
    assert count_fit(Ground(toy), ask(toy, valdonian), 1, threshold=9) == Fit(1, 1, 2, capped=False)
    assert count_fit(Ground(toy), ask(toy, nobody), 1, threshold=9) == Fit(1, 0, 0, capped=False)


def test_nodes_behind_a_broken_chain_fit_nothing(toy):
    nobody = Constraint(node=1, relation="nationality", value="Nobody")
    assert count_fit(Ground(toy), ask(toy, nobody), 2, threshold=9).chain == 0


@pytest.mark.parametrize(
    ("chain", "alone", "outcome", "code"),
    [
        (1, 5, "PASS", ""),
        (1, 6, "PASS", ""),
        (1, 4, "FAIL", "stands-alone"),
        (0, 5, "FAIL", "not-unique"),
        (2, 5, "FAIL", "not-unique"),
    ],
)
def test_both_sides_of_uniqueness_are_asked_for(chain, alone, outcome, code):
    result = check_fit(Fit(1, chain, alone, capped=False), threshold=5)
    assert result.outcome == outcome
    assert not code or result.code == code


def test_a_fit_becomes_two_counts_of_its_node():
    counts = Fit(2, 1, 7, capped=True).as_counts()
    assert [(count.name, count.node, count.value, count.capped) for count in counts] == [
        ("chain", 2, 1, False),
        ("alone", 2, 7, True),
    ]


def test_an_answer_that_another_constraint_removes_has_changed(toy):
    nobody = Constraint(node=2, relation="country", value="Nowhere")
    assert check_answer_unchanged(Ground(toy), ask(toy), "date:1204").outcome == "PASS"
    assert check_answer_unchanged(Ground(toy), ask(toy), "date:1310").code == "answer-changed"
    assert check_answer_unchanged(Ground(toy), ask(toy, nobody), "date:1204").outcome == "FAIL"


def test_every_rewrite_of_the_demo_keeps_its_answer_and_fits_one_entity(demo, demo_ground):
    for row in demo.rows("rewrites", Rewrite):
        query = make_query(demo_ground.corpus, row.proof)
        assert check_answer_unchanged(demo_ground, query, row.answer.key).passed
        for node in range(1, len(row.proof.nodes)):
            threshold = demo.config.rewrites.min_alone_first if node == 1 else demo.config.rewrites.min_alone
            assert check_fit(count_fit(demo_ground, query, node, threshold), threshold).passed


def judge(corpus, *facts, cap=50):
    """Return all that says whether the painter born at Ostrel in the 1870s is one: counts, and the near misses."""
    ground, query = Ground(corpus), ask_back(corpus, "Ostrel", *facts)
    fit = count_fit(ground, query, 1, 2)
    return fit, check_fit(fit, 2), check_near_misses(find_near_misses(ground, query, 1, cap))


def is_accepted(corpus, *facts):
    _, counted, looked_up = judge(corpus, *facts)
    return counted.passed and looked_up.passed


def test_a_backward_hop_fits_one_entity_with_the_chain_and_several_without(painters):
    fit, counted, looked_up = judge(painters)
    assert (fit, counted.outcome, looked_up.outcome) == (Fit(1, 1, 2, capped=True), "PASS", "PASS")
    assert judge(painters, TYPE)[1].code == "not-unique"
    assert judge(painters, TYPE, ("height", "170 cm"))[1].code == "stands-alone"


@pytest.mark.parametrize(
    "twin",
    [
        paint("Vera Wick", "birth_place = [[Ostrel]]", born(1874)),
        paint("Vera Wick", "birth_place = [[Old Ostrel]]", "birth_date = 1874"),
        paint("Vera Wick", "birth_place = Ostrel", "birth_date = 1870s"),
        paint("Vera Wick", "birth_place = {{ubl|[[Lumby]]|[[Ostrel]]}}", born(1874)),
    ],
)
def test_a_twin_that_shows_everything_makes_the_descriptor_fit_two(painters, twin):
    _, counted, _ = judge(add_pages(painters, Vera_Wick=twin))
    assert (counted.outcome, counted.code) == ("FAIL", "not-unique")


@pytest.mark.parametrize(
    ("twin", "outcome"),
    [
        (paint("Vera Wick", born(1874), prose="She was born in [[Ostrel]]."), "FAIL"),
        (paint("Vera Wick", born(1874), prose="She was born in Ostrel."), "FAIL"),
        (paint("Vera Wick", "birth_place = [[Ostrel]]", prose="She was born in 1874."), "FAIL"),
        (paint("Vera Wick", prose="She was born at Ostrel in May 1874."), "FAIL"),
        (paint("Vera Wick", born(1874), prose="She painted [[Ostrel]]."), "UNKNOWN"),
        (paint("Vera Wick", "birth_place = [[Ostrel]]", prose="She came in 1874."), "UNKNOWN"),
        (paint("Vera Wick", "birth_place = [[Ostrel]]", prose="She painted."), "PASS"),
        (paint("Vera Wick", born(1874), prose="She painted."), "PASS"),
        (paint("Vera Wick", prose="She painted [[Ostrel]]."), "PASS"),
        (paint("Vera Wick", prose="She painted in 1874."), "PASS"),
    ],
)
def test_a_twin_that_shows_less_is_looked_up_in_its_article(painters, twin, outcome):
    fit, counted, looked_up = judge(add_pages(painters, Vera_Wick=twin))
    assert (fit.chain, counted.passed, looked_up.outcome) == (1, True, outcome)
    assert looked_up.code == ("" if outcome == "PASS" else "near-miss")


@pytest.mark.parametrize("kind", ["person", "artist", "politician"])
def test_a_twin_of_a_broader_type_is_not_refuted_by_its_noun(painters, kind):
    twin = paint("Vera Wick", "birth_place = [[Ostrel]]", born(1874), kind=kind)
    assert judge(add_pages(painters, Vera_Wick=twin))[2].outcome == "UNKNOWN"


def test_a_twin_without_an_infobox_is_not_refuted_because_another_noun_says_what_it_is(painters):
    twin = "'''Vera Wick''' was a watercolourist. She was born in [[Ostrel]] in 1874."
    assert judge(add_pages(painters, Vera_Wick=twin))[2].outcome == "UNKNOWN"
    assert judge(add_pages(painters, Vera_Wick=twin.replace(" in 1874", "")))[2].passed


def test_with_more_near_misses_than_the_cap_nothing_is_looked_up(painters):
    pages = {f"Vera_{name}": paint(f"Vera {name}", "birth_place = [[Ostrel]]") for name in ("Wick", "Holm", "Strand")}
    corpus = add_pages(painters, **pages)
    assert judge(corpus, cap=3)[2].passed
    assert judge(corpus, cap=2)[2].code == "too-many-near-misses"
    assert judge(corpus, cap=2)[2].outcome == "UNKNOWN"
    search = find_near_misses(Ground(corpus), ask_back(corpus), 1, 3)
    assert [(miss.title, miss.unknown, miss.resolution) for miss in search.looked_up] == [
        ("Vera Wick", ("birth_date",), "absent"),
        ("Vera Holm", ("birth_date",), "absent"),
        ("Vera Strand", ("birth_date",), "absent"),
    ]


def test_a_search_that_was_cut_never_passes():
    assert not check_near_misses(NearMissSearch(1, (), capped=True)).passed
    assert check_near_misses(NearMissSearch(1, (), capped=False)).passed


FIELDS = {
    "birth_place": ("[[Ostrel]]", "Ostrel", "[[Old Ostrel|home]]", "{{ubl|[[Marn]]|[[Ostrel]]}}"),
    "birth_date": ("{{birth date|1874|5|6}}", "1874", "1870s", "May 1874"),
}
UNREAD = {"birth_place": "{{strange|x}}", "birth_date": "c. 1874"}
SENTENCES = {
    "birth_place": (
        "Vera Wick was born in [[Ostrel]].",
        "She was born at Ostrel.",
        "Born at [[Ostrel|home]], she grew.",
    ),
    "birth_date": ("Vera Wick was born in 1874.", "She was born on 6 May 1874.", "She was born in the 1870s."),
}
FILLERS = ("", "She painted.", "She was born to a banker.", "She knew [[Lumby]].", "She lived until 1930.")


@st.composite
def draw_twins(draw):
    """A page of someone who fits: each fact in the infobox, or unreadable or left out there and said in prose."""
    fields, prose = [], [draw(st.sampled_from(FILLERS))]
    for key, forms in FIELDS.items():
        shown = draw(st.sampled_from((*forms, UNREAD[key], "")))
        fields += [f"{key} = {shown}"] if shown else []
        if shown not in forms or draw(st.booleans()):
            prose.append(draw(st.sampled_from(SENTENCES[key])))
    return paint("Vera Wick", *draw(st.permutations(fields)), prose=" ".join(draw(st.permutations(prose))))


@settings(max_examples=150)
@given(draw_twins())
def test_one_who_fits_is_never_passed_over_whatever_the_infobox_leaves_out(painters, twin):
    assert is_accepted(painters)
    assert not is_accepted(add_pages(painters, Vera_Wick=twin))


@settings(max_examples=40)
@given(draw_twins(), st.sampled_from(["sculptor", "bridge"]))
def test_an_entity_of_another_kind_changes_nothing(painters, twin, kind):
    assert judge(add_pages(painters, Vera_Wick=twin.replace("painter", kind))) == judge(painters)


@settings(max_examples=40)
@given(st.sampled_from(["[[Ostrel]]", "Ostrel", "[[Old Ostrel|home]]"]), st.integers(1870, 1879))
def test_a_twin_flips_the_verdict(painters, town, year):
    assert is_accepted(painters)
    assert not is_accepted(add_pages(painters, Vera_Wick=paint("Vera Wick", f"birth_place = {town}", born(year))))


def rewrite(corpus, title, text):
    """Return the painters' corpus with Zeno Ard added and one page rewritten."""
    added = [("Zeno Ard", corpus.text(corpus.find("Zeno Ard")))]
    return OverlayCorpus(corpus.base, {corpus.find(title): text}, added)


def check_designer(corpus):
    numbers = [corpus.find("Pell Bridge"), corpus.find("Emil Foss")]
    return check_single_value(Ground(corpus), numbers, make_hop(1, "designer"))


@pytest.mark.parametrize(
    ("new", "outcome"),
    [
        ("designer = [[Emil Foss]]", "PASS"),
        ("designer = {{ubl|[[Emil Foss]]|[[Zeno Ard]]}}", "FAIL"),
        ("designer = [[Emil Foss]]<br>[[Zeno Ard]]", "FAIL"),
        ("designer1 = [[Emil Foss]]\n| designer2 = [[Zeno Ard]]", "FAIL"),
        ("designer = {{ubl|[[Emil Foss]]|{{strange|x}}}}", "FAIL"),
        ("engineer = [[Zeno Ard]]\n| designer = [[Emil Foss]]", "PASS"),
    ],
)
def test_a_field_with_several_values_leads_to_no_one(painters, new, outcome):
    corpus = add_pages(painters, Zeno_Ard=paint("Zeno Ard", kind="sculptor"))
    text = corpus.text(corpus.find("Pell Bridge")).replace("designer = [[Emil Foss]]", new)
    result = check_designer(rewrite(corpus, "Pell Bridge", text))
    assert (result.outcome, result.code) == (outcome, "" if outcome == "PASS" else "multi-valued")


@pytest.mark.parametrize(
    ("prose", "outcome"),
    [
        ("It was designed by [[Emil Foss]] and [[Zeno Ard]].", "UNKNOWN"),
        ("It was designed by [[Zeno Ard]].", "UNKNOWN"),
        ("[[Zeno Ard]] came. It was designed by [[Emil Foss]] with Zeno Ard.", "UNKNOWN"),
        ("Zeno  Ard, they say, designed it. It opened late. [[Zeno Ard]] came.", "UNKNOWN"),
        ("It was designed by Zeno [[Emil Foss]] Ard. [[Zeno Ard]] came.", "PASS"),
        ("It was designed by [[Emil Foss]]. [[Zeno Ard]] walked over it.", "PASS"),
        ("It was designed by [[Emil Foss]] in [[Marn]].", "PASS"),
        ("It was designed by [[Emil Foss]] like [[Orsa Bridge]].", "PASS"),
    ],
)
def test_a_sentence_may_say_another_value_of_the_same_kind(painters, prose, outcome):
    corpus = add_pages(painters, Zeno_Ard=paint("Zeno Ard", kind="sculptor"))
    old = "It was designed by [[Emil Foss]], and its lamps were made at [[Marn]]."
    text = corpus.text(corpus.find("Pell Bridge"))
    assert old in text
    result = check_designer(rewrite(corpus, "Pell Bridge", text.replace(old, prose)))
    assert (result.outcome, result.code) == (outcome, "" if outcome == "PASS" else "multi-valued")


def test_backward_hops_and_sentences_have_no_single_field(painters):
    numbers = [painters.find("Marn"), painters.find("Gus Hald")]
    assert check_single_value(Ground(painters), numbers, make_hop(1, "residence", backward=True)).passed
    assert check_single_value(Ground(painters), numbers, make_hop(1, "mentions")).passed
    assert check_single_value(Ground(painters), numbers, make_hop(1, "nothing")).code == "multi-valued"


def test_a_constraint_that_narrows_nothing_is_redundant(painters):
    tall = ("height", "170 cm")
    query = ask_back(painters, "Ostrel", TYPE, DECADE, tall)
    redundant = find_redundant(Ground(painters), query, "text:luminist")
    assert [(part.relation, part.value) for part in redundant] == [TYPE, DECADE, tall]
    single = ask_back(painters, "Ostrel", TYPE, DECADE)
    assert [part.relation for part in find_redundant(Ground(painters), single, "text:luminist")] == ["type"]
    assert find_redundant(Ground(painters), replace(single, constraints=()), "text:luminist") == ()
    assert find_redundant(Ground(painters), single, "text:tonalist") == ()
