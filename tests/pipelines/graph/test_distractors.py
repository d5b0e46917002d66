import io
import zlib

import pytest
from PIL import Image

from pipelines.agent.depicting import Draw, choose_distractors, find_lead_picture
from tests.toy import box, build_toy_corpus

BRIDGES = [f"Bridge {number:02d}" for number in range(30)]
TOWERS = [f"Tower {number}" for number in range(5)]
SAME = "Bridge 03"
"""Leads with the picture of the anchor."""
COPY = "Bridge 04"
"""Leads with a file of the same bytes."""
BLIND = "Bridge 05"
"""Leads with a picture that is not at hand."""
ANCHOR = "Bridge 00"


def make_png(title):
    buffer = io.BytesIO()
    number = zlib.crc32(title.encode())
    Image.new("RGB", (8, 8), (number % 256, number // 256 % 256, number // 65536 % 256)).save(buffer, "PNG")
    return buffer.getvalue()


def build_corpus_of(folder, titles):
    (folder / "images").mkdir(parents=True)
    lines = ["file\tauthor\tlicence\tlicence_url\tsource_url"]
    pages = {}
    for title in titles:
        file = "Bridge 00.png" if title == SAME else f"{title}.png"
        kind = title.split()[0].lower()
        pages[title] = box(kind, f"'''{title}''' is a {kind}.", f"image = {file}")
        if title not in (SAME, BLIND):
            (folder / "images" / file).write_bytes(make_png(ANCHOR if title == COPY else title))
            lines.append(f"{file}\tA\tCC0\t\t")
    (folder / "images" / "images.tsv").write_text("\n".join(lines) + "\n")
    pages["List of bridges"] = "'''List of bridges''' is a bridge list."
    return build_toy_corpus(folder, pages, {})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    corpus = build_corpus_of(tmp_path_factory.mktemp("held") / "world", BRIDGES + TOWERS)
    yield corpus
    corpus.close()


def choose(corpus, needed, most=0, seed=7, avoid=(), anchor=ANCHOR):
    draw = Draw(needed, max(needed, most), seed)
    nodes = choose_distractors(corpus, corpus.find(anchor), draw, [corpus.find(title) for title in avoid])
    return [corpus.page(node).title for node in nodes]


def test_distractors_are_of_the_anchors_type_and_each_is_another(corpus):
    chosen = choose(corpus, 20)
    assert len(set(chosen)) == 20
    assert set(chosen) < set(BRIDGES) - {ANCHOR}


def test_neither_the_anchor_nor_who_shares_its_picture_nor_the_path_is_a_distractor(corpus):
    chosen = choose(corpus, 40, avoid=["Bridge 09", "Tower 1"])
    assert set(chosen) == {*BRIDGES, *TOWERS} - {ANCHOR, SAME, COPY, "Bridge 09", "Tower 1"}


def test_a_picture_at_hand_goes_first(corpus):
    assert choose(corpus, 27)[-1] == BLIND
    assert find_lead_picture(corpus, corpus.find(BLIND)) is None
    assert find_lead_picture(corpus, corpus.find(ANCHOR)).path.name == "Bridge 00.png"


def test_the_domain_fills_up_what_is_needed_and_no_more(corpus):
    chosen = choose(corpus, 6, anchor="Tower 0")
    assert set(chosen[:4]) == set(TOWERS) - {"Tower 0"}
    assert set(chosen[4:]) < set(BRIDGES)
    assert len(chosen) == 6
    assert set(choose(corpus, 4, most=40, anchor="Tower 0")) == set(TOWERS) - {"Tower 0"}
