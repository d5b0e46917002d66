import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.corpus.articles import (
    clean_paragraphs,
    escape_text,
    find_quote,
    list_source_files,
    name_source,
    read_articles,
    show_article,
    show_text,
    strip_html,
    write_news,
)
from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.corpus.wikitext import find_links, plain_text
from pipelines.errors import ConfigError, CorruptInput

URL = "https://herald.example/2026/kelm"


def make_row(**changes):
    row = {
        "url": URL, "title": "Crowds at Kelm Bridge", "text": "Kelm Bridge was designed by Ana Roth.\n\nIt rained.",
        "published": "2026-11-12", "source": "Herald", "caption": "Kelm Bridge on Tuesday", "picture": "p/kelm.png",
    }  # fmt: skip
    return row | changes


def write_lines(folder, *rows):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "articles.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return folder


def paint(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.effect_noise((600, 520), 90).convert("RGB").save(path, "PNG")
    return path


@pytest.fixture
def source(tmp_path):
    paint(tmp_path / "news" / "p" / "kelm.png")
    other = make_row(url="https://times.example/z", source="Times", picture="", published="yesterday")
    return write_lines(tmp_path / "news", make_row(), other)


def build(source, folder):
    return Corpus.open(_build(write_news(source, folder / "export", "CC BY 4.0", "https://x.example/"), folder / "c"))


def _build(dump, out):
    build_corpus(dump, out)
    return out


# Text that is never read as markup


@given(st.text(alphabet="[]{}|<>&'_*#:;=!-+\"xY. \n", max_size=60))
def test_whatever_an_article_holds_no_link_template_or_tag_comes_out_of_it(text):
    clean = clean_paragraphs(text)
    page = escape_text(clean)
    assert show_text(page) == clean
    assert not find_links(page, "en")
    # Bullets and indents at the ends of lines are tidied away; every other sign is still there.
    kept = "".join(plain_text(page).split()).strip("*#:;=!-+")
    assert kept in "".join(clean.split()) or sorted(kept) <= sorted("".join(clean.split()))


@given(st.text(alphabet="[]{}|<>&'_xY. ", min_size=1, max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_a_quote_is_found_where_it_stands_and_shows_itself(quote, before, after):
    wanted = " ".join(clean_paragraphs(quote).split())
    text = clean_paragraphs(f"{before} {wanted} {after}")
    page = escape_text(text)
    span = find_quote(page, wanted)
    if not wanted:
        assert span is None
        return
    assert span is not None
    assert show_text(page[slice(*span)]) == wanted


# Sources


def test_json_lines_become_a_corpus_whose_pages_have_the_articles_addresses(source, tmp_path):
    corpus = build(source, tmp_path)
    first = corpus.origin(corpus.find("Crowds at Kelm Bridge"))
    assert (first.url, first.source, first.published, first.words) == (URL, "Herald", "2026-11-12", 9)
    assert corpus.page_url(first.title) == URL
    assert corpus.find_url(f"{URL}#top") == corpus.find(first.title)
    assert corpus.find_url("https://herald.example/other") is None
    second = corpus.origin(corpus.find_url("https://times.example/z"))
    assert second.title == "Crowds at Kelm Bridge (Times)"
    assert (second.published, second.image) == ("", "")
    image = corpus.image(first.image)
    assert (image.licence, image.author, image.source_url) == ("CC BY 4.0", "Herald", URL)


def test_of_one_address_the_first_article_is_a_page_and_the_others_are_counted_as_failed(tmp_path):
    write_lines(tmp_path / "news" / "b", make_row(title="Later"))
    (tmp_path / "news" / "a.json").write_text(json.dumps(make_row(title="First")))
    corpus = build(tmp_path / "news", tmp_path)
    assert [corpus.page(node).title for node in corpus.article_nodes()] == ["First"]
    assert (corpus.manifest.counts.rows_in, corpus.manifest.counts.failed) == (2, 1)


def test_an_article_is_shown_to_a_model_in_whole_paragraphs(source, tmp_path):
    corpus = build(source, tmp_path)
    text = corpus.text(corpus.find_url(URL))
    assert show_article(text, 8) == "Kelm Bridge was designed by Ana Roth."
    assert show_article(text).endswith("Herald, 2026-11-12.")


RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel>
<title>Kelm Herald</title><link>https://herald.example/</link>
<item><title>Kelm &lt;b&gt;Bridge&lt;/b&gt;</title>
<link>https://herald.example/1</link><pubDate>Thu, 12 Nov 2026 10:00:00 GMT</pubDate>
<description>&lt;p&gt;It was &amp;amp; is, as we said.&lt;/p&gt;&lt;script&gt;evil()&lt;/script&gt;
&lt;p&gt;Next.&lt;/p&gt;</description>
<media:content url="p/kelm.png"><media:description>Seen on Tuesday</media:description></media:content></item>
<item><title>Nowhere</title></item></channel></rss>"""


def test_an_rss_feed_gives_text_day_caption_and_the_picture_beside_it(tmp_path):
    picture = paint(tmp_path / "p" / "kelm.png")
    (tmp_path / "feed.rss").write_text(RSS)
    article, _ = read_articles(tmp_path / "feed.rss")
    assert (article.title, article.source, article.published) == ("Kelm Bridge", "Kelm Herald", "2026-11-12")
    assert article.text == "It was & is, as we said.\n\nNext."
    assert (article.caption, article.picture) == ("Seen on Tuesday", picture)


@pytest.mark.parametrize("link", ["", "<link>javascript:alert(1)</link>", "<link>https://[::1</link>"])
def test_an_entry_without_an_address_of_the_web_is_a_page_that_fails(tmp_path, link):
    (tmp_path / "news").mkdir()
    feed = RSS.replace("<title>Nowhere</title>", f"<title>Nowhere</title>{link}")
    (tmp_path / "news" / "feed.rss").write_text(feed)
    counts = build(tmp_path / "news", tmp_path).manifest.counts
    assert (counts.rows_in, counts.articles, counts.failed) == (2, 1, 1)


# Hostile input

BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + RSS.partition("?>")[2]
LEAK = RSS.replace("<rss", '<!DOCTYPE rss [<!ENTITY e SYSTEM "file:///etc/hostname">]><rss').replace("Next.", "&e;")


@pytest.mark.parametrize("feed", [BOMB, LEAK, BOMB.replace("DOCTYPE", "doctype")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_feed_that_declares_entities_is_refused_in_any_encoding(tmp_path, feed, encoding):
    (tmp_path / "feed.xml").write_bytes(feed.encode(encoding))
    with pytest.raises(CorruptInput, match="document type"):
        list(read_articles(tmp_path))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.xml", "<html><body>no feed</body></html>", "neither RSS nor Atom"),
        ("a.jsonl", "{not json", "no JSON"),
        ("a.jsonl", "[" * 100_000, "no JSON"),
        ("a.jsonl", '{"url": 1}', "no article"),
        ("a.json", json.dumps(make_row(url="file:///etc/passwd")), "no address"),
        ("a.json", json.dumps(make_row(url="javascript:alert(1)")), "no address"),
        ("a.json", json.dumps(make_row(url="https://[::1")), "no address"),
    ],
)
def test_a_file_that_is_no_source_is_refused_by_name(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(CorruptInput, match=said):
        list(read_articles(tmp_path))


def test_a_picture_outside_of_the_source_is_not_opened(tmp_path):
    paint(tmp_path / "secret.png")
    folder = write_lines(tmp_path / "news", make_row(picture="../secret.png"), make_row(url=URL + "2", picture="\0"))
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    write_lines(folder / "more", make_row(url=URL + "3", picture="../link.png"))
    assert [article.picture for article in read_articles(folder)] == [None, None, None]


def test_a_source_without_articles_says_what_to_name(tmp_path):
    with pytest.raises(ConfigError, match="no articles"):
        list_source_files(tmp_path)


# Pictures by address


def test_a_picture_named_by_address_is_the_one_that_was_fetched(tmp_path):
    fetched = paint(tmp_path / "kept" / "abc")
    source = write_lines(tmp_path / "news", make_row(picture="https://pics.example/kelm.jpg"))
    (article,) = read_articles(source)
    assert (article.picture, article.picture_url) == (None, "https://pics.example/kelm.jpg")
    known = {article.picture_url: fetched}
    assert [each.picture for each in read_articles(source, known)] == [fetched]
    assert name_source(source, "", "") != name_source(source, "", "", known)


def test_of_html_what_is_shown_is_left():
    shown = strip_html("<p>A &lt; B <b>x</b><!-- no --> 3 < 4</p><script>bad()</script>y")
    assert shown.split("\n\n") == ["", "A < B x 3 < 4", "y"]
