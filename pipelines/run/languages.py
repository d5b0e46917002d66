"""What a run lacks for a wiki of another language, or for a poor dump: it says so before its stages begin.

The checks that read the words of a question know English alone: its names of peoples, number words, dates, cues of
relations and common words. Of another language each of them could only be UNKNOWN, and UNKNOWN never passes. A user may
go on with ``corpus.unchecked_words``: then no question is proved, and difficulty keeps those that a solver answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.checks.standings import COVERED
from pipelines.config.loading import is_asked, reaches
from pipelines.config.settings import RunConfig, SeedsConfig
from pipelines.corpus.dump import list_parts, read_site
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError

FEW = 0.05
"""Share of articles below which a run warns how many have what a stage needs."""
UNCOVERED = (
    "the checks that read a question's words (leakage, demonyms, number words, cues of relations, salience) and the "
    "grammar reader know English alone, so that no question could pass"
)
SWITCH = (
    "end before them with `--until paths`, or set corpus.unchecked_words=true: then no question counts as proved, and "
    "only those are kept that a solver answers"
)


def covers_words(language: str) -> bool:
    """Say whether the checks of words know a language."""
    return language in COVERED


def name_played(config: RunConfig, last: str) -> str:
    """Return the settings of the roles that scripted players have in a run up to a stage; empty without any."""
    played = [role for role in config.roles if config.models[role].adapter == "scripted"]
    return ", ".join(f"models.{role}" for role in played if is_asked(role, last))


def check_language(config: RunConfig, dump: Path, last: str) -> None:
    """Refuse a run up to a stage, or of all if ``last`` is empty, that the language of its dump leaves without rows.

    Raises:
        ConfigError: naming what to set.
        CorruptInput: if the file is not a dump.
    """
    problems = list(list_problems(config, dump, last))
    if problems:
        raise ConfigError(problems[0])


def list_problems(config: RunConfig, dump: Path, last: str = "") -> Iterator[str]:
    """Yield why a run cannot be made in the language of its dump, and what to set."""
    site = read_site(list_parts(dump)[0])
    if covers_words(site.language):
        return
    wiki = f"{site.dbname or dump.name} is in the language {site.language!r}"
    if named := name_played(config, last):
        yield f"{wiki}, and scripted players know English alone: {named}; set adapter=openai, name and base_url of each"
    if config.method == "concepts" and reaches(last, "seeds"):
        yield f"{wiki}: questions about concepts are worded and checked in English alone; use a recipe that walks paths"
    if reaches(last, "questions") and not config.corpus.unchecked_words:
        yield f"{wiki}: {UNCOVERED}; {SWITCH}"


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that a stage needs and that no, or few, articles of a corpus have."""

    stage: str
    reason: str
    """Of the rejections that follow."""
    count: int
    """Articles that the stage refuses for it."""
    of: int
    certain: bool
    """Whether the stage is left without a row."""
    advice: str

    def describe(self) -> str:
        """Return it as a sentence for a run's user."""
        rest = "and keeps none" if self.certain else f"{self.of - self.count:,} are left"
        return f"{self.stage} refuses {self.count:,} of {self.of:,} articles ({self.reason}), {rest}: {self.advice}"


ADVICE = {
    "no-infobox": "the edition calls no template an infobox, or has none; see seeds.require_infobox",
    "no-type": "nothing says what they are; lay wikidata-*-all.json.gz beside the dump, above all for other languages",
    "counts-unknown": "lay wikidatawiki-*-page and -page_props.sql.gz, or wikidata-*-all.json.gz, beside the dump",
    "class": "lay wikidata-*-all.json.gz beside the dump; see seeds.classes",
}
"""Reasons of seeds that tell of what a corpus lacks, and what mends it."""
NO_RELATIONS = (
    "no infobox value links to an article and no statement of Wikidata is known; lay wikidata-*-all.json.gz beside the "
    "dump, or set paths.text_hops=true"
)


def find_lacks(corpus: Corpus, gate: SeedsConfig, config: RunConfig, last: str = "") -> Iterator[Lack]:
    """Yield what a corpus lacks for seeds and paths: what leaves them without a row, and what few articles have.

    Args:
        corpus: every article of it is looked at.
        gate: the settings of seeds that count for this corpus.
        config: of the run.
        last: the stage that the run goes to; empty for all.
    """
    articles = len(corpus.article_nodes())
    if reaches(last, "seeds") and config.seeds.source == "corpus":
        for reason, count in count_lacking(corpus, gate).items():
            if count and count >= (1 - FEW) * articles:
                yield Lack("seeds", reason, count, articles, count == articles, ADVICE[reason])
    counts = corpus.manifest.counts
    related = counts.facts_with_target or counts.side.get("statements", {}).get("kept") or config.paths.text_hops
    if reaches(last, "paths") and config.method == "paths" and articles and not related:
        yield Lack("paths", "no-walk", articles, articles, True, NO_RELATIONS)


def count_lacking(corpus: Corpus, gate: SeedsConfig) -> dict[str, int]:
    """Return how many articles lack what the gate of seeds needs to know of each, by its reason."""
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
