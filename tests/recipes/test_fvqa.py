"""FVQA on a generated world: one command, all labels, the published mix, and rows that verify."""

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from pipelines.checks.examination import Claim
from pipelines.cli.commands import load_config, run_recipe
from pipelines.corpus.store import Corpus
from pipelines.graph.query import Indexes
from pipelines.graph.titles import asks_name
from pipelines.release.making import make_vqa_row, read_proofs
from pipelines.release.verify import find_question_problems, verify_release
from pipelines.run import assembly
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from pipelines.stages import concepts
from pipelines.stages.samples import Samples
from schemas.datasets import Difficulty, Seed
from tests.conftest import hold_lock
from tests.planted.examining import examine
from tests.sharing import find_shared

pytestmark = pytest.mark.slow
SETTINGS = ("seeds.limit=260",)
WIDE = {"HEAD": 0.5, "TAIL": 0.5}
"""A world of seconds has few articles between head and tail."""


@contextmanager
def widened():
    """Draw from all of the list, and keep every question."""
    with pytest.MonkeyPatch.context() as patch:
        for name, share in WIDE.items():
            patch.setattr(concepts, name, share)
        patch.setattr(assembly, "Samples", partial(Samples, 1.0, 4.0))
        yield


"""More of a small world than of a large one."""


@dataclass(frozen=True)
class FvqaRun:
    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "workspace"

    @property
    def document(self) -> dict:
        return json.loads((self.folder / "document.json").read_text())

    def rows(self, stage, model):
        return list(read_parts(Workspace(self.root).stage(stage, Workspace(self.root).read_latest()[stage]), model))

    def release(self, name):
        return next(Path(each["path"]) for each in self.document["releases"] if each["dataset"] == name)

    def stage(self, name):
        return next(each for each in self.document["stages"] if each["stage"] == name)


@pytest.fixture(scope="session")
def fvqa(recipe_world, tmp_path_factory) -> FvqaRun:
    folder = find_shared(tmp_path_factory.getbasetemp()) / "fvqa"
    folder.mkdir(exist_ok=True)
    run = FvqaRun(folder)
    with hold_lock(folder / "lock"):
        if not (folder / "document.json").exists():
            config = load_config("fvqa", (), ("models=scripted", f"corpus.world={recipe_world}", *SETTINGS))
            with widened():
                document = run_recipe(config, run.root, "", ()).as_dict()
            (folder / "document.json").write_text(json.dumps(document))
    return run


@pytest.fixture(scope="session")
def ground(fvqa):
    (folder,) = (fvqa.root / "corpus").iterdir()
    return Indexes(Corpus.open(folder))


@pytest.fixture(scope="session")
def proofs(fvqa):
    return list(read_proofs(fvqa.release("vqa")))


def test_concepts_are_drawn_from_both_ends_and_some_of_each_ask_for_names(fvqa):
    seeds = fvqa.rows("seeds", Seed)
    assert {(seed.band, seed.asks) for seed in seeds} == {
        (b, a) for b in ("head", "tail") for a in ("visual", "textual")
    }
    least = min(seed.frequency for seed in seeds if seed.band == "head")
    assert least >= max(seed.frequency for seed in seeds if seed.band == "tail")


def test_labels_of_every_kind_come_out_of_rollouts_within_the_published_rounds(fvqa):
    rows = fvqa.rows("difficulty", Difficulty)
    assert {row.search_need for row in rows} == {"search-free", "image", "text", "mixed"}
    for row in rows:
        assert {cell.prompt for cell in row.cells} == {"act_mmsearch_r1/v2"}
        assert sum(cell.attempts for cell in row.cells) <= 8
        made = sum(cell.correct for cell in row.cells if cell.condition == "image")
        assert (made > 0) == (row.search_need == "search-free")


def test_the_release_has_the_published_share_of_search_free_questions_in_every_split(proofs):
    assert len(proofs) >= 20
    for split in {row.split for row in proofs}:
        needs = Counter(row.search_need == "search-free" for row in proofs if row.split == split)
        assert 0.25 <= needs[True] / needs.total() <= 0.35, split


def test_what_the_mix_refuses_is_refused_before_the_teacher(fvqa):
    refused = fvqa.stage("selections")["rejected"]
    assert refused.keys() & {"search-free-over-share", "search-required-over-share"}
    assert fvqa.stage("rollouts")["rows_in"] == fvqa.stage("selections")["kept"]


