import pytest

from pipelines.checks.descriptors import check_reference, find_incoherence

TYPES = ("bridge", "suspension bridge", "footballer", "town")


def judge(text, kind="bridge"):
    result = check_reference(text, kind, TYPES)
    return result.code if not result.passed else "passed"


@pytest.mark.parametrize(
    "phrase",
    [
        "the bridge in the image", "the bridge shown in this picture",
        "the bridge that is pictured in the photograph", "the bridge that can be seen in the photo",
        "this bridge, as shown in the attached image,", "the bridge pictured here", "the pictured bridge",
        "the bridge that the image shows", "the structure depicted in the image", "the subject of the image",
        "The same bridge in the image", "the place in the image", "the person in the image", "what the image shows",
        "what is shown in the photo",
    ],
)  # fmt: skip
def test_the_type_or_a_broader_word_points_to_the_picture(phrase):
    assert judge(f"When was the architect of {phrase} born?".replace(",?", "?")) == "passed"


@pytest.mark.parametrize(
    "phrase",
    [
        "the suspension bridge in the image", "the oldest bridge in the image", "the 1930 bridge shown in the image",
        "the three bridge shown in the image", "the old pictured one, the stone bridge in the picture",
        "the depicted viaduct", "the tower in the image", "the country in the image",
        "the bridge in the image that was opened in 1930", "the bridge in the image, which spans the Kelm",
        "the bridge with towers in the image", "the bridge in the image with two towers",
        "the bridge in the image, a suspension bridge,",
    ],
)  # fmt: skip
def test_whatever_narrows_the_type_is_refused(phrase):
    assert judge(f"In which year was the architect of {phrase} born?") == "reference-narrower"


@pytest.mark.parametrize(
    "text",
    [
        "When was the bridge opened?", "When was it shown?", "", "Who built what stands in the image?",
        "In the image, who?",
    ],
)  # fmt: skip
def test_a_question_that_points_to_nothing_is_refused(text):
    assert judge(text) == "reference-missing"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Who built the bridge in the image.", "no question mark"),
        ("Who built [subject] near the bridge in the image?", "not filled"),
        ("Who built ____ near the bridge in the image?", "not filled"),
        ("Who built (the bridge in the image?", "bracket"), ("Who built the bridge) in the image?", "bracket"),
        ("Who built of of the bridge in the image?", "of of"), ("Who built a the bridge in the image?", "a the"),
        ("Who built , the bridge in the image?", " ,"), ("Who built the bridge in the image??", "??"),
    ],
)  # fmt: skip
def test_a_text_that_does_not_hold_together_is_refused(text, problem):
    assert problem in find_incoherence(text)
    assert judge(text) == "reference-missing"
