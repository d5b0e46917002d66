"""The full-text index over passages: tantivy, ranked by BM25 over title and text.

The index is cut into segments by the passages alone, and each is written by one thread: however many write, the files
are the same bytes, and so are hits, scores and the order of ties, which is that of the passages. Words lose case and
accents. Scripts without spaces between words are indexed by pairs of letters, so that any piece of a text is found.
"""

import json
import shutil
import time
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from re import Match
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Self, cast
from uuid import UUID

from tantivy import (
    DocAddress,
    Document,
    Filter,
    Index,
    Occur,
    Query,
    Schema,
    SchemaBuilder,
    TextAnalyzer,
    TextAnalyzerBuilder,
    Tokenizer,
)

from pipelines.errors import ConfigError
from pipelines.names import UNSPACED

PassageRow = tuple[int, str, str]
"""Node, title and text of a passage."""

SEGMENT_CHARACTERS = 1 << 27
"""Text of a segment: a query looks its words up in each, and each thread that writes holds one in memory."""
WRITER_BYTES = 3 << 30
"""More than the postings of a segment take, so that tantivy never cuts one in two; a bound, not a reservation."""
TITLE_TIMES = 4
"""How often a word of the title counts: a page that a query names is found, and does not hide those that tell of it."""
QUOTED_WORDS = 6
"""From so many words on, a query may be a quotation."""
COMMON_WORD = 1 << 20
"""Passages with its rarest word from which on a phrase is not looked for: a name has a rarer one."""
_META = "meta.json"
_TRIES = 100
_ANALYZER = "words"
_EVERYWHERE_LIST = """
a an and are as at be but by did do does for from had has have he her his how in is it its of on or she that the their
they this to was were what when where which who whom whose why will with
"""
_EVERYWHERE = frozenset(_EVERYWHERE_LIST.split())


@dataclass(frozen=True, slots=True)
class Passage:
    """A found piece of an article."""

    node: int
    title: str
    text: str
    score: float
    """BM25: higher is better."""


@cache
def _make_analyzer() -> TextAnalyzer:
    return TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase()).filter(Filter.ascii_fold()).build()


@cache
def _make_schema() -> Schema:
    schema = SchemaBuilder()
    schema.add_unsigned_field("node", fast=True)
    schema.add_text_field("words", tokenizer_name=_ANALYZER, index_option="freq")
    schema.add_text_field("text", tokenizer_name=_ANALYZER)
    schema.add_bytes_field("shown", stored=True)
    return schema.build()


def _split_pairs(text: str) -> str:
    if text.isascii():
        return text
    plain = text.encode("utf-8", "replace").decode()  # a model may write half of a surrogate pair
    return UNSPACED.sub(_pair_letters, unicodedata.normalize("NFKC", plain))


def _pair_letters(run: Match[str]) -> str:
    pairs = [f"{ord(first):x}z{ord(second):x}" for first, second in pairwise(run[0])]
    return f" {' '.join(pairs) or run[0]} "


def _list_words(text: str) -> list[str]:
    return _make_analyzer().analyze(_split_pairs(text))


def _list_phrase(phrase: str) -> tuple[str, ...]:
    words = _list_words(phrase)
    while len(words) > 1 and _is_letter(words[0]):
        del words[0]
    while len(words) > 1 and _is_letter(words[-1]):
        del words[-1]
    return tuple(words)


def _is_letter(word: str) -> bool:
    return len(word) == 1 and UNSPACED.match(word) is not None


