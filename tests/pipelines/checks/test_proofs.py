"""Re-deriving proofs whose hops are sentences or lead backward; the rest is in tests/pipelines/release/test_verify."""

from dataclasses import replace

import pytest

from pipelines.checks.examination import Claim
from pipelines.checks.proofs import find_problems
from pipelines.graph.query import Indexes
from schemas.datasets import Grounding
from schemas.proofs import Thresholds
from tests.pipelines.checks.claims import prove
from tests.pipelines.corpus.entity_lines import make_claim, make_entity, render_line, write_dump
from tests.pipelines.painters import build_painters, paint
from tests.planted.scenes import OverlayCorpus
from tests.toy import PAGES, box, build_toy_corpus

STRICT = Thresholds(
    alone_first=2,
    alone=1,
    answers=2,
    near_misses=5,
    answer_share=0.9,
    retrieval_rank=1,
    agreement="required",
    volatile=False,
)


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Indexes:
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("toy")))


@pytest.fixture(scope="module")
def spoken(toy) -> Claim:
    """A path whose first hop is a sentence."""
    clause = "The money for it came from the banker ____ of the old town."
    said = clause.replace("____", "[subject]")
    limits = Thresholds(alone_first=1, alone=2, answers=0)
    titles, relations = ("Kelm Bridge", "Hans Oder", "Lumby"), ("mentions", "birth_place")
    return prove(toy, titles, relations, "established_date", (said, ""), "In which year was it established", limits)


@pytest.fixture(scope="module")
def painters(tmp_path_factory) -> Indexes:
    """Ada Brill is the painter of the 1870s from Ostrel, also by the prose; Vera Wick might have been another."""
    corpus = build_painters(tmp_path_factory.mktemp("painters"))
    ada = corpus.text(corpus.find("Ada Brill")) + " Her movement was Luminist."
    vera = paint("Vera Wick", "birth_place = [[Ostrel]]", "movement = Vorticist")
    added = [("Vera Wick", vera), *((f"Extra {name}", paint(name, "movement = Cubist")) for name in "ABCDEFGHIJ")]
    return Indexes(OverlayCorpus(corpus, {corpus.find("Ada Brill"): ada}, added))


@pytest.fixture(scope="module")
def injected(painters) -> Claim:
    """A question about a painter who is hidden behind the town of her birth."""
    said = "the painter of the 1870s born in [subject]"
    asking = "To which movement did this one belong"
    return prove(painters, ("Ostrel", "Ada Brill"), ("<birth_place",), "movement", (said,), asking, STRICT)


@pytest.fixture(scope="module")
def stated(tmp_path_factory) -> Indexes:
    """The toy wiki, where Wikidata alone names a bridge's architect, and the birthplace and death of a sculptor."""
    folder = tmp_path_factory.mktemp("stated")
    added = {
        "Sund Bridge": box("bridge", "'''Sund Bridge''' is a bridge.", "length = 80 m"),
        "Nils Ahl": "'''Nils Ahl''' was a sculptor.",
    }
    day = {"time": "+1931-05-04T00:00:00Z", "precision": 11, "calendarmodel": "http://www.wikidata.org/entity/Q1985727"}
    architect, town = (make_claim(property, {"id": qid}) for property, qid in (("P84", "Q3"), ("P19", "Q4")))
    claims = {
        "Sund Bridge": {"P84": [architect]},
        "Nils Ahl": {"P19": [town], "P570": [make_claim("P570", day, datatype="time")]},
        "Mira Tolland": {},
        "Ostrel": {},
    }
    lines = []
    for number, (title, held) in enumerate(claims.items(), 1):
        entity = make_entity(number, 0, 0, 0, ())
        sitelinks = {"toywiki": {"site": "toywiki", "title": title}}
        lines.append(render_line(entity | {"claims": held, "sitelinks": sitelinks}))
    write_dump(folder / "wikidata-20260101-all.json", lines)
    return Indexes(build_toy_corpus(folder, PAGES | added))


@pytest.fixture(scope="module")
def forward(stated) -> Claim:
    """A question whose hop is a statement."""
    path, limits = ("Sund Bridge", "Mira Tolland"), Thresholds(alone_first=1, alone=1, answers=0)
    return prove(stated, path, ("architect",), "birth_date", ("",), "When was this one born", limits)


