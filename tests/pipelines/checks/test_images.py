import pytest

from pipelines.checks.pictures import check_picture, is_free_licence


@pytest.mark.parametrize(
    "licence",
    [
        "CC BY-SA 4.0", "CC BY 2.0", "cc-by-sa-3.0", "CC0", "CC0 1.0", "Public domain", "PD", "PD-old-100",
        "PD-self", "PD-user", "PD-old", "PD-old-70-expired", "PD-USGov", "PD-USGov-NASA", "PD-textlogo",
        "CC BY-SA 3.0 de", "CC-BY-SA-3.0,2.5,2.0,1.0", "CC BY-SA 4.0 International",
        "Creative Commons Attribution-ShareAlike 4.0",
    ],
)  # fmt: skip
def test_a_free_licence_passes(licence):
    assert is_free_licence(licence)
    assert check_picture(800, 600, licence, 512).outcome == "PASS"


@pytest.mark.parametrize(
    "licence",
    [
        "CC BY-NC 2.0", "CC BY-ND 4.0", "CC BY-NC-SA 4.0", "cc-by-sa-4.0-nc", "Fair use", "Non-free logo",
        "All rights reserved",
    ],
)  # fmt: skip
def test_a_licence_that_forbids_use_fails(licence):
    result = check_picture(800, 600, licence, 512)
    assert (result.outcome, result.code) == ("FAIL", "picture-not-free")


@pytest.mark.parametrize(
    "licence",
    [
        "", "GFDL 9.9", "Attribution", "CC BY 9.0", "CC", "see source", "not public domain", "Up for deletion: CC0",
        "PD-US", "pd-us-only", "PD-US-expired", "PD-ineligible-USonly", "PD-because", "pd-trivial-unknown", "PD-Art",
        "PD-scan", "PD-1923", "PD-old-assumed", "pd-", "PD-user-x",
    ],
)  # fmt: skip
def test_an_unknown_licence_never_passes(licence):
    result = check_picture(800, 600, licence, 512)
    assert (result.outcome, result.code) == ("UNKNOWN", "picture-not-free")
    assert not result.passed


@pytest.mark.parametrize(("width", "height", "outcome"), [(512, 512, "PASS"), (511, 2000, "FAIL"), (2000, 511, "FAIL")])
def test_the_shorter_side_decides(width, height, outcome):
    assert check_picture(width, height, "CC0", 512).outcome == outcome


def test_a_picture_without_a_size_is_unknown():
    assert check_picture(0, 600, "CC0", 512).outcome == "UNKNOWN"
