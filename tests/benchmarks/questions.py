"""Measures how fast questions are made and proved, and what each check costs."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pipelines.checks.agreement import check_agreement, check_timeless, check_volatility, find_corroboration
from pipelines.checks.answers import check_form, check_precision
from pipelines.checks.descriptors import check_spoken, check_told
from pipelines.checks.examination import Claim, check_need, check_picture_names, examine
from pipelines.checks.leakage import check_answer, check_demonyms, check_names, list_type_words
from pipelines.checks.proofs import find_problems
from pipelines.checks.shortcuts import check_earlier_pages, check_guessable, check_path_length, check_retrieval
from pipelines.checks.uniqueness import (
    check_answer_unchanged,
    check_single_value,
    count_fit,
    find_near_misses,
    find_redundant,
)
from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.graph.proofs import list_names, make_query
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.run.assembly import Assembly
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from schemas.datasets import Grounding
from tests.benchmarks.demo import time_command
from tests.benchmarks.measured import Measured

ENTITIES = 20_000
WANTED = 1_000
METHODS = {"demo": "paths", "vsearcher": "injection"}
STAGES = ("seeds", "paths", "questions", "rewrites", "groundings")
QUESTIONS = 200
"""Questions that each check is timed on."""


def measure(scratch: Path) -> list[Measured]:
    """Make questions by both methods over one world of 20,000 entities, verify them, and time each check on them."""
    world = scratch / "world"
    time_command("world", world, "--entities", ENTITIES, "--seed", 7)
    measured: list[Measured] = []
    for recipe in METHODS:
        measured += _measure_recipe(recipe, world, scratch / recipe)
    return measured


def _measure_recipe(recipe: str, world: Path, root: Path) -> list[Measured]:
    settings = [
        f"corpus.world={json.dumps(str(world))}",
        "seeds.limit=0",
        'seeds.rule="opensearch-vl"',
        "runtime.concurrency=1",
    ]
    common = ["--recipe", recipe, "--workspace", root, *(part for each in settings for part in ("--set", each))]
    time_command("run", *common, "--until", "corpus", "--json")
    document = json.loads(time_command("run", *common, "--until", "groundings", "--json").out)
    seconds = sum(stage["seconds"] for stage in document["stages"] if stage["stage"] in STAGES)
    accepted = next(stage["rows_out"] for stage in document["stages"] if stage["stage"] == "groundings")
    name = f"{METHODS[recipe]}, {ENTITIES:,} entities"
    measured = [
        Measured(f"{name}: accepted questions", f"{accepted:,}", f"{WANTED:,}"),
        Measured(f"{name}: accepted a minute on one core", f"{accepted / seconds * 60:,.0f}", "100"),
    ]
    config = make_config(read_recipe(recipe), settings)
    ground, rows = _open_questions(root, config)
    started = time.process_time()
    holding = sum(not find_problems(ground, Claim(row.text, row.answer, row.proof)) for row in rows)
    spent = time.process_time() - started
    measured.append(Measured(f"{name}: verified", f"{holding:,} of {len(rows):,}", "all"))
    measured.append(Measured(f"{name}: verifying", f"{spent / max(len(rows), 1) * 1e3:,.1f} ms a question", ""))
    sample = rows[:: max(len(rows) // QUESTIONS, 1)][:QUESTIONS]
    return [*measured, *_time_checks(METHODS[recipe], ground, sample)]


def _open_questions(root: Path, config: RunConfig) -> tuple[Indexes, list[Grounding]]:
    workspace = Workspace(root)
    folder = next(path.parent for path in sorted(workspace.corpora.glob("[!.]*/manifest.json")))
    assembly = Assembly(config, workspace, Corpus.open(folder))
    plan = next(plan for plan in assembly.plan_stages() if plan.name == "groundings")
    return assembly.ground, list(read_parts(plan.folder, Grounding))


def _time_checks(method: str, ground: Indexes, rows: Sequence[Grounding]) -> list[Measured]:
    """Time every check over all rows, once as it comes (cold) and once more with what it keeps (warm)."""
    made = [_list_checks(ground, row) for row in rows]
    measured = []
    for name in made[0]:
        spent = []
        for _ in range(2):
            started = time.process_time()
            for checks in made:
                checks[name]()
            spent.append((time.process_time() - started) / len(made) * 1e6)
        measured.append(Measured(f"{method}: {name}, first time and again", f"{spent[0]:,.0f}, {spent[1]:,.0f} µs", ""))
    return measured


def _list_checks(ground: Indexes, row: Grounding) -> dict[str, Callable[[], object]]:
    """Return every check on one question by its name in the table; what they share is made before."""
    corpus, proof, answer, text = ground.corpus, row.proof, row.answer, row.text
    numbers, query = locate_nodes(corpus, proof.nodes), make_query(corpus, proof)
    names, words = list_names(corpus, proof.nodes), list_type_words(proof.nodes)
    limits, relation, nodes = proof.thresholds, proof.answer_relation, range(1, len(numbers))
    return {
        "answer form (A4)": lambda: check_form(answer.surface, answer, 6),
        "answer lasts (T1)": lambda: check_volatility(ground, numbers[-1], relation, answer, False),
        "answer not guessable (S7)": lambda: check_guessable(ground, relation, answer, limits.answer_share),
        "second extractor agrees (U5)": lambda: check_agreement(
            find_corroboration(ground, numbers[-1], relation, answer), "required"
        ),
        "one value a hop (U3), all hops": lambda: [check_single_value(ground, numbers, hop) for hop in proof.hops],
        "counts with and without the chain (U1, S1), all nodes": lambda: [
            count_fit(ground, query, node, limits.alone) for node in nodes
        ],
        "near misses (U2), all nodes": lambda: [
            find_near_misses(ground, query, node, limits.near_misses) for node in nodes
        ],
        "answer unchanged": lambda: check_answer_unchanged(ground, query, answer.key),
        "redundant clauses (S6)": lambda: find_redundant(ground, query, answer.key),
        "shorter path (S2)": lambda: check_path_length(corpus, numbers, proof.hub_in_degree),
        "answer on earlier pages (S3)": lambda: check_earlier_pages(corpus, numbers, answer),
        "picture needed (I1)": lambda: check_need(ground, query, proof.nodes[0].type, limits.answers),
        "names (L1, L2, L4)": lambda: check_names(text, names, words),
        "demonyms (L3)": lambda: check_demonyms(text, names, words),
        "answer in the question (L5)": lambda: check_answer(text, answer, words),
        "file names (L6)": lambda: check_picture_names((row.picture.file,) if row.picture else (), names, answer),
        "precision asked (A1)": lambda: check_precision(text, answer),
        "timeless wording (T1)": lambda: check_timeless(text),
        "descriptors spoken": lambda: check_spoken(text, proof.descriptors),
        "nothing told beside": lambda: check_told(corpus, numbers, text, proof),
        "one search (S4)": lambda: check_retrieval(corpus, text, numbers[-1], limits.retrieval_rank),
        "all of them, audit": lambda: examine(ground, Claim(text, answer, proof), max_tokens=6, audit=True),
    }
