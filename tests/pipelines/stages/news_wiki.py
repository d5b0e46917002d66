"""Three articles of the news made by hand, and a corpus of them."""

import json

from PIL import Image

from pipelines.checks.readings import digest_text
from pipelines.checks.traces import make_link, quote_span, write_steps
from pipelines.corpus.articles import write_news
from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.graph.answers import type_answer
from schemas.proofs import Trace

BRIDGE = "https://herald.example/bridge"
ROTH = "https://times.example/roth"
OLD = "https://times.example/old"
FIRST = "Kelm Bridge was designed by the engineer Ana Roth."
SECOND = "Ana Roth was born in Lund on 4 May 1871."
QUESTION = "On what date was the engineer born who designed the bridge in the image?"
FILLER = " Many people came to see it, and the rain held off until the last speech was over." * 3
ARTICLES = (
    {"url": BRIDGE, "title": "Crowds at Kelm Bridge",
     "text": f"{FIRST}{FILLER}\n\nThe mayor spoke of Kelm Bridge & tea.",
     "published": "2026-11-12", "source": "Herald", "caption": "Kelm Bridge on Tuesday", "picture": "kelm.png"},
    {"url": ROTH, "title": "Ana Roth remembered", "text": f"{SECOND}{FILLER}", "published": "2026-10-01",
     "source": "Times", "caption": ""},
    {"url": OLD, "title": "An old tower", "text": f"The tower of Marn was painted.{FILLER}", "published": "2020-01-01",
     "source": "Times", "caption": "", "picture": "tower.png"},
)  # fmt: skip


def build_news(folder, *articles):
    """Return the corpus of some articles; those above where none is named."""
    source = folder / "news"
    source.mkdir(parents=True)
    for name in ("kelm.png", "tower.png", "small.png", "copy.png"):
        size = (100, 90) if name == "small.png" else (600, 520)
        Image.effect_noise(size, 90).convert("RGB").save(source / name)
    (source / "copy.png").write_bytes((source / "kelm.png").read_bytes())
    (source / "a.jsonl").write_text("\n".join(map(json.dumps, articles or ARTICLES)) + "\n")
    build_corpus(write_news(source, folder / "export", "CC BY 4.0", ""), folder / "corpus")
    return Corpus.open(folder / "corpus")


def make_trace(
    corpus, first=("Kelm Bridge", "was designed by", "Ana Roth"), answer="4 May 1871", quotes=(FIRST, SECOND)
):
    """Return the trace of the question above, or one that a test changes."""
    own, other = corpus.find_url(BRIDGE), corpus.find_url(ROTH)
    links = (
        make_link(corpus, own, first, quotes[0]),
        make_link(corpus, other, (first[2], "was born on", answer), quotes[1]),
    )
    shown = quote_span(corpus, own, "Kelm Bridge on Tuesday")
    return Trace(
        corpus=corpus.digest, snapshot=corpus.snapshot, anchor=first[0], anchor_kind="object", anchor_evidence=shown,
        links=links, steps=write_steps("object", shown, links), decided_by="judge",
        judged=digest_text(QUESTION), verdict="yes",
    )  # fmt: skip


def make_answer(text="4 May 1871"):
    return type_answer(text, "", "was born on")