def write_passages(
    folder: Path, passages: Iterable[PassageRow], threads: int = 1, characters: int = SEGMENT_CHARACTERS
) -> int:
    """Index passages in a new folder, so many characters a segment, and return how many there are.

    The number of threads changes no byte. Memory holds up to two segments of text a thread, and the postings
    of one.
    """
    folder.mkdir(parents=True)
    metas: list[dict[str, Any]] = []
    under_way: deque[Future[dict[str, Any]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for number, segment in enumerate(_cut_segments(passages, characters)):
            if len(under_way) > threads:
                metas.append(under_way.popleft().result())
            under_way.append(pool.submit(_write_segment, folder, number, segment))
        metas.extend(future.result() for future in under_way)
    segments = [segment for meta in metas for segment in meta["segments"]]
    (folder / _META).write_text(json.dumps(metas[0] | {"segments": segments}))
    return sum(segment["max_doc"] for segment in segments)


def _cut_segments(passages: Iterable[PassageRow], characters: int) -> Iterator[Sequence[PassageRow]]:
    held: list[PassageRow] = []
    size = 0
    for passage in passages:
        if size >= characters:
            yield held
            held, size = [], 0
        held.append(passage)
        size += len(passage[1]) + len(passage[2])
    yield held


def _write_segment(folder: Path, number: int, passages: Sequence[PassageRow]) -> dict[str, Any]:
    with TemporaryDirectory(dir=folder) as place:
        fill_index(passages, Path(place))
        meta: dict[str, Any] = json.loads((Path(place) / _META).read_text())
        for segment in meta["segments"]:
            drawn, name = UUID(segment["segment_id"]).hex, UUID(int=number)
            for file in Path(place).glob(f"{drawn}.*"):
                file.rename(folder / f"{name.hex}{file.suffix}")
            segment["segment_id"] = str(name)
    if len(meta["segments"]) > 1:
        raise RuntimeError(f"{len(passages)} passages of a segment are {len(meta['segments'])} in {folder}")
    return meta


def fill_index(passages: Iterable[PassageRow], folder: Path | None = None) -> Index:
    """Return a new index of passages as one segment, in a folder or in memory."""
    index = Index(_make_schema(), None if folder is None else str(folder))
    index.register_tokenizer(_ANALYZER, _make_analyzer())
    writer = index.writer(WRITER_BYTES, 1)
    for node, title, text in passages:
        row = Document()
        row.add_unsigned("node", node)
        words = _split_pairs(text)
        row.add_text("words", "\n".join([*[_split_pairs(title)] * TITLE_TIMES, words]))
        row.add_text("text", words)
        row.add_bytes("shown", f"{title}\n{text}".encode("utf-8", "replace"))
        writer.add_document(row)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


def _remove_links(place: Path) -> None:
    for _ in range(_TRIES):
        shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            return
        time.sleep(0.01)


class PassageIndex:
    """An index that is open for reading; threads search at once, and not with the interpreter's lock in hand."""

    def __init__(self, index: Index, most_read: int = COMMON_WORD) -> None:
        """Read an index as it is now."""
        self._schema, self._searcher, self._most_read = index.schema, index.searcher(), most_read

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open what :func:`write_passages` wrote; nothing is written into the folder, which may be read-only."""
        # Tantivy makes lock files beside the index. Links give it a folder for them; once open it holds the files.
        place = Path(mkdtemp(prefix="synth-search-"))
        try:
            for file in folder.resolve().iterdir():
                (place / file.name).symlink_to(file)
            index = Index.open(str(place))
            index.config_reader("manual")
            return cls(index)
        except (OSError, ValueError) as error:
            raise ConfigError(f"no search index in {folder}: {error}") from error
        finally:
            _remove_links(place)

    def search(self, query: str, k: int, pages: int | None = None) -> list[Passage]:
        """Return the k best passages for the words of a query, any of which may match; operators have no meaning.

        A passage that holds a long query word for word comes first. Order is by score, then by place in the index, so
        it is the same every time.
        """
        ranked = self._rank(query, k)
        if pages is not None:
            nodes = self._read_nodes([place for _, place in ranked])
            best = dict(zip(reversed(nodes), reversed(ranked), strict=True))
            ranked = [best[node] for node in islice(dict.fromkeys(nodes), pages)]
        nodes = self._read_nodes([place for _, place in ranked])
        return [self._read(place, node, score) for node, (score, place) in zip(nodes, ranked, strict=True)]

    def rank_nodes(self, query: str, k: int) -> list[int]:
        """Return the node of each of the k best passages, best first; a text costs more to read than to find."""
        return self._read_nodes([place for _, place in self._rank(query, k)])

    def _rank(self, query: str, k: int) -> list[tuple[float, DocAddress]]:
        words = _list_words(query)
        tokens = list(dict.fromkeys(words))
        # Words that are everywhere decide nothing and cost a scan of every passage.
        tokens = [token for token in tokens if token not in _EVERYWHERE] or tokens
        if not tokens or k <= 0:
            return []
        queries = [self._match_any(tokens)]
        if len(words) >= QUOTED_WORDS and self._count_rarest(words) <= self._most_read:
            queries.insert(0, self._match_phrase(_list_phrase(query)))
        found: dict[tuple[int, int], tuple[float, DocAddress]] = {}
        for each in queries:
            for score, place in self._searcher.search(each, k, count=False).hits:
                found.setdefault((place.segment_ord, place.doc), (score, place))
        return list(found.values())[:k]

    def find_phrases(self, phrases: Iterable[str], limit: int) -> tuple[int, ...] | None:
        """Return the nodes with a passage that holds one of some phrases word for word, ascending.

        Case and diacritics do not matter, and neither do marks between the words. A phrase that is cut by the end of a
        passage is not found; titles are not looked at.
        """
        sought = []
        for words in dict.fromkeys(filter(None, map(_list_phrase, phrases))):
            rarest = self._count_rarest(words)
            if rarest > (limit if len(words) == 1 else self._most_read) or _is_letter(words[0]):
                return None
            if rarest:
                sought.append((Occur.Should, self._match_phrase(words)))
        if not sought:
            return ()
        matching = Query.const_score_query(Query.boolean_query(sought), 1.0)
        places = [place for _, place in self._searcher.search(matching, limit + 1, count=False).hits]
        if len(places) > limit:
            return None
        return tuple(sorted(set(self._read_nodes(places))))

    def _match_any(self, tokens: Iterable[str]) -> Query:
        return Query.boolean_query(
            [(Occur.Should, Query.term_query(self._schema, "words", token, "freq")) for token in tokens]
        )

    def _match_phrase(self, words: Sequence[str]) -> Query:
        if len(words) == 1:
            return Query.term_query(self._schema, "text", words[0])
        return Query.phrase_query(self._schema, "text", list(words))

    def _count_rarest(self, words: Iterable[str]) -> int:
        return min(self._searcher.doc_freq("text", word) for word in words)

    def _read_nodes(self, places: Sequence[DocAddress]) -> list[int]:
        return cast(list[int], self._searcher.fast_field_values("node", list(places)))

    def _read(self, place: DocAddress, node: int, score: float) -> Passage:
        title, _, text = bytes(self._searcher.doc(place)["shown"][0]).decode().partition("\n")
        return Passage(node, title, text, score)
