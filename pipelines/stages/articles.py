"""Articles: the image-text pairs of a corpus of news that questions are made of (BridgeVQA, section 3.3)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from pipelines.config.settings import NewsConfig
from pipelines.corpus.articles import PageOrigin
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.ids import digest_value, make_record_id
from pipelines.services.prompting import WithoutModels
from schemas.base import Record, Rejection
from schemas.datasets import Article
from schemas.reasons import ArticleReason

LEAST_WORDS = 40
"""Fewest words of an article: a shorter one is a caption or a headline."""


@dataclass(frozen=True)
class Articles(WithoutModels):
    """The stage: every article of the corpus is kept or refused, the earliest first.

    Of copies of a text or a picture the earliest is kept, then that with the smaller address.
    """

    corpus: Corpus
    settings: NewsConfig
    min_side: int
    """Shorter side of a picture in pixels."""
    name: str = "articles"
    version: int = 2
    output: ClassVar[type[Record]] = Article

    def fingerprint(self) -> str:
        settings = self.settings
        return digest_value([settings.after, settings.per_source, LEAST_WORDS, self.min_side])

    def count_candidates(self) -> int:
        return len(self.corpus.article_nodes())

    def __call__(self) -> Iterator[Article | Rejection]:
        known: list[tuple[str, str, int, PageOrigin]] = []
        for node in self.corpus.article_nodes():
            origin = self.corpus.origin(node)
            if origin is None:
                raise ConfigError(f"corpus {self.corpus.folder} holds no articles of the news; set news.source")
            known.append((origin.published, origin.url, node, origin))
        seen: dict[str, str] = {}
        kept: Counter[str] = Counter()
        for _, _, node, origin in sorted(known, key=lambda each: each[:3]):
            marks = self._mark(origin)
            refused = self._judge(origin) or _find_copy(origin, marks, seen)
            if refused is None and 0 < self.settings.per_source <= kept[origin.source]:
                refused = "source-over-quota", f"{origin.source} has {self.settings.per_source} already"
            page = self.corpus.page(node)
            record_id = make_record_id("article", [page.page_id, page.revision])
            if refused is not None:
                yield Rejection(record_id=record_id, reason=refused[0], detail=refused[1])
                continue
            kept[origin.source] += 1
            seen |= dict.fromkeys(marks, origin.url)
            yield Article(
                record_id=record_id, parent_id=f"page:{page.page_id}", page_id=page.page_id, title=page.title,
                url=origin.url, source=origin.source, published=origin.published, caption=origin.caption,
                image=origin.image,
            )  # fmt: skip

    def _judge(self, origin: PageOrigin) -> tuple[ArticleReason, str] | None:
        if self.settings.after and not origin.published:
            return "undated", origin.url
        if self.settings.after and origin.published <= self.settings.after:
            return "too-old", f"{origin.published}, wanted is after {self.settings.after}"
        if origin.words < LEAST_WORDS:
            return "too-short", f"{origin.words} words, wanted are {LEAST_WORDS}"
        image = self.corpus.image(origin.image) if origin.image else None
        if image is None:
            return "no-picture", origin.url
        if image.error:
            return "picture-unusable", f"{image.file}: {image.error}"
        if min(image.width, image.height) < self.min_side:
            return "picture-too-small", f"{image.file}: {image.width}x{image.height}"
        return None

    def _mark(self, origin: PageOrigin) -> tuple[str, str]:
        image = self.corpus.image(origin.image) if origin.image else None
        return f"text {origin.text_digest}", f"picture {image.phash or image.sha256}" if image is not None else ""


def _find_copy(origin: PageOrigin, marks: tuple[str, str], seen: Mapping[str, str]) -> tuple[ArticleReason, str] | None:
    text, picture = marks
    if text in seen:
        return "duplicate-article", f"{origin.url} has the words of {seen[text]}"
    if picture in seen:
        return "duplicate-picture", f"{origin.url} has the picture of {seen[picture]}"
    return None
