"""The bench of wordings by others tells damaged from harmless texts, by author, with what a reader replies."""

import asyncio
import json

import pytest

from pipelines.errors import CorruptInput
from pipelines.services.protocols import ChatReply
from tests.planted.readers import Recorded, list_unmet, load_authors, measure

CASE = {
    "what": "case",
    "case": "c1",
    "nodes": [
        {"title": "Vell Light", "type": "lighthouse", "fields": {"architect": "[[Ona Brisk]]", "height": "31 m"}},
        {"title": "Ona Brisk", "type": "architect", "fields": {"spouse": "[[Tam Orrel]]", "birth_date": "4 May 1831"}},
        {"title": "Tam Orrel", "type": "painter", "fields": {"birth_date": "9 June 1829"}},
    ],
    "hops": [{"field": "architect", "backward": False}, {"field": "spouse", "backward": False}],
    "asked": "birth_date",
    "form": "year",
    "unit": "",
}
CLEAN = "In which year was the husband of whoever drew up the lighthouse in the photo born?"
DAMAGED = "In which year was the rival of whoever drew up the lighthouse in the photo born?"
LINES = [
    {"what": "author", "name": "test", "held_out": True, "who": "this test"},
    CASE,
    {"what": "wording", "case": "c1", "kind": "clean", "defect": "", "text": CLEAN},
    {"what": "wording", "case": "c1", "kind": "damaged", "defect": "D25", "text": DAMAGED},
    {
        "what": "prose", "pair": "p1", "defect": "D33", "title": "Ida Voss", "type": "painter", "field": "spouse",
        "value": "[[Bo Lund]]", "sentence": "She tied the knot again with [[Jan Feld]].",
    },
    {
        "what": "prose", "pair": "p2", "defect": "", "title": "Eva Moor", "type": "painter", "field": "birth_date",
        "value": "4 May 1831", "sentence": "Moor came into the world in the May of 1831.",
    },
    {"what": "leak", "pair": "l1", "what_hidden": "answer", "hidden": "31 m", "text": "Some 102 feet?", "leaks": True},
    {"what": "leak", "pair": "l2", "what_hidden": "name", "hidden": "Vell Light", "text": "Which one?", "leaks": False},
]  # fmt: skip


class CarefulReader:
    """Replies as a careful reader of these texts would; it sees the rendered messages' typed inputs alone."""

    name = identity = "careful"
    reads_inputs = True

    async def chat(self, request):
        inputs = request.inputs
        if hasattr(inputs, "relations"):
            said = {offer.statement: offer.id for offer in inputs.relations}
            second = "none" if "rival" in inputs.text else said["spouse"]
            words = "rival of" if "rival" in inputs.text else "husband of"
            reply = {
                "steps": [
                    {"relation": said["architect"], "backward": False, "words": "whoever drew up the lighthouse"},
                    {"relation": second, "backward": False, "words": words},
                ],
                "asked": said["birth date"],
                "form": "year",
                "questions": 1,
            }
        elif hasattr(inputs, "hidden"):
            leaks = [{"hidden": "h1", "words": "102 feet"}] if "feet" in inputs.text else []
            reply = {"leaks": leaks}
        else:
            told = {
                "Ida Voss": ("tied the knot again with Jan Feld", "Jan Feld"),
                "Eva Moor": ("May of 1831", "May 1831"),
            }
            words, value = told[inputs.name]
            place = next(n for n, text in enumerate(inputs.sentences, 1) if words in text)
            reply = {"propositions": [{"sentence": place, "words": words, "value": value}]}
        return ChatReply(json.dumps(reply), 0, 0)


@pytest.fixture
def authors(tmp_path):
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    return load_authors(tmp_path)


def shares(rows):
    return {row.defect: row.refused.share for row in rows if row.author == "test"}


def test_what_is_damaged_is_refused_and_what_is_not_passes(authors):
    rows = asyncio.run(measure(Recorded({}, CarefulReader()), authors))
    assert shares(rows) == {
        "harmless": 0.0, "D25": 1.0, "D33": 1.0, "agreeing prose": 0.0, "answer": 1.0, "no leak": 0.0
    }  # fmt: skip
    assert list_unmet(rows) == []


def test_recorded_replies_give_the_same_rows_and_nothing_recorded_measures_nothing(authors):
    model = Recorded({}, CarefulReader())
    first = asyncio.run(measure(model, authors))
    assert asyncio.run(measure(Recorded(model.replies), authors)) == first
    assert asyncio.run(measure(Recorded({}), authors)) == []
    with pytest.raises(SystemExit, match="no reply"):
        list_unmet([])


def test_a_line_of_another_kind_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"what": "author", "name": "a", "held_out": false}\n{"what": "verse"}')
    with pytest.raises(CorruptInput, match="verse"):
        load_authors(tmp_path)
