"""A question held against corpus and proof, asked of plugins' checks, and read anew by a model.

A release is a stranger's: a plugin that it names is not loaded for that alone, but only if whoever verifies has chosen
it. A check that was chosen and cannot be asked leaves its rows underived.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from pipelines.agent.agreement import wilson_interval
from pipelines.agent.attempts import DIGITS
from pipelines.agent.depicting import find_depicts, weigh_file
from pipelines.agent.pictures import MIN_WORDS, REPAIRS, fits_strength, list_words, measure_degraded
from pipelines.checks.answers import check_named
from pipelines.checks.descriptors import check_spoken, list_descriptors
from pipelines.checks.examination import Claim, PluggedCheck, list_hidden_checks
from pipelines.checks.leakage import check_answer, list_type_words
from pipelines.checks.legibility import check_readable
from pipelines.checks.pictures import check_licence
from pipelines.checks.proofs import find_problems
from pipelines.checks.propositions import ProseReader
from pipelines.checks.readings import Evaluator, compare_reading, judge_screening
from pipelines.checks.standings import COVERED, find_standing, is_solved
from pipelines.checks.traces import check_decision, list_trace_checks
from pipelines.checks.verdicts import Check, run_checks
from pipelines.config.disclosure import disclose_plugin
from pipelines.config.settings import PluginsConfig
from pipelines.corpus.images import find_page_images
from pipelines.corpus.store import Corpus
from pipelines.graph.answers import type_reference
from pipelines.graph.proofs import NO_PROOF, list_names, make_question_id
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.graph.titles import asks_name
from pipelines.ids import draw_unit
from pipelines.plugins import explain_absence, load_plugin
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.rows import (
    ProofRow,
    shorten,
)
from pipelines.release.scenes import find_scene_problems
from pipelines.release.verify.reports import Problem, VerifyReport
from pipelines.release.verify.rows import read_proof_rows
from schemas.corpus import CorpusImage
from schemas.datasets import CandidateSource, Picture, Trial
from schemas.proofs import Trace


def find_question_problems(ground: Indexes, proof: ProofRow) -> list[str]:
    """Return the problems of a question: of its query, text, picture and id."""
    corpus = ground.corpus
    standing = list(_find_standing_problems(proof, corpus.manifest.language in COVERED))
    if proof.trace is not None:
        return [*find_trace_problems(corpus, proof, proof.trace), *standing]
    if not proof.proof.nodes:
        return [*find_outside_problems(proof), *standing]
    problems = find_problems(ground, Claim(proof.text, proof.answer, proof.proof))
    if proof.origin is not None or proof.reading is None or proof.screening is None:
        problems.append("proof: a question with a path has a reading and a screening, and is of no pool")
    if problems:
        return problems
    (anchor,) = locate_nodes(corpus, proof.proof.nodes[:1])
    page = corpus.page(anchor)
    if proof.domain != page.domain:
        problems.append(f"domain: {page.title} is of {page.domain}, the proof says {proof.domain}")
    problems += find_picture_problems(ground, anchor, proof)
    problems += _find_read_problems(ground, proof)
    problems += _find_wording_problems(ground, proof)
    return [*problems, *find_id_problems(proof), *standing]


MOST_ATTEMPTS = 1 << 31
"""More attempts at a question nobody makes."""


def _find_standing_problems(row: ProofRow, covered: bool) -> Iterator[str]:
    solved = is_solved(row.difficulty)
    wanted = find_standing(row.proof, row.trace, solved, covered)
    if row.standing != wanted:
        tried = "yes" if solved else "no"
        yield f"standing: it is said to be {row.standing}, wanted is {wanted}; attempts solved it: {tried}"
    for cell in row.difficulty:
        scored = cell.attempts - cell.unscored
        if not 0 <= cell.correct <= scored <= cell.attempts <= MOST_ATTEMPTS:
            yield f"difficulty: {cell.correct} right and {cell.unscored} unscored of {cell.attempts} attempts"
            continue
        interval = tuple(round(bound, DIGITS) for bound in wilson_interval(cell.correct, scored))
        if (cell.low, cell.high) != interval:
            yield f"difficulty: the interval of {cell.correct} of {scored} is {interval}, not {(cell.low, cell.high)}"


def _find_read_problems(ground: Indexes, row: ProofRow) -> Iterator[str]:
    if row.reading is None or row.screening is None:
        return
    read = compare_reading(ground.corpus, row.text, row.reading, row.proof, row.answer)
    screened = judge_screening(ground, row.text, row.reading, row.screening, row.proof, row.answer)
    for what, result in (("reading", read), ("screening", screened)):
        if not result.passed:
            yield f"{what}: {result.detail}"


def find_id_problems(row: ProofRow) -> Iterator[str]:
    """Yield the problem of a question whose id does not follow from its text, picture, answer and path."""
    wanted = make_question_id(row.text, row.picture.sha256 if row.picture else "", row.answer, row.proof)
    if row.record_id != wanted:
        yield f"id: the question's id is {wanted}, the proof says {row.record_id}"


def find_outside_problems(row: ProofRow) -> Iterator[str]:
    """Yield what is wrong with a question that has no path, as far as that shows without one.

    It says where it comes from, claims no proof and does not hold its answer.
    """
    if row.proof != NO_PROOF or row.reading is not None or row.screening is not None or row.depiction is not None:
        yield "proof: a question without a path has no part of a proof"
    if row.origin is None or not row.origin.pool:
        yield "proof: it has no path, and names no pool that it comes from"
    if row.picture is not None and row.origin is not None and row.picture.licence != row.origin.licence:
        yield f"picture: its licence is {row.picture.licence!r}, that of its pool {row.origin.licence!r}"
    if {row.fuzzy, row.canonical} != {row.text}:
        yield "text: a question from outside has no earlier wording"
    told = check_answer(row.text, row.answer)
    if not told.passed:
        yield f"text: {told.code}: {told.detail}"
    if type_reference(row.text, row.answer.surface, row.answer.aliases) != row.answer:
        yield f"answer: {shorten(row.answer.surface)} is typed otherwise"
    yield from find_degradation_problems(row)
    yield from find_id_problems(row)


def _find_wording_problems(ground: Indexes, row: ProofRow) -> Iterator[str]:
    proof = row.proof
    if asks_name(proof):
        # Nothing is named from the start, so that no wording comes before the last.
        yield from (
            f"{name}: it is not the question" for name in ("canonical", "fuzzy") if getattr(row, name) != row.text
        )
        return
    # Injection starts with a question about its answer node alone, and hides it in the first round.
    grown = any(hop.backward for hop in proof.hops)
    named = proof.nodes[-1:] if grown or not proof.hops else proof.nodes[:-1]
    earlier: dict[str, tuple[Check, ...]] = {
        "canonical": tuple(partial(check_named, row.canonical, node.title) for node in named),
        "fuzzy": (
            partial(check_named, row.fuzzy, proof.nodes[0].title),
            # Without a hop the wording only names its anchor, whose own name may hold the answer.
            *(list_hidden_checks(ground.corpus, row.fuzzy, proof, row.answer) if proof.hops else ()),
            partial(check_spoken, row.fuzzy, list_descriptors(proof)),
        ),
    }
    if not proof.hops and row.fuzzy != row.canonical:
        yield "fuzzy: without a hop it is the canonical wording"
    for name, checks in earlier.items():
        if not getattr(row, name).rstrip().endswith("?"):
            yield f"{name}: it is not a question"
        for result in run_checks(checks, audit=True):
            yield f"{name}: {result.code}: {result.detail}"


def find_trace_problems(corpus: Corpus, row: ProofRow, trace: Trace) -> Iterator[str]:
    """Yield the problems of a question about the news: of its quotes, names, text, picture and id."""
    if (trace.corpus, trace.snapshot) != (corpus.digest, corpus.snapshot):
        yield f"trace: it is of corpus {trace.corpus[:12]}, this is {corpus.digest[:12]}"
        return
    checks = list_trace_checks(corpus, row.text, row.answer, trace)
    for result in run_checks(chain(checks, (partial(check_decision, row.text, trace),)), audit=True):
        yield f"trace: {result.code}: {result.detail}"
    for name, given, wanted in (
        ("proof", row.proof, NO_PROOF),
        ("domain", row.domain, trace.anchor_kind),
        ("fuzzy", row.fuzzy, row.text),
        ("canonical", row.canonical, row.text),
        ("depiction", row.depiction, None),
        ("reading", row.reading, None),
        ("screening", row.screening, None),
        ("origin", row.origin, None),
        ("scene", row.scene, None),
    ):
        if given != wanted:
            yield f"{name}: of a question about the news it is {shorten(wanted)}, the proof says {shorten(given)}"
    yield from _find_news_picture_problems(corpus, row, trace)
    yield from find_degradation_problems(row)
    yield from find_id_problems(row)


def _find_news_picture_problems(corpus: Corpus, row: ProofRow, trace: Trace) -> Iterator[str]:
    node = corpus.find(trace.anchor_evidence.title)
    origin = None if node is None else corpus.origin(node)
    image = corpus.image(origin.image) if origin is not None and origin.image else None
    picture = row.original or row.picture
    if image is None or picture is None:
        yield "picture: the article that is quoted first shows none, or the question has none"
        return
    for name in ("file", *SAID, *MEASURED):
        given, wanted = getattr(picture, name), getattr(image, name)
        if given != wanted:
            yield f"picture: {name} of the article's picture is {wanted!r}, the proof says {given!r}"


async def read_anew(
    report: VerifyReport, folder: Path, evaluator: Evaluator, pages: ProseReader, most: int = 0
) -> VerifyReport:
    """Let a model read a release's questions again, and add what it reads otherwise than proved to the report.

    Where a proof's pages were read, they are read again too. At most ``most`` questions are read; 0 reads all.
    """
    proofs, _ = read_proof_rows(folder)
    drawn = sorted(
        (row for row in proofs.values() if row.proof.nodes), key=lambda row: draw_unit("read", row.record_id)
    )[: most or None]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_read_row(evaluator, pages, row)) for row in drawn]
    found = tuple(problem for task in tasks if (problem := task.result()))
    claim = f"{len(drawn) - len(found)} of {len(drawn)} questions read anew by {evaluator.asking.model.name} as proved"
    return replace(report, problems=(*report.problems, *found), claims=(*report.claims, claim))


async def _read_row(evaluator: Evaluator, pages: ProseReader, row: ProofRow) -> Problem | None:
    reading, result = await evaluator.check(row.text, row.proof, row.answer)
    if reading is not None and result.passed:
        _, result = await evaluator.screen(row.text, reading, row.proof, row.answer)
    if result.passed and row.proof.thresholds.read_pages:
        _, result = await pages.check(row.proof, row.answer)
    return None if result.passed else Problem(row.record_id, f"reading: {result.code}: {result.detail}")


@dataclass(frozen=True)
class Asker:
    """The checks of a release's plugins.

    Attributes:
        checks: those that were chosen and are installed as they were.
        missing: why each other one that was chosen cannot be asked, and what to install.
        unasked: what was decided by those that were not chosen and by plugins of other kinds, in words.
    """

    checks: tuple[PluggedCheck, ...]
    missing: tuple[str, ...]
    unasked: tuple[str, ...]

    @classmethod
    def of(cls, manifest: ReleaseManifest, chosen: PluginsConfig) -> "Asker":
        """Load the checks that a manifest names and whoever verifies has chosen."""
        checks, missing, unasked = [], [], []
        for entry in manifest.plugins:
            what = f"what {entry.name!r} of {entry.distribution} decided"
            if entry.kind != "checks":
                unasked.append(what)
            elif entry.name not in chosen.checks:
                unasked.append(f"{what}: --set plugins.checks asks it again")
            elif why := explain_absence(entry):
                missing.append(f"the check {why}; without it no walked row is derived")
            else:
                plugin = load_plugin("checks", entry.name, entry.settings | chosen.settings.get(entry.name, {}))
                if disclose_plugin(plugin.entry) == entry:
                    checks.append(PluggedCheck(plugin))
                else:
                    missing.append(f"the check {entry.name} had other settings than plugins.settings.{entry.name}")
        return cls(tuple(checks), tuple(missing), tuple(unasked))

    def find_problems(self, ground: Indexes, row: ProofRow) -> list[str]:
        """Return what the checks have against a walked question; of others they are not asked."""
        if not row.proof.nodes:
            return []
        claim = Claim(row.text, row.answer, row.proof)
        refused = run_checks((check.make_check(ground, claim) for check in self.checks), audit=True)
        return [f"plugin: {result.code}: {result.detail}" for result in refused]


SAID = ("author", "licence", "licence_url", "source_url")
"""What a picture keeps of its source, however it was scaled."""
MEASURED = ("sha256", "width", "height", "phash")


def find_picture_problems(ground: Indexes, anchor: int, proof: ProofRow) -> Iterator[str]:
    """Yield the problems of a question's picture: its source, choice, degradation, licence and text.

    Of a picture that a search on Commons found, only licence and text can be checked: it is in no article.
    """
    picture = proof.original or proof.picture
    if picture is None:
        lead = _find_lead(ground.corpus, anchor)
        if lead is not None and lead.path:
            yield "picture: the proof has none, the anchor's page has one"
        if proof.depiction is not None or proof.trial is not None:
            yield "picture: the proof says how a picture was chosen, and has none"
        return
    yield from _find_source_problems(ground.corpus, anchor, proof, picture)
    yield from _find_choice_problems(ground.corpus, anchor, proof, picture)
    yield from find_degradation_problems(proof)
    yield from find_scene_problems(ground.corpus, proof)
    licence = check_licence(picture.licence)
    if licence.outcome != "PASS":
        yield f"picture: {licence.code}: {licence.detail}"
    yield from _find_told_problems(ground, proof)


def _find_source_problems(corpus: Corpus, anchor: int, proof: ProofRow, picture: Picture) -> Iterator[str]:
    source = proof.depiction.source if proof.depiction else "infobox"
    right = _find_source(corpus, anchor, picture)
    if source == "infobox" != right:
        lead = _find_lead(corpus, anchor)
        named = lead.file if lead else "none"
        yield f"picture: file of the anchor's lead picture is {named!r}, the proof says {picture.file!r}"
        return
    if source != right:
        yield f"picture: {picture.file} is from {right} of the anchor's article, the proof says {source}"
    image = corpus.image(picture.file)
    if image is None:
        return
    for name in ("file", *SAID, *MEASURED):
        given, wanted = getattr(picture, name), getattr(image, name)
        if given != wanted:
            yield f"picture: {name} of the anchor's picture is {wanted!r}, the proof says {given!r}"
    if proof.depiction and proof.depiction.articles != len(image.title):
        yield f"picture: {len(image.title)} articles lead with {image.file}, the proof says {proof.depiction.articles}"


def _find_source(corpus: Corpus, anchor: int, picture: Picture) -> CandidateSource:
    lead = _find_lead(corpus, anchor)
    if lead is not None and lead.file == picture.file:
        return "infobox"
    shown = find_page_images(corpus.text(anchor), corpus.manifest.language)
    return "page" if picture.file in shown else "search"


def _find_lead(corpus: Corpus, anchor: int) -> CorpusImage | None:
    page = corpus.page(anchor)
    return corpus.image(page.image) if page.image and page.image_free else None


def _find_choice_problems(corpus: Corpus, anchor: int, proof: ProofRow, picture: Picture) -> Iterator[str]:
    depiction = proof.depiction
    if depiction is None:
        yield "picture: the proof does not say how it was chosen"
        return
    image = corpus.image(picture.file)
    if image is None:
        return
    depicts = find_depicts(image, corpus.page(anchor).qid)
    if depiction.depicts != depicts:
        yield f"picture: of what it depicts Commons says {depicts}, the proof {depiction.depicts}"
    points, _ = weigh_file(corpus, anchor, image, depiction.source)
    if depiction.ranker == "metadata" and depiction.score != points:
        yield f"picture: the metadata give {points} points, the proof says {depiction.score}"


def find_degradation_problems(proof: ProofRow) -> Iterator[str]:
    """Another picture keeps author and licence; its trial or scene must have shown that a tool undoes what was done."""
    composed = proof.scene is not None and bool(proof.scene.parts)
    if (proof.original is not None) != (proof.trial is not None or composed):
        yield "picture: a degraded picture needs its original and its trial, the proof has one of the two"
    if proof.trial is not None and proof.scene is not None:
        yield "picture: it is said to be degraded and to be a scene"
    if proof.original is None or (proof.trial is None and proof.scene is None):
        return
    if proof.picture is None or proof.picture.sha256 == proof.original.sha256:
        yield "picture: it is said to be degraded and is the original"
        return
    if any(getattr(proof.picture, name) != getattr(proof.original, name) for name in ("file", *SAID)):
        yield "picture: the degraded picture is credited otherwise than its original"
    if proof.trial is None:
        return
    yield from _find_trial_problems(proof.trial, proof.original, proof.picture)
    words = list_words(proof.depiction.text) if proof.depiction else frozenset()
    if proof.trial.test == "text" and len(words) < MIN_WORDS:
        yield "picture: its trial was to read words, and none were read in the original"


def _find_trial_problems(trial: Trial, original: Picture, picture: Picture) -> Iterator[str]:
    if not (trial.before and trial.repaired) or trial.degraded:
        yield "picture: its trial does not show that the repair restores what the degradation broke"
    if REPAIRS[trial.degradation] != trial.repair:
        yield f"picture: {trial.degradation} is repaired by {REPAIRS[trial.degradation]}, the proof says {trial.repair}"
    size = (original.width, original.height)
    if not fits_strength(trial.degradation, trial.strength, trial.parameters, size):
        yield f"picture: {trial.degradation} of strength {trial.strength:g} has other parameters"
    elif (picture.width, picture.height) != measure_degraded(trial.degradation, trial.parameters, size):
        yield f"picture: {trial.degradation} with these parameters makes another size"


def _find_told_problems(ground: Indexes, proof: ProofRow) -> Iterator[str]:
    if proof.depiction is None:
        return
    names, words = list_names(ground.corpus, proof.proof.hidden), list_type_words(proof.proof.entities)
    read = filter(None, (proof.depiction.text, proof.depiction.text_at_training))
    for result in (check_readable(text, names, proof.answer, words) for text in read):
        if not result.passed:
            yield f"picture: {result.code}: {result.detail}"
