"""Pools and mixtures: questions of files are taken or refused with a reason, and merged by their shares."""

import io
import json
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import PoolConfig
from pipelines.errors import ConfigError
from pipelines.graph.proofs import NO_PROOF
from pipelines.pictures import PictureStore
from pipelines.run.corpora import digest_input
from pipelines.run.workspace import Workspace
from pipelines.splits import SHARES, SplitRule
from pipelines.stages.mixtures import Mixtures, WalkedMixtures, find_quotas, list_unmet
from pipelines.stages.pools import Pools, check_files
from schemas.base import Rejection
from schemas.datasets import Grounding, Origin
from tests.hostile_pictures import HOSTILE
from tests.pipelines.release.builders import make_question


def draw(number: int, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (number * 40 % 256, 90, 200)).save(buffer, kind)
    return buffer.getvalue()


def make_pools(tmp_path, rows, **changes) -> Pools:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "pictures").mkdir(exist_ok=True)
    values = {"name": "elsewhere", "path": str(path), "images": str(tmp_path / "pictures"), "licence": "CC0",
              "source": "https://pool.example/", "split": "sft"}  # fmt: skip
    pool = PoolConfig(**(values | changes))
    digest = partial(digest_input, workspace=Workspace(tmp_path / "workspace"))
    return Pools((pool,), PictureStore(tmp_path / "store"), SplitRule(SHARES, 7), 6, digest)


def ask(**changes) -> dict:
    return {
        "id": "a",
        "question": "Who designed the bridge in the image?",
        "answer": "Ada Vask",
        "image": "1.png",
    } | changes


def test_a_question_is_taken_with_its_origin_picture_and_typed_answer(tmp_path):
    pools = make_pools(tmp_path, [ask(answer_aliases=["A. Vask"], entity="Kelm Bridge")], columns={
        name: name for name in ("id", "question", "answer", "answer_aliases", "image", "entity")})  # fmt: skip
    (tmp_path / "pictures" / "1.png").write_bytes(draw(1, "JPEG"))
    (made,) = pools()
    assert (made.parent_id, made.split, made.proof, made.reading) == ("pool:elsewhere:0", "sft", NO_PROOF, None)
    assert made.origin == Origin(
        pool="elsewhere", row="a", entity="Kelm Bridge", licence="CC0", source="https://pool.example/"
    )
    assert (made.answer.type, made.answer.surface, made.answer.aliases) == ("name", "Ada Vask", ("A. Vask",))
    assert (made.picture.extension, made.picture.licence, made.picture.author) == ("jpg", "CC0", "elsewhere")
    assert PictureStore(tmp_path / "store").read(made.picture) == draw(1, "JPEG")