@pytest.fixture(scope="module")
def backward(stated) -> Claim:
    """A question whose backward hop and answer are statements."""
    said, limits = "the sculptor born in [subject]", Thresholds(alone_first=1, alone=1, answers=0)
    return prove(stated, ("Ostrel", "Nils Ahl"), ("<birth_place",), "death_date", (said,), "When did this die", limits)


def change(claim, **changes):
    return replace(claim, proof=claim.proof.model_copy(update=changes))


def change_hop(claim, **changes):
    """Return the claim with its first hop changed; ``evidence`` is a dict of changes of its own."""
    first, *others = claim.proof.hops
    inner = first.evidence.model_copy(update=changes.get("evidence", {}))
    return change(claim, hops=(first.model_copy(update={**changes, "evidence": inner}), *others))


def test_every_grounded_question_of_the_demo_is_derived_again(demo, demo_ground):
    rows = demo.rows("groundings", Grounding)
    assert len(rows) > 30
    for row in rows:
        assert find_problems(demo_ground, Claim(row.text, row.answer, row.proof)) == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"clause": "The money came from ____."}, "the clause is not the sentence around the link"),
        ({"evidence": {"link_start": -1}}, "does not lead to the next node"),
        ({"evidence": {"kind": "infobox"}}, "the infobox has no single mentions"),
        ({"relation": "founder"}, "a sentence supports 'founder'"),
        ({"index": 9}, "does not join"),
    ],
)
def test_a_tampered_sentence_is_named(toy, spoken, changes, named):
    (problem, *_) = find_problems(toy, change_hop(spoken, **changes))
    assert named in problem


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"backward": False}, "every hidden node has one, a named one none"),
        ({"subject_id": 1}, "does not join"),
        ({"relation": "death_place"}, "the infobox has no death_place at that place"),
        ({"evidence": {"kind": "sentence"}}, "the infobox has no birth_place at that place"),
        ({"evidence": {"key": "birth_place2"}}, "the infobox has no birth_place at that place"),
        ({"evidence": {"revision": 7}}, "hop 1: revision 7"),
        ({"evidence": {"title": "Ostrel"}}, "hop 1: the evidence is from Ostrel"),
        ({"evidence": {"text": "[[Lumby]]"}}, "reads otherwise"),
    ],
)
def test_a_tampered_backward_hop_is_named(painters, injected, changes, named):
    (problem, *_) = find_problems(painters, change_hop(injected, **changes))
    assert named in problem


def test_a_statement_of_wikidata_proves_a_hop_either_way_and_an_answer(stated, forward, backward):
    assert find_problems(stated, forward) == []
    assert find_problems(stated, backward) == []
    cited = [forward.proof.hops[0].evidence, backward.proof.hops[0].evidence, backward.proof.answer_evidence]
    assert [(each.kind, each.key, each.text, each.start, each.end, each.link_start) for each in cited] == [
        ("statement", "P84", "P84-x", -1, -1, -1),
        ("statement", "P19", "P19-x", -1, -1, -1),
        ("statement", "P570", "P570-x", -1, -1, -1),
    ]
    assert backward.answer.value == "1931-05-04"


@pytest.mark.parametrize(
    ("evidence", "named"),
    [
        ({"text": "P84-y"}, "Wikidata has no single architect at that place"),
        ({"key": "P50"}, "Wikidata has no single architect at that place"),
        ({"start": 0, "end": 5}, "hop 1: a statement of Wikidata has no span"),
        ({"kind": "infobox"}, "reads otherwise"),
        ({"kind": "sentence"}, "reads otherwise"),
        ({"revision": 7}, "hop 1: revision 7"),
    ],
)
def test_a_tampered_statement_is_named(stated, forward, evidence, named):
    (problem, *_) = find_problems(stated, change_hop(forward, evidence=evidence))
    assert named in problem


def test_a_proof_of_another_corpus_is_looked_at_no_further(toy, spoken):
    (problem,) = find_problems(toy, change(spoken, corpus="0" * 64, nodes=()))
    assert problem.startswith("corpus: the proof is about 000000000000")
