"""A layout service as PaddleX serves it (``paddlex --serve --pipeline PP-StructureV3`` and its like), over HTTP.

One picture a request, as a PNG of the pixels that are to be read, so that boxes come back in them. PaddleX describes
blocks of the page; of lines that stand in no block (a sign in a photograph) it says only what they read.
"""

import asyncio
import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson

from pipelines.backends.image_metadata import read_wait
from pipelines.backends.ocr_scaling import ScaledPicture, open_scaled
from pipelines.backends.protocols import TextBlock
from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable
from pipelines.names import fold_name

VERSION = 1
_PATH = "/layout-parsing"
_HEALTH = "/health"
_MAX_REPLY = 32 << 20
_HEALTH_SECONDS = 10.0
_QUOTED = 200
_PICTURES_FAULT = (400, 413, 415, 422)


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: httpx.Headers
    body: bytes

    @property
    def said(self) -> str:
        """Status and beginning of the body on one line, for messages."""
        text = self.body[:_QUOTED].decode("utf-8", "replace")
        return f"HTTP {self.status}: {' '.join(''.join(char if char.isprintable() else ' ' for char in text).split())}"


class _Broken(Exception):
    """No whole reply to this picture; whether the service is to blame is not yet known."""


@dataclass(frozen=True, slots=True)
class PaddleX:
    """The service at one address.

    Attributes:
        url: address of the service, with or without ``/layout-parsing``; no user, password or parameters.
        seconds: longest that one picture may take.
        revision: what tells two services apart that were known by the same address.

    Raises:
        ConfigError: if the address is none.
    """

    url: str
    seconds: float = 60.0
    revision: str = ""

    def __post_init__(self) -> None:
        _check_address(self.url)

    @property
    def name(self) -> str:
        """``paddlex``."""
        return "paddlex"

    @property
    def identity(self) -> str:
        """Revision, or the address where there is none: the service does not tell its models."""
        return f"paddlex@{VERSION}:{self.revision or self._base}"

    @property
    def _base(self) -> str:
        return self.url.rstrip("/").removesuffix(_PATH)

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return the blocks of the page in reading order, then the lines that stand in none.

        Raises:
            RecordFailed: if the picture cannot be decoded; ``ocr-refused`` if the service does not take it, and
                ``ocr-failed`` or ``ocr-timeout`` if it breaks on it and is healthy otherwise.
            RateLimited: if the service asks to slow down.
            Unavailable: if it is away.
            ConfigError: if the address is no such service.
        """
        picture = await asyncio.to_thread(open_scaled, data, scale)
        body = await asyncio.to_thread(_make_body, picture)
        # A client for each picture: connections belong to a loop, and a reply takes seconds.
        async with httpx.AsyncClient(trust_env=False, timeout=None, headers={"User-Agent": "synth"}) as client:
            try:
                async with asyncio.timeout(self.seconds):
                    reply = await _post(client, f"{self._base}{_PATH}", body)
            except TimeoutError as error:
                await self._blame(client, f"no whole reply in {self.seconds:g} s")
                raise RecordFailed("ocr-timeout", f"{self._base}: no whole reply in {self.seconds:g} s") from error
            except _Broken as error:
                await self._blame(client, str(error))
                raise RecordFailed("ocr-failed", f"{self._base}: {error}") from error
            if reply.status >= 500 and reply.status != 503:
                await self._blame(client, reply.said)
                raise RecordFailed("ocr-failed", f"{self._base}: {reply.said}")
        return _read_blocks(self._base, _read_result(self._base, reply), picture)

    async def _blame(self, client: httpx.AsyncClient, said: str) -> None:
        """Return if the service is healthy: then it is the picture's fault.

        Raises:
            Unavailable: if it is not.
        """
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                health = await client.get(f"{self._base}{_HEALTH}")
        except (TimeoutError, httpx.HTTPError) as error:
            raise Unavailable(f"{self._base}: {said}; and no answer to {_HEALTH} ({type(error).__name__})") from error
        if health.status_code != 200:
            raise Unavailable(f"{self._base}: {said}; and HTTP {health.status_code} to {_HEALTH}")


async def _post(client: httpx.AsyncClient, url: str, body: bytes) -> _Reply:
    try:
        async with client.stream("POST", url, content=body, headers={"Content-Type": "application/json"}) as response:
            received = bytearray()
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > _MAX_REPLY:
                    raise _Broken(f"a reply of over {_MAX_REPLY:,} bytes")
            return _Reply(response.status_code, response.headers, bytes(received))
    except httpx.HTTPError as error:
        raise _Broken(f"no whole reply ({type(error).__name__}: {error})") from error


def _make_body(picture: ScaledPicture) -> bytes:
    target = io.BytesIO()
    picture.image.save(target, "PNG", compress_level=1)
    return orjson.dumps(
        {
            "file": base64.b64encode(target.getvalue()).decode("ascii"),
            "fileType": 1,
            # Boxes must stay those of the pixels that were sent.
            "useDocOrientationClassify": False,
            "useDocUnwarping": False,
            "visualize": False,
        }
    )


def _read_result(place: str, reply: _Reply) -> Mapping[str, Any]:
    """Return the description of the picture.

    Raises:
        RateLimited, RecordFailed, ConfigError: see :meth:`PaddleX.read_text`.
    """
    wait = read_wait(reply.headers)
    if reply.status in (429, 503):
        raise RateLimited(f"{place}: HTTP {reply.status}", wait)
    if reply.status in _PICTURES_FAULT:
        raise RecordFailed("ocr-refused", f"{place}: {reply.said}")
    if reply.status != 200:
        raise ConfigError(f"ocr.url {place}: {reply.said}; expected a layout service of PaddleX")
    try:
        read = orjson.loads(reply.body)
        pages = read["result"]["layoutParsingResults"]
        (page,) = pages
        pruned = page["prunedResult"]
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"ocr.url {place}: {reply.said}; expected one layoutParsingResults ({error!r})") from error
    if not isinstance(pruned, dict) or not isinstance(pruned.get("parsing_res_list"), list):
        raise ConfigError(f"ocr.url {place}: no parsing_res_list in its reply; expected a layout service of PaddleX")
    return pruned


def _read_blocks(place: str, pruned: Mapping[str, Any], picture: ScaledPicture) -> tuple[TextBlock, ...]:
    try:
        blocks = [_read_block(given, picture) for given in pruned["parsing_res_list"]]
        blocks = [block for block in blocks if block.text]
        return (*blocks, *_list_stray_lines(pruned.get("overall_ocr_res") or {}, blocks, picture))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RecordFailed("ocr-failed", f"{place}: a block of another form ({error!r})") from error


def _read_block(given: Mapping[str, Any], picture: ScaledPicture) -> TextBlock:
    # Blocks come without a confidence: the service leaves out what it is not sure of.
    text = str(given["block_content"] or "").strip()
    return TextBlock(text, str(given["block_label"]), _read_box(given["block_bbox"], picture), 1.0)


def _list_stray_lines(read: Mapping[str, Any], blocks: Sequence[TextBlock], picture: ScaledPicture) -> list[TextBlock]:
    """Return the lines of the whole picture whose text stands in none of its blocks."""
    known = "\n".join(fold_name(block.text) for block in blocks)
    lines = []
    texts = [str(text) for text in read.get("rec_texts", ())]
    for text, box, score in zip(texts, read.get("rec_boxes", ()), read.get("rec_scores", ()), strict=True):
        if text.strip() and fold_name(text) not in known:
            confidence = min(max(float(score), 0.0), 1.0)
            lines.append(TextBlock(text.strip(), "text", _read_box(box, picture), confidence))
    return lines


def _read_box(given: Sequence[Any], picture: ScaledPicture) -> tuple[float, float, float, float]:
    left, top, right, bottom = map(float, given)
    return picture.restore_box([(left, top), (right, bottom)])


def _check_address(url: str) -> None:
    try:
        address = urlsplit(url)
        served = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        served = False
    if "@" in url or "?" in url or "#" in url:
        raise ConfigError("ocr.url has a user, password or parameters; give the address alone")
    if not served:
        raise ConfigError(f"ocr.url {url!r}; expected such as http://127.0.0.1:8080")
