import bz2
import hashlib
import io

from lxml import etree

EXPORT = "{http://www.mediawiki.org/xml/export-0.11/}"


def test_every_page_is_in_the_stream_its_index_line_points_to(world_200):
    data, lines = world_200.dump.read_bytes(), world_200.index
    for offset in sorted({int(line[0]) for line in lines}):
        text = bz2.BZ2Decompressor().decompress(data[offset:]).decode()
        root = etree.fromstring(f"<x>{text}</x>")
        ids = [page.findtext("id") for page in root.iter("page")]
        assert ids == [line[1] for line in lines if int(line[0]) == offset]
        assert len(ids) <= 100


def test_pages_come_by_ascending_id_and_agree_with_the_index(world_200):
    ids = [int(page.findtext(f"{EXPORT}id")) for page in world_200.pages()]
    assert ids == sorted(set(ids))
    assert ids == [int(line[1]) for line in world_200.index]


def test_bytes_and_sha1_describe_the_text(world_200):
    for page in world_200.pages():
        element = page.find(f"{EXPORT}revision/{EXPORT}text")
        raw = element.text.encode()
        assert int(element.get("bytes")) == len(raw)
        assert int(element.get("sha1"), 36) == int(hashlib.sha1(raw).hexdigest(), 16)
        assert len(element.get("sha1")) == 31


def test_titles_are_unique_in_each_namespace_without_regard_to_case(world_200):
    titles = [page.findtext(f"{EXPORT}title").casefold() for page in world_200.pages()]
    assert len(titles) == len(set(titles))


def test_redirects_chain_fragment_lists_and_other_namespaces_are_there(world_200):
    pages = world_200.pages()
    redirects = {
        page.findtext(f"{EXPORT}title"): page.find(f"{EXPORT}redirect").get("title")
        for page in pages
        if page.find(f"{EXPORT}redirect") is not None
    }
    assert any(target in redirects for target in redirects.values())
    texts = world_200.texts()
    assert any(text.startswith("#REDIRECT") and "#History]]" in text for text in texts.values())
    assert any(title.startswith("List of ") for title in texts)
    assert {"0", "10", "14", "100"} <= {page.findtext(f"{EXPORT}ns") for page in pages}


def test_every_redirect_ends_at_an_article_within_three_steps(world_200):
    texts = world_200.texts()
    redirects = {row["rd_from"]: row["rd_title"].replace("_", " ") for row in world_200.table("redirect")}
    title_of = {row["page_id"]: row["page_title"].replace("_", " ") for row in world_200.table("page")}
    target_of = {title_of[page]: target for page, target in redirects.items()}
    for title in target_of:
        for _ in range(3):
            title = target_of.get(title, title)
        assert title in texts
        assert title not in target_of


def test_header_declares_the_namespaces(world_200):
    header = bz2.BZ2Decompressor().decompress(world_200.dump.read_bytes())
    names = [
        element.text for _, element in etree.iterparse(io.BytesIO(header + b"</mediawiki>"), tag=f"{EXPORT}namespace")
    ]
    assert {"Template", "Category", "Portal", "File"} <= set(names)
