"""What overlaps with a benchmark is found in every layout, and what does not is left alone."""

import io
import json
from functools import cache

import pytest

from pipelines.checks.benchmarks import (
    Benchmarks,
    count_hits,
    describe_benchmarks,
    find_overlaps,
    probe_benchmarks,
)
from pipelines.config.settings import BenchmarkConfig
from pipelines.errors import ConfigError
from pipelines.graph.answers import type_reference
from pipelines.ids import digest_file
from pipelines.pictures import PictureStore
from tests.pipelines.agent.signs import draw_scene, encode_scene
from tests.pipelines.agent.trail import SOURCE
from tests.pipelines.checks.overlapping import CLEAN, OURS
from tests.pipelines.release.builders import make_question
from tests.published import WRITERS, Published, publish


@cache
def draw(seed):
    return draw_scene(seed, size=(320, 240), words=0)


@cache
def encode(seed):
    return encode_scene(draw(seed))


def make_ours(root, number):
    """Return a question of ours: its text, entities and answer, and a picture in the store."""
    text, anchor, node, answer = OURS[number]
    picture = PictureStore(root / "images").add_bytes(encode(number), SOURCE)
    row = make_question(number, picture, text=text, answer=type_reference(text, answer))
    first, second, last = row.proof.nodes
    named = (first.model_copy(update={"title": anchor}), second, last.model_copy(update={"title": node}))
    return row.model_copy(update={"proof": row.proof.model_copy(update={"nodes": named})})


def ask(number, question, answer, entity="", picture=None):
    data = picture or encode(1000 + number)
    return Published(str(30000000 + number), question, answer, f"{answer} or so", entity, data)


def make_clean():
    return [ask(number, *row) for number, row in enumerate(CLEAN)]


