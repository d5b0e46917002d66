"""From the bytes of a dump to the edges of its link graph, without a text of a page in between.

What is found is what ``read_range`` and ``LinkReader`` find. The wikitext stays as the dump holds it, UTF-8 with XML's
entities; targets are decoded when they are seen for the first time, and the offsets of links are counted in characters
by taking off what the bytes hold beyond them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.corpus.dump import ByteRange, TitleRules, find_text, hash_title, parse_page, scan_pages, unescape_xml
from pipelines.corpus.wikitext import (
    FIND_TARGETS,
    IGNORED_INITIALS,
    SEPARATOR,
    Offsets,
    TargetHashes,
    count_between,
    find_candidates,
    find_continuations,
    find_escaped_ignored,
    find_starts,
)
from pipelines.errors import CorruptInput

_HEAD = re.compile(
    rb"<page>\s*<title>([^<_]*)</title>\s*<ns>(-?\d{1,9})</ns>\s*<id>(\d{1,9})</id>\s*"
    rb'(?:<redirect title="([^"#_]*)" ?/>\s*)?(?=<revision>)'
)
_MAX_PAGE_ID = 2**32 - 1
_TEXT_START = b"# \t\r\n"
_LESS, _GREATER, _AMPERSAND, _QUOTE = (int.from_bytes(word, "little") for word in (b"&lt;", b"&gt;", b"&amp", b"&quo"))
_PADDING = b"\0" * 8
"""Closes joined texts, so that the bytes after any ``&`` may be looked at."""
_IS_INITIAL = np.zeros(256, bool)
_IS_INITIAL[list(IGNORED_INITIALS)] = True


@dataclass(frozen=True, slots=True)
class DumpEdges:
    """Articles, redirects and article links of some pages, in the order of the dump."""

    page_ids: NDArray[np.uint32]
    """Of each article."""
    title_hashes: NDArray[np.uint64]
    """``hash_title`` of each article's title."""
    sources: NDArray[np.uint32]
    """Of each link: place of its article in ``page_ids``."""
    target_hashes: NDArray[np.uint64]
    """Of each link: ``hash_title`` of its target."""
    positions: NDArray[np.uint32]
    """Of each link: character offset of the ``[[`` in the text."""
    redirect_hashes: NDArray[np.uint64]
    """``hash_title`` of each redirect's own title."""
    redirect_targets: NDArray[np.uint64]
    """``hash_title`` of what each redirect names; 0 where that is no article of this wiki."""


def read_edges(path: Path, byte_range: ByteRange, rules: TitleRules) -> Iterator[DumpEdges]:
    """Yield the edges of one range, a few MB of XML at a time.

    Raises:
        ConfigError: there is no such file.
        CorruptInput: as for ``read_range``.
    """
    targets = TargetHashes(rules, is_escaped=True)
    for block, spans in scan_pages(path, byte_range):
        batch = _Batch()
        for start, end in spans:
            _add_page(batch, path, block, start, end)
        yield _find_edges(batch, targets)


@dataclass(slots=True)
class _Batch:
    page_ids: list[int] = field(default_factory=list)
    title_hashes: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    redirects: list[tuple[int, bytes]] = field(default_factory=list)


def _add_page(batch: _Batch, path: Path, block: bytes, start: int, end: int) -> None:
    """File a page by its head; a head that is laid out in another way, or a text that may redirect, is read in full."""
    head = _HEAD.match(block, start, end)
    if head is None:
        _add_unusual(batch, path, block[start:end])
        return
    if head[2] != b"0":
        return
    if head[4] is not None:
        batch.redirects.append((hash_title(unescape_xml(head[1])), head[4]))
        return
    text = find_text(block, head.end(), end)
    after = block.find(b"<", text) if text >= 0 else head.end() + 1
    if (text >= 0 and block[text] in _TEXT_START) or block.find(b"<revision>", after, end) >= 0:
        _add_unusual(batch, path, block[start:end])
        return
    batch.page_ids.append(int(head[3]))
    batch.title_hashes.append(hash_title(unescape_xml(head[1])))
    batch.texts.append(block[text:after] if text >= 0 else b"")


