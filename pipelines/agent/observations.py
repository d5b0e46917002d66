"""Observations: the results of tool calls as text and pictures, and summaries of pages.

The layout of search hits, pages and text in pictures is written and parsed here. Passages of a page are chosen for a
goal by words alone, in time linear in the page, so the same page and goal give the same passages.

A summary of a page for a goal follows OpenSearch-VL, appendix F; VSearcher, A.2; SenseNova-MARS, 8.3. The published
pipelines show whatever the model writes. Here a summary is shown only if it is whole, short, no refusal, and without a
number or a name that the page lacks. Otherwise the best passages of the page are shown, and the observation says so.
"""

import io
import itertools
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from threading import Lock
from types import MappingProxyType

from pipelines.agent.transcript import neutralise_markup
from pipelines.corpus.wikitext import split_sentences
from pipelines.errors import RecordFailed, Unavailable
from pipelines.graph.cues import EVERYWHERE
from pipelines.ids import digest_value
from pipelines.pictures import MAX_BYTES, PictureSource, PictureStore, open_pixels
from pipelines.services.prompting import RoleClient, render_messages
from pipelines.services.protocols import ChatReply, ChatRequest, ImageHit, TextBlock, TextHit
from schemas.corpus import CorpusImage
from schemas.datasets import Observation, Picture, RolloutImage, SearchResult
from schemas.tasks import SummariseInputs

VERSION = 1
"""Raised when other bytes are made of the same picture."""
SIDE = 256
"""Longest side of a thumbnail, pixels; a smaller picture is not enlarged."""
QUALITY = 80
KEPT = 4096
"""Thumbnails remembered, some 4 MB; one that was forgotten is made again, to the same bytes."""
LONGEST_URL = 2000
"""Characters; a page with a longer address cannot be visited."""


