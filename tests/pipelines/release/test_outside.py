"""Questions from outside, which have no proof, in a release beside proved ones: told apart and checked as can be."""

from collections import Counter

import pyarrow.parquet as pq
import pytest

from pipelines.agent.cascade import list_left_out
from pipelines.checks.limits import Limits
from pipelines.config.disclosure import read_sections
from pipelines.config.settings import ReleasesConfig, TrajectoriesConfig
from pipelines.graph.answers import type_reference
from pipelines.graph.proofs import NO_PROOF, make_question_id
from pipelines.ids import make_record_id
from pipelines.release.making import read_proofs
from pipelines.release.manifest import ReleaseOrigin, read_release_manifest
from pipelines.release.publish import publish_releases
from pipelines.release.verify import verify_release
from pipelines.stages.releases import Releases
from schemas.datasets import Enhancement, Origin, ReleaseEntry, Trajectory
from tests.pipelines.release.builders import make_context
from tests.pipelines.release.tampering import forge, on_proof_row, on_row, read_rows, reseal, set_in

ORIGIN = Origin(pool="elsewhere", row="17", entity="", licence="CC BY 4.0", source="https://pool.example/")


def send_out(question: Enhancement, origin: Origin = ORIGIN) -> Enhancement:
    """Return a question as if somebody else had asked it."""
    answer = type_reference(question.text, question.answer.surface, question.answer.aliases)
    assert answer is not None
    solved = any(cell.correct for cell in question.cells)
    changes = {
        "record_id": make_question_id(question.text, question.picture.sha256, answer, NO_PROOF),
        "answer": answer, "proof": NO_PROOF, "reading": None, "screening": None, "depiction": None, "fetched": (),
        "origin": origin, "standing": "solved" if solved else "unproved", "fuzzy": question.text,
        "canonical": question.text, "picture": question.picture.model_copy(update={"licence": origin.licence}),
    }  # fmt: skip
    return question.model_copy(update=changes)


def follow_out(trajectory: Trajectory, question: Enhancement, manifest) -> Trajectory:
    """Return a trajectory as it would be of the question from outside."""
    teacher = next(model for model in manifest.models if model.role == "teacher")
    attempt = [question.record_id, trajectory.attempt, teacher.revision, manifest.prompts[trajectory.prompt]]
    found = {
        name
        for step in trajectory.steps
        if step.tool == "image_search" and step.observation
        for name in step.observation.images
    }
    changes = {
        "record_id": make_record_id("rollout", attempt),
        "images": tuple(
            image
            if image.id in found
            else image.model_copy(
                update={"picture": image.picture.model_copy(update={"licence": question.picture.licence})}
            )
            for image in trajectory.images
        ),
        "parent_id": question.record_id, "path": (), "bridges": (), "reference": question.answer,
        "supports": tuple(support for support in trajectory.supports if support.what == "answer"),
        "left_out": ("memory-jump", "path-not-covered"),
    }  # fmt: skip
    return trajectory.model_copy(update=changes)


def publish(demo, root, corpus, origin=ORIGIN, **settings):
    """Publish the demo's released questions, the first of each split and every third after it as from outside."""
    manifest = read_release_manifest(demo.release("sft"))
    trajectories = demo.rows("trajectories", Trajectory)
    kept = {entry.parent_id for entry in demo.rows("releases", ReleaseEntry)}
    questions, transcripts, numbers = [], [], Counter()
    for number, question in enumerate(row for row in demo.rows("enhancements", Enhancement) if row.record_id in kept):
        own = [each for each in trajectories if each.parent_id == question.record_id]
        numbers[question.split] += question.trial is None
        if numbers[question.split] % 3 == 1 and question.trial is None:
            question = send_out(question, origin.model_copy(update={"row": str(number)}))
            own = [follow_out(each, question, manifest) for each in own]
        questions.append(question)
        transcripts += own
    (root / "images").symlink_to(demo.root / "images")
    entries = list(Releases(Limits(ReleasesConfig(max_skeleton_share=1.0)))([questions, transcripts]))
    tools = read_rows(demo.release("sft"), "data")[0]["tools"]
    context = make_context(tools=tools, **{name: getattr(manifest, name) for name in ReleaseOrigin.model_fields})
    own = read_sections(manifest.told)["releases"] | settings
    given = context.model_copy(update={"settings": ReleasesConfig.model_validate(own, strict=False)})
    made = [entry for entry in entries if isinstance(entry, ReleaseEntry)]
    return {each.dataset: each.path for each in publish_releases(root, questions, transcripts, made, given)}


