"""A release that somebody changed and sealed anew: what `verify` names by itself, and that `--root` refuses all of it.

Each edit is followed by a manifest as its author would write it: digests, counts, content, version, here and in the
documents. What no row decides is listed too: `verify` says that it did not derive it, and only the root tells.
"""

import hashlib
import io
import json
import re
import shutil
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps

from pipelines.agent.agreement import wilson_interval
from pipelines.cli.commands import check_root
from pipelines.ids import digest_file
from pipelines.release.manifest import MANIFEST, read_release_manifest
from pipelines.release.verify import verify_release
from tests.pipelines.release.tampering import (
    cut_release,
    edit_manifest,
    number_rows,
    on_proof,
    on_proof_row,
    on_row,
    read_rows,
    remake_documents,
    reseal,
    rewrite_rows,
    set_in,
)


@pytest.fixture(scope="module")
def releases(demo, demo_ground, tmp_path_factory):
    """Each release cut to a few questions, of both splits where there are two, published honestly."""
    home = tmp_path_factory.mktemp("resealed")
    for dataset in ("sft", "rl", "vqa"):
        shutil.copytree(demo.release(dataset), home / dataset)
        cut_release(home / dataset, dataset, choose_questions(home / dataset, dataset), demo_ground, most=2)
    return home


def choose_questions(folder, dataset):
    """Return two questions a split: of SFT those whose transcripts show several pictures, the most first."""
    rows = read_rows(folder, "data")
    if dataset == "sft":
        return {row["question_id"] for row in sorted(rows, key=lambda row: (-len(row["images"]), row["id"]))[:2]}
    splits = {row["record_id"]: row["split"] for row in read_rows(folder, "proofs")}
    return {name for split in ("train", "test") for name in sorted(n for n, s in splits.items() if s == split)[:2]}


def change_text(name, change):
    """Return an edit of one document's text."""

    def edit(folder):
        path = folder / name
        old = path.read_text("utf-8")
        new = change(old)
        assert new != old
        path.chmod(0o644)
        path.write_text(new, "utf-8")

    return edit


def swap_words(name, old, new):
    return change_text(name, lambda text: text.replace(old, new, 1))


def on_first(edit):
    """Edit the first row alone."""

    def change(folder):
        rewrite_rows(folder, "data/*.parquet", lambda rows: (edit(rows[0]), rows)[1])

    return change


def on_message(role, find, old, new):
    """Replace words in the first message of a role that holds some words, in the first row that has one."""

    def change(rows):
        for row in rows:
            for message in row["messages"]:
                if message["role"] == role and find in message["content"] and old in message["content"]:
                    message["content"] = message["content"].replace(old, new, 1)
                    return rows
        raise AssertionError(f"no {role} message with {find!r} and {old!r}")

    return lambda folder: rewrite_rows(folder, "data/*.parquet", change)


def swap_words_of_thoughts(row):
    """Exchange the last two words of each thought, which changes no length."""
    for message in row["messages"]:
        if message["role"] == "assistant":
            thought, tag, rest = message["content"].partition("\n</think>")
            lead, _, last = thought.rpartition(" ")
            lead, _, before = lead.rpartition(" ")
            message["content"] = f"{lead} {last} {before}{tag}{rest}"


def ask_otherwise(row):
    for message in row["messages"]:
        if message["role"] == "assistant":
            message["content"] = re.sub(r'"query": "[^"]*"', '"query": "river"', message["content"])


def paint(image, change):
    """Return a picture changed, under the name of its content."""
    made = io.BytesIO()
    picture = change(Image.open(io.BytesIO(image["bytes"])).convert("RGB"))
    picture.save(made, "PNG")
    return {"bytes": made.getvalue(), "path": f"{hashlib.sha256(made.getvalue()).hexdigest()}.png"}


def swap_second(change):
    """Put another picture in the place of the second one of every row that has one."""

    def edit(rows):
        changed = 0
        for row in rows:
            if len(row["images"]) > 1:
                row["images"][1] = change(row)
                changed += 1
        assert changed
        return rows

    return lambda folder: rewrite_rows(folder, "data/*.parquet", edit)


def swap_thumbnail(row):
    found = next(page for page in row["image_search"] if page["thumbnail"])
    found["thumbnail"] = paint(found["thumbnail"], ImageOps.invert)


def move_split(source, target):
    """Put a question with its proof and row into another split."""

    def edit(folder):
        for kind in ("data", "proofs"):
            (old,), (new,) = (list((folder / kind).glob(f"{name}-*.parquet")) for name in (source, target))
            table, other = pq.read_table(old), pq.read_table(new)
            rows, more = table.to_pylist(), other.to_pylist()
            key = "id" if kind == "data" else "record_id"
            moved = min(rows, key=lambda row: row[key])
            if kind == "proofs":
                moved["split"] = target
            merged = [*more, moved]
            merged.sort(key=lambda row: (row["image"]["path"], row["id"]) if kind == "data" else row["record_id"])
            for path, found in ((old, [row for row in rows if row is not moved]), (new, merged)):
                path.chmod(0o644)
                pq.write_table(pa.Table.from_pylist(found, schema=table.schema), path)

    return edit


