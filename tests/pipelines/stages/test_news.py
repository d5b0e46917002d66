"""Articles, anchors, bridges and reviews: what each keeps and refuses, and for which reason."""

import asyncio
import json

import pytest

from pipelines.config.settings import NewsConfig
from pipelines.errors import ConfigError
from pipelines.pictures import PictureStore
from pipelines.run.reviewing import read_decisions
from pipelines.splits import SHARES, SplitRule
from pipelines.stages.anchors import Anchors
from pipelines.stages.articles import Articles
from pipelines.stages.bridges import Bridges
from pipelines.stages.reviews import Decision, Reviews
from schemas.base import Rejection
from schemas.datasets import Article, Bridge
from schemas.tasks import AnchorsReply, AskedBridgeReply, ChainReply, FoundBridgeReply, NamedAnchor
from tests.pipelines.stages.news_wiki import (
    ARTICLES,
    BRIDGE,
    FILLER,
    FIRST,
    QUESTION,
    SECOND,
    build_news,
    make_answer,
    make_trace,
)
from tests.pipelines.stages.players import make_asking

SPLITS = SplitRule(SHARES, 7)
NONE = "none"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build_news(tmp_path_factory.mktemp("news"))


def say(prompt, *replies):
    """Return a model that gives its replies in turn, the last one again and again."""
    left = list(replies)
    return make_asking(prompt, lambda inputs: left.pop(0) if len(left) > 1 else left[0])


def run(stage, record):
    return asyncio.run(stage(record))


# Articles


def sort_articles(corpus, **settings):
    rows = list(Articles(corpus, NewsConfig(**settings), 256)())
    kept = [row.title for row in rows if isinstance(row, Article)]
    return kept, {row.reason: row.detail for row in rows if isinstance(row, Rejection)}


def test_an_article_is_kept_or_refused_for_one_reason(tmp_path):
    copy = ARTICLES[0] | {"url": "https://sun.example/1", "published": "2026-11-20", "picture": "tower.png"}
    shown = copy | {"url": "https://sun.example/2", "text": f"Other words.{FILLER}", "picture": "copy.png"}
    small = shown | {"url": "https://sun.example/3", "text": f"More words.{FILLER}", "picture": "small.png"}
    short = small | {"url": "https://sun.example/4", "text": "Few words."}
    undated = small | {"url": "https://sun.example/5", "published": "yesterday"}
    corpus = build_news(tmp_path, *ARTICLES, copy, shown, small, short, undated)
    kept, refused = sort_articles(corpus, after="2026-06-30")
    assert kept == ["Crowds at Kelm Bridge"]
    assert set(refused) == {
        "too-old", "no-picture", "duplicate-article", "duplicate-picture", "picture-too-small", "too-short", "undated",
    }  # fmt: skip


def test_a_source_has_no_more_articles_than_its_cap_and_the_earliest_are_kept(tmp_path):
    rows = [
        ARTICLES[2] | {"url": f"https://times.example/{day}", "published": f"2026-10-0{day}", "title": f"Day {day}",
                       "text": f"On day {day} it rained.{FILLER}", "picture": picture}
        for day, picture in ((2, "kelm.png"), (1, "tower.png"))
    ]  # fmt: skip
    kept, refused = sort_articles(build_news(tmp_path, *rows), per_source=1)
    assert (kept, refused) == (["Day 1"], {"source-over-quota": "Times has 1 already"})


# Anchors


def name_in(corpus, tmp_path, *anchors, words="Kelm Bridge"):
    (record,) = (row for row in Articles(corpus, NewsConfig(after="2026-06-30"), 256)()
                 if isinstance(row, Article))  # fmt: skip
    reply = AnchorsReply(anchors=tuple(NamedAnchor(name=name, kind="object", quote=quote) for name, quote in anchors))
    asking = say("name_anchors", reply)
    stage = Anchors(corpus, asking, PictureStore(tmp_path / "images"), SPLITS, 2, 900)
    return run(stage, record), asking.model


def test_an_anchor_has_the_span_that_names_it_and_the_model_saw_the_picture(corpus, tmp_path):
    (anchor,), model = name_in(corpus, tmp_path, ("Kelm Bridge", "Kelm Bridge on Tuesday"))
    assert (anchor.name, anchor.kind, anchor.evidence.text) == ("Kelm Bridge", "object", "Kelm Bridge on Tuesday")
    assert anchor.picture.licence == "CC BY 4.0"
    assert model.asked[0].messages[-1].images == (anchor.picture.sha256,)


@pytest.mark.parametrize(
    ("anchors", "reason"),
    [
        ((), "nothing-named"),
        ((("Kelm Bridge", "Kelm Bridge on Monday"),), "quote-not-found"),
        ((("Marn Tower", "Kelm Bridge on Tuesday"),), "anchor-not-in-article"),
        ((("Tuesday", "Kelm Bridge on Tuesday"),), "anchor-not-in-article"),
    ],
)
def test_an_anchor_that_the_article_does_not_name_is_refused(corpus, tmp_path, anchors, reason):
    refused, _ = name_in(corpus, tmp_path, *anchors)
    assert refused.reason == reason


# Bridges


GOOD = {
    FoundBridgeReply: {"bridge": "Ana Roth", "relation": "was designed by", "quote": FIRST},
    AskedBridgeReply: {"article": "a2", "relation": "was born on", "answer": "4 May 1871", "quote": SECOND,
                       "question": QUESTION},
    ChainReply: {"verdict": "yes", "reason": "sound"},
}  # fmt: skip