@dataclass(frozen=True, slots=True)
class Thumbnails:
    """Makes small copies of pictures that a search found, each once, and keeps whose they are and under what licence.

    Safe from any thread; two that ask for one at the same time make the same file.
    """

    store: PictureStore
    _made: OrderedDict[str, Picture | None] = field(default_factory=OrderedDict, init=False, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    @property
    def identity(self) -> str:
        return f"thumbnails@{VERSION}:{SIDE}:{QUALITY}"

    def make(self, path: Path, sha256: str, source: PictureSource) -> Picture | None:
        """Return the thumbnail of a picture file as a row value, stored; None for one that cannot be decoded."""
        with self._lock:
            if sha256 in self._made:
                self._made.move_to_end(sha256)
                return self._made[sha256]
        thumbnail = self._make(path, source)
        with self._lock:
            self._made[sha256] = thumbnail
            if len(self._made) > KEPT:
                self._made.popitem(last=False)
        return thumbnail

    def _make(self, path: Path, source: PictureSource) -> Picture | None:
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise Unavailable(f"picture {path}: {error.strerror}; bring it back and run again") from error
        try:
            return self.store.add_bytes(shrink_picture(data), source)
        except RecordFailed:
            return None


def shrink_picture(data: bytes) -> bytes:
    """Return a picture of at most :data:`SIDE` pixels a side as a JPEG file: upright, transparent parts on white."""
    target = io.BytesIO()
    open_pixels(data, max_side=SIDE).save(target, "JPEG", quality=QUALITY)
    return target.getvalue()


def keep_result(hit: TextHit | ImageHit, image: str = "") -> SearchResult:
    """Return a hit as rows keep it, stripped of markup."""
    thumbnail = hit.thumbnail if isinstance(hit, ImageHit) else None
    return SearchResult(url=clean_text(hit.url), title=clean_text(hit.title), thumbnail=thumbnail, image=image)


def keep_results(hits: Sequence[TextHit | ImageHit]) -> tuple[SearchResult, ...]:
    """Return hits as rows keep them, none of them shown."""
    return tuple(keep_result(hit) for hit in hits)


def clean_text(text: str) -> str:
    """Return external text without markup, with question marks in place of invalid characters."""
    return neutralise_markup(text.encode("utf-8", "replace").decode())


HIT = re.compile(r"^\[\d+\] (?P<title>.*)\nURL: (?P<url>\S+)\n(?P<snippet>.*)$", re.MULTILINE)
PAGE = re.compile(r"\ATitle: (?P<title>[^\n]*)\nURL: (?P<url>\S+)\n\n(?P<text>.*)\Z", re.DOTALL)

LONGEST_TITLE = 300


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit or a page as an observation shows it."""

    url: str
    title: str
    text: str
    image: str = ""
    """Name of the picture that is shown with a hit, if one is."""


def render_hits(hits: Sequence[Shown], snippet_limit: int) -> str:
    """Return numbered hits of three lines each: title, address, snippet; a fourth names the picture of a hit."""
    blocks = []
    for number, hit in enumerate(hits, start=1):
        snippet = cut_text(_flatten(hit.text), snippet_limit) or "(no text)"
        picture = f"\nPicture: {hit.image}" if hit.image else ""
        blocks.append(f"[{number}] {_name(hit.title)}\nURL: {_flatten(hit.url)}\n{snippet}{picture}")
    return "\n\n".join(blocks)


def read_hits(text: str) -> tuple[Shown, ...]:
    """Return the hits that an observation shows, in order."""
    return tuple(Shown(found["url"], found["title"], found["snippet"]) for found in HIT.finditer(text))


def render_page(page: Shown, limit: int) -> str:
    """Return a page: title, address, an empty line, and at most ``limit`` characters of text."""
    return f"Title: {_name(page.title)}\nURL: {_flatten(page.url)}\n\n{cut_text(page.text, limit)}"


def read_page(text: str) -> Shown | None:
    """Return the page that an observation shows, or None when it shows something else."""
    found = PAGE.match(text)
    return None if found is None else Shown(found["url"], found["title"], found["text"])


def render_blocks(blocks: Sequence[TextBlock], size: tuple[int, int], limit: int) -> str:
    """Return the text read in a picture, a line a block, at most ``limit`` characters of it; empty without a block."""
    lines = []
    for block in blocks:
        sides = (size[0], size[1], size[0], size[1])
        box = [min(1000, max(0, round(1000 * edge / side))) for edge, side in zip(block.box, sides, strict=True)]
        lines.append(f"{_flatten(block.label)} {box} ({block.confidence:.2f}): {_flatten(block.text)}")
    return cut_text("\n".join(lines), limit)


def cut_text(text: str, limit: int) -> str:
    """Return text of at most ``limit`` characters; longer text is cut at white space and ends in an ellipsis."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    space = max(kept.rfind(" "), kept.rfind("\n"))
    return (kept[:space] if space > limit // 2 else kept).rstrip() + "…"


_WORD = re.compile(r"\w+")
_SENTENCE_START = re.compile(r"(?:^|(?<=[.!?])[\"'”’)]* +)(?=\S)")


def cut_match(text: str, query: str, limit: int) -> str:
    """Return the part of a text that holds most of a query's words, from the start of a sentence, on one line.

    At most ``limit`` characters, or twice as many where the words are further apart than that. What is left out before
    and after is an ellipsis each.
    """
    flat = _flatten(text)
    if len(flat) <= limit:
        return flat
    wanted = set(_WORD.findall(query.casefold())) - EVERYWHERE
    places = [(match.start(), match.group().casefold()) for match in _WORD.finditer(flat)]
    places = [(start, word) for start, word in places if word in wanted]
    shown = _find_window(flat, places, limit)
    if len(_list_found(places, shown, limit)) < len({word for _, word in places}):
        limit *= 2
        shown = _find_window(flat, places, limit)
    return f"{'…' if shown else ''}{cut_text(flat[shown:], limit - bool(shown))}"


def _find_window(text: str, places: Sequence[tuple[int, str]], limit: int) -> int:
    if len(text) <= limit:
        return 0
    best, chosen = (-1, -1), 0
    for match in _SENTENCE_START.finditer(text):
        found = _list_found(places, match.end(), limit)
        score = (len(set(found)), len(set(itertools.pairwise(found))))
        if score > best:
            best, chosen = score, match.end()
    return chosen


def _list_found(places: Sequence[tuple[int, str]], start: int, limit: int) -> list[str]:
    return [word for at, word in places if start <= at and at + len(word) <= start + limit - 2]


def _name(title: str) -> str:
    return cut_text(_flatten(title), LONGEST_TITLE)


def _flatten(text: str) -> str:
    return " ".join(text.split())


LONGEST_DETAIL = 300
"""Characters of a failure that a model is shown."""


ERRORS: Mapping[str, str] = MappingProxyType(
    {
        "unknown-tool": "there is no tool of this name",
        "bad-arguments": "the arguments do not fit the tool's schema",
        "bad-turn": "the turn could not be read as one; no tool was called",
        "unknown-image": "the rollout has no picture of this name",
        "unknown-page": "there is no page at this address, or none that can be read",
        "blocked-host": "the address leads to a host that publishes datasets",
        "forbidden-address": "the address is none of the public web: its scheme, host or port may not be reached",
        "crop-outside": "the box goes beyond the picture",
        "crop-too-small": "a side of the part is too short",
        "picture-missing": "the picture's file cannot be read",
        "picture-format": "the picture is of no format that can be read",
        "picture-too-large": "the picture has too many pixels or bytes",
        "picture-undecodable": "the picture's file is broken",
        "picture-too-small": "the picture has too few pixels for this tool",
        "picture-refused": "the service does not take this picture",
        "search-refused": "the service does not take this query",
        "no-text-layer": "only drawn pictures can be read here",
        "ocr-timeout": "reading the picture took too long",
        "ocr-failed": "the engine failed on this picture",
        "ocr-refused": "the engine does not take this picture",
        "tool-failed": "the tool failed on this call for another reason",
    }
)
"""Every class of a call that failed, and what it means. An observation's ``error`` is one of them, or empty."""
WARNINGS: Mapping[str, str] = MappingProxyType(
    {
        "no-weights": "nothing was enlarged: the network's weights are not at hand",
        "no-quadrilateral": "nothing was straightened: no four-sided area was found",
        "no-summary": "a page could not be summed up: the passages that fit best are shown",
    }
)
"""Every class of a call that was answered, but not as it was meant."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a call led to."""

    observation: Observation
    images: tuple[RolloutImage, ...] = ()
    """The pictures that are new to the rollout."""
    raw: str = ""
    """External text before markup was stripped, including text that was read and not shown."""


def show_text(text: str, warning: str = "") -> ToolOutcome:
    """Return what a tool found, stripped of markup."""
    return ToolOutcome(Observation(ok=True, error="", text=clean_text(text), images=(), warning=warning), raw=text)


def show_results(
    text: str, results: tuple[SearchResult, ...], images: tuple[RolloutImage, ...] = (), warning: str = ""
) -> ToolOutcome:
    """Return what a search found, with the thumbnails that are shown."""
    observation = Observation(
        ok=True,
        error="",
        text=clean_text(text),
        images=tuple(image.id for image in images),
        warning=warning,
        results=results,
    )
    return ToolOutcome(observation, images, text)


def show_picture(made: RolloutImage, text: str) -> ToolOutcome:
    """Return a picture that a tool made."""
    observation = Observation(ok=True, error="", text=clean_text(text), images=(made.id,))
    return ToolOutcome(observation, (made,))


def warn_of(warning: str, text: str) -> ToolOutcome:
    """Return the outcome of a tool that leaves the picture unchanged: a warning and no new picture."""
    return ToolOutcome(Observation(ok=True, error="", text=clean_text(text), images=(), warning=warning))


def refuse_call(error: str, text: str) -> ToolOutcome:
    """Return the outcome of a call that cannot be made."""
    return ToolOutcome(Observation(ok=False, error=error, text=clean_text(text), images=()))


def refuse_failed(error: RecordFailed, what: str) -> ToolOutcome:
    """Return the outcome of a call on which a tool failed, under the failure's class if it is one of ours."""
    known = error.error in ERRORS
    detail = error.detail if known else f"{error.error}: {error.detail}"
    return refuse_call(error.error if known else "tool-failed", f"{what}: {cut_text(detail, LONGEST_DETAIL)}")


def credit_picture(picture: Picture | CorpusImage) -> PictureSource:
    """Return whose a picture is: what is made of it keeps file name, author and licence."""
    return PictureSource(
        file=picture.file,
        author=picture.author,
        licence=picture.licence,
        licence_url=picture.licence_url,
        source_url=picture.source_url,
    )


PASSAGES_VERSION = 1
"""Of the choice: part of what decides an observation."""
PASSAGE = 800
"""Characters of a passage at most; a longer paragraph is cut."""
PIECE = 400
"""Characters of what is shown in one piece to the summariser: whole sentences, unless one is longer."""
GAP = "[…]"
"""Line where a page is left out."""
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\Wa-z_])|\n+")
_SKIP = f"\n\n{GAP}\n\n"
_LEAST_WORD = 3
"""Letters of a word that counts; digits always do."""


