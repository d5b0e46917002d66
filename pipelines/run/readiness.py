"""One list of checks: what a configuration, a dump, a corpus or a finished stage leaves a run without.

A check yields findings: ok, a warning, or an error, each with what to do. ``synth doctor`` shows all of them; a run
makes those that ask nobody, says the warnings and refuses to go on at an error.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.checks.standings import COVERED
from pipelines.config.loading import is_asked, reaches
from pipelines.config.settings import EnhancementsConfig, RunConfig, SeedsConfig
from pipelines.corpus.dump import list_parts, read_site
from pipelines.corpus.manifest import find_side_files
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.release.card import find_cards
from pipelines.run.progress import Reporter
from pipelines.run.runner import StageReport
from pipelines.stages.mixtures import list_unmet

JUDGING = (("judge", "solver"), ("judge", "teacher"), ("evaluator", "writer"), ("evaluator", "rewriter"))
"""Each role with one whose work it looks at."""
TOY_WIKI = "https://toywiki.example/"
LEAST_ROWS = 20
"""Rows of which a stage must keep none before that is worth a word."""
FEW = 0.05
"""Share of articles below which a run warns how many have what a stage needs."""
PICTURES = "set commons.fetch=true and contact, or lay pictures with their images.tsv into images/"
LACKING = {
    "no-infobox": "the edition calls no template an infobox, or has none; see seeds.require_infobox",
    "no-type": "nothing says what they are; lay wikidata-*-all.json.gz beside the dump, above all for other languages",
    "counts-unknown": "lay wikidatawiki-*-page and -page_props.sql.gz, or wikidata-*-all.json.gz, beside the dump",
    "class": "lay wikidata-*-all.json.gz beside the dump; see seeds.classes",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; ``said`` says what to do about it."""

    what: str
    state: Literal["ok", "warning", "error"]
    said: str


