import pytest

from pipelines.checks.rollouts import check_images
from schemas.datasets import RolloutImage, SearchResult
from tests.pipelines.checks.rollouts.walking import answer, call, fail, make_picture, see, visit, walk


def list_images(count):
    return tuple(RolloutImage(id=f"img_{n}", picture=make_picture()) for n in range(1, count + 1))


def crop(*made, image="img_1", **changes):
    return call("crop", see("A crop.", images=made), image=image, box=[1, 2, 3, 4], **changes)


GOOD = (crop("img_2"), call("image_search", see("x"), image="img_2"), crop("img_3", image="img_2"))


def judge(*steps, count=1):
    return check_images(walk(*steps, answer(), images=list_images(count)))


def test_pictures_that_are_made_before_they_are_used_are_known():
    assert check_images(walk()).passed
    assert judge(*GOOD, count=3).passed


@pytest.mark.parametrize(
    ("steps", "count", "problem"),
    [
        ((call("image_search", see("x"), image="img_2"), crop("img_2")), 2, "step 0: the call names img_2"),
        ((fail("image_search", "unknown-image", image="img_9"),), 1, "step 0: the call names img_9"),
        ((fail("image_search", "unknown-image", image="photo"),), 1, "step 0: the call names photo"),
        ((visit("A", goal="compare it with img_4"),), 1, "step 0: the call names img_4"),
        ((visit("A", thought="As img_2 shows."),), 1, "step 0: the thought names img_2"),
        ((crop("img_3"),), 3, "step 0: the observation shows ['img_3']; next are ['img_2']"),
        ((crop("img_2"), crop("img_2")), 2, "step 1: the observation shows ['img_2']; next are ['img_3']"),
        ((crop("img_2"),), 1, "the pictures are ['img_1']; the steps show ['img_1', 'img_2']"),
        ((), 2, "the pictures are ['img_1', 'img_2']; the steps show ['img_1']"),
        ((), 0, "the pictures are []; the first is img_1"),
    ],
)
def test_a_picture_that_is_not_there_yet_is_named(steps, count, problem):
    result = judge(*steps, count=count)
    assert (result.outcome, result.code) == ("FAIL", "unknown-image")
    assert problem in result.detail


def test_a_file_of_such_a_name_is_none_of_the_rollouts_pictures():
    page = call("visit", see("x"), thought="The file img_2034.jpg may help.", url="https://e.org/img_77/img_2034.jpg")
    assert judge(page).passed
    assert not judge(call("image_search", see("x"), image="img_2034.jpg")).passed


def test_a_result_is_shown_under_a_picture_of_its_observation():
    def find(name, made):
        result = SearchResult(url="https://e.org/a", title="A", thumbnail=make_picture(), image=name)
        return call("image_search", see("x", images=made, results=(result,)), image="img_1")

    assert judge(find("img_2", ("img_2",)), count=2).passed
    assert judge(find("", ()), count=1).passed
    assert "a result is shown as img_2" in judge(find("img_2", ()), count=1).detail
