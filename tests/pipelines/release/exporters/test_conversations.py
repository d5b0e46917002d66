import json

import pytest

from pipelines.agent.dialects import find_dialect, restore_tools, translate_tools
from pipelines.agent.transcript import BadTurn, parse_turn
from pipelines.errors import ConfigError
from pipelines.release.exporters.conversations import read_conversations, read_in_dialect
from tests.pipelines.release.exporters.trajectories import HOSTILE, make_cropping, make_release, make_whole, publish


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


def test_a_tools_reply_stands_in_the_dialects_tags(tmp_path):
    release, _ = make_release(tmp_path, ("A page.",), "vsearcher")
    told = [each.shown.told for each in next(read_conversations(release)).exchanges]
    assert told[0] is None
    assert all(text is not None for text in told[1:])


def test_rows_that_a_dialect_has_no_words_for_are_counted_over_the_whole_release(tmp_path):
    made = [make_cropping(tmp_path, 1, "A page."), make_whole(tmp_path, 2, "A page."), make_cropping(tmp_path, 3, "")]
    release = publish(tmp_path, made)
    first = made[1].record_id
    with pytest.raises(
        ConfigError, match=rf"1 of 3 rows cannot be expressed in mars, first row {first}: 1 as .* visit"
    ):
        list(read_in_dialect(release, "mars"))
    with pytest.raises(ConfigError, match=r"2 of 3 rows .*: 2 as dialect vsearcher has no tool crop"):
        list(read_in_dialect(release, "vsearcher"))


CROPS = {
    "opensearch-vl": {"name": "crop", "arguments": {"image": "img_2", "x": 0, "y": 56, "width": 112, "height": 168}},
    "mars": {
        "name": "image_zoom_in_tool",
        "arguments": {"label": "region", "bbox_2d": [0, 250, 500, 1000], "img_idx": 1},
    },
}


@pytest.mark.parametrize("name", CROPS)
def test_a_crop_is_said_in_the_unit_of_the_dialect(name, tmp_path):
    conversation = next(read_in_dialect(publish(tmp_path, [make_cropping(tmp_path, 1, "A page.")]), name))
    assert json.loads(conversation.exchanges[1].said.call) == CROPS[name]
    assert "img_4: a part of img_2" in conversation.exchanges[2].shown.text


@pytest.mark.parametrize("name", ["mars", "opensearch-vl", "vsearcher", "mmsearch-r1", "dr-mmsearch"])
def test_a_release_that_offers_its_tools_in_its_dialects_words_keeps_them_in_any_dialect(release, name):
    dialect = find_dialect(name)
    (first, *_) = read_conversations(release)
    offered = translate_tools(first.row.tools, dialect)
    assert restore_tools(first.row.tools, dialect) == first.row.tools
    restored = restore_tools(offered, dialect)
    assert translate_tools(restored, dialect) == offered
    assert {each["function"]["name"] for each in json.loads(restored)} == {
        form.tool for form in dialect.forms if form.name in {each["function"]["name"] for each in json.loads(offered)}
    }
