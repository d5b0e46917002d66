"""What a run warns of: at its start what leaves it without rows or sense, and while it runs a stage that keeps nothing.

A warning stops nothing, and each says what to set.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from pipelines.config.loading import reaches
from pipelines.config.settings import EnhancementsConfig, RunConfig
from pipelines.corpus.dump import list_parts, read_site
from pipelines.corpus.manifest import find_side_files
from pipelines.errors import ConfigError
from pipelines.run.languages import Lack, name_played
from pipelines.run.progress import Reporter
from pipelines.run.runner import StageReport
from pipelines.stages.mixtures import list_unmet
from schemas.reasons import BenchmarkReason

TOY_WIKI = "https://toywiki.example/"
"""How the addresses of a generated world's pages begin."""
LEAST_ROWS = 20
"""Rows of which a stage must refuse all before that is worth a word."""
PICTURES = "set commons.fetch=true and commons.contact, or lay pictures with their images.tsv into images/"

SEEDS = (
    "a picture is known from images/images.tsv, Commons' MediaInfo dump or commons.api, and free by the wiki's "
    "page_props table; or set seeds.require_image=false"
)
"""What the gate for seeds' pictures needs."""

_LIMITS = {
    "near-duplicate": "releases.near_text, releases.near_path",
    "fact-over-used": "releases.max_per_fact",
    "anchor-over-used": "releases.max_per_anchor",
    "answer-over-used": "releases.max_per_answer",
    "skeleton-over-used": "releases.max_skeleton_share",
    "search-free-over-share": "releases.search_free",
    "search-required-over-share": "releases.search_free",
    "rounds-over-share": "releases.rounds_tolerance, injections.weights",
    "in-other-release": "releases.apart_from",
    **dict.fromkeys(get_args(BenchmarkReason), "releases.benchmarks"),
    "guessed-without-picture": "releases.max_gold_share, releases.max_gold_share_trained",
}
GOVERNING: Mapping[str, Mapping[str, str]] = {
    "seeds": {
        "no-infobox": "seeds.require_infobox",
        "no-image": "seeds.require_image",
        "image-not-free": "seeds.require_image",
        "image-too-small": "seeds.min_image_side",
        "in-degree-low": "seeds.min_in_degree",
        "hub": "seeds.hub_in_degree",
        "class": "seeds.classes",
        "abstract": "seeds.abstract",
        "too-well-known": "seeds.max_sitelinks",
        "too-few-statements": "seeds.min_statements",
        "other-split": "seeds.splits",
    },
    "paths": {"no-walk": "paths.walks", "no-answer-in-reach": "paths.hops"},
    "questions": {
        "answer-too-long": "questions.max_answer_tokens",
        "answer-unconfirmed": "questions.agreement",
        "guessable-answer": "questions.max_answer_share",
        "volatile": "questions.volatile",
    },
    "rewrites": {
        "stands-alone": "rewrites.min_alone",
        "too-many-near-misses": "rewrites.near_misses",
        "shorter-path": "rewrites.forbid_shortcuts",
        "answer-on-earlier-page": "rewrites.forbid_shortcuts",
        "no-descriptor": "rewrites.candidates",
        "category-over-share": "concepts.kept",
    },
    "articles": {
        "too-old": "news.after",
        "too-short": "news.min_words",
        "source-over-quota": "news.per_source",
        "picture-too-small": "groundings.min_side",
    },
    "groundings": {
        "undecided": "news.decisions",
        "no-picture": "commons.fetch, groundings.require_image",
        "picture-too-small": "groundings.min_side",
        "picture-of-another": "groundings.decides",
        "picture-too-simple": "groundings.refuse_simple",
        "picture-readable": "groundings.ocr",
        "one-retrieval": "groundings.retrieval_rank",
        "picture-not-needed": "groundings.min_answers",
    },
    "difficulty": {
        "clause-answers": "difficulty.probe_attempts",
        "solved-without-tools": "difficulty.max_correct",
        "solved-by-one-search": "difficulty.max_correct",
        "solved-by-one-text-search": "difficulty.max_correct",
        "solved-by-one-image-search": "difficulty.max_correct",
        "alternative-answer": "difficulty.alternatives",
        "unscored": "models.judge",
    },
    "rollouts": {"other-split": "rollouts.splits"},
    "trajectories": {
        "too-long": "trajectories.max_tokens",
        "repetition": "trajectories.max_repeats",
        "poor-process": "trajectories.min_process",
        "unscored": "models.judge",
    },
    "selections": _LIMITS,
    "releases": _LIMITS,
}
"""By stage and reason, the settings that decide how many rows are refused for it, where there are any."""