def choose_passages(text: str, goal: str, limit: int) -> str:
    """Return at most ``limit`` characters of a page: passages that fit the goal, then the page from its beginning.

    A page within the limit is returned unchanged, and so is the beginning of a page without a fitting passage.
    """
    if len(text) <= limit:
        return text
    passages = _cut_passages(text)
    ranked = _rank(passages, goal)
    chosen, left = [], limit // 2
    for place in ranked:
        if len(passages[place]) + 2 > left:
            break
        chosen.append(place)
        left -= len(passages[place]) + 2
    if not chosen:
        return cut_text(text, limit)
    taken = frozenset(chosen)
    fitting = "\n\n".join(passages[place] for place in chosen)
    rest = "\n\n".join(passage for place, passage in enumerate(passages) if place not in taken)
    return cut_text(f"{fitting}{_SKIP}{rest}", limit)


def cut_page(text: str, goal: str, limit: int) -> str:
    """Return at most ``limit`` characters of a page: its first sentence and what fits the goal best, in its order."""
    if len(text) <= limit:
        return text
    spans = _cut_spans(text)
    chosen, left = [], limit
    # What room the fitting ones leave, the page's beginning takes.
    for place in dict.fromkeys((0, *_rank([text[slice(*span)] for span in spans], goal), *range(len(spans)))):
        needed = spans[place][1] - spans[place][0] + len(_SKIP)
        if needed <= left:
            chosen.append(place)
            left -= needed
    shown, last = "", -1
    for place in sorted(chosen):
        shown += ("\n" if place == last + 1 else _SKIP) + text[slice(*spans[place])]
        last = place
    return shown.strip()


