"""The live tools of a configuration: which services, asked how."""

from dataclasses import dataclass

from pipelines.backends.live_http import LiveManners
from pipelines.backends.live_images import GoogleVision, SerpApiLens
from pipelines.backends.live_jina import JinaReader
from pipelines.backends.live_reader import DirectReader
from pipelines.backends.live_search import SerpApiSearch, SerperSearch
from pipelines.backends.protocols import ImageSearch, PageReader, TextSearch
from pipelines.pictures import PictureStore
from pipelines.settings import LiveConfig


@dataclass(frozen=True, slots=True)
class LiveService:
    """A service that the live tools ask.

    Attributes:
        tool: whose work it does: ``search``, ``reader`` or ``images``, as the configuration's keys begin.
        protocol: that it speaks.
        url: address; empty for pages that are fetched here.
        key_env: environment variable with its key; empty for none.
    """

    tool: str
    protocol: str
    url: str
    key_env: str


def list_services(config: LiveConfig) -> tuple[LiveService, ...]:
    """Return the services behind the live tools, a tool each."""
    direct = config.reader == "direct"
    return (
        LiveService("search", config.search, config.search_url, config.search_key_env),
        LiveService(
            "reader", config.reader, "" if direct else config.reader_url, "" if direct else config.reader_key_env
        ),
        LiveService("images", config.images, config.images_url, config.images_key_env),
    )


def make_text_search(config: LiveConfig) -> TextSearch:
    """Return the text search; nothing is asked before it is used."""
    if config.search == "serpapi":
        return SerpApiSearch(config.search_url, config.search_key_env, make_manners(config))
    return SerperSearch(config.search_url, config.search_key_env, make_manners(config))


def make_reader(config: LiveConfig) -> PageReader:
    """Return the reader of pages.

    Raises:
        ConfigError: if pages are to be fetched here and trafilatura is not installed.
    """
    if config.reader == "jina":
        return JinaReader(config.reader_url, config.reader_key_env, make_manners(config))
    return DirectReader(config.contact, make_manners(config))


def make_image_search(config: LiveConfig, pictures: PictureStore) -> ImageSearch:
    """Return the search by picture.

    Args:
        config: of the services.
        pictures: the workspace's image store, where thumbnails are stored.

    Raises:
        ConfigError: if the service takes addresses and ``picture_base`` names none.
    """
    manners = make_manners(config)
    if config.images == "serpapi":
        return SerpApiLens(config.images_url, config.images_key_env, config.picture_base, pictures, manners)
    return GoogleVision(config.images_url, config.images_key_env, pictures, manners)


def make_manners(config: LiveConfig) -> LiveManners:
    """Return how services are asked."""
    return LiveManners(config.rate, config.concurrency, config.tries, config.timeout, config.reply_bytes)
