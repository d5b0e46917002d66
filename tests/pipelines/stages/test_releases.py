from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.limits import Limits
from pipelines.checks.quotas import Quotas
from pipelines.checks.sets import list_shared_values, make_signature
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import ConservationError
from pipelines.pictures import PictureSource, PictureStore
from pipelines.stages.releases import Releases
from schemas.base import Rejection
from tests.copying import WAYS, draw, save
from tests.pipelines.release.builders import make_picture, make_question, make_trajectory, run_stage


@pytest.fixture
def pictures(tmp_path):
    return [make_picture(tmp_path, number) for number in range(6)]


def rejections(rows):
    return {row.record_id: row.reason for row in rows if isinstance(row, Rejection)}


def test_every_question_is_in_vqa_and_in_the_dataset_of_its_split(pictures):
    questions = [make_question(n, pictures[n], split) for n, split in enumerate(("sft", "rl", "eval"))]
    rows = run_stage(questions, [make_trajectory(0, questions[0])])
    found = {(row.parent_id, row.dataset, row.split) for row in rows}
    first, second, third = (question.record_id for question in questions)
    assert found == {
        (first, "sft", "train"),
        (first, "vqa", "train"),
        (second, "rl", "train"),
        (second, "vqa", "train"),
        (third, "vqa", "test"),
    }


def test_an_sft_row_names_its_trajectory(pictures):
    question = make_question(0, pictures[0])
    rows = run_stage([question], [make_trajectory(7, question), make_trajectory(8, question)])
    assert [row.trajectory_id for row in rows if row.dataset == "sft"] == [
        "rollout-0000000000000007",
        "rollout-0000000000000008",
    ]


def test_same_anchor_and_answer_key_is_a_duplicate_question(pictures):
    first, second = make_question(0, pictures[0]), make_question(1, pictures[1])
    anchor = first.proof.nodes[0]
    proof = second.proof.model_copy(update={"nodes": (anchor, *second.proof.nodes[1:])})
    second = second.model_copy(update={"proof": proof, "answer": first.answer})
    assert rejections(run_stage([second, first], [])) == {second.record_id: "duplicate-question"}


def test_same_edge_set_is_a_duplicate_path(pictures):
    first = make_question(0, pictures[0])
    second = make_question(1, pictures[1])
    second = second.model_copy(update={"proof": second.proof.model_copy(update={"hops": first.proof.hops})})
    assert rejections(run_stage([first, second], [])) == {second.record_id: "duplicate-path"}


@pytest.mark.parametrize("field", ["sha256", "phash"])
def test_same_picture_of_another_anchor_is_a_duplicate_picture(pictures, field):
    first = make_question(0, pictures[0])
    second = make_question(1, pictures[1].model_copy(update={field: getattr(pictures[0], field)}))
    assert rejections(run_stage([first, second], [])) == {second.record_id: "duplicate-picture"}


def share_anchor(questions):
    """Return the questions with the anchor of the first."""
    anchor = questions[0].proof.nodes[0]
    return [
        question.model_copy(
            update={"proof": question.proof.model_copy(update={"nodes": (anchor, *question.proof.nodes[1:])})}
        )
        for question in questions
    ]


def test_an_anchor_used_too_often_in_a_split_is_refused_by_record_id(pictures):
    questions = share_anchor([make_question(n, pictures[0], text=f"Who of the {n} is meant?") for n in range(1, 6)])
    over = {question.record_id: "anchor-over-used" for question in questions[3:]}
    assert rejections(run_stage(questions[::-1], [])) == over


def test_with_target_sizes_the_question_that_came_first_is_kept_and_rows_come_by_record_id(pictures):
    first = make_question(0, pictures[0])
    questions = [first, *(make_question(number, pictures[number], answer=first.answer) for number in (1, 2))]
    quotas = Quotas((), (), {("sft",): 3}, {("sft",): 3})
    stage = Releases(Limits(ReleasesConfig(max_answer_share=1.0), quotas=quotas, per_answer=1))
    rows = list(stage([questions[::-1], []]))
    assert rejections(rows) == {question.record_id: "answer-over-used" for question in questions[:2]}
    assert [row.record_id for row in rows[:2]] == [question.record_id for question in questions[:2]]


def test_a_wording_beyond_its_share_is_refused_by_record_id():
    words = ["alpha", "alpha", "beta", "gamma", "delta"]
    questions = [make_question(number, None, "eval", text=f"what is the {word}?") for number, word in enumerate(words)]
    rows = run_stage(questions[::-1], [], max_skeleton_share=0.2)
    assert rejections(rows) == {questions[1].record_id: "skeleton-over-used"}
    assert rejections(run_stage(questions, [], max_skeleton_share=0.4)) == {}


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "search-free", "search-free", "image", "mixed"])),
        max_size=40,
    ),
    st.sampled_from([0.0, 0.2, 0.32, 0.5, 1.0]),
    st.sampled_from([0.2, 0.34, 1.0]),
)
def test_both_shares_hold_of_what_is_kept(rows, free, share):
    questions = [make_question(n, None, "rl", text=f"what {word}?", search_need=need)
                 for n, (word, need) in enumerate(rows)]  # fmt: skip
    refused = rejections(run_stage(questions, [], search_free=(0.0, free), max_skeleton_share=share))
    kept = [row for question, row in zip(questions, rows, strict=True) if question.record_id not in refused]
    needs = Counter(need for _, need in kept if need)
    assert needs["search-free"] <= free * needs.total() + 1e-6
    most = max(Counter(word for word, _ in kept).values(), default=0)
    assert most <= max(1, share * len(kept) + 1e-9)


