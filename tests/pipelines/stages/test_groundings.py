import asyncio
from dataclasses import replace

import pytest
from PIL import Image

from pipelines.agent.choosing import EaseRater, PictureChooser
from pipelines.agent.depicting import CandidateLister, MetadataRanker
from pipelines.agent.picture_search import LocalImageSearch
from pipelines.config.settings import GroundingsConfig
from pipelines.errors import ConfigError, RecordFailed, Unavailable
from pipelines.graph.facts import read_attributes
from pipelines.graph.proofs import make_question_id
from pipelines.graph.query import Indexes
from pipelines.pictures import PictureStore
from pipelines.run.assembly import Assembly
from pipelines.run.shards import read_fetched
from pipelines.run.workspace import Workspace
from pipelines.stages.groundings import Groundings
from schemas.base import Rejection
from schemas.datasets import Grounding, Rewrite
from schemas.tasks import QuestionReply
from tests.pipelines.stages.players import TrustingReader, make_asking, read_request

SETTINGS = GroundingsConfig(min_answers=2, retrieval_rank=0)


class OtherPictures:
    """A corpus whose pictures are changed, or lie elsewhere."""

    def __init__(self, corpus, place=None, **changes):
        self.corpus, self.place, self.changes = corpus, place, changes

    def __getattr__(self, name):
        return getattr(self.corpus, name)

    def image(self, file):
        return replace(self.corpus.image(file), **self.changes)

    def image_path(self, file):
        return self.place or self.corpus.image_path(file)


def refer(inputs):
    return QuestionReply(question=inputs.question.replace(inputs.name, f"the {inputs.anchor_type} in the image"))


def make_chooser(corpus, folder, base=None) -> PictureChooser:
    """Choose among a corpus's pictures; copies are looked for in ``base``, the corpus as it is on disk."""
    pictures, search = PictureStore(folder), LocalImageSearch(base or corpus)
    lister = CandidateLister(corpus, pictures)
    return PictureChooser(pictures, lister, MetadataRanker(corpus), EaseRater(search, pictures), search, None, SETTINGS)


@pytest.fixture
def stage(demo_corpus, tmp_path) -> Groundings:
    chooser = make_chooser(demo_corpus, tmp_path)
    return Groundings(Indexes(demo_corpus), chooser, make_asking("refer_to_anchor", refer), SETTINGS, TrustingReader())


def show_other(stage, demo_corpus, tmp_path, *place, **changes):
    """Return the stage over a corpus whose pictures are changed, or lie elsewhere."""
    other = OtherPictures(demo_corpus, *place, **changes)
    return replace(stage, ground=Indexes(other), chooser=make_chooser(other, tmp_path, demo_corpus))


@pytest.fixture(scope="module")
def row(demo) -> Rewrite:
    """A rewrite that the demo grounded."""
    grounded = {grounding.parent_id for grounding in demo.rows("groundings", Grounding)}
    return next(row for row in demo.rows("rewrites", Rewrite) if row.record_id in grounded)


def ground(stage, row):
    made = asyncio.run(stage(row))
    return made if isinstance(made, Rejection) else made[0]


def test_a_grounding_is_a_picture_in_the_store_and_a_question_about_it(stage, row, demo_corpus, tmp_path):
    made = ground(stage, row)
    anchor = row.proof.nodes[0]
    assert made.text == row.text.replace(anchor.title, f"the {anchor.type} in the image")
    assert (made.fuzzy, made.canonical, made.picture.file) == (row.text, row.canonical, row.image)
    stored = PictureStore(tmp_path).read(made.picture)
    assert stored == demo_corpus.image_path(row.image).read_bytes()
    assert min(made.picture.width, made.picture.height) >= 512
    assert made.record_id == make_question_id(made.text, made.picture.sha256, made.answer, made.proof)
    counts = {count.name: count for count in made.proof.counts}
    assert counts["anchors"].value >= counts["answers"].value == 2
    assert 1 <= counts["gold"].value < counts["anchors"].value
    assert made.proof.counts[: len(row.proof.counts)] == row.proof.counts
    uncounted = ground(replace(stage, settings=SETTINGS.model_copy(update={"min_answers": 0})), row)
    assert uncounted.proof.counts == row.proof.counts


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        *(({"licence": licence}, "picture-not-free") for licence in ("All rights reserved", "CC BY-NC 4.0", "Own", "")),
        ({"path": "", "sha256": ""}, "no-picture"),
    ],
)
def test_a_picture_that_is_not_free_or_not_at_hand_is_refused(stage, row, demo_corpus, tmp_path, image, reason):
    assert ground(show_other(stage, demo_corpus, tmp_path, **image), row).reason == reason


