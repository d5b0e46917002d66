"""All limits of a release at once: they hold together, or the run says which cannot."""

from dataclasses import replace

import pytest

from pipelines.checks.limits import Limits, refuse_over_limits
from pipelines.checks.sets import make_signature
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from tests.pipelines.release.builders import make_question

SIGNATURES = [make_signature(make_question(number, None, "rl")) for number in range(400)]


def draw(*kinds, each=200):
    """Return questions of kinds that differ in what is given, as many of each."""
    rows = [changes for changes in kinds for _ in range(each)]
    return [replace(signature, **changes) for signature, changes in zip(SIGNATURES, rows, strict=False)]


def test_shares_that_do_not_settle_are_named_and_not_left_broken():
    rows = draw({"rounds": 1, "skeleton": "a"}, {"rounds": 3, "skeleton": "b"})
    limits = Limits(ReleasesConfig(max_skeleton_share=0.5), rounds={1: 0.56, 3: 0.44})
    with pytest.raises(GateNotMet, match="cannot all be met") as stopped:
        refuse_over_limits(rows, (), limits)
    assert "releases.max_skeleton_share 0.5 and a tolerance of 0.05 of injection.weights" in str(stopped.value)
    assert "search_free" not in str(stopped.value)


def test_every_limit_decides():
    limits = [Limits(ReleasesConfig(exam=exam), rounds=rounds) for exam in (False, True) for rounds in ({}, {1: 1.0})]
    assert len({repr(each.decides) for each in limits}) == len(limits)
