"""The news of a world: its faults are there, and the scripted players read it as it was written."""

import json

import pytest

from pipelines.pictures import find_extension
from pipelines.toy.newsroom import HOST, write_news
from pipelines.toy.pictures import plan_pictures
from pipelines.toy.reporter import ask_bridge, find_bridge, judge_chain, name_anchors
from pipelines.toy.world import WorldConfig, build_world
from schemas.tasks import (
    AskBridgeInputs,
    FindBridgeInputs,
    JudgeChainInputs,
    NameAnchorsInputs,
    NewsPassage,
    QuotedLink,
)

CONFIG = WorldConfig(entities=300)
TEXT = (
    "Kelm Bridge, a stone bridge, was the talk of the week. Kelm Bridge was designed by Ana Roth. "
    "Nobody forgot Ana Roth, an engineer, this time."
)
OTHER = "Once more Ana Roth, an engineer, drew a crowd. It rained. Ana Roth was born on 4 May 1871."


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    folder = tmp_path_factory.mktemp("news")
    world = build_world(CONFIG)
    leads = plan_pictures(world.entities, CONFIG)
    (folder / "images").mkdir()
    for lead in leads.values():
        (folder / "images" / lead.stored_name).write_bytes(b"\xff\xd8\xff" + lead.file.encode())
    write_news(world, leads, folder / "images", folder / "news")
    return folder / "news"


def read_rows(news):
    return [json.loads(line) for line in (news / "articles.jsonl").read_text("utf-8").splitlines()]


def test_every_article_has_an_address_a_day_and_a_source_that_tell_nothing(news):
    rows = read_rows(news)
    assert len({row["url"] for row in rows}) == len(rows) > 50
    assert len({row["source"] for row in rows}) >= 8
    assert all(HOST in row["url"] and "2023" <= row["published"] < "2026" for row in rows)
    shown = [row for row in rows if row["picture"]]
    assert all(find_extension((news / row["picture"]).read_bytes()) == "jpg" for row in shown)
    assert not any(word.lower() in row["picture"] for row in shown for word in row["title"].split() if len(word) > 3)


def test_some_articles_have_each_fault(news):
    rows = read_rows(news)
    texts = [row["text"] for row in rows]
    assert len(set(texts)) < len(texts)
    assert any(row["published"] < "2025-06" for row in rows)
    assert any(row["caption"] and not row["picture"] for row in rows)
    named = [row for row in rows if ", a" in row["caption"]]
    assert any(row["caption"].split(", a")[0] not in row["text"] for row in named)


@pytest.mark.parametrize("caption", ["Kelm Bridge, a stone bridge, on Tuesday.", "A picture of last week."])
def test_the_namer_reads_caption_or_text(caption):
    reply = name_anchors(NameAnchorsInputs(title="t", caption=caption, text=TEXT, count=1))
    assert [(anchor.name, anchor.kind) for anchor in reply.anchors] == [("Kelm Bridge", "object")]


def test_the_writer_leads_from_the_picture_over_the_bridge_to_a_fact_of_it():
    found = find_bridge(FindBridgeInputs(anchor="Kelm Bridge", kind="object", title="t", text=TEXT))
    assert (found.bridge, found.relation) == ("Ana Roth", "was designed by")
    articles = (NewsPassage(id="a1", title="t", published="", text=TEXT),
                NewsPassage(id="a2", title="o", published="", text=OTHER))  # fmt: skip
    asked = ask_bridge(AskBridgeInputs(
        anchor="Kelm Bridge", kind="object", bridge="Ana Roth", relation=found.relation,
        quote="Kelm Bridge was designed by Ana Roth.", articles=articles,
    ))  # fmt: skip
    assert (asked.article, asked.relation, asked.answer) == ("a2", "was born on", "4 May 1871")
    assert "image" in asked.question
    assert not {"Kelm", "Roth", "1871"} & set(asked.question.replace("?", "").split())


def test_the_judge_says_no_to_a_quote_of_something_else():
    link = QuotedLink(subject="Kelm Bridge", relation="was designed by", object="Ana Roth", quote="It rained.")
    chain = JudgeChainInputs(question="Who?", anchor="Kelm Bridge", kind="object", links=(link,), answer="x")
    assert judge_chain(chain).verdict == "no"
