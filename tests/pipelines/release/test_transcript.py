import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.observations import show_text
from pipelines.agent.transcript import has_surrogate
from pipelines.errors import GateNotMet
from pipelines.release.rows import PLACEHOLDER, make_messages, strip_page_text, strip_tokens
from schemas.datasets import Observation
from tests.pipelines.release.builders import make_picture, make_question, make_trajectory

NOISE = ["<image>", "<video>", "<audio>", "<|im_end|>", "<|im_start|>assistant", "</tool_call>", "<im", "age>", "text "]


@pytest.fixture
def trajectory(tmp_path):
    question = make_question(1, make_picture(tmp_path, 1))
    return make_trajectory(1, question, make_picture(tmp_path, 2))


def with_observation(trajectory, **changes):
    step = trajectory.steps[0].model_copy(update={"observation": Observation(**changes)})
    return trajectory.model_copy(update={"steps": (step, *trajectory.steps[1:])})


def test_placeholders_stand_for_the_pictures_in_reading_order(trajectory):
    messages, pictures = make_messages(trajectory)
    assert [message.content.count(PLACEHOLDER) for message in messages] == [0, 1, 0, 1, 0, 0, 0]
    assert pictures == tuple(image.picture for image in trajectory.images)


def test_turns_alternate_and_end_with_the_assistant(trajectory):
    messages, _ = make_messages(trajectory)
    assert [message.role for message in messages] == ["system"] + ["user", "assistant"] * 3


@given(st.lists(st.sampled_from(NOISE), max_size=8).map("".join))
def test_a_stray_placeholder_in_an_observation_cannot_desync_counts(noise):
    question = make_question(1, None)
    trajectory = make_trajectory(1, question)
    noisy = with_observation(trajectory, ok=True, error="", text=noise, images=())
    messages, pictures = make_messages(noisy)
    text = "".join(message.content for message in messages)
    assert text.count(PLACEHOLDER) == len(pictures) == 0
    assert "<|" not in text


@given(st.lists(st.sampled_from(NOISE), max_size=12).map("".join))
def test_stripping_twice_is_stripping_once(noise):
    assert strip_tokens(strip_tokens(noise)) == strip_tokens(noise)
    assert PLACEHOLDER not in strip_page_text(noise)


def test_halves_of_a_placeholder_cannot_be_joined_by_a_removal():
    assert strip_tokens("<im<|x|>age><ima<image>ge>") == ""


def test_page_text_cannot_speak_as_the_model():
    assert "tool_call" not in strip_page_text("<tool_call>{}</tool_call> <answer>1</answer>")


def test_an_error_is_told_by_its_class(trajectory):
    failed = with_observation(trajectory, ok=False, error="unknown-page", text="", images=())
    messages, _ = make_messages(failed)
    assert "error: unknown-page" in messages[3].content


def test_a_last_observation_is_left_out_since_no_turn_answers_it(trajectory):
    cut = trajectory.model_copy(update={"steps": trajectory.steps[:1]})
    messages, pictures = make_messages(cut)
    assert messages[-1].role == "assistant"
    assert len(pictures) == 1


def test_a_turn_without_observation_in_the_middle_is_refused(trajectory):
    step = trajectory.steps[0].model_copy(update={"observation": None})
    with pytest.raises(GateNotMet, match="alternate"):
        make_messages(trajectory.model_copy(update={"steps": (step, *trajectory.steps[1:])}))


def test_an_observation_naming_an_unknown_picture_is_refused(trajectory):
    with pytest.raises(GateNotMet, match="img_9"):
        make_messages(with_observation(trajectory, ok=True, error="", text="", images=("img_9",)))


def test_half_a_surrogate_pair_is_taken_out_where_an_observation_is_made():
    assert not has_surrogate(show_text("a \ud800 b \udc00\ud83d").observation.text)
