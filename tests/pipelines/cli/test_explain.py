import pytest
from rich.console import Console

from pipelines.cli.explain import explain_record, list_chain, render_explanation
from pipelines.cli.facets import describe_evidence, describe_proof, describe_record, list_near_misses
from pipelines.errors import ConfigError
from pipelines.graph.proofs import NO_PROOF
from schemas.datasets import Alternative, Origin
from schemas.proofs import Branch
from tests.pipelines.cli.injected import REFUTED, make_injected, make_rewrite
from tests.pipelines.release.builders import make_evidence, make_question

QUESTION = "question-0000000000000001"


def render(explanation):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(render_explanation(explanation))
    return capture.get()


def test_a_question_is_explained_with_what_was_made_from_it(workspace):
    explanation = explain_record(workspace, QUESTION)
    assert [row.stage for row in explanation.rows] == ["difficulty", "trajectories", "releases", "releases"]
    assert {name.split("/")[0] for name in explanation.releases} == {"vqa", "sft"}


def test_a_line_that_is_cut_says_so_and_all_of_it_is_looked_for_in_releases(workspace, monkeypatch):
    for module in ("view.queries", "explain"):
        monkeypatch.setattr(f"pipelines.cli.{module}.MOST_RELATIVES", 1, raising=False)
    explanation = explain_record(workspace, QUESTION)
    assert [row.stage for row in explanation.rows] == ["difficulty"]
    assert {name.split("/")[0] for name in explanation.releases} == {"vqa", "sft"}
    assert "the first 1 rows of its line follow, 3 do not" in render(explanation)


def test_a_rollout_is_explained_with_its_question(workspace):
    explanation = explain_record(workspace, "rollout-0000000000000002")
    assert [row.record.record_id for row in explanation.rows][:2] == [
        "question-0000000000000002",
        "rollout-0000000000000002",
    ]


def test_a_refused_row_is_explained_by_its_reason(workspace):
    explanation = explain_record(workspace, "question-refused0000001")
    assert [(row.stage, row.reason, row.detail) for row in explanation.refusals] == [
        ("difficulty", "solved-without-tools", "3 of 8")
    ]
    assert "solved-without-tools" in render(explanation)


def test_an_ambiguous_prefix_lists_what_it_could_be(workspace):
    with pytest.raises(ConfigError, match=r"question-refused0000001, question-refused0000002"):
        explain_record(workspace, "question-ref")


def test_an_unknown_prefix_is_refused(workspace):
    with pytest.raises(ConfigError, match="no record"):
        explain_record(workspace, "nothing")


def test_the_explanation_shows_evidence_picture_and_difficulty(workspace):
    text = render(explain_record(workspace, QUESTION))
    assert "1 of 8 correct" in text
    assert "Mira Tolland" in text


def test_a_question_from_outside_is_explained_by_where_it_comes_from():
    origin = Origin(pool="elsewhere", row="17", entity="", licence="", source="https://pool.example/")
    asked = make_question(1, None, proof=NO_PROOF, origin=origin, reading=None, screening=None, standing="unproved")
    assert list_chain(asked) == []
    told = dict(describe_record(asked))
    assert told["from outside"] == "no proof: row 17 of the pool elsewhere, licence unknown, https://pool.example/"
    assert "asks for" not in told


def test_a_measured_question_is_described_with_what_was_attempted_and_what_it_needs():
    cell = make_question(1, None).cells[0].model_copy(update={"attempts": 2, "day": "2026-11-22"})
    other = Alternative(text="1999", times=3)
    measured = make_question(
        1,
        None,
        cells=(cell,),
        search_need="mixed",
        alternatives=(other,),
        swapped_with="Orsa Bridge",
        left_out=("image",),
    )
    lines = describe_record(measured)
    for line in (
        ("text", "knower: 1 of 2 (8 planned) correct, 0 unscored, 95% 0.02-0.47, 2026-11-22"),
        ("needs", "mixed"),
        ("standing", "solved"),
        ("swapped with", "the picture of Orsa Bridge"),
        ("left out", "image"),
        ("also given", "'1999' 3 times, refuted"),
    ):
        assert line in lines


def test_the_explanation_draws_the_proof_from_anchor_to_answer(workspace):
    text = render(explain_record(workspace, QUESTION))
    assert "Kelm Bridge 1 -architect-> Mira Tolland 1 -birth place-> Ostrava 1 -founded-> = 1201" in text


