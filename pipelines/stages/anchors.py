"""Anchors: what the picture of an article shows, named by a model that sees it (BridgeVQA, section 3.3)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

from pipelines.agent.observations import credit_picture
from pipelines.agent.pictures import Reader
from pipelines.checks.leakage import check_names
from pipelines.checks.traces import check_quote, quote_span
from pipelines.checks.verdicts import PASSED, CheckResult, refuse
from pipelines.corpus.articles import show_article
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed, Unavailable
from pipelines.ids import digest_value, make_record_id
from pipelines.names import compile_phrase, fold_name
from pipelines.pictures import PictureStore
from pipelines.services.prompting import Prompted, RoleClient, ask_model, make_schema
from pipelines.splits import SplitRule
from schemas.base import Record, Rejection
from schemas.datasets import Anchor, Article, Picture
from schemas.manifest import ModelEntry
from schemas.proofs import Evidence
from schemas.reasons import AnchorReason
from schemas.tasks import AnchorsReply, NameAnchorsInputs, NamedAnchor

REASONS = frozenset(get_args(AnchorReason))


@dataclass(frozen=True)
class Anchors(Prompted):
    """The stage: articles in, the things that their pictures show out, each with the words that say so."""

    corpus: Corpus
    asking: RoleClient
    pictures: PictureStore
    splits: SplitRule
    count: int
    """Most things in a picture."""
    words: int
    """Of an article that the model is shown."""
    reader: Reader | None = None
    """Looks for readable names; None looks for none."""
    name: str = "anchors"
    version: int = 1
    input: ClassVar[type[Record]] = Article
    output: ClassVar[type[Record]] = Anchor

    def fingerprint(self) -> str:
        read = self.reader.identity if self.reader else ""
        numbers = [self.count, self.words, repr(self.splits), read]
        return digest_value([self.asking.identity, make_schema(AnchorsReply), *numbers])

    def models(self) -> tuple[ModelEntry, ...]:
        return (self.asking.describe("writer"),)

    async def __call__(self, record: Article) -> Sequence[Anchor] | Rejection:
        node = self.corpus.find(record.title)
        if node is None:
            raise RecordFailed("unknown-page", record.title)
        picture = await asyncio.to_thread(self._store, record.image)
        text = show_article(self.corpus.text(node), self.words)
        inputs = NameAnchorsInputs(title=record.title, caption=record.caption, text=text, count=self.count)
        reply = await ask_model(self.asking, inputs, AnchorsReply, (picture.sha256,))
        lines = await self._read(picture)
        made: list[Anchor] = []
        refused: list[CheckResult] = []
        for named in reply.anchors[: self.count]:
            evidence = quote_span(self.corpus, node, named.quote)
            result = self._check(named, node, evidence, lines)
            if evidence is None or not result.passed:
                refused.append(result)
            elif fold_name(named.name) not in {fold_name(anchor.name) for anchor in made}:
                made.append(self._make_anchor(record, picture, named, evidence))
        if made:
            return tuple(made)
        return refuse(record.record_id, refused or [CheckResult("FAIL", "nothing-named", record.title)], REASONS)

    def _store(self, file: str) -> Picture:
        image = self.corpus.image(file)
        if image is None:
            raise RecordFailed("picture-missing", file)
        try:
            return self.pictures.add_file(self.corpus.image_path(file), credit_picture(image))
        except RecordFailed as error:
            if error.error == "picture-missing":
                raise Unavailable(f"picture {file}: {error.detail}; restore it and run again") from error
            raise

    async def _read(self, picture: Picture) -> str:
        if self.reader is None:
            return ""
        return " ".join((await self.reader.read(await asyncio.to_thread(self.pictures.read, picture))).lines)

    def _check(self, named: NamedAnchor, node: int, evidence: Evidence | None, lines: str) -> CheckResult:
        if evidence is None:
            return CheckResult("FAIL", "quote-not-found", f"{named.quote!r} does not stand in the article")
        quoted = check_quote(self.corpus, evidence, (named.name,))
        if not quoted.passed:
            return CheckResult("FAIL", "anchor-not-in-article", quoted.detail)
        origin, text = self.corpus.origin(node), show_article(self.corpus.text(node))
        told = text.replace(origin.caption, " ") if origin is not None and origin.caption else text
        if not compile_phrase(named.name).search(told):
            return CheckResult("FAIL", "anchor-not-in-article", f"{named.name!r} stands in the caption alone")
        if lines and not (readable := check_names(lines, ((named.name,),))).passed:
            return CheckResult(readable.outcome, "picture-readable", readable.detail)
        return PASSED

    def _make_anchor(self, record: Article, picture: Picture, named: NamedAnchor, evidence: Evidence) -> Anchor:
        return Anchor(
            **dict(record) | {
                "record_id": make_record_id("anchor", [record.record_id, named.name]),
                "parent_id": record.record_id,
            },
            split=self.splits.place("entity", fold_name(named.name)),
            picture=picture,
            name=named.name,
            kind=named.kind,
            evidence=evidence,
        )  # fmt: skip
