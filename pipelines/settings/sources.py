"""Where the corpus and its seeds come from, and the services that are asked of them."""

from typing import Literal

from pydantic import Field

from pipelines.settings.base import CONTACT, Qid, Section
from schemas.seeds import Split


class GeneratedWorld(Section):
    """A toy Wikipedia generated into the workspace when neither a dump nor a world is named."""

    entities: int = Field(2000, ge=60, le=200_000, description="articles about entities")
    seed: int = Field(7, ge=0, description="seed of the generator")
    missing: float = Field(0.1, ge=0.0, le=0.3, description="share of infobox fields left to the prose")


class CorpusConfig(Section):
    """Where the corpus comes from: exactly one of ``dump``, ``world`` and ``generate``."""

    dump: str = Field("", description="pages-articles XML dump (.bz2 or .xml); tables and images/ are found beside it")
    world: str = Field("", description="folder made by `synth world`")
    generate: GeneratedWorld | None = Field(None, description="generate a toy Wikipedia")


class SmallCorpus(Section):
    """Seed gates for a corpus too small for those of a whole Wikipedia, in place of those of the same name."""

    below_articles: int = Field(1_000_000, ge=0, description="use these gates under this many articles")
    min_in_degree: int = Field(3, ge=0, description="opensearch-vl: fewest articles linking to a seed")
    hub_share: float = Field(0.0003, ge=0.0, le=1.0, description="share of articles, by in-degree, that are hubs")
    require_infobox: bool = Field(True, description="opensearch-vl: seeds need an infobox")
    require_image: bool = Field(True, description="seeds need a free lead picture")


class SparqlConfig(Section):
    """The endpoint that seeds.source = "sparql" asks; replies are recorded, so that each query is asked once."""

    endpoint: str = Field(
        "https://query.wikidata.org/sparql",
        pattern=r"^https?://[^\s@?#]+$",
        description="address of a SPARQL 1.1 endpoint, without user, password or parameters",
    )
    contact: str = Field(
        "", pattern=CONTACT, description="address or mail in the User-Agent; the operators of services want one"
    )
    site: str = Field("", description="wiki whose articles count, as https://en.wikipedia.org/; empty: the corpus's")
    page_rows: int = Field(5000, ge=1, description="a query with more rows is divided; below the service's own limit")
    pause: float = Field(1.0, ge=0.0, description="seconds between two queries; only one is ever in flight")
    tries: int = Field(4, ge=1, description="requests in all for a query at which the service fails")
    backoff: float = Field(2.0, ge=0.0, description="seconds before the second try, doubled for each further one")
    silence: float = Field(70.0, gt=0.0, description="seconds without a byte; services give up after 60")
    deadline: float = Field(180.0, gt=0.0, description="seconds for a whole reply")
    reply_bytes: int = Field(1 << 25, ge=1000, description="largest reply")


class CommonsConfig(Section):
    """The imageinfo API that seeds ask of pictures about which the corpus knows nothing; replies are recorded."""

    api: str = Field(
        "",
        pattern=r"^(https?://[^\s@?#]+)?$",
        description="address of api.php, as https://commons.wikimedia.org/w/api.php, without user, password or "
        "parameters; empty: not asked",
    )
    contact: str = Field("", pattern=CONTACT, description="address or mail in the User-Agent")
    pause: float = Field(0.5, ge=0.0, description="seconds between two requests; only one is ever in flight")
    fetch: bool = Field(
        False, description="fetch pictures that are not at hand; each once, under its content's name in the image store"
    )
    width: Literal[330, 500, 960, 1280, 1920, 3840] = Field(
        1280, description="width of what is fetched, pixels; a smaller original is fetched as it is"
    )
    search: bool = Field(False, description="search Commons for further candidates of an anchor's picture")


class SeedsConfig(Section):
    """Which entities may be anchors."""

    limit: int = Field(0, ge=0, description="at most this many seeds; 0 is no limit")
    splits: tuple[Split, ...] = Field((), description="splits whose entities may be seeds; () for all")
    rule: Literal["opensearch-vl", "vsearcher"] = Field(
        "opensearch-vl",
        description="opensearch-vl: by infobox and incoming links; vsearcher: by few sitelinks and many statements; "
        "a key that names one of the two is ignored by the other",
    )
    source: Literal["corpus", "sparql"] = Field(
        "corpus", description="candidates are the corpus's articles, or what the endpoint of [sparql] has of classes"
    )
    classes: tuple[Qid, ...] = Field((), description="Qids, one of which an entity must be an instance of; () for any")
    max_sitelinks: int = Field(10, ge=0, description="vsearcher: most sitelinks, on all projects")
    min_statements: int = Field(20, ge=0, description="vsearcher: fewest statements")
    count_identifiers: bool = Field(True, description="vsearcher: identifiers in other databases count as statements")
    min_in_degree: int = Field(
        50,
        ge=0,
        description="opensearch-vl: fewest articles linking to a seed; small_corpus's under its below_articles",
    )
    in_degree: Literal["text", "tables"] = Field(
        "text", description="what counts as a link to a seed: one in an article's own text, or in the pagelinks table"
    )
    hub_in_degree: int = Field(
        10_000,
        ge=1,
        description="articles with more incoming links are hubs: closed to walks, and under opensearch-vl no seeds; "
        "small_corpus.hub_share decides under its below_articles",
    )
    require_infobox: bool = Field(
        True, description="opensearch-vl: seeds need an infobox; small_corpus's under its below_articles"
    )
    require_image: bool = Field(
        True,
        description="seeds need a free lead picture of at least min_image_side; small_corpus's under its "
        "below_articles",
    )
    min_image_side: int = Field(512, ge=1, description="shorter side of the picture, pixels")
    small_corpus: SmallCorpus = SmallCorpus()


class SplitsConfig(Section):
    """Shares of entities and answer keys by split; decided by hash before anything is generated."""

    sft: float = Field(0.6, ge=0.0, le=1.0)
    rl: float = Field(0.3, ge=0.0, le=1.0)
    eval: float = Field(0.1, ge=0.0, le=1.0)