def copy_picture(number):
    """Return a picture cut by 3%, and saved again at another quality."""
    image = draw(number)
    width, height = image.size
    cut = image.crop((width * 3 // 100, height * 3 // 100, width - width * 3 // 100, height - height * 3 // 100))
    target = io.BytesIO()
    cut.save(target, "JPEG", quality=70)
    return target.getvalue()


def reword(text):
    """Return a paraphrase that keeps a long run of the words."""
    words = text.split()
    return " ".join(["Kindly", "tell", "me:", *words[2:-2], "precisely", "now?"])


def plant(number):
    """Return rows of a benchmark that overlap with a question of ours, by how."""
    text, anchor, node, answer = OURS[number]
    return {
        "verbatim": ask(100, text, answer, "Nowhere"),
        "paraphrase": ask(101, reword(text), answer, "Nowhere"),
        "final fact": ask(102, f"What does the plaque at {node} in the picture give?", answer, node),
        "anchor": ask(103, f"Which record belongs to {anchor}, seen here?", answer, anchor),
        "picture": ask(104, "How many lamps stand on the left bank here?", "eleven", "Nowhere",
                       picture=copy_picture(number)),
    }  # fmt: skip


WANTED = {"verbatim": "benchmark-question", "paraphrase": "benchmark-words", "final fact": "benchmark-fact",
          "anchor": "benchmark-entity", "picture": "benchmark-picture"}  # fmt: skip


def open_benchmark(folder, kind, rows):
    path, pictures = publish(folder, kind, rows)
    return Benchmarks((BenchmarkConfig(name="bench", path=(str(path),), images=str(pictures)),), digest)


def digest(path):
    return digest_file(path) if path.is_file() else ",".join(sorted(each.name for each in path.iterdir()))


@pytest.mark.parametrize("others", [3, pytest.param(len(OURS), marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", WRITERS)
def test_planted_overlaps_are_found_in_each_layout_and_clean_files_alarm_nobody(tmp_path, kind, others):
    store, clean = PictureStore(tmp_path / "images"), make_clean()
    number = len(kind) % len(OURS)
    ours = [make_ours(tmp_path, each % len(OURS)) for each in range(number, number + others)]
    chosen, planted = ours[0], plant(number)
    opened = open_benchmark(tmp_path / "b", kind, [*clean, *planted.values()])
    found = list(find_overlaps(ours, opened, store.read))
    places = {str(len(clean) + place): how for place, how in enumerate(planted)}
    rows = places | {asked.id: how for how, asked in planted.items()}
    by_row = {(rows.get(each.row.partition("/")[0].rpartition("_")[2]), each.kind) for each in found}
    assert by_row >= {(how, WANTED[how]) for how in planted}
    assert None not in {how for how, _ in by_row}
    assert {each.record_id for each in found} == {chosen.record_id}


@pytest.mark.parametrize("number", range(len(OURS)))
def test_each_kind_of_overlap_is_found_alone(tmp_path, number):
    row, store = make_ours(tmp_path, number), PictureStore(tmp_path / "images")
    for how, asked in plant(number).items():
        opened = open_benchmark(tmp_path / how, "columns", [*make_clean()[:3], asked])
        kinds = {each.kind for each in find_overlaps([row], opened, store.read)}
        assert WANTED[how] in kinds, how
        refused = opened.refuse([row], store.read)
        assert (refused[row.record_id].reason in kinds, asked.id in refused[row.record_id].detail) == (True, True)


def test_a_long_run_is_an_overlap_whatever_the_answer_where_it_holds_names_or_the_answer_is_not_told(tmp_path):
    run = "the observatory on Hohenried plateau that opened its dome in 1911 for the comet of that year"
    row = make_ours(tmp_path, 0).model_copy(update={"text": f"Who paid for {run} is asked here, and who drew it?"})
    plain = "the house on the high hill that lies above the old town near the river of that name"
    generic = row.model_copy(update={"text": f"Who built {plain} is asked here, and who drew it?"})
    for name, ours, asked, kinds in (
        ("named", row, ask(1, f"How many steps lead up to {run}, as seen?", "213"), ["benchmark-words"]),
        ("generic", generic, ask(1, f"How many steps lead up to {plain}, as seen?", "213"), []),
        ("untold", generic, ask(1, f"How many steps lead up to {plain}, as seen?", ""), ["benchmark-words"]),
    ):
        opened = open_benchmark(tmp_path / name, "vsearcher", [asked])
        assert [each.kind for each in find_overlaps([ours], opened, None)] == kinds, name


def test_infoseek_takes_entities_from_its_second_file(tmp_path):
    _, anchor, _, answer = OURS[1]
    row = {"data_id": "infoseek_val_1", "image_id": "oven_1", "question": "Which one is it?", "answer": [answer]}
    (tmp_path / "val.jsonl").write_text(json.dumps(row))
    held = {"data_id": "infoseek_val_1", "entity_id": "Q5", "entity_text": anchor}
    (tmp_path / "val_withkb.jsonl").write_text(json.dumps(held))
    own = BenchmarkConfig(name="infoseek", path=(str(tmp_path / "val.jsonl"),),
                          entities=str(tmp_path / "val_withkb.jsonl"))  # fmt: skip
    probe_benchmarks([own])
    opened = Benchmarks((own,), digest)
    assert [each.kind for each in find_overlaps([make_ours(tmp_path, 1)], opened, None)] == ["benchmark-entity"]
    assert opened.entries[0].pictures_missing == 1


def test_hits_are_counted_by_benchmark_and_kind_and_what_was_not_looked_at_is_named(tmp_path):
    store, row = PictureStore(tmp_path / "images"), make_ours(tmp_path, 2)
    path, _ = publish(tmp_path / "b", "fvqa", list(plant(2).values()))
    second, _ = publish(tmp_path / "c", "columns", [plant(2)["verbatim"]])
    own = (BenchmarkConfig(name="MMSearch", path=(str(path),)), BenchmarkConfig(name="other", path=(str(second),)))
    opened = Benchmarks(own, digest)
    hits = count_hits(opened.refuse([row, make_ours(tmp_path, 3)], store.read).values())
    assert hits == {
        "MMSearch": dict.fromkeys(sorted({*WANTED.values(), "benchmark-near"}), 1),
        "other": {"benchmark-near": 1, "benchmark-question": 1, "benchmark-words": 1},
    }
    first, other = opened.entries
    assert (first.layouts, first.questions, first.pictures, first.pictures_missing) == (("fvqa",), 5, 5, 0)
    assert (other.pictures, other.pictures_missing) == (0, 1)
    table = describe_benchmarks([first.model_copy(update={"hits": hits["MMSearch"]}), other])
    assert table["MMSearch"]["benchmark-picture"] == 1
    assert "not checked: LiveVQA" in table


def test_what_cannot_be_compared_is_refused_before_anything_is_paid(tmp_path):
    path, _ = publish(tmp_path, "columns", make_clean()[:2])
    good = BenchmarkConfig(name="b", path=(str(path),))
    probe_benchmarks([good])
    (tmp_path / "captions.jsonl").write_text('{"caption": "a", "file": "b"}\n')
    (tmp_path / "imgs.tsv").write_text("10000000\tYWJj\n")
    (tmp_path / "imgs.lineidx").write_text("-5\n")
    for bad, match in (
        (good.model_copy(update={"path": (str(tmp_path / "gone.jsonl"),)}), "no such file"),
        (good.model_copy(update={"images": str(tmp_path / "gone")}), "no such file"),
        (good.model_copy(update={"path": (str(tmp_path / "captions.jsonl"),)}), "has no question"),
        (good.model_copy(update={"images": str(tmp_path / "imgs.tsv")}), "none at -5"),
        (good.model_copy(update={"images": str(path)}), "give a folder"),
        (good.model_copy(update={"entities": str(tmp_path / "imgs.tsv")}), "not a readable|is not read"),
    ):
        with pytest.raises(ConfigError, match=match):
            probe_benchmarks([bad])
    with pytest.raises(ConfigError, match="b twice"):
        probe_benchmarks([good, good])