def bridge(corpus, tmp_path, changes=None, again=None):
    """Run the stage; ``changes`` are laid over each reply to a task, ``again`` over its second one."""
    (anchor,), _ = name_in(corpus, tmp_path, ("Kelm Bridge", "Kelm Bridge on Tuesday"))
    changes, again = changes or {}, again or {}
    asked = [
        say(
            prompt, model(**(said | changes.get(model, {}))), model(**(said | again.get(model, changes.get(model, {}))))
        )
        for prompt, (model, said) in zip(("find_bridge", "ask_bridge", "judge_chain"), GOOD.items(), strict=True)
    ]
    return run(Bridges(corpus, *asked, 900, 3, 6), anchor), [each.model for each in asked]


def test_a_question_leads_over_two_articles_with_the_quotes_of_both(corpus, tmp_path):
    (made,), (_, asking, _) = bridge(corpus, tmp_path)
    assert [link.url for link in made.trace.links] == [BRIDGE, "https://times.example/roth"]
    assert (made.text, made.answer.value, made.verdict) == (QUESTION, "1871-05-04", "yes")
    asked = asking.asked[0].inputs
    assert [article.title for article in asked.articles] == ["Crowds at Kelm Bridge", "Ana Roth remembered"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({FoundBridgeReply: {"bridge": NONE}}, "no-bridge"),
        ({FoundBridgeReply: {"quote": f"{FIRST} Indeed."}}, "quote-not-found"),
        ({FoundBridgeReply: {"bridge": "kelm bridge"}}, "bridge-is-anchor"),
        ({AskedBridgeReply: {"article": NONE}}, "no-question"),
        ({AskedBridgeReply: {"article": "a7"}}, "quote-not-found"),
        ({AskedBridgeReply: {"answer": "about 1871 or so"}}, "answer-untyped"),
        ({AskedBridgeReply: {"answer": "Ana Roth"}}, "answer-is-bridge"),
        ({AskedBridgeReply: {"question": "When was Ana Roth of the bridge in the image born?"}}, "alias-leak"),
        ({ChainReply: {"verdict": "no"}}, "chain-refused"),
    ],
)
def test_a_chain_that_does_not_hold_is_refused_for_its_reason(corpus, tmp_path, changes, reason):
    refused, _ = bridge(corpus, tmp_path, changes)
    assert isinstance(refused, Rejection)
    assert refused.reason == reason


def test_a_refused_reply_is_asked_for_once_more_with_the_problem(corpus, tmp_path):
    wrong = {FoundBridgeReply: {"quote": "Kelm Bridge was built."}, AskedBridgeReply: {"question": "Who?"}}
    (made,), models = bridge(corpus, tmp_path, wrong, {model: {} for model in wrong})
    assert made.text == QUESTION
    tried = [model.asked[-1].inputs.tried for model in models[:2]]
    assert ["does not stand in the article" in tried[0][0].problem, tried[1][0].text] == [True, "Who?"]


# Reviews


def make_bridge(corpus, verdict):
    picture = {"sha256": "a" * 64, "extension": "jpg", "file": "x", "width": 9, "height": 9, "phash": "0" * 16,
               "author": "", "licence": "", "licence_url": "", "source_url": ""}  # fmt: skip
    return Bridge.model_validate(
        {"record_id": "bridge-1", "parent_id": "anchor-1", "split": "sft", "text": QUESTION, "picture": picture,
         "answer": make_answer(), "trace": make_trace(corpus), "verdict": verdict, "remark": "see the picture"}
    )  # fmt: skip


def test_what_nobody_decided_is_refused_and_what_a_person_decided_says_who_and_when(corpus):
    unsure = make_bridge(corpus, "unsure")
    assert run(Reviews(), unsure).reason == "undecided"
    (kept,) = run(Reviews({"bridge-1": Decision(True, "Ana", "2026-11-20")}), unsure)
    assert (kept.trace.decided_by, kept.trace.decided_on) == ("Ana", "2026-11-20")
    refused = run(Reviews({"bridge-1": Decision(False, "Ana", "2026-11-20")}), make_bridge(corpus, "yes"))
    assert (refused.reason, refused.detail) == ("refused-by-person", "by Ana on 2026-11-20")


CSV = """id,decision,decided_by,decided_on
bridge-1,accept,Ana Roth,2026-11-20
bridge-2,,,
bridge-3,refuse,Ben,2026-11-21
"""
ARGILLA = [{"id": "bridge-1", "updated_at": "2026-11-20 09:00:00", "responses": {"decision": [
    {"value": "accept", "user_id": "u-1", "status": "submitted"},
    {"value": "refuse", "user_id": "u-2", "status": "draft"},
    {"value": "refuse", "user_id": "u-3"},
]}}]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "by"),
    [
        ("d.csv", CSV, "Ana Roth"),
        ("d.csv", "\ufeff" + CSV, "Ana Roth"),
        ("d.json", json.dumps(ARGILLA), "Argilla user u-1"),
    ],
)
def test_decisions_are_read_back_with_who_and_when(tmp_path, name, content, by):
    (tmp_path / name).write_text(content)
    decisions = read_decisions(str(tmp_path / name))
    assert decisions["bridge-1"] == Decision(True, by, "2026-11-20")
    assert "bridge-2" not in decisions


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (CSV.replace("accept", "maybe"), "allowed: accept, refuse"),
        (CSV.replace("Ana Roth", " "), "who made it"),
        (CSV.replace("2026-11-20", "yesterday"), "on which day"),
        (CSV.replace("bridge-3", "bridge-1"), "contradict"),
        ("id,decision\nbridge-1,accept\n", "neither the CSV"),
    ],
)
def test_decisions_that_say_too_little_are_refused(tmp_path, content, said):
    (tmp_path / "d.csv").write_text(content)
    with pytest.raises(ConfigError, match=said):
        read_decisions(str(tmp_path / "d.csv"))
    with pytest.raises(ConfigError, match="no such file"):
        read_decisions(str(tmp_path / "other.csv"))
