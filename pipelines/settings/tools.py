"""The agent's tools, and the services behind the live ones."""

from typing import Literal

from pydantic import Field

from pipelines.settings.base import ADDRESS, CONTACT, Section


class ToolsConfig(Section):
    """What the agent's visual tools work with."""

    layout: Literal["", "rapidocr", "tesseract", "paddlex", "layer"] = Field(
        "", description="engine behind layout_parsing; empty: there is no such tool"
    )
    edsr: str = Field(
        "", description="file of EDSR weights (EDSR_x2.pb to EDSR_x4.pb) behind super_resolution; empty: it warns"
    )
    family: Literal["local", "live"] = Field(
        "local", description="local: over the corpus, deterministic, no network; live: the services of [live]"
    )
    summarise: bool = Field(
        False, description="models.summariser sums up pages that are searched for or visited; else passages are shown"
    )
    pages_read: int = Field(3, ge=1, le=10, description="pages that a text search reads to sum them up")
    thumbnails: int = Field(
        0, ge=0, le=10, description="pictures of an image search's results that are shown, each with a name of its own"
    )
    blocked_hosts: tuple[str, ...] = Field(
        (
            "huggingface.co",
            "hf.co",
            "datasets-server.huggingface.co",
            "modelscope.cn",
            "kaggle.com",
            "paperswithcode.com",
            "github.com",
            "githubusercontent.com",
            "gitee.com",
            "zenodo.org",
            "opendatalab.com",
            "openreview.net",
            "arxiv.org",
        ),
        description="hosts, with their subdomains, that publish datasets: never visited, left out of results",
    )


class LiveConfig(Section):
    """Services behind the live tools. Replies are recorded; keys are named by environment variables."""

    search: Literal["serper", "serpapi"] = Field("serper", description="whose protocol the text search speaks")
    search_url: str = Field("https://google.serper.dev/search", pattern=ADDRESS, description="its address")
    search_key_env: str = Field("", description="environment variable with its key; empty: none")
    reader: Literal["direct", "jina"] = Field(
        "direct", description="direct: pages are fetched here, with every address checked; jina: by a reader service"
    )
    reader_url: str = Field("https://r.jina.ai/", pattern=ADDRESS, description="jina: its address")
    reader_key_env: str = Field("", description="jina: environment variable with its key; empty: none")
    images: Literal["google-vision", "serpapi"] = Field(
        "google-vision", description="whose protocol the image search speaks"
    )
    images_url: str = Field(
        "https://vision.googleapis.com/v1/images:annotate", pattern=ADDRESS, description="its address"
    )
    images_key_env: str = Field("", description="environment variable with its key; empty: none")
    picture_base: str = Field(
        "",
        pattern=rf"^$|{ADDRESS}",
        description="serpapi: where the workspace's images/ folder is published, as it takes addresses alone",
    )
    contact: str = Field("", pattern=CONTACT, description="address or mail in the User-Agent of the direct reader")
    rate: float = Field(
        5.0,
        gt=0.0,
        description="requests a second to each service, and to each host that pages or thumbnails come from",
    )
    concurrency: int = Field(16, ge=1, description="most requests in flight at one service")
    tries: int = Field(4, ge=1, description="requests in all for a call at which the service fails")
    timeout: float = Field(
        60.0, gt=0.0, description="seconds for a whole reply, without the wait for its turn; at most 20 for a thumbnail"
    )
    reply_bytes: int = Field(1 << 23, ge=1000, description="largest reply")