def test_a_picture_that_does_not_decode_or_was_changed_is_refused_and_a_missing_file_stops_the_run(
    stage, row, demo_corpus, tmp_path
):
    path = tmp_path / "other.jpg"
    shown = show_other(stage, demo_corpus, tmp_path, path)
    for content in (b"", b"<svg/>", b"\xff\xd8\xff broken"):
        path.write_bytes(content)
        assert ground(shown, row).reason == "picture-unusable"
    Image.new("RGB", (700, 700), "navy").save(path)
    assert ground(shown, row).reason == "picture-unusable"
    path.unlink()
    with pytest.raises(Unavailable, match="restore it"):
        ground(shown, row)


def test_a_picture_that_is_not_needed_or_too_small_is_refused_the_first_without_opening_it(
    stage, row, demo_corpus, tmp_path
):
    missing = show_other(stage, demo_corpus, tmp_path, tmp_path / "missing.jpg")
    strict = replace(missing, settings=SETTINGS.model_copy(update={"min_answers": 100_000}))
    assert ground(strict, row).reason == "picture-not-needed"
    large = replace(stage.chooser, settings=SETTINGS.model_copy(update={"min_side": 100_000}))
    assert ground(replace(stage, chooser=large), row).reason == "picture-too-small"


def test_a_question_that_says_too_much_or_too_little_is_refused(stage, row, demo_corpus):
    def say(question):
        asking = make_asking("refer_to_anchor", lambda inputs: QuestionReply(question=question))
        return ground(replace(stage, asking=asking), row)

    for node in (0, 1, -1):
        assert say(f"What of {row.proof.nodes[node].title} in the image?").reason == "alias-leak"
    assert say(f"Is it {row.answer.surface}?").reason == "answer-leak"
    assert say("What of the thing in the image?").reason == "descriptor-lost"
    anchor = demo_corpus.find(row.proof.nodes[0].title)
    fact = next(each.fact.text for each in read_attributes(demo_corpus, anchor) if each.answer.key != row.answer.key)
    good = row.text.replace(row.proof.nodes[0].title, f"the {row.proof.nodes[0].type} in the image")
    assert say(f"{good} ({fact})").reason == "fact-unproved"
    with pytest.raises(RecordFailed, match="is blank"):
        say("")


def test_what_was_fetched_is_searched_by_the_stages_after_groundings_alone(demo, demo_corpus, tmp_path):
    assert list(read_fetched(demo.stage("groundings"))) == []
    fetching = demo.config.commons.model_copy(update={"fetch": True})
    config = demo.config.model_copy(update={"commons": fetching, "contact": "a@b.example"})
    assembly = Assembly(config, Workspace(tmp_path), demo_corpus)
    planned = {plan.name: plan for plan in assembly.plan_stages()}
    later = (planned["difficulty"].stage.searches.images, planned["enhancements"].stage.search)
    assert all(planned["groundings"].key in search.identity for search in later)
    assert planned["groundings"].key not in assembly.seeing.image_search.identity
    waiting = {name for name, plan in planned.items() if planned["groundings"] in plan.gathers}
    assert waiting == {"difficulty", "enhancements", "rollouts"}
    with pytest.raises(ConfigError, match="not complete"):
        list(read_fetched(planned["groundings"].folder))
    assembly.close()


def test_the_fingerprint_covers_rules_prompt_and_model(stage):
    others = [
        replace(stage, settings=SETTINGS.model_copy(update={"min_answers": 1})),
        replace(stage, chooser=replace(stage.chooser, settings=SETTINGS.model_copy(update={"min_side": 1}))),
        replace(stage, asking=make_asking("refer_to_anchor", refer, identity="fake:2")),
    ]
    assert len({each.fingerprint() for each in [stage, *others]}) == 4


def test_a_reference_is_requested_once_more_with_what_was_wrong_and_the_mended_text_is_kept(stage, row):
    anchor = row.proof.nodes[0]

    def mend(inputs):
        told = inputs.tried and inputs.tried[0].problem.startswith("it gives away a hidden name: ")
        return refer(inputs) if told else QuestionReply(question=inputs.question)

    mending = replace(stage, asking=make_asking("refer_to_anchor", mend))
    assert ground(mending, row).text == row.text.replace(anchor.title, f"the {anchor.type} in the image")
    shown = read_request(mending.asking.model)
    assert "it gives away a hidden name" in shown
    assert all(node.title not in shown for node in row.proof.nodes[1:])
    assert row.answer.surface not in shown
    never = replace(
        stage, asking=make_asking("refer_to_anchor", lambda inputs: QuestionReply(question=inputs.question))
    )
    assert ground(never, row).reason == "alias-leak"
    assert len(never.asking.model.asked) == 2