@dataclass(frozen=True, slots=True)
class Warner:
    """Says each warning at once, on a line of its own, and keeps it for the run's document."""

    reporter: Reporter
    said: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Say a warning."""
        self.said.append(text)
        self.reporter.warn(text)

    def heed(self, findings: Iterable[Finding]) -> None:
        """Say the warnings among findings.

        Raises:
            ConfigError: at the first error.
        """
        for finding in findings:
            if finding.state == "error":
                raise ConfigError(f"{finding.what}: {finding.said}")
            if finding.state == "warning":
                self.say(f"{finding.what}: {finding.said}")


def check_models(config: RunConfig) -> Iterator[Finding]:
    """Say who plays each role, and whether a judge is the model that it judges."""
    models = {role: config.models[role] for role in config.roles}
    for role, model in models.items():
        yield Finding(f"models.{role}", "ok", f"{model.name} ({model.adapter})")
    for pair in JUDGING:
        judge, other = (models.get(role) for role in pair)
        if judge is None or other is None or judge.name != other.name:
            continue
        what, both = f"models.{pair[0]} and models.{pair[1]}", f"both are {judge.name}"
        if judge.revision == other.revision:
            rule = "evaluator never reads its own words" if pair[0] == "evaluator" else "judge never judges itself"
            yield Finding(what, "error", f"{both}, and the {rule}; name another model, or a revision of each")
        else:
            yield Finding(what, "warning", f"{both}, of two revisions: a judge flatters its own kind")
    solver, teacher = models.get("solver"), models.get("teacher")
    if solver is None or solver.adapter == "scripted":
        return
    if teacher and solver.name == teacher.name:
        yield Finding("models.solver", "warning", "it is the teacher's model, so difficulty will flatter the teacher")
    if "judge" not in models:
        said = "is not set: answers in other words than the proof's stay unscored; name a model"
        yield Finding("models.judge", "warning", said)
    if solver.temperature == 0.0 and (tries := config.difficulty.attempts) > 1:
        said = f"is 0: {tries} attempts are one answer, paid {tries} times; raise it"
        yield Finding("models.solver.temperature", "warning", said)


def check_dump(config: RunConfig, dump: Path, last: str = "") -> Iterator[Finding]:
    """Say what a run up to a stage, or of all if ``last`` is empty, lacks for its dump.

    Raises:
        CorruptInput: if the file is not a dump.
    """
    site, side = read_site(list_parts(dump)[0]), find_side_files(dump)
    wiki = f"{site.dbname or dump.name} is in the language {site.language!r}"
    played = ", ".join(
        f"models.{role}" for role in config.roles if config.models[role].adapter == "scripted" and is_asked(role, last)
    )
    models = f"{played}; set adapter=openai, name and base_url of each"
    if site.language not in COVERED:
        if played:
            yield Finding("language", "error", f"{wiki}, and scripted players know English alone: {models}")
        if config.method == "concepts" and reaches(last, "seeds"):
            said = "and questions about concepts are checked in English alone; use a recipe that walks paths"
            yield Finding("language", "error", f"{wiki}, {said}")
        if reaches(last, "questions") and not config.corpus.unchecked_words:
            said = (
                "and the checks that read a question's words know English alone, so that no question could pass; end "
                "with `--until paths`, or set corpus.unchecked_words=true: then no question counts as proved, and only "
                "those are kept that a solver answers"
            )
            yield Finding("language", "error", f"{wiki}, {said}")
    elif played and config.corpus.generate is None and not site.base_url.startswith(TOY_WIKI):
        yield Finding("models", "warning", f"scripted players know the toy world alone, not {dump.name}: {models}")
    if config.groundings.require_image and reaches(last, "groundings") and not (config.commons.fetch or side.images):
        said = f"no images/images.tsv lies beside {dump.name}: groundings will refuse every row; {PICTURES}"
        yield Finding("pictures", "warning", said)


def check_corpus(corpus: Corpus, gate: SeedsConfig, config: RunConfig, last: str = "") -> Iterator[Finding]:
    """Say what no article, or few, have that seeds and paths need."""
    articles = len(corpus.article_nodes())
    if reaches(last, "seeds") and not config.seeds.endpoint:
        for reason, count in _count_lacking(corpus, gate).items():
            if count and count >= (1 - FEW) * articles:
                rest = f"{articles - count:,} are left" if articles > count else "and keeps none"
                said = f"refuses {count:,} of {articles:,} articles ({reason}), {rest}: {LACKING[reason]}"
                yield Finding("seeds", "warning" if articles > count else "error", said)
    counts = corpus.manifest.counts
    related = counts.facts_with_target or counts.side.get("statements", {}).get("kept") or config.paths.text_hops
    if reaches(last, "paths") and config.method == "paths" and articles and not related:
        said = (
            "no infobox value links to an article and no statement of Wikidata is known, so there is no path; lay "
            "wikidata-*-all.json.gz beside the dump, or set paths.text_hops=true"
        )
        yield Finding("paths", "error", said)


def _count_lacking(corpus: Corpus, gate: SeedsConfig) -> dict[str, int]:
    with pq.ParquetFile(corpus.table("pages")) as source:
        pages = source.read(columns=["infobox", "type", "sitelinks", "statements", "classes"])
    lacking = {"no-type": pc.equal(pages["type"], "")}
    if gate.rule == "vsearcher":
        lacking["counts-unknown"] = pc.or_(pc.less(pages["sitelinks"], 0), pc.less(pages["statements"], 0))
    elif gate.require_infobox:
        lacking["no-infobox"] = pc.equal(pages["infobox"], "")
    if gate.classes:
        lacking["class"] = pc.equal(pc.list_value_length(pages["classes"]), 0)
    return {reason: pc.sum(mask).as_py() or 0 for reason, mask in lacking.items()}


def check_stage(report: StageReport) -> Iterator[Finding]:
    """Say whether a stage kept nothing, and whether another model replied than was asked for."""
    for name in sorted(report.usage.served if report.ran else ()):
        asked, _, served = name.partition(": ")
        if not names_same(asked, served):
            said = f"{asked!r} was asked for, and the server says that {served!r} replied"
            yield Finding(report.stage, "warning", said)
    if report.rows_in >= LEAST_ROWS and not report.kept and not report.failed:
        reason, count = max(report.rejected.items(), key=lambda entry: entry[1])
        advice = read_glossary().get(reason, ("", 'see `synth sql "from rejections"`'))[1].partition(" See [")[0]
        said = f"refused all {report.rows_in:,} rows, {count:,} of them as {reason}: {advice}"
        yield Finding(report.stage, "warning", said)


def names_same(asked: str, served: str) -> bool:
    """Say whether a server names the model that was asked for: in full, with a date, or without its maker's name."""
    short, told = (name.casefold().rpartition("/")[2] for name in (asked, served.partition(" ")[0]))
    return short in told or told in short


@cache
def read_glossary() -> dict[str, tuple[str, str]]:
    """Return for each reason what it means, and what to do about it."""
    told = tomllib.loads((find_cards() / "docs" / "reasons.toml").read_text(encoding="utf-8"))
    return {reason: (entry["means"], entry["do"]) for reason, entry in told.items()}


def check_shares(counts: Counter[str], shares: Mapping[str, float]) -> Iterator[Finding]:
    """Say which pools have too few questions for their share; counts are of the mixture, by pool."""
    for pool, share, part in list_unmet(counts, shares):
        said = f"was to be {share:.1%}, and all its {counts[pool]:,} questions are {part:.1%}; lower pools.share"
        yield Finding(f"the pool {pool}", "warning", said)


def check_degraded(kept: int, counts: Counter[str], enhancing: EnhancementsConfig) -> Iterator[Finding]:
    """Say whether fewer pictures are degraded than were to be; counts are by degradation."""
    wanted, got = round(enhancing.share * kept), counts.total()
    if got + len(enhancing.degradations) <= wanted:
        each = ", ".join(f"{way} {counts[way]:,}" for way in enhancing.degradations)
        said = f"{wanted:,} of {kept:,} were to be degraded, {got:,} are: {each}"
        advice = "see enhancements.degradations and enhancements.substitute"
        yield Finding("pictures", "warning", f"{said}; {advice}")
