"""The scripted players of the news: who names what a picture shows, who writes the chain, and who judges it.

They read the articles of :mod:`pipelines.toy.newsroom` by its wordings and answer from what they are given, nothing
else. The namer sees no picture and trusts the caption, so that a wrong caption misleads it. Now and then each errs: in
a quote, in a name that it lets slip, in a fact of something else; so that every check has work.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel

from pipelines.corpus.wikitext import split_sentences
from pipelines.graph.answers import type_answer
from pipelines.ids import draw_unit
from pipelines.names import compile_phrase
from pipelines.toy.ontology import ATTRIBUTES, RELATIONS, SUBTYPES, Relation, ToyAttribute
from pipelines.toy.phrases import classify_noun
from pipelines.toy.writer import propose_descriptors, refer_to_anchor
from schemas.proofs import AnchorKind
from schemas.tasks import (
    AnchorsReply,
    AskBridgeInputs,
    AskedBridgeReply,
    ChainReply,
    FindBridgeInputs,
    FoundBridgeReply,
    HopView,
    JudgeChainInputs,
    NameAnchorsInputs,
    NamedAnchor,
    ProposeDescriptorsInputs,
    ReferToAnchorInputs,
    WriteQuestionInputs,
)

SLIP = 0.06
"""How often each player errs in each of its ways at a first request; half as often at the second."""
UNSURE, DOUBT = 0.12, 0.04
"""How often the judge leaves a chain open, or finds one unsound that is not."""
_SHOWN = re.compile(
    r"(?:Once more |A meeting about )?(?P<name>[^,.]+(?:, [A-Z][^,.]*)?), an? (?P<noun>[a-z][\w' -]*?), "
)
NONE = "none"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that states a fact."""

    sentence: str
    key: str
    """Infobox key of the fact."""
    words: str
    """The relation from the subject to the value."""
    value: str


def report(inputs: BaseModel) -> BaseModel | None:
    """Return the reply to a task of the news; None for any other task."""
    match inputs:
        case NameAnchorsInputs():
            return name_anchors(inputs)
        case FindBridgeInputs():
            return find_bridge(inputs)
        case AskBridgeInputs():
            return ask_bridge(inputs)
    return None


def name_anchors(article: NameAnchorsInputs) -> AnchorsReply:
    """Name what the caption says, else what the text begins with."""
    for quote in (article.caption, *_split(article.text)):
        found = _SHOWN.match(quote)
        if found is not None:
            wrong = draw_unit("namer", article.title, "quote") < SLIP
            told = quote.replace(" a ", " the ", 1) if wrong else quote
            return AnchorsReply(anchors=(NamedAnchor(name=found["name"], kind=_find_kind(found["noun"]), quote=told),))
    return AnchorsReply(anchors=())


def _find_kind(noun: str) -> AnchorKind:
    if classify_noun(noun) == "person":
        return "person"
    events = {each for subtype in SUBTYPES if subtype.kind == "event" for each in subtype.nouns}
    return "event" if noun in events else "object"


def find_bridge(article: FindBridgeInputs) -> FoundBridgeReply:
    """Return the first fact that leads from the anchor to something else."""
    rate = SLIP / (2 if article.tried else 1)
    for said in _list_statements(article.text, article.anchor, _find_noun(article.text, article.anchor), RELATIONS):
        quote = said.sentence
        if draw_unit("bridge", article.anchor, len(article.tried), "quote") < rate:
            quote = quote.replace(" was ", " is ").rstrip(".") + ", it is said."
        return FoundBridgeReply(bridge=said.value, relation=said.words, quote=quote)
    return FoundBridgeReply(bridge=NONE, relation=NONE, quote=NONE)


