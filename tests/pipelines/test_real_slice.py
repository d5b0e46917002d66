"""A thousand pages of the real Wikipedia, where its slice lies beside the checkout."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.checks.examination import Claim
from pipelines.checks.proofs import find_problems
from pipelines.corpus.store import Corpus
from pipelines.corpus.templates import LEFT_OUT, show_template, shows_nothing
from pipelines.corpus.wikitext import blank_ignored, blank_spans, find_braces, find_references
from pipelines.graph.prose import list_prose
from pipelines.graph.query import Indexes
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from schemas.datasets import Grounding, Rewrite
from tests.chaos.driving import ROOT, call, call_synth, make_run

DATA = Path(os.environ.get("SYNTH_SHARED_DATA", ROOT.parent / "shared" / "data"))
SLICE = DATA / "enwiki-slice" / "enwiki-slice-pages-articles-multistream.xml.bz2"
ANCHOR_NAMED = re.compile("text: (?:alias|demonym)-leak: node 0")
SETTINGS = (f"corpus.dump={SLICE}", "questions.read_pages=false", "paths.salience=false", "paths.max_answer_share=1",
            "paths.max_relation_share=1", "seeds.require_infobox=false", "seeds.require_image=false")  # fmt: skip
"""The grammar reads the quoted lines of real pages in a question, but not the pages themselves. Walks are drawn as the
paper draws them: by chance, few salient ones end at one of the slice's infoboxes, and those few at the same."""

pytestmark = [pytest.mark.slow, 
              pytest.mark.skipif(not SLICE.is_file(), reason=f"{SLICE} is not here")]  # fmt: skip


def run_slice(workspace: Path, *more: object, settings: tuple[str, ...] = (), code: int = 0) -> dict[str, Any]:
    """Run the recipe on the slice, which must end with a code, and return the funnel by stage."""
    arguments = ("--recipe", "opensearch-vl", "--set", "models=scripted", "--limit", 150, *more)
    outcome = call(make_run(workspace, *arguments, settings=(*SETTINGS, *settings)))
    assert outcome.code == code, outcome.err[-2000:]
    return {stage["stage"]: stage for stage in outcome.document["stages"]}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slice")


@pytest.fixture(scope="module")
def rewritten(workspace: Path) -> dict[str, Any]:
    return run_slice(workspace, "--until", "rewrites")


def test_the_slice_gives_questions_and_conserves_rows(rewritten: dict[str, Any]) -> None:
    for stage in rewritten.values():
        assert stage["rows_in"] == stage["kept"] + sum(stage["rejected"].values()) + stage["failed"], stage
    assert rewritten["seeds"]["rows_out"] == 150
    assert rewritten["questions"]["rows_out"] >= 20
    assert rewritten["rewrites"]["rows_out"] >= 20, json.dumps(rewritten["rewrites"])


@dataclass(frozen=True, slots=True)
class Slice:
    """The slice's corpus, open."""

    space: Workspace
    ground: Indexes

    def list_problems(self, claims: dict[str, Claim]) -> dict[str, list[str]]:
        """Return what does not hold, by record."""
        found = {name: find_problems(self.ground, claim) for name, claim in claims.items()}
        return {name: problems for name, problems in found.items() if problems}


@pytest.fixture(scope="module")
def opened(workspace: Path, rewritten: dict[str, Any]) -> Iterator[Slice]:
    space = Workspace(workspace)
    corpus = Corpus.open(space.corpora / rewritten["corpus"]["key"])
    yield Slice(space, Indexes(corpus))
    corpus.close()


def test_the_corpus_has_the_counts_of_the_slices_readme(opened: Slice) -> None:
    corpus = opened.ground.corpus
    counts = corpus.manifest.counts
    assert (counts.rows_in, counts.articles, counts.redirects, counts.failed) == (4879, 4736, 64, 0)
    # The README counts 98,279 edges from pagelinks; six of them are in gallery captions, which are not read here.
    assert counts.links == 98_279 - 6
    assert corpus.graph.in_degree.max() == corpus.page(corpus.find("United States")).in_degree == 1404
    facts = {(fact.key, fact.target) for fact in corpus.facts(corpus.find("Algeria"))}
    assert ("capital", corpus.find("Algiers")) in facts


def test_every_proof_of_the_slice_holds(opened: Slice, rewritten: dict[str, Any]) -> None:
    rows = list(read_parts(opened.space.stage("rewrites", rewritten["rewrites"]["key"]), Rewrite))
    assert len(rows) == rewritten["rewrites"]["rows_out"]
    claims = {row.record_id: Claim(row.text, row.answer, row.proof) for row in rows}
    problems = [problem for found in opened.list_problems(claims).values() for problem in found]
    # The anchor's name is in the text until the picture takes its place, and only the whole text says what it tells.
    left = [problem for problem in problems if not ANCHOR_NAMED.match(problem)]
    assert [problem for problem in left if not problem.startswith("text: fact-unproved")] == []


def test_without_pictures_every_row_is_refused_for_that(workspace: Path, rewritten: dict[str, Any]) -> None:
    stages = run_slice(workspace, code=1)
    assert stages["groundings"]["rejected"] == {"no-picture": rewritten["rewrites"]["rows_out"]}
    assert stages["groundings"]["rows_out"] == 0
    assert "rollouts" not in stages
    assert not stages["rewrites"]["ran"]


def test_text_only_questions_go_through_without_pictures(opened: Slice, rewritten: dict[str, Any]) -> None:
    settings = (
        "groundings.require_image=false",
        "groundings.retrieval_rank=0",
        "rollouts.attempts=1",
        "difficulty.attempts=2",
    )
    stages = run_slice(opened.space.root, settings=settings)
    refused = stages["groundings"]["rejected"]
    assert set(refused) <= {
        "alias-leak",
        "demonym-leak",
        "fact-unproved",
        "given-away",
        "reading-differs",
        "unread",
        "volatile",
    }
    assert stages["groundings"]["rows_out"] + sum(refused.values()) == rewritten["rewrites"]["rows_out"]
    assert stages["groundings"]["rows_out"] >= 20
    assert stages["releases"]["rows_out"] > 0
    rows = list(read_parts(opened.space.stage("groundings", stages["groundings"]["key"]), Grounding))
    assert opened.list_problems({row.record_id: Claim(row.text, row.answer, row.proof) for row in rows}) == {}
    verified = call_synth("verify", "--workspace", opened.space.root)
    passed, _, rows_released = verified.out.splitlines()[-1].partition("/")
    assert (verified.code, passed) == (0, rows_released), verified.out[-2000:]


def test_templates_leave_a_hole_in_at_most_five_of_a_thousand_sentences(opened: Slice) -> None:
    corpus, sentences, holed = opened.ground.corpus, 0, []
    for node in corpus.article_nodes():
        text = blank_ignored(corpus.text(node)) if "{{" in corpus.text(node) else ""
        for sentence in list_prose(corpus, node) if text else ():
            sentences += 1
            said = text[sentence.start : sentence.end]
            said = blank_spans(said, find_references(said), "")
            shown = [said[start:end] for start, end in find_braces(said) if not shows_nothing(said[start:end])]
            holed += [each for each in shown if show_template(each) in ("", LEFT_OUT)]
    assert sentences > 20_000
    assert len(holed) <= 0.005 * sentences, holed
