"""What a run is built from beside its corpus: who plays each role, the services outside, and the other dump."""

from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipelines.backends.image_metadata import FileFetch, FileSearch, ImageMetadata
from pipelines.backends.knower import ScriptedKnower
from pipelines.backends.protocols import ChatModel
from pipelines.backends.recorded import RecordedSparql
from pipelines.backends.recorded_commons import RecordedImageMetadata
from pipelines.backends.replies import ReplyStore
from pipelines.backends.scripted_judge import ScriptedJudge
from pipelines.backends.sparql import Manners, SparqlEndpoint, name_agent
from pipelines.backends.sparql_http import RequestLimits
from pipelines.backends.teacher import ScriptedTeacher, make_vices
from pipelines.backends.templates import TemplatesModel
from pipelines.config import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.pictures import PictureStore
from pipelines.settings import CommonsConfig, ModelConfig
from pipelines.stages.seeds import WikidataSource

if TYPE_CHECKING:
    from pipelines.backends.commons_http import Pace

YEAR = 365
"""Days that must lie between two dumps: what changes yearly shows after one."""


@cache
def _find_pace(api: str) -> "Pace":
    """Return the pace that all share who ask one service: one request at a time, and none while it wants none."""
    from pipelines.backends.commons_http import Pace

    return Pace()


def make_image_metadata(config: CommonsConfig, replies: ReplyStore, fresh: int = 0) -> ImageMetadata:
    """Return Commons' imageinfo API, recorded."""
    from pipelines.backends.commons_api import CommonsApi  # its client takes longer to import than `synth status`

    if not config.contact:
        raise ConfigError("commons.contact is empty; say who asks: --set commons.contact=you@example.org")
    api = CommonsApi(config.api, name_agent(config.contact), pause=config.pause, pace=_find_pace(config.api))
    return RecordedImageMetadata(api, replies, fresh)


def make_file_search(config: CommonsConfig, replies: ReplyStore, fresh: int = 0) -> FileSearch:
    """Return Commons' search for files, recorded."""
    from pipelines.backends.commons_api import CommonsApi
    from pipelines.backends.commons_search import CommonsSearch
    from pipelines.backends.recorded_commons_files import RecordedFileSearch

    api = CommonsApi(config.api, name_agent(config.contact), pause=config.pause, pace=_find_pace(config.api))
    return RecordedFileSearch(CommonsSearch(api), replies, fresh)


def make_file_fetch(config: CommonsConfig, replies: ReplyStore, pictures: PictureStore, fresh: int = 0) -> FileFetch:
    """Return what fetches Commons' pictures, each once."""
    from pipelines.backends.commons_files import WIKIMEDIA, CommonsFiles, list_hosts
    from pipelines.backends.recorded_commons_files import RecordedFileFetch

    hosts = list_hosts(config.api) if config.api else (WIKIMEDIA,)
    files = CommonsFiles(
        name_agent(config.contact), config.width, hosts, pause=config.pause, pace=_find_pace(config.api)
    )
    return RecordedFileFetch(files, replies, pictures, fresh)


def make_wikidata_source(run: RunConfig, corpus: Corpus, replies: ReplyStore, fresh: int = 0) -> WikidataSource:
    """Return the endpoint that seeds are drawn from, recorded.

    Raises:
        ConfigError: if no class or no contact is named.
    """
    config = run.sparql
    if not run.seeds.classes:
        raise ConfigError("seeds.classes is empty; a query needs a class: --set 'seeds.classes=[\"Q12280\"]'")
    if not config.contact:
        raise ConfigError("sparql.contact is empty; say who asks: --set sparql.contact=you@example.org")
    manners = Manners(
        pause=config.pause,
        tries=config.tries,
        backoff=config.backoff,
        request=RequestLimits(config.silence, config.deadline, config.reply_bytes),
    )
    endpoint = SparqlEndpoint(config.endpoint, name_agent(config.contact), manners)
    address = urlsplit(corpus.manifest.base_url)
    site = config.site or f"{address.scheme}://{address.netloc}/"
    return WikidataSource(RecordedSparql(endpoint, replies, fresh), site, config.page_rows)


def open_later(folder: Path, corpus: Corpus) -> Corpus:
    """Open the corpus of another dump of the same wiki, by which answers that changed are found.

    Raises:
        ConfigError: if it is no corpus, of another wiki, or less than a year away.
    """
    later = Corpus.open(folder)
    if later.manifest.base_url != corpus.manifest.base_url:
        raise ConfigError(
            f"questions.other_corpus {folder}: it is of {later.manifest.base_url}, "
            f"the run's corpus of {corpus.manifest.base_url}"
        )
    apart = abs(date.fromisoformat(later.snapshot) - date.fromisoformat(corpus.snapshot)).days
    if apart < YEAR:
        raise ConfigError(
            f"questions.other_corpus {folder}: its dump is of {later.snapshot}, the run's of {corpus.snapshot}; "
            f"wanted are {YEAR} days between them"
        )
    return later


def build_model(role: str, config: ModelConfig, pictures: PictureStore) -> ChatModel:
    """Build the adapter of a role.

    Raises:
        ConfigError: if the adapter has no such setting.
    """
    if config.adapter == "openai":
        return _build_openai(role, config, pictures)
    if config.adapter == "vllm":
        return _build_vllm(role, config, pictures)
    try:
        if config.adapter == "knower":
            return ScriptedKnower(**config.settings, name=config.name)
        if config.adapter == "judge":
            return ScriptedJudge(**config.settings, name=config.name)
        if config.adapter == "teacher":
            return ScriptedTeacher(name=config.name, vices=make_vices(config.settings))
    except TypeError as error:
        raise ConfigError(f"models.{role}.settings: {error}") from error
    _refuse_settings(role, config)
    return TemplatesModel()


def _refuse_settings(role: str, config: ModelConfig) -> None:
    if config.settings:
        place = f"models.{role}.settings"
        given = f"given {sorted(config.settings)}, perhaps by the recipe's own player"
        raise ConfigError(f"{place}: {config.adapter} takes none, {given}; empty them: --set '{place}={{}}'")


def _build_openai(role: str, config: ModelConfig, pictures: PictureStore) -> ChatModel:
    from pipelines.backends.openai_chat import OpenAIChat  # its client takes longer to import than `synth status`

    _refuse_settings(role, config)
    return OpenAIChat(
        name=config.name,
        urls=(config.base_url, *config.more_urls),
        api_key_env=config.api_key_env,
        revision=config.revision,
        replies=config.replies,
        timeout=config.timeout,
        tries=config.tries,
        patience=config.patience,
        concurrency=config.concurrency,
        gpus=config.gpus,
        read_picture=pictures.load,
    )


def _build_vllm(role: str, config: ModelConfig, pictures: PictureStore) -> ChatModel:
    from pipelines.backends.vllm_batch import VllmBatch  # as above

    _refuse_settings(role, config)
    return VllmBatch(
        name=config.name,
        log=pictures.folder.with_name("logs") / f"vllm-{role}.log",
        model=config.serve.model,
        python=config.serve.python,
        tensor_parallel=config.serve.tensor_parallel,
        max_context=config.serve.max_context,
        arguments=config.serve.arguments,
        revision=config.revision,
        replies=config.replies,
        gpus=config.gpus,
        start_seconds=config.serve.start_seconds,
        read_picture=pictures.load,
    )
