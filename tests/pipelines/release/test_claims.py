"""Each single value of a proof is compared with something: changed alone, it is a problem, and never a traceback."""

import asyncio
import copy

import pytest
from pydantic import ValidationError

from pipelines.checks.propositions import ProseReader
from pipelines.checks.readings import Evaluator
from pipelines.graph.proofs import make_question_id
from pipelines.release.rows import ROW_TYPES, ProofRow, VqaRow
from pipelines.release.verify import find_question_problems, find_row_problems, read_anew, verify_release
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.toy.reader import GrammarReader
from schemas.tasks import ReadPageReply, StatedValue
from tests.pipelines.release.tampering import read_rows
from tests.pipelines.stages.players import FakeModel

HOSTILE = (None, -1, 99, 2**62, "", "\x00", "[[A]]", "9" * 400, "[subject]", True)
LIMITS = {("proof", "thresholds", name) for name in ("near_misses", "answer_share", "retrieval_rank")}
TOLD = {
    ("split",),
    ("proof", "shortcuts_checked"),
    ("proof", "hub_in_degree"),
    *LIMITS,
    ("depiction", "candidates"),
    ("depiction", "score"),
    ("depiction", "margin"),
    ("depiction", "distractors"),
    ("depiction", "over_threshold"),
    ("depiction", "ranker"),
    ("depiction", "engines", 0),
    ("depiction", "ease"),
    ("depiction", "ease_at_training"),
    ("reading", "reader"),
    *(("reading", "offered", number) for number in range(40)),
    ("screening", "reader"),
    *(("proof", "page_readings", number, "reader") for number in range(5)),
    *(
        ("proof", "page_readings", place, "propositions", number, name)
        for place in range(5)
        for number in range(5)
        for name in ("when", "words")
    ),
}
"""Told, not shown: the split's name (its file has it), what other limits would have held as well, and
how pictures compared, which takes the encoder and the search; who
read, what else it could have chosen, and what limits in time it saw;
and which words of a sentence state a value."""


@pytest.fixture(scope="module")
def claimed(small_releases):
    (proof,) = read_rows(small_releases / "vqa", "proofs")
    (row,) = read_rows(small_releases / "vqa", "data")
    return proof, VqaRow.model_validate(row, strict=False)


def list_leaves(value, path=()):
    """Yield the path of every scalar of a nested value."""
    if not isinstance(value, dict | list):
        yield path
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from list_leaves(inner, (*path, key))


def put(values, path, value):
    """Return the nested values with one of them replaced."""
    changed = copy.deepcopy(values)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


def find_all_problems(ground, values, row):
    try:
        proof = ProofRow.model_validate(values, strict=False)
    except ValidationError as error:
        return [str(error)]
    return find_question_problems(ground, proof) or find_row_problems(proof, row, 0)


@pytest.mark.slow
def test_no_value_of_a_proof_can_be_changed_alone(demo_ground, claimed):
    proof, row = claimed
    unnoticed = set()
    for path in list_leaves(proof):
        before = proof
        for step in path:
            before = before[step]
        for value in HOSTILE:
            if value == before or (isinstance(value, bool) and isinstance(before, int)):
                continue
            if not find_all_problems(demo_ground, put(proof, path, value), row):
                unnoticed.add(path)
    assert sorted(map(str, unnoticed - TOLD)) == []


UNSEEN = {
    "sft": {
        ("id",),
        ("tokens",),
        ("day",),
        ("snapshot",),
        ("messages", 0, "content"),
        ("supports",),
        *(("supports", number, name) for number in range(9) for name in ("what", "step", "start", "end")),
    },
    "rl": {("image_search", number, name) for number in range(9) for name in ("url", "title")},
    "vqa": set(),
}
"""What no proof decides: of a transcript its id, length, dates, system message and pointers; the pages of a search."""