@pytest.fixture(scope="module")
def mixed(demo, demo_corpus, tmp_path_factory):
    return publish(demo, tmp_path_factory.mktemp("mixed"), demo_corpus)


@pytest.mark.parametrize("dataset", ["sft", "rl", "vqa"])
def test_rows_from_outside_are_counted_apart_and_never_as_proved(mixed, demo_ground, dataset):
    report = verify_release(mixed[dataset], demo_ground)
    assert report.problems == ()
    assert report.passed
    outside = sum(not row.proof.nodes for row in read_proofs(mixed[dataset]))
    assert outside > 0
    assert report.unproved == report.held >= outside
    assert report.rows == report.verified > 0
    assert report.rows + report.unproved == pq.read_table(mixed[dataset] / "data", columns=["id"]).num_rows
    whole = f"{report.rows}/{report.rows} proved rows verify; {report.unproved} rows are from outside and have no proof"
    assert report.describe() == whole
    assert "no proof: from the pool elsewhere, CC BY 4.0" in report.claims


def test_the_card_and_the_report_count_them(mixed):
    count = sum(bool(row["pool"]) for row in pq.read_table(mixed["vqa"] / "data", columns=["pool"]).to_pylist())
    card = (mixed["vqa"] / "README.md").read_text()
    assert "\nlicense: other\n" in card
    for text in (card, (mixed["vqa"] / "quality.md").read_text()):
        assert f"| elsewhere | {count} |" in text
        assert f"| none | {count} |" in text


def claim_proved(row):
    if not row["proof"]["nodes"]:
        row["standing"] = "proved"


def strip_proof(row):
    row["proof"] = NO_PROOF.model_dump()


def hide_pool(row):
    row["origin"] = None


def strip_all(row, image):
    """Make a proved question look like one from outside, but for its pool."""
    row |= {"proof": NO_PROOF.model_dump(), "reading": None, "screening": None, "depiction": None}


def tell_answer(row, image):
    row["text"] = f"{row['text']} Is it {row['answer']['surface']}?"


def relicense(row):
    if row["origin"]:
        row["origin"]["licence"] = "CC0"


def retype(row, image):
    row["answer"] |= {"type": "string", "key": "text:else"}


FORGERIES = {
    "claims a proof": (on_proof_row(claim_proved), "standing: it is said to be proved"),
    "proof taken away": (on_proof_row(strip_proof), "proof: a question without a path has no part of a proof"),
    "another licence": (on_proof_row(relicense), "picture: its licence is 'CC BY 4.0', that of its pool 'CC0'"),
    "no pool": (on_proof_row(hide_pool), "proof: it has no path, and names no pool"),
    "passed off": (forge(strip_all), "proof: it has no path, and names no pool"),
    "answer in the text": (forge(tell_answer), "text: answer-leak"),
    "answer of another type": (forge(retype), "is typed otherwise"),
    "chain made up": (
        on_row(set_in("chain", value=lambda chain: chain or [{"relation": "a", "subject": "b", "object": "c"}])),
        "chain: the row says",
    ),
    "said to be of no pool": (on_row(set_in("pool", value="")), "pool: the row says"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_can_be_told_without_a_proof_is_checked(demo, demo_corpus, demo_ground, tmp_path, name):
    folder = publish(demo, tmp_path, demo_corpus)["vqa"]
    tamper, expected = FORGERIES[name]
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    tamper(folder)
    reseal(folder)
    report = verify_release(folder, demo_ground)
    assert not report.passed
    assert any(expected in problem.what for problem in report.problems), report.problems[:5]


def test_only_a_rollout_without_a_path_is_spared_its_checks(demo):
    rules = TrajectoriesConfig()
    walked = demo.rows("trajectories", Trajectory)[0]
    assert list_left_out(rules, walked) == walked.left_out == ()
    assert set(list_left_out(rules, walked.model_copy(update={"path": (), "bridges": ()}))) == {
        "memory-jump", "path-not-covered",
    }  # fmt: skip
