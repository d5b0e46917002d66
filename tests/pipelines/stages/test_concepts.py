"""Concepts drawn from the two ends of a list, each kept as a seed or refused with a reason."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import ConfigError
from pipelines.graph.seeds import SeedGate
from pipelines.splits import SplitRule
from pipelines.stages import concepts
from pipelines.stages.concepts import Concepts, read_list
from schemas.base import Rejection
from schemas.reasons import STAGE_REASONS
from tests.toy import box, build_toy_corpus

GATE = SeedGate(min_in_degree=0, hub_in_degree=3, require_infobox=False, require_image=False)
SPLITS = SplitRule({"sft": 1.0}, seed=7)
PAGES = {
    "Kelm Bridge": box("bridge", "The '''Kelm Bridge''' is a bridge.", "location = [[Ostrel]]"),
    "Ostrel": box("settlement", "'''Ostrel''' is a town.", "settlement_type = Town"),
    "Edda Marn": box("painter", "'''Edda Marn''' was a painter born in [[Ostrel]].", "birth_place = [[Ostrel]]"),
    "Velloby": "'''Velloby''' may refer to:\n* [[Velloby Bridge]]\n* [[Ostrel]]\n{{disambiguation}}",
    "Tonalism": "'''Tonalism''' is a theory of [[Ostrel]].",
    "Jon Vask": box("architect", "'''Jon Vask''' was an architect of [[Ostrel]].", "birth_place = [[Ostrel]]"),
}
LIST = (
    "ostrel\t900\nKelm Bridge\t800\nE. Marn\t30\nEdda Marn\t20\nVelloby\t10\nastrolabe\t9\nJon Vask\t8\nTonalism\t1\n"
)


@pytest.fixture(scope="module", autouse=True)
def halves():
    """A list of a few lines is all head and tail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(concepts, "HEAD", 0.5)
        patch.setattr(concepts, "TAIL", 0.5)
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build_toy_corpus(tmp_path_factory.mktemp("concepts"), PAGES, {"E. Marn": "Edda Marn"})


def make_stage(corpus, folder=None, listed=LIST, gate=GATE, seed=7, draws=100):
    path = ""
    if folder is not None:
        path = str(folder / "concepts.tsv")
        (folder / "concepts.tsv").write_text(listed, "utf-8")
    return Concepts(corpus, gate.model_copy(update={"concepts": path, "limit": draws}), SPLITS, seed)


def test_every_concept_drawn_is_a_seed_or_refused_with_a_reason_of_seeds(corpus, tmp_path):
    rows = list(make_stage(corpus, tmp_path)())
    refused = {row.record_id: row.reason for row in rows if isinstance(row, Rejection)}
    kept = {row.concept: (row.title, row.frequency, row.band) for row in rows if not isinstance(row, Rejection)}
    assert set(refused.values()) <= set(STAGE_REASONS["seeds"])
    assert refused.pop("concept:astrolabe") == "not-in-corpus"
    assert refused.pop("concept:Velloby") == "disambiguation-page"
    assert refused.pop("concept:ostrel") == "hub"
    assert refused.pop("concept:Tonalism") in ("no-type", "abstract")
    # Two names of one article are one concept.
    assert list(refused.values()) == ["same-article"]
    assert kept["Kelm Bridge"] == ("Kelm Bridge", 800, "head")
    assert kept["Jon Vask"] == ("Jon Vask", 8, "tail")
    assert len(rows) == make_stage(corpus, tmp_path).count_candidates() == 8


def test_without_a_list_the_articles_are_the_concepts_and_their_links_the_frequency(corpus):
    drawn = {concept.name: concept for concept in make_stage(corpus).drawn}
    assert drawn["Ostrel"].band == "head"
    assert drawn["Ostrel"].frequency == corpus.page(corpus.find("Ostrel")).in_degree > 0
    assert drawn.keys() <= set(PAGES)


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 10**6), min_size=4, max_size=60),
    st.integers(2, 70), st.integers(0, 5),
)  # fmt: skip
def test_as_many_are_drawn_from_the_head_as_from_the_tail_and_only_from_there(
    corpus, tmp_path_factory, counts, draws, seed
):
    listed = "".join(f"thing {number}\t{count}\n" for number, count in enumerate(counts))
    folder = tmp_path_factory.getbasetemp()
    stage = make_stage(corpus, folder, listed, seed=seed, draws=draws)
    bands = {band: [each for each in stage.drawn if each.band == band] for band in ("head", "tail")}
    assert len(bands["head"]) == len(bands["tail"]) <= draws // 2
    assert len({each.name for each in stage.drawn}) == len(stage.drawn)
    assert min(each.frequency for each in bands["head"]) >= max(each.frequency for each in bands["tail"])
    rest = sorted(counts, reverse=True)
    assert all(each.frequency >= rest[min(len(rest) - 1, int(0.5 * len(rest) + 1))] for each in bands["head"])
    assert stage.drawn == make_stage(corpus, folder, listed, seed=seed, draws=draws).drawn


@pytest.mark.parametrize("line", ["car", "car\tmany", "\t5", "tree\t4\ntree\t5", "car\t-1", ""])
def test_a_line_that_is_no_concept_with_a_frequency_is_named(tmp_path, line):
    path = tmp_path / "concepts.tsv"
    path.write_text(f"boat\t7\n{line}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"line [23]"):
        read_list(path)


def test_the_list_and_the_draw_are_part_of_the_key(corpus, tmp_path):
    other = LIST.replace("900", "901")
    stages = (
        {}, {"draws": 50}, {"seed": 8}, {"listed": other},
    )  # fmt: skip
    keys = {make_stage(corpus, tmp_path, **changes).fingerprint() for changes in stages}
    assert len(keys) == len(stages)