def test_every_limit_is_part_of_the_key():
    changed = [
        Releases(Limits(per_answer=2)),
        Releases(Limits(ReleasesConfig(max_skeleton_share=0.2))),
        Releases(Limits(ReleasesConfig(search_free=(0.0, 0.2)))),
        Releases(),
    ]
    assert len({stage.fingerprint() for stage in changed}) == 4


@pytest.mark.parametrize(
    ("first", "second", "kept"), [("sft", "eval", "eval"), ("rl", "eval", "eval"), ("sft", "rl", "sft")]
)
def test_of_two_splits_with_one_answer_key_the_one_that_is_held_out_keeps_it(pictures, first, second, kept):
    rows = [make_question(0, pictures[0], first), make_question(1, pictures[1], second)]
    rows[1] = rows[1].model_copy(update={"answer": rows[0].answer})
    refused = rejections(run_stage(rows, []))
    assert refused == {row.record_id: "shared-across-splits" for row in rows if row.split != kept}


@pytest.mark.parametrize(("first", "second", "refused"), [("eval", "sft", 1), ("eval", "rl", 1), ("sft", "rl", 0)])
def test_a_hop_that_is_held_out_is_in_no_question_that_trains(pictures, first, second, refused):
    one, other = make_question(0, pictures[0], first), make_question(1, pictures[1], second, text="Since when?")
    hops = (one.proof.hops[0], *other.proof.hops[1:])
    other = other.model_copy(update={"proof": other.proof.model_copy(update={"hops": hops})})
    found = rejections(run_stage([one, other], []))
    assert found == ({other.record_id: "shared-across-splits"} if refused else {})


def store(folder, data):
    source = PictureSource("a.jpg", "A", "CC BY 4.0", "https://example.org/l", "https://example.org/a.jpg")
    return PictureStore(folder).add_bytes(data, source)


def refuse_copies(folder, *questions):
    settings = ReleasesConfig(max_skeleton_share=1.0)
    return rejections(Releases(Limits(settings, per_answer=99), PictureStore(folder))([questions, []]))


COPIES = ("crop 3 % at each side", "mirror", "mirror, white frame of 5 %", "rotation 5 degrees, black corners")


@pytest.mark.parametrize(("first", "second"), [("eval", "sft"), ("eval", "rl"), ("sft", "rl")])
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_picture_is_in_one_split(tmp_path, way, first, second):
    kept = make_question(1, store(tmp_path, save(draw(1))), first)
    copied = make_question(2, store(tmp_path, WAYS[way](draw(1))), second)
    assert refuse_copies(tmp_path, copied, kept) == {copied.record_id: "shared-across-splits"}


@pytest.mark.parametrize(("told", "refused"), [("{title} was founded in {answer}.", 1), ("{title} is a town.", 0)])
def test_a_question_whose_rollouts_spell_out_a_held_out_fact_is_refused(pictures, told, refused):
    asked, held_out = make_question(0, pictures[0], "sft"), make_question(1, pictures[1], "eval")
    text = told.format(title=held_out.proof.nodes[-1].title, answer=held_out.answer.surface)
    rollout = make_trajectory(7, asked)
    step = next(step for step in rollout.steps if step.observation)
    seen = step.model_copy(update={"observation": step.observation.model_copy(update={"text": f"Found: {text}"})})
    steps = tuple(seen if each is step else each for each in rollout.steps)
    found = rejections(run_stage([asked, held_out], [rollout.model_copy(update={"steps": steps})]))
    assert found == ({asked.record_id: "tells-held-out-fact"} if refused else {})


def test_a_trajectory_of_an_unknown_question_is_lost_work_and_stops(pictures):
    question = make_question(0, pictures[0])
    with pytest.raises(ConservationError, match="did not come in"):
        run_stage([question], [make_trajectory(1, make_question(1, pictures[1]))])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), st.randoms(use_true_random=False))
def test_each_question_ends_in_exactly_one_place_whatever_the_order(pairs, random):
    questions = []
    for index, (anchor, answer) in enumerate(pairs):
        base, key = make_question(anchor, None), make_question(answer, None).answer
        nodes = (base.proof.nodes[0], *make_question(index + 10, None).proof.nodes[1:])
        proof = make_question(index + 10, None).proof.model_copy(update={"nodes": nodes})
        questions.append(make_question(index + 10, None, proof=proof, answer=key))
    rows = run_stage(questions, [])
    shuffled = random.sample(questions, len(questions))
    assert run_stage(shuffled, []) == rows
    kept = {row.parent_id for row in rows if not isinstance(row, Rejection)}
    assert kept.isdisjoint(rejections(rows))
    assert kept | set(rejections(rows)) == {question.record_id for question in questions}


def test_shared_values_count_only_between_splits(pictures):
    signature = make_signature(make_question(0, pictures[0], "sft"))
    same, other = replace(signature, record_id="b"), replace(signature, split="rl")
    assert not any(list_shared_values([signature, same]).values())
    assert all(list_shared_values([signature, other]).values())
