"""Each claim of a picture can fail: whose it is, how it was chosen, how it was degraded, what can be read in it."""

from dataclasses import replace

import pytest

from pipelines.agent.pictures import REPAIRS, degrade_picture
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.pictures import probe_picture
from pipelines.release.rows import ProofRow
from pipelines.release.verify import find_picture_problems
from schemas.datasets import Enhancement
from tests.pipelines.release.builders import make_trial

DEGRADATIONS = ("blur", "downsample", "perspective")


class OtherWiki:
    """A corpus in which an article leads with another picture, or a picture is known otherwise."""

    def __init__(self, corpus, lead=None, **changes):
        self.corpus, self.lead, self.changes = corpus, lead, changes

    def __getattr__(self, name):
        return getattr(self.corpus, name)

    def page(self, node):
        page = self.corpus.page(node)
        return page if self.lead is None else replace(page, image=self.lead)

    def image(self, file):
        image = self.corpus.image(file)
        return replace(image, **self.changes) if image and self.changes else image


@pytest.fixture(scope="module")
def plain(demo) -> ProofRow:
    """The proof of a question with the picture of its anchor's infobox, as it was found."""
    rows = demo.rows("selections", Enhancement)
    row = next(row for row in rows if row.trial is None and row.depiction.source == "infobox")
    return ProofRow(
        **{name: getattr(row, name) for name in ProofRow.model_fields if name != "difficulty"}, difficulty=()
    )


@pytest.fixture(scope="module")
def degraded(plain, demo_corpus):
    """The same question, by degradation, with its picture truly degraded."""
    return {degradation: degrade(plain, demo_corpus, degradation) for degradation in DEGRADATIONS}


def degrade(plain, corpus, degradation) -> ProofRow:
    data = corpus.image_path(plain.picture.file).read_bytes()
    made = degrade_picture(data, degradation, 0.3, "seed")
    probe = probe_picture(made.data)
    picture = change(plain.picture, sha256="e" * 64, width=probe.width, height=probe.height, phash=probe.phash)
    repair = REPAIRS[degradation]
    trial = make_trial(degradation=degradation, repair=repair, strength=0.3, parameters=made.parameters)
    return change(plain, original=plain.picture, picture=picture, trial=trial)


def change(value, /, **changes):
    return value.model_copy(update=changes)


def find(ground, proof):
    (anchor,) = locate_nodes(ground.corpus, proof.proof.nodes[:1])
    return list(find_picture_problems(ground, anchor, proof))


def tell(proof, **changes):
    return change(proof, depiction=change(proof.depiction, **changes))


def try_otherwise(proof, **changes):
    return change(proof, trial=change(proof.trial, **changes))


@pytest.mark.parametrize("degradation", DEGRADATIONS)
def test_a_degraded_picture_has_no_problem(demo_ground, degraded, degradation):
    assert find(demo_ground, degraded[degradation]) == []


CHOICES = {
    "nothing said": (lambda row: change(row, depiction=None), "does not say how it was chosen"),
    "another source": (lambda row: tell(row, source="page"), "is from infobox of the anchor's article"),
    "a search found it": (lambda row: tell(row, source="search"), "the proof says search"),
    "more points": (lambda row: tell(row, score=0.99), "the metadata give"),
    "points that are none": (lambda row: tell(row, score=float("nan")), "the metadata give"),
    "more articles": (lambda row: tell(row, articles=7), "articles lead with"),
    "what Commons says": (lambda row: tell(row, depicts=not row.depiction.depicts), "of what it depicts"),
    "name that was read": (lambda row: tell(row, text=(row.proof.nodes[0].title,)), "picture-readable"),
    "name that a student reads": (
        lambda row: tell(row, text_at_training=(row.proof.nodes[-1].title,)),
        "picture-readable",
    ),
}


@pytest.mark.parametrize(("tamper", "named"), CHOICES.values(), ids=CHOICES.keys())
def test_what_is_told_of_the_choice_is_held_against_the_corpus(demo_ground, plain, tamper, named):
    assert any(named in problem for problem in find(demo_ground, tamper(plain)))


