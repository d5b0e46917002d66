"""What a teacher acts with and is held to: its tools, over the corpus or live services, and who judges what it did."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipelines.agent.dialects import find_dialect
from pipelines.agent.enhancing import has_opencv
from pipelines.agent.judging import UnscoredWatch
from pipelines.agent.loop import Agent, Limits
from pipelines.agent.process_judging import ProcessJury
from pipelines.agent.rejecting import TrajectoryRules
from pipelines.agent.summarising import Summariser
from pipelines.agent.tools import ToolBox
from pipelines.backends.local_pages import LocalPages
from pipelines.backends.local_search import LocalTextSearch
from pipelines.backends.protocols import ImageSearch, PageReader, TextSearch
from pipelines.backends.recorded import RecordedImageSearch, RecordedPages, RecordedTextSearch
from pipelines.config import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.live_tools import make_image_search, make_reader, make_text_search
from pipelines.roles import Roles
from pipelines.scoring.lengths import EstimatedTokens, TokenCounter, open_tokenizer
from pipelines.seeing import Seeing
from pipelines.stages.rollouts import Rollouts
from pipelines.stages.trajectories import Trajectories


@dataclass
class Acting:
    """The hands of one run."""

    config: RunConfig
    corpus: Corpus
    roles: Roles
    seeing: Seeing

    @cached_property
    def corpus_search(self) -> TextSearch:
        """The corpus's full-text search, recorded; it is what attempts of difficulty are given, whatever the tools."""
        return RecordedTextSearch(
            LocalTextSearch(self.corpus), self.roles.replies, self.roles.count_renewals("text_search")
        )

    def make_agent(self) -> Agent:
        """Return the teacher with its tools, all recorded.

        Raises:
            ConfigError: if a service's key, or what reads pages, is not to be had.
        """
        rollouts, roles = self.config.rollouts, self.roles
        dialect = find_dialect(rollouts.dialect)
        return Agent(
            roles.find_model("teacher"),
            dialect.load_prompt(),
            self._make_tools(),
            Limits(rollouts.max_calls, rollouts.max_seconds, rollouts.max_context, rollouts.max_context_tokens),
            roles.make_sampling("teacher"),
            dialect=dialect,
            bad_turns=rollouts.bad_turns,
            fatal_errors=rollouts.fatal_errors,
            stop_when_fatal=rollouts.stop_when_fatal,
        )

    def make_rollouts(self) -> Rollouts:
        """Return the stage of the teacher's attempts."""
        return Rollouts(self.make_agent(), self.config.rollouts.attempts)

    def make_trajectories(self) -> Trajectories:
        """Return the rejection cascade.

        Raises:
            ConfigError: if the tokenizer cannot be read.
        """
        config, judging = self.config.trajectories, self.config.judging
        rules = TrajectoryRules(
            config.max_accepted,
            config.checks,
            config.max_tokens,
            config.image_pixels,
            config.overlap,
            config.max_repeats,
            config.min_process,
            self.config.rollouts.fatal_errors,
        )
        watch = UnscoredWatch(judging.max_unscored, judging.min_attempts)
        return Trajectories(rules, self.roles.make_jury(), self._make_process_jury(), watch, self._make_counter())

    def _make_process_jury(self) -> ProcessJury | None:
        if self.config.models.process_judge is None:
            return None
        return ProcessJury(self.roles.ask("process_judge", "judge_process"))

    def _make_counter(self) -> TokenCounter:
        tokenizer = self.config.trajectories.tokenizer
        return open_tokenizer(Path(tokenizer)) if tokenizer else EstimatedTokens()

    def _make_tools(self) -> ToolBox:
        config, live = self.config.tools, self.config.tools.family == "live"
        return ToolBox(
            text_search=self._make_text_search() if live else self.corpus_search,
            image_search=self._make_image_search() if live else self.seeing.shown_search,
            pages=self._make_pages(live),
            store=self.roles.pictures,
            ocr=self.seeing.layout,
            upscaler=self.seeing.upscaler,
            opencv=has_opencv(),
            summariser=Summariser(self.roles.ask("summariser", "summarise_page")) if config.summarise else None,
            pages_read=config.pages_read,
            thumbnails=config.thumbnails,
            blocked_hosts=config.blocked_hosts,
            snapshot="" if live else self.corpus.snapshot,
            online=live,
        )

    def _make_text_search(self) -> TextSearch:
        search = make_text_search(self.config.live)
        return RecordedTextSearch(search, self.roles.replies, self.roles.count_renewals("text_search"), live=True)

    def _make_image_search(self) -> ImageSearch:
        search = make_image_search(self.config.live, self.roles.pictures)
        return RecordedImageSearch(search, self.roles.replies, self.roles.count_renewals("image_search"), live=True)

    def _make_pages(self, live: bool) -> PageReader:
        reader = make_reader(self.config.live) if live else LocalPages(self.corpus)
        return RecordedPages(reader, self.roles.replies, self.roles.count_renewals("pages"), live=live)