def _add_unusual(batch: _Batch, path: Path, source: bytes) -> None:
    page = parse_page(path, source)
    if page.page_id > _MAX_PAGE_ID:
        raise CorruptInput(f"{path}: page id {page.page_id}; expected at most {_MAX_PAGE_ID}")
    if page.namespace != 0:
        return
    if page.redirect is not None:
        batch.redirects.append((hash_title(page.title), _escape(page.redirect)))
        return
    batch.page_ids.append(page.page_id)
    batch.title_hashes.append(hash_title(page.title))
    batch.texts.append(_escape(page.text))


def _escape(text: str) -> bytes:
    source = text.encode("utf-8", "surrogatepass")
    return source.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")


def _find_edges(batch: _Batch, targets: TargetHashes) -> DumpEdges:
    texts = batch.texts
    xml = SEPARATOR.join([*texts, _PADDING])
    entities = _measure_entities(xml)
    if entities is None:
        texts = [_escape(unescape_xml(text)) for text in texts]
        xml = SEPARATOR.join([*texts, _PADDING])
        entities = _measure_entities(xml)
        assert entities is not None
    starts = find_starts(texts)
    blanked = _blank(xml, starts, starts + np.fromiter(map(len, texts), np.int64), entities)
    hashes = targets.hash_all(FIND_TARGETS(blanked))
    kept = np.flatnonzero(hashes)
    places = find_candidates(np.frombuffer(blanked, np.uint8))[kept]
    pages = np.searchsorted(starts, places, "right") - 1
    surplus = entities.count(places) - entities.count(starts)[pages]
    continued = count_between(find_continuations(np.frombuffer(xml, np.uint8)), starts, pages, places)
    return DumpEdges(
        page_ids=np.array(batch.page_ids, np.uint32),
        title_hashes=np.array(batch.title_hashes, np.uint64),
        sources=pages.astype(np.uint32),
        target_hashes=hashes[kept],
        positions=(places - starts[pages] - surplus - continued).astype(np.uint32),
        redirect_hashes=np.array([digest for digest, _ in batch.redirects], np.uint64),
        redirect_targets=targets.hash_all([target for _, target in batch.redirects]),
    )


@dataclass(frozen=True, slots=True)
class _Entities:
    """Where the entities of joined texts are, and how much longer they are than what they stand for."""

    offsets: Offsets
    totals: Offsets
    """Bytes that the first n entities take beyond the characters they stand for, for n from 0."""
    opens: Offsets
    """Offsets of each ``&lt;`` that may open a span that is not wikitext."""

    def count(self, places: Offsets) -> Offsets:
        """Return the surplus bytes before each place."""
        return self.totals[np.searchsorted(self.offsets, places)]


def _measure_entities(xml: bytes) -> _Entities | None:
    """Measure the entities of joined texts, or return None when they hold more than plain UTF-8 and the usual four."""
    if b">" in xml or not _is_utf8(xml):
        return None
    codes = np.frombuffer(xml, np.uint8)
    offsets = np.flatnonzero(codes == 0x26)
    words = np.ndarray(len(xml) - 3, "<u4", xml, strides=(1,))[offsets]
    is_less, is_ampersand, is_quote = words == _LESS, words == _AMPERSAND, words == _QUOTE
    surplus = np.where(is_ampersand, 4, np.where(is_quote, 5, 3))
    ends = np.concatenate([offsets[is_ampersand] + 4, offsets[is_quote] + 5])
    is_usual = is_less | (words == _GREATER) | is_ampersand | is_quote
    if not (is_usual.all() and (codes[ends] == 0x3B).all() and (codes[offsets[is_quote] + 4] == 0x74).all()):
        return None
    less = offsets[is_less]
    return _Entities(offsets, np.concatenate([[0], np.cumsum(surplus)]), less[_IS_INITIAL[codes[less + 4]]])


def _is_utf8(source: bytes) -> bool:
    ends = pa.py_buffer(np.array([0, len(source)], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(source)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _blank(xml: bytes, starts: Offsets, ends: Offsets, entities: _Entities) -> bytes | bytearray:
    """Replace what is no wikitext with as many spaces."""
    if not len(entities.opens):
        return xml
    blanked = bytearray(xml)
    pages = np.searchsorted(starts, entities.opens, "right") - 1
    for page, opens in groupby(zip(pages.tolist(), entities.opens.tolist(), strict=True), itemgetter(0)):
        for start, end in find_escaped_ignored(xml, map(itemgetter(1), opens), int(ends[page])):
            blanked[start:end] = b" " * (end - start)
    return blanked