def repeat_row(rows):
    return [*rows, rows[-1]]


def repeat_under_another_id(rows):
    return [*rows, rows[-1] | {"id": "rollout-ffffffffffffffff"}]


def drop_question(folder):
    """Leave out one question, its rows and its proof, and publish the rest as it should be."""
    gone = min(row["record_id"] for row in read_rows(folder, "proofs") if row["split"] == "train")
    for kind, key in (("data", "id"), ("proofs", "record_id")):
        rewrite_rows(folder, f"{kind}/*.parquet", lambda rows, key=key: [row for row in rows if row[key] != gone])


def try_more(row):
    for cell in row["difficulty"]:
        cell["planned"] = cell["attempts"] = cell["attempts"] + 4
        low, high = wilson_interval(cell["correct"], cell["attempts"] - cell["unscored"])
        cell["low"], cell["high"] = round(low, 6), round(high, 6)


def rename_solvers(row):
    for cell in row["difficulty"]:
        cell["solver"] = "other"


def try_more_everywhere(folder):
    on_proof_row(try_more)(folder)
    on_row(lambda row: [try_more({"difficulty": row["difficulty"]})])(folder)


def retell(**settings):
    """Return an edit of settings that the manifest tells; its config digest is sealed anew."""

    def edit(folder):
        manifest = read_release_manifest(folder)
        assert settings.keys() <= {name.replace(".", "__") for name in manifest.told}
        told = {**manifest.told, **{name.replace("__", "."): value for name, value in settings.items()}}
        edit_manifest(told=told)(folder)

    return edit


def all_of(*edits):
    return lambda folder: [edit(folder) for edit in edits]


def weaken(setting, threshold, value):
    """Say in settings and proofs that less was demanded."""
    return all_of(on_proof(set_in("thresholds", threshold, value=value)), retell(**{setting.replace(".", "__"): value}))


def rewrite_funnel(change):
    def edit(folder):
        funnel = read_release_manifest(folder).funnel
        edit_manifest(funnel=(*funnel[:-1], funnel[-1].model_copy(update=change(funnel[-1]))))(folder)

    return edit


def rewrite_prompt(folder):
    prompts = read_release_manifest(folder).prompts
    edit_manifest(prompts=prompts | {min(prompts): "0" * 64})(folder)


