from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.pictures import DepictionRules, check_depiction

NAN = float("nan")


@dataclass(frozen=True)
class Measures:
    score: float = 0.31
    margin: float | None = 0.04
    distractors: int = 20
    over_threshold: bool | None = True
    note: str = "this picture with 'Orsa Bridge'"


def decide(decides="margin", min_margin=0.0, **measures):
    return check_depiction(Measures(**measures), DepictionRules(decides, 0.28, min_margin, 20))


@pytest.mark.parametrize(
    ("decides", "score", "margin", "outcome"),
    [
        ("margin", 0.20, 0.01, "PASS"), ("margin", 0.40, 0.0, "FAIL"), ("margin", 0.40, -0.1, "FAIL"),
        ("threshold", 0.29, -0.1, "PASS"), ("threshold", 0.28, 0.3, "FAIL"), ("both", 0.29, 0.01, "PASS"),
        ("both", 0.28, 0.01, "FAIL"), ("both", 0.29, 0.0, "FAIL"),
    ],
)  # fmt: skip
def test_what_decides_is_what_is_looked_at(decides, score, margin, outcome):
    result = decide(decides, score=score, margin=margin)
    assert (result.outcome, result.code) == (outcome, "" if outcome == "PASS" else "picture-of-another")


def test_a_margin_has_to_exceed_the_least_demanded():
    assert decide(min_margin=0.04, margin=0.0401).passed
    result = decide(min_margin=0.04, margin=0.04)
    assert result.outcome == "FAIL"
    assert result.detail == "margin +0.040, more than 0.04 is allowed; this picture with 'Orsa Bridge'"


@pytest.mark.parametrize("decides", ["margin", "both"])
@pytest.mark.parametrize("measures", [{"distractors": 19}, {"distractors": 0, "margin": None}, {"margin": None}])
def test_a_margin_over_too_few_is_unknown(decides, measures):
    result = decide(decides, **measures)
    assert (result.outcome, result.code) == ("UNKNOWN", "picture-of-another")
    assert "allowed from 20" in result.detail


def test_the_threshold_alone_needs_no_distractors():
    assert decide("threshold", distractors=0, margin=None).passed


@pytest.mark.parametrize("decides", ["margin", "threshold", "both"])
def test_what_is_no_number_does_not_pass(decides):
    assert not decide(decides, score=NAN, margin=NAN).passed


@pytest.mark.parametrize("decides", ["margin", "threshold", "both"])
def test_metadata_pass_from_half_the_points_whatever_decides(decides):
    by_metadata = {"margin": None, "distractors": 0, "over_threshold": None, "note": "source page"}
    assert decide(decides, score=0.5, **by_metadata).passed
    result = decide(decides, score=0.45, **by_metadata)
    assert (result.outcome, result.code) == ("UNKNOWN", "picture-of-another")
    assert result.detail == "0.45 points, allowed from 0.5: source page"
    assert not decide(decides, score=NAN, **by_metadata).passed


@given(st.floats(-1, 1), st.floats(-2, 2), st.integers(0, 40))
def test_both_passes_only_where_each_alone_does(score, margin, distractors):
    each = [
        decide(decides, score=score, margin=margin, distractors=distractors).passed
        for decides in ("margin", "threshold", "both")
    ]
    assert each[2] == (each[0] and each[1])