def ask_bridge(chain: AskBridgeInputs) -> AskedBridgeReply:
    """Ask for a fact of the bridge, worded as walked questions are."""
    kind = next((noun for each in chain.articles if (noun := _find_noun(each.text, chain.bridge))), "")
    shown = next((noun for each in chain.articles if (noun := _find_noun(each.text, chain.anchor))), "")
    hops = list(_list_statements(chain.quote, chain.anchor, shown, RELATIONS))
    facts = [(each.id, said) for each in chain.articles
             for said in _list_statements(each.text, chain.bridge, kind, ATTRIBUTES)]  # fmt: skip
    if not (kind and shown and hops and facts):
        return AskedBridgeReply(article=NONE, relation=NONE, answer=NONE, quote=NONE, question=NONE)
    place, fact = min(facts, key=lambda each: draw_unit("ask", chain.anchor, each[1].key))
    question = _word(chain, (shown, kind), hops[0].key, fact)
    rate = SLIP / (2 if chain.tried else 1)
    slips = [name for name in ("name", "quote", "other") if draw_unit(name, chain.anchor, len(chain.tried)) < rate]
    quote = fact.sentence
    if "name" in slips:
        question = f"{question.rstrip('?')}, as {chain.bridge} is?"
    if "quote" in slips:
        quote = quote.replace(chain.bridge, "It", 1)
    if "other" in slips:
        quote = next(iter(_split(chain.articles[-1].text)), quote)
    return AskedBridgeReply(article=place, relation=fact.words, answer=fact.value, quote=quote, question=question)


def _word(chain: AskBridgeInputs, nouns: tuple[str, str], key: str, fact: Statement) -> str:
    shown, kind = nouns
    answer = type_answer(fact.value, "", fact.key)
    if answer is None:
        return NONE
    variety = f"{chain.anchor} {fact.key}"
    hop = HopView(relation=key, clause="", object_name=chain.bridge, object_type=kind)
    offered = propose_descriptors(ProposeDescriptorsInputs(
        anchor_type=shown, subject_type=shown, hop=hop, facts=(), count=3, variety=variety
    ))  # fmt: skip
    path = WriteQuestionInputs(anchor_name=chain.anchor, anchor_type=shown, hops=(hop,), answer_relation=fact.key,
                               answer=answer, variety=variety)  # fmt: skip
    return refer_to_anchor(ReferToAnchorInputs(
        question=NONE, name=chain.anchor, anchor_type=shown, path=path, descriptors=(offered.descriptors[0].text,)
    ))  # fmt: skip


def judge_chain(chain: JudgeChainInputs) -> ChainReply:
    """Say no where a quote does not name what its fact is about; now and then leave a chain open, or err."""
    for link in chain.links:
        if not all(compile_phrase(name).search(link.quote) for name in (link.subject, link.object)):
            return ChainReply(verdict="no", reason=f"a quote does not name {link.subject} and {link.object}")
    luck = draw_unit("chain", chain.question, chain.anchor)
    if luck < DOUBT:
        return ChainReply(verdict="no", reason="the first fact may lead to several")
    if luck < DOUBT + UNSURE:
        return ChainReply(verdict="unsure", reason="a person should see whether the picture shows it")
    return ChainReply(verdict="yes", reason="both quotes state their facts, and the question asks for the second")


def _say(found: re.Match[str], subject: str, name: str) -> str:
    sentence = found.string
    between = sentence[len(subject) : found.start("o")].strip()
    whole = sentence.startswith(subject) and sentence.endswith(f"{found['o']}.") and between.islower()
    return between if whole else f"has as its {name.replace('_', ' ')}"


def _find_noun(text: str, name: str) -> str:
    found = re.search(rf"{re.escape(name)}, an? (?P<noun>[a-z][\w' -]*?), ", text)
    return found["noun"] if found else ""


def _split(text: str) -> list[str]:
    return [part[slice(*span)] for part in text.split("\n\n") for span in split_sentences(part)]


def _list_statements(
    text: str, subject: str, noun: str, table: Sequence[Relation] | Sequence[ToyAttribute]
) -> Iterator[Statement]:
    subtype = next((each.name for each in SUBTYPES if noun in each.nouns), "")
    for sentence in _split(text):
        for entry in table:
            if not subtype or subtype in entry.subjects:
                for wording in entry.wordings:
                    found = _compile(wording, subject).fullmatch(sentence)
                    if found is not None:
                        yield Statement(sentence, entry.key_for(subtype), _say(found, subject, entry.name), found["o"])


@lru_cache(maxsize=1 << 14)
def _compile(wording: str, subject: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\})", wording)
    filled = {"{s}": re.escape(subject), "{s_low}": re.escape(subject), "{o}": "(?P<o>.+?)",
              "{when}": "(?:on|in) (?P<o>.+?)"}  # fmt: skip
    return re.compile("".join(filled.get(part, re.escape(part)) for part in parts))