def add_file(name, content=b"rows that nobody lists\n"):
    def edit(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    return edit


def link(name):
    """Replace a file by a link to a copy of it elsewhere, or make a link."""

    def edit(folder):
        target = folder.parent / "elsewhere"
        source = folder / name
        target.write_bytes(source.read_bytes() if source.is_file() else b"elsewhere\n")
        source.unlink(missing_ok=True)
        source.symlink_to(target)

    return edit


def set_quality(folder):
    """Say better things in the report, in both its forms."""
    report = json.loads((folder / "quality.json").read_text())
    report["answers"]["characters"]["min"] = 99
    change_text("quality.json", lambda text: json.dumps(report, indent=1, ensure_ascii=False) + "\n")(folder)
    swap_words("quality.md", "| characters |", "| letters |")(folder)


class Edit(NamedTuple):
    """One edit of one release. What is named is part of a problem; ``""``: nothing here decides it, the root tells."""

    dataset: str
    change: object
    named: str
    after: object = None
    """Of the sealed manifest: what a seal would put right."""
    remade: bool = False
    """Whether the author also writes all documents anew."""
    told: str = ""
    """What is said to be not derived, where nothing is named."""


CREDITS = "ATTRIBUTION.tsv: line"
CARD = "README.md: line"
STRANGE = "files: no release has such a file"
SEEN = "the observation after turn"
MADE = "images: picture 1 is not what"
FOUND = "image_search: a search by the picture finds"


def keep(folder):
    """Change nothing before the seal."""


EDITS = {
    "attribution emptied": Edit(
        "vqa", change_text("ATTRIBUTION.tsv", lambda text: text.split("\n")[0] + "\n"), CREDITS
    ),
    "attribution relicensed": Edit(
        "vqa", change_text("ATTRIBUTION.tsv", lambda text: text.replace("CC BY", "CC0")), CREDITS
    ),
    "rewards replaced": Edit(
        "rl",
        change_text("rewards.py", lambda text: "def compute_score(*a, **k):\n    return 1.0\n"),
        "rewards.py: line",
    ),
    "rewards left out": Edit(
        "rl", lambda folder: (folder / "rewards.py").unlink(), "files: it is missing from the manifest"
    ),
    "an observation replaced": Edit(
        "sft", on_message("user", "<tool_response>\nTitle: ", "\n</tool", " Nobody knows.\n</tool"), SEEN
    ),
    "a query replaced": Edit("sft", on_row(ask_otherwise), SEEN),
    "thoughts in other words, documents remade": Edit(
        "sft", on_row(swap_words_of_thoughts), "", remade=True, told="words of the thoughts of"
    ),
    "second picture inverted": Edit("sft", swap_second(lambda row: paint(row["images"][1], ImageOps.invert)), MADE),
    "a thumbnail swapped": Edit("rl", on_first(swap_thumbnail), "is not the picture that a search finds"),
    "a found page retitled": Edit("rl", on_first(set_in("image_search", 0, "title", value="Atlantis")), FOUND),
    "from eval to train, documents remade": Edit(
        "vqa", move_split("test", "train"), "the row is in train", remade=True
    ),
    "a row twice under another id": Edit(
        "sft", lambda folder: rewrite_rows(folder, "data/*.parquet", repeat_under_another_id), "is no attempt of"
    ),
    "rows in another order": Edit(
        "rl",
        lambda folder: rewrite_rows(folder, "data/*.parquet", lambda rows: number_rows(rows[::-1])),
        "rows are sorted by",
    ),
    "a proof twice": Edit(
        "vqa", lambda folder: rewrite_rows(folder, "proofs/train*.parquet", repeat_row), "proof: the question has two"
    ),
    "a question left out, documents remade": Edit("vqa", drop_question, "", remade=True),
    "more attempts, documents remade": Edit("vqa", try_more_everywhere, "", remade=True, told="difficulty of 4"),
    "descriptors may fit fewer": Edit(
        "vqa", on_proof(set_in("thresholds", "alone_first", value=1)), "thresholds: alone_first is 1"
    ),
    "shortcuts not looked for": Edit(
        "rl", on_proof(set_in("shortcuts_checked", value=False)), "thresholds: shortcuts_checked is False"
    ),
    "near misses not read": Edit("rl", on_proof(set_in("thresholds", "near_misses", value=0)), "near_misses is 0"),
    "another solver": Edit("vqa", on_proof_row(rename_solvers), "'other') is no model of the manifest"),
    "settings and thresholds weakened, documents remade": Edit(
        "vqa",
        weaken("questions.max_answer_share", "answer_share", 0.9),
        "",
        remade=True,
        told="questions.max_answer_share = 0.9 (recipe: 0.05)",
    ),
    "splits of other sizes": Edit(
        "vqa", retell(splits__sft=0.1, splits__rl=0.1, splits__eval=0.8), "the row is in train"
    ),
    "card rewritten": Edit("vqa", change_text("README.md", lambda text: "# The best data\n"), CARD),
    "report rewritten in both forms": Edit("vqa", set_quality, "quality.json: line"),
    "licence of the Croissant": Edit(
        "vqa", swap_words("croissant.json", "licenses/by-sa/4.0", "publicdomain/zero/1.0"), "croissant.json: line"
    ),
    "another file in data": Edit("vqa", add_file("data/notes.txt"), STRANGE),
    "a script": Edit("vqa", add_file("rewards.py", b"import os\n"), STRANGE),
    "a link in data": Edit("vqa", keep, "is not in the manifest", after=link("data/more.parquet")),
    "snapshot": Edit("vqa", edit_manifest(snapshot="2031-01-01"), "snapshot: it says"),
    "a prompt": Edit("vqa", rewrite_prompt, "prompts: "),
    "funnel made up, documents remade": Edit(
        "vqa", rewrite_funnel(lambda row: {"rejected": {}, "kept": row.rows_in}), "", remade=True, told="funnel, models"
    ),
    "content": Edit("vqa", keep, "content: it says", after=edit_manifest(content="0" * 64)),
    "system message": Edit(
        "sft", on_row(set_in("messages", 0, "content", value=lambda text: text + " Be quick.")), "the system message is"
    ),
    "tools": Edit(
        "sft",
        on_row(set_in("tools", value=lambda text: text.replace("description", "descriptions", 1))),
        "tools: they are not those",
    ),
}
FAST = (
    "attribution relicensed",
    "rewards replaced",
    "an observation replaced",
    "a query replaced",
    "second picture inverted",
    "from eval to train, documents remade",
    "a row twice under another id",
    "card rewritten",
    "a link in data",
    "more attempts, documents remade",
)


@pytest.mark.parametrize("dataset", ["sft", "rl", "vqa"])
def test_what_is_cut_and_published_honestly_verifies(releases, demo_ground, dataset):
    assert verify_release(releases / dataset, demo_ground).problems == ()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in EDITS]
)
def test_a_resealed_edit_is_named_or_told_as_not_derived_and_never_has_the_root(releases, demo_ground, tmp_path, name):
    edit = EDITS[name]
    root = digest_file(releases / edit.dataset / MANIFEST)
    folder = shutil.copytree(releases / edit.dataset, tmp_path / edit.dataset)
    edit.change(folder)
    (remake_documents(folder, demo_ground) if edit.remade else reseal(folder))
    if edit.after is not None:
        edit.after(folder)
    report = verify_release(folder, demo_ground)
    if edit.named:
        assert any(edit.named in problem.what for problem in report.problems), report.problems
    else:
        assert report.passed
        assert edit.told in "\n".join(report.underived)
    held = check_root(report, root)
    same = digest_file(folder / MANIFEST) == root
    assert not held.passed
    assert same or held.problems[0].what.startswith("root: its sha256 is")
    assert not same or edit.after is not None