TRIALS = {
    "no trial": (lambda row: change(row, trial=None), "has one of the two"),
    "no original": (lambda row: change(row, original=None), "has one of the two"),
    "the original itself": (lambda row: change(row, picture=row.original), "is the original"),
    "no picture": (lambda row: change(row, picture=None), "is the original"),
    "nothing before": (lambda row: try_otherwise(row, before=False), "does not show"),
    "nothing broken": (lambda row: try_otherwise(row, degraded=True), "does not show"),
    "nothing restored": (lambda row: try_otherwise(row, repaired=False), "does not show"),
    "another tool": (
        lambda row: try_otherwise(row, repair="sharpen" if row.trial.repair != "sharpen" else "super_resolution"),
        "is repaired by",
    ),
    "another strength": (lambda row: try_otherwise(row, strength=0.9), "has other parameters"),
    "strength that is none": (lambda row: try_otherwise(row, strength=float("nan")), "has other parameters"),
    "no parameters": (lambda row: try_otherwise(row, parameters=()), "has other parameters"),
    "a parameter off": (
        lambda row: try_otherwise(
            row,
            parameters=(
                change(row.trial.parameters[0], value=row.trial.parameters[0].value + 1e4),
                *row.trial.parameters[1:],
            ),
        ),
        "has other parameters",
    ),
    "another size": (lambda row: change(row, picture=change(row.picture, width=9)), "makes another size"),
    "words where none are": (lambda row: try_otherwise(row, test="text"), "none were read in the original"),
}


@pytest.mark.parametrize("degradation", DEGRADATIONS)
@pytest.mark.parametrize(("tamper", "named"), TRIALS.values(), ids=TRIALS.keys())
def test_no_part_of_a_trial_can_be_changed_alone(demo_ground, degraded, degradation, tamper, named):
    assert any(named in problem for problem in find(demo_ground, tamper(degraded[degradation])))


def test_a_degraded_picture_passed_off_as_the_original_is_another_than_the_anchors(demo_ground, degraded):
    bare = change(degraded["blur"], original=None, trial=None)
    assert any("sha256 of the anchor's picture" in problem for problem in find(demo_ground, bare))


def test_a_picture_from_the_article_has_to_stand_in_it(demo_corpus, plain):
    """An article that leads with another picture, or with none, and shows this one further down, or nowhere."""
    elsewhere = tell(plain, source="page")
    for lead in ("", "Nothing.jpg"):
        ground = Indexes(OtherWiki(demo_corpus, lead=lead))
        assert not any("of the anchor's article" in problem for problem in find(ground, elsewhere))
        assert any("lead picture is" in problem for problem in find(ground, plain))
    gone = change(elsewhere, picture=change(plain.picture, file="Elsewhere.jpg"))
    problems = find(Indexes(OtherWiki(demo_corpus, lead="")), gone)
    assert problems == ["picture: Elsewhere.jpg is from search of the anchor's article, the proof says page"]


def test_of_a_picture_that_a_search_found_licence_and_words_are_checked(demo_ground, plain):
    file = {"file": "Elsewhere.jpg", "source_url": "https://pictures.example/wiki/File:Elsewhere.jpg"}
    found = change(tell(plain, source="search"), picture=change(plain.picture, **file))
    assert find(demo_ground, found) == []
    unfree = change(found, picture=change(found.picture, licence="All rights reserved"))
    assert any("picture-not-free" in problem for problem in find(demo_ground, unfree))


def test_a_question_without_picture_is_refused_where_the_anchor_has_one(demo_ground, plain):
    bare = change(plain, picture=None, depiction=None)
    assert find(demo_ground, bare) == ["picture: the proof has none, the anchor's page has one"]
    lone = change(plain, picture=None)
    assert "picture: the proof says how a picture was chosen, and has none" in find(demo_ground, lone)