@pytest.fixture(scope="module")
def told():
    """Labelled lines of an injected question's proof; lines of one label joined."""
    lines = {}
    for label, text in describe_proof(make_injected(None).proof):
        lines[label] = f"{lines[label]}\n{text}" if label in lines else text
    return lines


def test_a_backward_hop_is_drawn_with_its_arrow_turned(told):
    chain = "Kelm Bridge 1 -architect-> Mira Tolland 1 <-birth place- Ostrava 1 -founded-> = 1201"
    assert list_chain(make_injected(None)) == [("chain", chain)]
    assert told["hop 2"] == "Mira Tolland 1 <-birth place- Ostrava 1"


def test_near_misses_are_told_by_node_and_by_what_their_articles_say(told):
    (line,) = told["near misses"].splitlines()
    assert line.startswith(f"Mira Tolland 1: {REFUTED} absent: Jon Vask 0 (birth_date, type); Jon Vask 1 ")
    assert line.endswith("; 7 more")


def test_near_misses_that_were_not_refuted_have_a_line_of_their_own():
    proof = make_injected(None).proof
    unclear = proof.near_misses[0].model_copy(update={"resolution": "unclear"})
    proof = proof.model_copy(update={"near_misses": (unclear, *proof.near_misses[1:])})
    assert [text[:27] for _, text in list_near_misses(proof)] == [
        "Mira Tolland 1: 11 absent: ",
        "Mira Tolland 1: 1 unclear: ",
    ]


def test_a_constraint_that_narrows_nothing_is_marked(told):
    assert told["told"].splitlines() == [
        "Mira Tolland 1: type = architect; birth_date = 1870s (redundant)",
        "Ostrava 1: type = town",
    ]


def test_what_confirms_the_answer_is_shown(told):
    assert told["confirmed by"].startswith("The town was founded in 1201.  (Ostrava 1, revision 9013")
    assert told["also true in"] == "the dump of 2024-01-01"
    assert told["asks for"] == "founded of Ostrava 1, only the year"


def test_what_the_counts_had_to_reach_is_shown(told):
    assert told["had to reach"].split("; ") == [
        "R_alone 5 at the first hidden node, 2 later",
        "N_img 6",
        "at most 50 near misses a node, all refuted",
        "answer at most 5.0% of its relation",
        "page not among the first 10 of one search",
        "a sentence says the answer too",
        "nothing that changes with time",
    ]
    assert told["shorter paths"] == "looked for and ruled out"


def test_a_proof_from_before_the_rewrites_has_none_of_these_lines():
    labels = [label for label, _ in describe_proof(make_question(1, None).proof)]
    assert not {"confirmed by", "also true in", "had to reach", "shorter paths", "near misses"} & set(labels)


def test_a_certificate_names_its_round_of_injection():
    rows = describe_record(make_rewrite(make_injected(None), 0, 2))
    assert [text for label, text in rows if label == "hides"] == [
        "Mira Tolland 0 as 'the architect' (1 in the chain, 7 alone)",
        "round 2: Mira Tolland 2 as 'the architect' (1 in the chain, 7 alone, 6 near misses looked up)",
    ]


def test_a_tree_is_drawn_with_its_branches_and_their_evidence():
    question = make_question(1, None)
    stated, quoted = make_evidence(7001, "Ostrava"), make_evidence(7002, "Ostrava")
    node = question.proof.nodes[-1].model_copy(update={"title": "Lund Hall", "role": "branch"})
    own = Branch(host=1, relation="owner", node=node, named=True, evidence=stated, quote=quoted)
    beside = Branch(
        host=2, relation="mayor", node=node, named=False, evidence=stated, descriptor="the hall in [subject]"
    )
    tree = question.model_copy(update={"proof": question.proof.model_copy(update={"branches": (own, beside)})})
    first, second = (tree.proof.nodes[number].title for number in (1, 2))
    assert list_chain(tree) == [
        *list_chain(question),
        ("branch", f"{first} -owner-> Lund Hall (named)"),
        ("branch", f"{second} -mayor-> Lund Hall (hidden as 'the hall in [subject]')"),
    ]
    lines = list(describe_proof(tree.proof))
    number = len(tree.proof.nodes)
    assert (f"branch {number}", f"{first} -owner-> Lund Hall (named)") in lines
    assert {("", describe_evidence(stated)), ("", describe_evidence(quoted))} <= set(lines)