@dataclass(frozen=True, slots=True)
class Warner:
    """Says each warning at once, on a line of its own, and keeps it for the run's document."""

    reporter: Reporter
    said: list[str] = field(default_factory=list)

    def warn_of_start(self, config: RunConfig, dump: Path, last: str) -> None:
        """Warn of what a run up to a stage, or of all if ``last`` is empty, lacks for its dump.

        Raises:
            CorruptInput: if the file is not a dump.
        """
        if reaches(last, "groundings") and config.groundings.require_image and lacks_pictures(config, dump):
            detail = "commons.fetch is false, so groundings will refuse every row for want of a picture"
            self.say(f"no images/images.tsv lies beside {dump.name} and {detail}; {PICTURES}")
        named = name_played(config, last)
        if named and config.corpus.generate is None and not is_toy(dump):
            detail = f"scripted players know the toy world alone and {dump.name} is another wiki: {named}"
            self.say(f"{detail}; set adapter=openai, name and base_url of each for rows that are worth something")

    def warn_of_lacks(self, lacks: Iterable[Lack]) -> None:
        """Warn of what few articles of a corpus have.

        Raises:
            ConfigError: if a stage is left without a row.
        """
        for lack in lacks:
            if lack.certain:
                raise ConfigError(f"corpus: {lack.describe()}")
            self.say(lack.describe())

    def warn_of_stage(self, report: StageReport) -> None:
        """Warn of a stage that refused all its rows for one reason, of seeds that lack a picture, of other models."""
        for name in sorted(report.usage.served if report.ran else ()):
            asked, _, served = name.partition(": ")
            if not is_same_model(asked, served):
                self.say(f"{report.stage}: {asked!r} was asked for, and the server says that {served!r} replied")
        if report.rows_in < LEAST_ROWS or report.kept or report.failed:
            return
        if report.stage == "seeds" and "no-image" in report.rejected:
            lost = report.rejected["no-image"]
            self.say(f"seeds refused all {report.rows_in:,} articles, {lost:,} of them for want of a picture; {SEEDS}")
            return
        if len(report.rejected) != 1:
            return
        ((reason, count),) = report.rejected.items()
        setting = GOVERNING.get(report.stage, {}).get(reason, "")
        advice = f"; see {setting}" if setting else '; `synth sql "from rejections"` says why'
        self.say(f"{report.stage} refused all {count:,} rows for one reason, {reason}{advice}")

    def warn_of_shares(self, counts: Counter[str], shares: Mapping[str, float]) -> None:
        """Warn of pools that have too few questions for their share; counts are of the mixture, by pool."""
        for pool, share, part in list_unmet(counts, shares):
            detail = f"its {counts[pool]:,} questions are {part:.1%} of all, all that it has"
            self.say(f"the pool {pool} was to be {share:.1%}: {detail}; lower pools.share, or make fewer others")

    def warn_of_degraded(self, kept: int, counts: Counter[str], enhancing: EnhancementsConfig) -> None:
        """Warn of fewer degraded pictures than their share, by one of each way or more; counts are by degradation."""
        wanted, got = round(enhancing.share * kept), counts.total()
        if got + len(enhancing.degradations) > wanted:
            return
        each = ", ".join(f"{way} {counts[way]:,}" for way in enhancing.degradations)
        settings = "enhancements.tries and enhancements.degradations"
        if not enhancing.substitute:
            settings = f"enhancements.substitute, {settings}; equal shares end with the scarcest"
        self.say(
            f"of {kept:,} questions {wanted:,} were to have a degraded picture, {got:,} have: {each}; see {settings}"
        )

    def say(self, text: str) -> None:
        """Say a warning."""
        self.said.append(text)
        self.reporter.warn(text)


def is_same_model(asked: str, served: str) -> bool:
    """Say whether a server names the model that was asked for: in full, dated, or without its maker's name."""
    names = [name.casefold().rpartition("/")[2] for name in (asked, served.partition(" ")[0])]
    return names[0] in names[1] or names[1] in names[0]


def is_toy(dump: Path) -> bool:
    """Return whether a dump is of a generated world, by the address of its wiki.

    Raises:
        CorruptInput: if the file is not a dump.
    """
    return read_site(list_parts(dump)[0]).base_url.startswith(TOY_WIKI)


def lacks_pictures(config: RunConfig, dump: Path) -> bool:
    """Return whether a run can have no picture: none lies beside its dump, and none is fetched."""
    return not config.commons.fetch and find_side_files(dump).images is None