@pytest.mark.parametrize("dataset", UNSEEN)
def test_no_column_of_a_row_can_be_changed_alone(small_releases, dataset):
    (proof,), (row,) = (read_rows(small_releases / dataset, kind) for kind in ("proofs", "data"))
    proof = ProofRow.model_validate(proof, strict=False)
    unnoticed, read = set(), ROW_TYPES[dataset].model_validate
    for path in list_leaves(row):
        for value in (None, "", "[[A]]", 99):
            try:
                changed = read(put(row, path, value), strict=False)
            except ValidationError:
                continue
            if changed != read(row, strict=False) and not find_row_problems(proof, changed, 0):
                unnoticed.add(path)
    assert unnoticed <= UNSEEN[dataset]


def rephrase(claimed, name, change):
    """Return the proof row with an earlier wording changed."""
    proof, row = claimed
    return put(proof, (name,), change(proof, proof[name])), row


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda proof, text: text.replace(proof["proof"]["nodes"][0]["title"], "it"), "descriptor-lost"),
        (lambda proof, text: f"Of {proof['proof']['nodes'][-1]['title']}: {text}", "alias-leak"),
        (lambda proof, text: f"Of {proof['answer']['surface']}: {text}", "answer-leak"),
        (lambda proof, text: f"Of {proof['proof']['nodes'][0]['title']}, what?", "descriptor-lost"),
        (lambda proof, text: text.replace("?", "."), "it is not a question"),
        (lambda proof, text: "", "it is not a question"),
    ],
)
def test_a_fuzzy_question_names_its_anchor_alone_and_keeps_every_descriptor(demo_ground, claimed, change, code):
    problems = find_all_problems(demo_ground, *rephrase(claimed, "fuzzy", change))
    assert any(problem.startswith("fuzzy: ") and code in problem for problem in problems), problems


@pytest.mark.parametrize("node", [0, 1])
def test_a_canonical_question_names_anchor_and_bridges(demo_ground, claimed, node):
    def drop(proof, text):
        return text.replace(proof["proof"]["nodes"][node]["title"], "it")

    assert len(claimed[0]["proof"]["nodes"]) > 2
    problems = find_all_problems(demo_ground, *rephrase(claimed, "canonical", drop))
    assert problems
    assert all(problem.startswith("canonical: descriptor-lost") for problem in problems)


EDITS = {
    "a condition added": lambda text: text.replace("?", ", as measured in 2024?"),
    "an instruction added": lambda text: f"{text} Reply in French.",
    "a hypothetical": lambda text: f"If the war had not come, {text[0].lower()}{text[1:]}",
    "a second question": lambda text: text.replace("?", ", and who founded it?"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_text_that_was_edited_after_it_was_read_is_named(demo_ground, demo_proofs, edit):
    for proof in demo_proofs:
        problems = find_question_problems(demo_ground, claim_text(proof, EDITS[edit](proof.text)))
        assert any(problem.startswith(("reading: ", "text: ")) for problem in problems), problems


@pytest.fixture(scope="module")
def demo_proofs(demo):
    rows = read_rows(demo.release("vqa"), "proofs")
    return [ProofRow.model_validate(row, strict=False) for row in rows]


def claim_text(proof, text):
    """Return a proof row with another text and the id that goes with it, as one who reseals a release would."""
    sha256 = proof.picture.sha256 if proof.picture else ""
    return proof.model_copy(
        update={"text": text, "record_id": make_question_id(text, sha256, proof.answer, proof.proof)}
    )


def deny(inputs):
    """Say of the first sentence that it gives another value."""
    stated = StatedValue(sentence=1, words=inputs.sentences[0], value="not that")
    return ReadPageReply(propositions=(stated,))


@pytest.mark.parametrize(("pages", "named"), [(GrammarReader(), 0), (FakeModel(deny), 2)])
def test_a_page_that_is_read_otherwise_by_a_second_reader_is_named(demo, demo_ground, pages, named):
    folder = demo.release("vqa")
    report = verify_release(folder, demo_ground)
    grammar = [RoleClient(GrammarReader(), load_prompt(name)) for name in ("read_question", "screen_question")]
    reader = ProseReader(demo_ground, RoleClient(pages, load_prompt("read_page")))
    again = asyncio.run(read_anew(report, folder, Evaluator(demo_ground, *grammar), reader, 2))
    assert len(again.problems) == named
    assert again.claims[-1] == f"{2 - named} of 2 questions read anew by grammar as proved"
