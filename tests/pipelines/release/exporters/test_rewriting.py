import json

import pytest

from pipelines.agent.dialects import DIALECTS, find_dialect
from pipelines.agent.transcript import BadTurn, parse_turn
from pipelines.errors import ConfigError
from pipelines.release.exporters.conversations import read_conversations
from pipelines.release.exporters.rewriting import read_in_dialect, rewrite_conversation
from tests.pipelines.release.exporters.trajectories import HOSTILE, make_release


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("rewriting"), HOSTILE[:4])[0]


def read_turns(conversation):
    turns = []
    for exchange in conversation.exchanges:
        try:
            turns.append(parse_turn(exchange.said.text, conversation.dialect))
        except BadTurn:
            turns.append(exchange.said.text)
    return turns


@pytest.mark.parametrize("name", ["native", "dr-mmsearch", "vsearcher"])
def test_another_dialect_says_the_same(name, release):
    for before, after in zip(read_conversations(release), read_in_dialect(release, name), strict=True):
        assert after.dialect is find_dialect(name)
        assert len(read_turns(after)) == len(read_turns(before))
        assert [getattr(turn, "tool", turn) for turn in read_turns(after)] == [
            getattr(turn, "tool", turn) for turn in read_turns(before)
        ]
        assert after.pictures == before.pictures
        assert [each.shown.told for each in after.exchanges] == [each.shown.told for each in before.exchanges]
        assert [each.said.loss for each in after.exchanges] == list(before.row.loss)


def test_its_own_dialect_changes_nothing(release):
    for conversation in read_conversations(release):
        assert rewrite_conversation(conversation, find_dialect("synth")) is conversation


def test_the_system_message_and_the_tools_are_the_dialects(release):
    after = next(read_in_dialect(release, "vsearcher"))
    assert [tool["function"]["name"] for tool in json.loads(after.tools)] == ["text_search", "image_search", "visit"]
    assert after.tools in after.system


def test_a_tools_reply_stands_in_the_dialects_tags(tmp_path):
    release, _ = make_release(tmp_path, ("A page.",), "vsearcher")
    told = [each.shown.told for each in next(read_conversations(release)).exchanges]
    assert told[0] is None
    assert all(text is not None for text in told[1:])


@pytest.mark.parametrize("name", ["mmsearch-r1", "mars", "opensearch-vl"])
def test_a_dialect_that_cannot_visit_has_no_words_for_it(name, release):
    assert not DIALECTS[name].offers("visit")
    with pytest.raises(ConfigError, match=r"row rollout-\w+: .*visit"):
        list(read_in_dialect(release, name))
