"""``synth doctor`` asks each role's server what it refuses, says so, and keeps it for the runs to come."""

import json

import pytest

from pipelines.cli.doctor import examine_run
from pipelines.config.loading import make_config, read_recipe
from pipelines.services.clients.vendors import Vendors
from tests.pipelines.cli.test_doctor_servers import make_settings
from tests.pipelines.services.clients.vendors import STRICT, refuse_openai, run_vendor

SAID = {
    "openai": "refuses max_tokens (sent as max_completion_tokens), temperature (not sent), top_p (not sent), "
    "stop (not sent)",
    "gemini": "refuses seed (not sent)",
    "anthropic": "refuses top_p together with temperature (not sent then)",
    "vllm": None,
}


def say(body):
    return json.dumps({"colour": "quartz"})


def refuse_effort(body):
    words = "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model."
    return {"reasoning_effort"}, refuse_openai(words, "unsupported_value", "reasoning_effort")


def examine(server, folder, **more):
    asked = {"temperature": 0.7, "extra_body": {"top_p": 0.9}} | more
    settings = [make_settings(role, server.url, **asked) for role in ("writer", "teacher")]
    examination = examine_run(make_config(read_recipe("demo"), settings), folder)
    return {finding.what: finding for finding in examination.findings if "127.0.0.1" in finding.what}


@pytest.mark.parametrize("vendor", SAID)
def test_the_doctor_learns_what_a_server_refuses_and_says_so_in_a_line(tmp_path, vendor):
    with run_vendor(STRICT[vendor], say) as server:
        found = examine(server, tmp_path)
        place = f"writer, teacher at {server.url}"
        assert {finding.state for finding in found.values()} == {"ok"}
        line = found.get(f"{place}: parameters")
        assert (line and line.detail) == SAID[vendor]
        refused = len(server.refused)
        assert examine(server, tmp_path).keys() == found.keys()
        assert len(server.refused) == refused
        known = Vendors(tmp_path / "vendors.json").find(server.url, "tiny")
        assert "messages" in known.takes
        # With its profile nothing is left to learn.
        other = examine(server, tmp_path / "other", profile=vendor)
        assert f"{place}: parameters" not in other
        assert len(server.refused) == refused


def test_what_cannot_be_left_out_is_a_problem_in_the_vendors_words(tmp_path):
    with run_vendor(refuse_effort, say) as server:
        found = examine(server, tmp_path, extra_body={"reasoning_effort": "minimal"}, profile="openai")
    chat = found[f"writer, teacher at {server.url}: chat"]
    assert chat.state == "problem"
    assert "'reasoning_effort' does not support 'minimal'" in chat.detail