def test_every_row_of_every_release_verifies(fvqa, ground):
    for name in ("vqa", "rl", "sft"):
        report = verify_release(fvqa.release(name), ground)
        assert (report.verified, report.problems) == (report.rows, ())
        assert report.rows > 0


def test_both_kinds_are_released_with_their_knowledge_and_the_report_shows_its_balance(fvqa, proofs):
    assert Counter(map(asks_name, (row.proof for row in proofs))).keys() == {True, False}
    assert all(row.knowledge for row in proofs)
    assert len({row.knowledge for row in proofs}) >= 6
    quality = json.loads((fvqa.release("vqa") / "quality.json").read_text())
    for name, line in quality["balance"].items():
        assert line["low"] <= line["share"] <= line["high"], name
    assert {"search need: mixed", "knowledge: People"} <= quality["balance"].keys()


def edit_proof(row, **changes):
    return row.model_copy(update={"proof": row.proof.model_copy(update=changes)})


def move_span(row):
    evidence = row.proof.answer_evidence
    moved = {"start": evidence.start + 1, "end": evidence.end, "text": evidence.text[1:]}
    return edit_proof(row, answer_evidence=evidence.model_copy(update=moved))


def swap_answer(row):
    other = {"surface": "Nobody Else", "value": "Nobody Else", "key": "text:nobody else"}
    return row.model_copy(update={"answer": row.answer.model_copy(update=other)})


def add_alias(row):
    return row.model_copy(update={"answer": row.answer.model_copy(update={"aliases": ("anything",)})})


def change_role(row):
    nodes = (row.proof.nodes[0].model_copy(update={"role": "answer"}),)
    return edit_proof(row, nodes=nodes)


def confirm(row):
    return edit_proof(row, corroboration=row.proof.answer_evidence)


TAMPERED = {
    "a confirming sentence": (confirm, "answer: a name is no fact that a sentence confirms"),
    "no reference to the picture": (
        lambda row: row.model_copy(update={"text": "What is its name?"}),
        "text: reference-missing",
    ),
    "another place of the name": (move_span, "answer: the page is named at another place"),
    "another name": (swap_answer, "answer: the page's name is"),
    "another alias": (add_alias, "answer: the page's name is"),
    "another role": (change_role, "nodes: the roles are"),
    "no counts": (lambda row: edit_proof(row, counts=()), "counts: answers of node 0 was not counted"),
    "another opening": (
        lambda row: row.model_copy(update={"text": row.text.replace("What", "Which").replace("Who", "Which")}),
        "text: other-opening",
    ),
    "a name in the text": (
        lambda row: row.model_copy(update={"text": f"{row.text[:-1]}, {row.answer.surface}?"}),
        "text: alias-leak",
    ),
    "another wording before": (lambda row: row.model_copy(update={"fuzzy": "What is it?"}), "fuzzy: it is not"),
    "a relation of the box": (lambda row: edit_proof(row, answer_relation="opened"), "answer:"),
    "a reading of a fact": (
        lambda row: row.model_copy(update={"reading": row.reading.model_copy(update={"asked": "opened"})}),
        "reading: asks for opened, not own name",
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_proof_of_a_name_that_was_changed_does_not_verify(ground, proofs, what):
    change, problem = TAMPERED[what]
    row = next(row for row in proofs if asks_name(row.proof))
    assert find_question_problems(ground, row) == []
    found = find_question_problems(ground, change(row))
    assert any(each.startswith(problem) for each in found), found


def test_the_checks_on_finished_questions_find_nothing_against_them(ground, proofs):
    for row in proofs:
        assert examine(ground, Claim(row.text, row.answer, row.proof), 6, audit=True) == (), row.text


def test_another_category_than_the_proofs_is_seen(proofs):
    row = proofs[0]
    other = "Arts" if row.knowledge != "Arts" else "Place"
    assert make_vqa_row(row.model_copy(update={"knowledge": other}), ()) != make_vqa_row(row, ())


def list_versions(document):
    return sorted((each["dataset"], each["version"]) for each in document["releases"])


def test_a_second_run_pays_nothing_and_makes_the_same(fvqa, recipe_world):
    config = load_config("fvqa", (), ("models=scripted", f"corpus.world={recipe_world}", *SETTINGS))
    with widened():
        document = run_recipe(config, fvqa.root, "", ()).as_dict()
    assert list_versions(document) == list_versions(fvqa.document)
    assert sum(each["calls"] - each["cached_calls"] for each in document["stages"]) == 0