def _cut_spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start, end in split_sentences(text):
        if len(spans) > 1 and end - spans[-1][0] <= PIECE:
            start = spans.pop()[0]
        while end - start > PIECE:
            cut = max(text.rfind(" ", start, start + PIECE), start + PIECE // 2)
            spans.append((start, cut))
            start = cut
        spans.append((start, end))
    return spans


def choose_sentences(text: str, goal: str, count: int) -> tuple[str, ...]:
    """Return at most ``count`` sentences or lines of a page that fit a goal, in their order.

    Where none does, they are the first.
    """
    sentences = [" ".join(part.split()) for part in _SENTENCE.split(text) if part.strip()]
    ranked = _rank(sentences, goal)[:count] or range(min(count, len(sentences)))
    return tuple(sentences[place] for place in sorted(ranked))


def _cut_passages(text: str) -> list[str]:
    passages = []
    for paragraph in text.split("\n\n"):
        start = 0
        while start < len(paragraph):
            end = start + PASSAGE
            if end < len(paragraph):
                least = start + PASSAGE // 4
                edges = (paragraph.rfind(mark, least, end) for mark in ("\n", ". ", " "))
                end = next((edge + 1 for edge in edges if edge > 0), end)
            passages.append(paragraph[start:end].strip())
            start = end
    return [passage for passage in passages if passage]


def _rank(parts: Sequence[str], goal: str) -> list[int]:
    wanted = frozenset(list_words(goal))
    shared = [wanted.intersection(list_words(part)) for part in parts]
    frequency = Counter(word for words in shared for word in words)
    weights = {word: log((len(parts) + 0.5) / (count + 0.5)) for word, count in frequency.items()}
    scores = [sum(weights[word] for word in sorted(words)) for words in shared]
    return sorted((place for place, score in enumerate(scores) if score > 0.0), key=lambda place: -scores[place])


def list_words(text: str) -> Iterable[str]:
    """Return the words of a text that say something, in lower case: of three letters at least, or numbers."""
    return (word for word in _WORD.findall(text.casefold()) if len(word) >= _LEAST_WORD or word.isdigit())


ANSWER = "answer"
"""What a support of the answer is called; supports of bridges carry the bridge's title."""
QUALIFIER = re.compile(r"\s*\([^()]*\)$")


def find_name(text: str, name: str) -> tuple[int, int] | None:
    """Return the span of the first whole-word occurrence of a name, whatever its case and spacing, or None.

    ``Ur`` is not found in ``during``, ``5`` not in ``1,5`` or ``5.2``.
    """
    words = name.split()
    if not words:
        return None
    body = r"\s+".join(re.escape(word) for word in words)
    found = re.search(rf"(?<!\w)(?<!\d[.,]){body}(?!\w)(?![.,]\d)", text, re.IGNORECASE)
    return None if found is None else found.span()


def list_forms(title: str) -> tuple[str, ...]:
    """Return how a page's title may read in text: in full, and without a closing qualifier in parentheses."""
    bare = QUALIFIER.sub("", title)
    return (title, bare) if bare and bare != title else (title,)


SUMMARISING_VERSION = 3
"""Of what is shown to the model and what is believed of it."""
TASK = "summarise"
MOST_READ = 4_000
"""Characters of a page that the model is shown, some 1,000 tokens: whole pages were 75 % of a rollout's price."""
LONGEST = 1500
"""Characters of a summary: about five sentences. A shorter page is shown as it is."""
LEAST = 10
_STEM = 4
"""Letters that two forms of a name have in common: France, French."""
_THOUGHT_END = "</think>"
_REFUSAL = re.compile(
    r"\W*(?:(?:i am |i'm )?(?:very |so |truly )?sorry\b|unfortunately,? i\b|i apologi[sz]e\b"
    r"|i (?:can't|cannot|can not|won't|will not|am (?:un|not )able)\b|as an ai\b)",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-z_]{3,20}>|<[|｜]|^\s*[{\[]|```", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<![\w'’\"“(*#-])[^\W\d_a-z][^\W\d_]{3,}")
"""A word with a capital that begins no sentence."""
_SUMMARISING_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_DENIAL = re.compile(
    r"\b(?:not?|nor|neither|none|nothing|nobody|never|nowhere|without|unclear|unknown|cannot)\b|n['’]t\b"
)
"""What a sentence has that says what a page does not tell."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The text shown for a page."""

    text: str
    whole: bool = True
    """Whether it is a summary; else it is passages of the page."""
    problem: str = ""
    """Why there is no summary, for a reader."""


@dataclass(frozen=True, slots=True)
class Summariser:
    """A model that sums up pages, and what stands in for it where it does not."""

    asking: RoleClient

    @property
    def identity(self) -> str:
        return digest_value([SUMMARISING_VERSION, PASSAGES_VERSION, MOST_READ, LONGEST, self.asking.identity])

    async def summarise(self, goal: str, title: str, text: str, limit: int = LONGEST) -> Summary:
        """Return a page summed up for a goal, or its best passages if there is no usable summary."""
        if len(text) <= LONGEST:
            return Summary(text)
        source = cut_page(text, goal, MOST_READ)
        inputs = SummariseInputs(goal=goal, title=clean_text(title), text=clean_text(source))
        asking = self.asking
        messages = render_messages(asking.prompt, inputs)
        try:
            said = await asking.model.chat(ChatRequest(TASK, asking.prompt.label, messages, inputs, asking.sampling))
        except RecordFailed as error:
            problem = str(error)
        else:
            summary, problem = read_summary(said, f"{title}\n{source}", goal)
            if not problem:
                return Summary(summary)
        return Summary(choose_passages(text, goal, limit), whole=False, problem=problem)


def read_summary(said: ChatReply, source: str, goal: str = "") -> tuple[str, str]:
    """Return the summary in a reply, or the reason why it is unusable."""
    if said.ended != "whole":
        return "", f"{said.ended} reply"
    text = said.text.rpartition(_THOUGHT_END)[2].strip()
    problem = _find_fault(text) or _find_invention(text, source, goal)
    return ("", problem) if problem else (text, "")


def _find_fault(text: str) -> str:
    if not LEAST <= len(text) <= LONGEST:
        return f"{len(text):,} characters, expected are {LEAST} to {LONGEST:,}"
    if _REFUSAL.match(text.replace("’", "'")):
        return "a refusal"
    if _TAG.search(text) or clean_text(text) != text or not text.replace("\n", " ").isprintable():
        return "tags, code or control characters"
    return ""


def _find_invention(text: str, source: str, goal: str) -> str:
    told, asked = _list_marks(source), _list_marks(f"{source}\n{goal}")
    start = 0
    for sentence in _SUMMARISING_SENTENCE.split(text):
        known = asked if _DENIAL.search(sentence) else told
        place = text.index(sentence, start)
        start = place + len(sentence)
        for mark in (*_NUMBER.finditer(text, place, start), *_NAME.finditer(text, place, start)):
            word, counts = mark[0], mark[0].isdecimal()
            if (counts or word[0].isupper()) and _shorten(word) not in known:
                return f"the {'number' if counts else 'name'} {word[:40]} is not on the page"
    return ""


def _list_marks(source: str) -> frozenset[str]:
    return frozenset((*_NUMBER.findall(source), *map(_shorten, list_words(source))))


def _shorten(word: str) -> str:
    return word if word.isdecimal() else word.casefold()[:_STEM]
