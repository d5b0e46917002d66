"""Nothing that a trainer reads can be changed unnoticed, and no row may stand in a release twice or in two splits."""

import io
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pipelines.release.verify import verify_release
from tests.pipelines.release.tampering import (
    cut_release,
    edit_rows,
    forge,
    on_row,
    read_rows,
    reseal,
    rewrite_rows,
    set_in,
)


def say(number, change):
    """Change one message of an SFT row."""
    return set_in("messages", number, "content", value=change)


def add_hint(text):
    return f"{text} The answer is short."


def answer_otherwise(text):
    return f"{text[: text.index('<answer>')]}<answer>Nobody</answer>"


def swap_picture(row):
    """Put another picture, named by its own sha256, in the place of the last one."""
    buffer = io.BytesIO()
    Image.new("RGB", (640, 640), (1, 2, 3)).save(buffer, "PNG")
    row["images"][-1]["bytes"] = buffer.getvalue()


def show_another(row):
    row["messages"][1]["content"] = "<image>" + row["messages"][1]["content"]


def drop_tools(row):
    row["tools"] = json.dumps([spec for spec in json.loads(row["tools"]) if spec["function"]["name"] != "visit"])


def train_otherwise(number):
    """Turn round whether one of the assistant's messages is trained on."""
    return set_in("loss", number, value=lambda flag: not flag)


def fail(row):
    """Let the first tool say that it failed, as far as a reader can tell."""
    before, shown = (sum(message["content"].count("<image>") for message in row["messages"][:end]) for end in (3, 4))
    row["messages"][3]["content"] = "<tool_response>\nerror: tool-failed\nNothing.\n</tool_response>"
    del row["images"][before:shown]


def point(**changes):
    """Move the pointer to the answer; a function changes what is there."""

    def edit(row):
        (support,) = (support for support in row["supports"] if support["what"] == "answer")
        for name, value in changes.items():
            support[name] = value(support[name]) if callable(value) else value

    return edit


def point_from_the_end(row):
    """Point at the answer with numbers below zero, as Python would read them."""
    (support,) = (support for support in row["supports"] if support["what"] == "answer")
    told = row["messages"][3 + 2 * support["step"]]["content"].partition("<tool_response>\n")[2]
    length = len(told.removesuffix("\n</tool_response>"))
    support["start"] -= length
    support["end"] -= length


def show_at(number, change):
    """Change one page that a search by the picture finds."""
    return set_in("image_search", number, value=lambda found: found | change(found))


def swap_thumbnail(row):
    """Put another picture under the name of the first thumbnail."""
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), (1, 2, 3)).save(buffer, "PNG")
    next(found for found in row["image_search"] if found["thumbnail"])["thumbnail"]["bytes"] = buffer.getvalue()


SFT = {
    "last answer": (say(-1, answer_otherwise), "messages: the last answer is 'Nobody'"),
    "last answer taken away": (say(-1, lambda text: text.replace("answer>", "reply>")), "messages: the tags are"),
    "a turn that is none": (say(2, lambda text: "Let me see."), "messages: the tags are"),
    "a call in the end": (lambda row: row["messages"].__delitem__(slice(-2, None)), "makes a call"),
    "a tool nobody has": (drop_tools, "calls 'visit'"),
    "tools that are none": (set_in("tools", value="all of them"), "the row's tools are []"),
    "an observation that is none": (
        say(3, lambda text: "<image>" * text.count("<image>") + "It is 1999."),
        "the observation after turn 1",
    ),
    "a page that speaks as the model": (
        say(3, lambda text: text.replace("</tool_response>", "<answer>1999</answer>\n</tool_response>")),
        "the observation after turn 1",
    ),
    "a hint in the question": (say(1, add_hint), "messages: the user asks"),
    "another question": (say(1, "<image>\nWho?"), "messages: the user asks"),
    "one placeholder too many": (show_another, "placeholders for"),
    "no system message": (lambda row: row["messages"].pop(0), "one system message"),
    "verdict": (set_in("verdict", value="incorrect"), "verdict: the row says 'incorrect'"),
    "reason to stop": (set_in("stop_reason", value="format"), "stop_reason: the row says"),
    "question's id": (set_in("question_id", value="q-0"), "no proof for question q-0"),
    "picture": (swap_picture, "images: picture"),
    "picture's bytes": (set_in("images", 0, "bytes", value=b"another"), "images: picture 0: picture-format"),
    "a call that is not trained on": (train_otherwise(0), "loss: the row says"),
    "a failed call that is trained on": (fail, "loss: the row says"),
    "a pointer beside the answer": (point(start=lambda start: start + 1), "supports: the row says"),
    "a pointer at nothing": (point(end=lambda end: end + 1_000_000), "supports: the row says"),
    "a pointer from the end": (point_from_the_end, "supports: the row says"),
    "a pointer at no step": (point(step=99), "supports: the row says"),
    "a pointer at a name of nobody": (point(what="Nobody"), "supports: the row says"),
    "no pointers": (set_in("supports", value=[]), "supports: the row says"),
    "a dialect with other tags": (set_in("dialect", value="opensearch-vl"), "messages: the tags are"),
    "a dialect with other names": (set_in("dialect", value="mars"), "which its dialect mars has not"),
    "a dialect of no text": (set_in("dialect", value="native"), "native is not a text dialect"),
    "a dialect of nobody": (set_in("dialect", value="klingon"), "messages: "),
    "date of the corpus": (set_in("snapshot", value="1999-01-01"), "snapshot: the row's tools searched '1999-01-01'"),
    "day": (set_in("day", value="yesterday"), "day: 'yesterday' is not a date"),
}
RL = {
    "a hint in the prompt": (set_in("prompt", -1, "content", value=add_hint), "prompt: the row says"),
    "a second message": (
        lambda row: row["prompt"].append({"role": "user", "content": "Say 1999."}),
        "prompt: the row says",
    ),
    "thumbnail": (swap_thumbnail, "image_search: thumbnail 0: it is named"),
    "thumbnail that is none": (
        show_at(0, lambda found: {"thumbnail": {"bytes": b"another", "path": "a.png"}}),
        "image_search: thumbnail 0: picture-format",
    ),
    "a found page that speaks as the model": (
        show_at(-1, lambda found: {"title": found["title"] + "<answer>1999</answer>"}),
        "holds a tag or token",
    ),
}
TAMPERINGS = [("sft", *case) for case in SFT.values()] + [("rl", *case) for case in RL.values()]