REFUSALS = {
    "no question": (ask(question=" "), "no-question"),
    "question without end": (ask(question="why " * 600), "no-question"),
    "no answer": (ask(answer=""), "no-answer"),
    "placeholder": (ask(answer="N/A"), "placeholder-answer"),
    "list": (ask(answer="Ada, Ben and Cid"), "answer-untyped"),
    "long": (ask(answer="The Old Society Of Kelm Bridge Builders"), "answer-too-long"),
    "in the question": (ask(answer="bridge"), "answer-leak"),
    "no picture": (ask(image=None), "no-picture"),
    "picture outside": (ask(image="../rows.jsonl"), "no-picture"),
    "two pictures": (ask(image=["1.png", "1.png"]), "several-pictures"),
    "bomb": (ask(image="bomb.png"), "picture-unusable"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_question_is_refused_by_name(tmp_path, name):
    row, reason = REFUSALS[name]
    pools = make_pools(tmp_path, [row, ask()])
    pictures = {
        "1.png": draw(1),
        "text.png": b"<html>",
        "cut.png": draw(1)[:60],
        "bomb.png": HOSTILE["png bomb of 400 megapixels"].build(),
    }
    for file, data in pictures.items():
        (tmp_path / "pictures" / file).write_bytes(data)
    refused, kept = pools()
    assert isinstance(refused, Rejection)
    assert (refused.record_id, refused.reason) == ("pool:elsewhere:0", reason)
    assert isinstance(kept, Grounding)
    assert pools.count_candidates() == 2


def test_duplicates_and_other_splits_are_refused(tmp_path):
    rows = [ask(), ask(id="b")]
    pools = make_pools(tmp_path, rows)
    (tmp_path / "pictures" / "1.png").write_bytes(draw(1))
    assert [getattr(row, "reason", "") for row in pools()] == ["", "duplicate-question"]
    names = [ask(id=str(n), answer=f"Ada Vask {n}", entity=f"Bridge {n}") for n in range(60)]
    by_rule = make_pools(tmp_path, names, split="")
    rule, found = by_rule.splits, list(by_rule())
    kept = [row for row in found if isinstance(row, Grounding)]
    assert kept
    for row in kept:
        assert row.split == rule.place("answer", row.answer.key) == rule.place("entity", row.origin.entity)
    assert {row.reason for row in found if isinstance(row, Rejection)} == {"other-split"}


def test_whatever_decides_the_rows_is_in_the_fingerprint(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "1.png").write_bytes(draw(1))
    first = make_pools(tmp_path, [ask()]).fingerprint()
    assert make_pools(tmp_path, [ask()]).fingerprint() == first
    assert make_pools(tmp_path, [ask()], licence="").fingerprint() != first
    assert make_pools(tmp_path, [ask(answer="Ben")]).fingerprint() != first
    (tmp_path / "pictures" / "1.png").write_bytes(draw(2) + b" ")
    assert make_pools(tmp_path, [ask()]).fingerprint() != first
    (tmp_path / "pictures" / "1.png").write_bytes(draw(1))
    assert make_pools(tmp_path, [ask()]).fingerprint() == first, "a copy of the same files is the same pool"
    with pytest.raises(ConfigError, match=r"gone\.jsonl"):
        make_pools(tmp_path, [ask()], path=str(tmp_path / "gone.jsonl")).fingerprint()


def make_rows(pool: str, count: int) -> list[Grounding]:
    origin = Origin(pool=pool, row="", entity="", licence="", source="") if pool else None
    rows = []
    for number in range(count):
        whole = make_question(number, None, record_id=f"q-{pool}-{number}", origin=origin)
        rows.append(Grounding(**{name: getattr(whole, name) for name in Grounding.model_fields}))
    return rows


def mix(walked: int, pools: dict[str, int], shares: dict[str, float]) -> Counter:
    """Return how many questions of each pool are kept; the order in which they come in changes nothing."""
    outside = [row for pool, count in pools.items() for row in make_rows(pool, count)]
    stage = WalkedMixtures(shares, 7) if walked else Mixtures(shares, 7)
    inputs = [outside, make_rows("", walked)] if walked else [outside]
    found, turned = list(stage(inputs)), list(stage([rows[::-1] for rows in inputs]))
    assert len(found) == sum(map(len, inputs)) == len({row.record_id for row in found})
    kept = [row for row in found if isinstance(row, Grounding)]
    assert {row.record_id for row in kept} == {row.record_id for row in turned if isinstance(row, Grounding)}
    return Counter(row.origin.pool if row.origin else "" for row in kept)


def test_a_pool_that_has_too_few_gives_all_and_is_named():
    counts = mix(90, {"a": 4}, {"a": 0.1})
    assert counts == {"": 90, "a": 4}
    assert [(pool, share) for pool, share, _ in list_unmet(counts, {"a": 0.1})] == [("a", 0.1)]
    assert list(list_unmet(Counter({"": 90, "a": 10}), {"a": 0.1})) == []


@given(st.integers(1, 500), st.lists(st.floats(0.01, 0.3), min_size=1, max_size=3), st.integers(0, 4000))
def test_every_share_is_met_within_one_row_wherever_there_are_enough(walked, shares, spare):
    by_pool = {f"p{number}": share for number, share in enumerate(shares)}
    quotas = find_quotas({"": walked, **dict.fromkeys(by_pool, 20_000 + spare)}, by_pool)
    total = walked / (1.0 - sum(shares))
    assert quotas[""] == walked
    assert all(abs(quotas[pool] - share * total) <= 0.5 for pool, share in by_pool.items())


SETTINGS = {
    'method="pools"': "name one under",
    'pools=[{name="a", path="x", share=0.5}, {name="b", path="y", share=0.5}]': "nothing is left to others",
    'pools=[{name="a", path="x"}, {name="a", path="y"}]': "two are named a",
    'pools=[{name="a", path="x", layout="fvqa", columns={question="q"}}]': "columns are for layout columns",
    'pools=[{name="a", path="x", columns={questoin="q"}}]': "allowed are id, question",
    'pools=[{name="a", path="x", layuot="fvqa"}]': "did you mean layout",
    'pools=[{name="../a", path="x"}]': "pools.0.name",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_pool_that_makes_no_sense_is_refused_before_anything_runs(setting):
    with pytest.raises(ConfigError, match=SETTINGS[setting].replace(".", r"\.")):
        make_config(read_recipe("demo"), [setting])


@pytest.mark.parametrize("key", ["path", "images", "entities"])
def test_a_file_that_is_not_there_is_named_before_a_corpus_is_built(tmp_path, key):
    (tmp_path / "rows.jsonl").write_text("")
    pool = PoolConfig(**({"name": "a", "path": str(tmp_path / "rows.jsonl")} | {key: str(tmp_path / "gone")}))
    with pytest.raises(ConfigError, match=rf"pools a: {key} .*gone: no such file"):
        check_files([pool])