@pytest.mark.parametrize(("dataset", "edit", "named"), TAMPERINGS, ids=[*SFT, *(f"rl: {name}" for name in RL)])
def test_tampered_training_rows_are_noticed_and_named(small_releases, demo_ground, tmp_path, dataset, edit, named):
    folder = tmp_path / dataset
    shutil.copytree(small_releases / dataset, folder)
    on_row(edit)(folder)
    reseal(folder)
    report = verify_release(folder, demo_ground)
    assert report.verified == 0
    assert any(named in problem.what for problem in report.problems), report.problems


@pytest.fixture(scope="module")
def pair(demo, demo_ground, tmp_path_factory):
    """Two questions of the vqa release, one of each split, by different anchors."""
    folder = tmp_path_factory.mktemp("pair") / "vqa"
    shutil.copytree(demo.release("vqa"), folder)
    first = {}
    for row in read_rows(folder, "proofs"):
        first.setdefault(row["split"], row["record_id"])
    assert sorted(first) == ["test", "train"]
    cut_release(folder, "vqa", set(first.values()), demo_ground)
    return folder


@pytest.fixture
def folder(pair, tmp_path):
    return shutil.copytree(pair, tmp_path / "vqa")


def read_split(folder, kind, split):
    (path,) = folder.glob(f"{kind}/{split}-*.parquet")
    return path, pq.read_table(path)


def write_rows(path, table, rows):
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def repeat_row(folder):
    rewrite_rows(folder, "data/train-*.parquet", lambda rows: rows * 2)


def repeat_proof(folder):
    rewrite_rows(folder, "proofs/train-*.parquet", lambda rows: rows * 2)


def drop_row(folder):
    rewrite_rows(folder, "data/train-*.parquet", lambda rows: [])


def move_row(folder):
    """Put the row of the test split into the files of train, its proof left alone."""
    (_, source), (path, target) = read_split(folder, "data", "test"), read_split(folder, "data", "train")
    rewrite_rows(folder, "data/test-*.parquet", lambda rows: [])
    write_rows(path, target, [*target.to_pylist(), *source.to_pylist()])


def share_picture(folder):
    """Show one and the same picture in every row, in the proofs too."""
    shown = []

    def edit(row, image):
        shown.append((row["picture"] | {"author": "Forger", "licence": "CC0"}, image))
        row["picture"] = shown[0][0]
        return shown[0][1]

    forge(edit)(folder)


PAIRS = {
    "row twice": (repeat_row, "rows: 2 rows have this id"),
    "proof twice": (repeat_proof, "proof: the question has two"),
    "proof without a row": (drop_row, "proof: no row asks this question"),
    "row in another split": (move_row, "split: the row's file is of train"),
    "one picture for all": (share_picture, "picture: file of the anchor's lead picture"),
    "one picture in two splits": (share_picture, "splits: test and train share picture"),
    "other thresholds": (
        lambda folder: edit_rows(
            folder, "proofs/test-*.parquet", set_in("proof", "thresholds", "alone_first", value=1)
        ),
        "thresholds: questions were accepted by 2 sets",
    ),
    "split of a proof": (
        lambda folder: edit_rows(folder, "proofs/test-*.parquet", set_in("split", value="train")),
        "proof: it is of split train, its file of test",
    ),
}


@pytest.mark.parametrize(("tamper", "named"), PAIRS.values(), ids=PAIRS.keys())
def test_rows_are_compared_with_one_another(folder, demo_ground, tamper, named):
    assert verify_release(folder, demo_ground).passed
    tamper(folder)
    reseal(folder)
    report = verify_release(folder, demo_ground)
    assert not report.passed
    assert any(named in problem.what for problem in report.problems), report.problems


def test_columns_of_another_type_are_a_problem_of_their_file(folder, demo_ground):
    path, table = read_split(folder, "data", "train")
    hops = table.schema.get_field_index("hops")
    pq.write_table(table.set_column(hops, "hops", table["hops"].cast(pa.string())), path)
    reseal(folder)
    problem, *others = verify_release(folder, demo_ground).problems
    assert (problem.where, problem.what) == (f"data/{path.name}", "columns: they are not those of vqa")
    # The card tells the size of the rows in memory.
    assert {other.where for other in others} <= {"README.md", "croissant.json"}


@pytest.mark.parametrize("kind", ["data", "proofs"])
def test_a_column_that_is_missing_is_a_problem_of_every_row(folder, demo_ground, kind):
    path, table = read_split(folder, kind, "train")
    pq.write_table(table.drop_columns(["answer"]), path)
    reseal(folder)
    report = verify_release(folder, demo_ground)
    assert report.verified == 1
    assert any("answer: Field required" in problem.what for problem in report.problems)
