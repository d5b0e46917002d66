import time

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.dump import (
    LinkTarget,
    Site,
    TitleRules,
    default_namespaces,
    hash_title,
    is_disambiguation_title,
    is_list_title,
    strip_qualifier,
)

SITE = Site("enwiki", "https://en.wikipedia.org/wiki/", "en", "first-letter", default_namespaces())
RULES = TitleRules(SITE)


@pytest.mark.parametrize(
    ("raw", "namespace", "title", "fragment"),
    [
        ("a b#c", 0, "A b", "c"),
        ("X_y", 0, "X y", ""),
        ("  foo \u00a0 bar\u200e_", 0, "Foo bar", ""),
        ("Caf%C3%A9", 0, "Café", ""),
        ("Cafe\u0301", 0, "Café", ""),
        ("AT&amp;T", 0, "AT&T", ""),
        ("100% wool", 0, "100% wool", ""),
        ("ébène", 0, "Ébène", ""),
        ("ßeta", 0, "ßeta", ""),
        ("2001: A Space Odyssey", 0, "2001: A Space Odyssey", ""),
        (":Category:things", 14, "Things", ""),
        ("category : things", 14, "Things", ""),
        ("Image:a.jpg", 6, "A.jpg", ""),
        ("WP:NPOV", 4, "NPOV", ""),
        ("w:Paris", 0, "Paris", ""),
        ("en::Paris", 0, "Paris", ""),
        ("FILE talk:a.jpg", 7, "A.jpg", ""),
        ("en:Image:a.jpg", 6, "A.jpg", ""),
        ("R&amp", 0, "R&amp", ""),
        ("a...b", 0, "A...b", ""),
        ("X#a#b", 0, "X", "a#b"),
        (":en:Paris", 0, "Paris", ""),
        ("w:en:Paris", 0, "Paris", ""),
        ("w:en:Image:a.jpg", 6, "A.jpg", ""),
        ("W:En:2001: A Space Odyssey", 0, "2001: A Space Odyssey", ""),
        ("w", 0, "W", ""),
        ("Wikipedia:w:X", 4, "W:X", ""),
    ],
)
def test_target_is_normalised(raw, namespace, title, fragment):
    assert RULES.resolve(raw) == LinkTarget(namespace, title, fragment)


ILLEGAL = ["::X", "Category::X", ".", "..", "./a", "a/..", "a/./b", "a~~~b", "a%2541", "a&amp;amp;b", "&#35;x", "a\x7f"]


@pytest.mark.parametrize("raw", ["w:en:w:Paris", "en:en:en:File:a.jpg", "w:en:fr:Paris", "w:en:w:"])
def test_two_prefixes_of_the_own_wiki_lead_home_and_more_lead_nowhere(raw):
    assert RULES.resolve(raw) is None


def test_a_chain_of_own_prefixes_takes_linear_time():
    started = time.process_time()
    assert RULES.resolve("w:" * 400_000 + "x") is None
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "raw", ["#here", "", " ", ":", "fr:Paris", ":de:X", "wikt:cat", "a<b", "x" * 300, "Category:", *ILLEGAL]
)
def test_what_is_no_page_of_this_wiki_is_none(raw):
    assert RULES.resolve(raw) is None


def test_case_sensitive_wiki_keeps_the_first_letter():
    rules = TitleRules(Site("xwiktionary", "", "en", "case-sensitive", default_namespaces()))
    assert rules.resolve("cat") == LinkTarget(0, "cat", "")


def test_local_namespace_names_are_known():
    rules = TitleRules(Site("dewiki", "", "de", "first-letter", ((6, "Datei"), (14, "Kategorie"))))
    assert rules.resolve("Kategorie:Brücke") == LinkTarget(14, "Brücke", "")


@given(st.text(max_size=60))
def test_resolving_a_resolved_title_changes_nothing(raw):
    target = RULES.resolve(raw)
    if target is not None and target.namespace == 0 and not set("&%") & set(target.title):
        again = RULES.resolve(":" + target.title)
        assert again is None or again == LinkTarget(again.namespace, again.title, "")
        assert again is None or again.namespace != 0 or again.title == target.title


def test_titles_of_lists_and_disambiguation_pages_are_known():
    assert is_list_title("List of bridges")
    assert not is_list_title("Listening")
    assert is_disambiguation_title("Ada (disambiguation)")


def test_qualifiers_are_stripped():
    assert [strip_qualifier(title) for title in ("Paris (mythology)", "Springfield, Ohio", "(?)", "Ohio")] == [
        "Paris",
        "Springfield",
        "(?)",
        "Ohio",
    ]


# Of Wikimedia's UcfirstOverrides.php: letters that stay, and letters with a capital of one character.
KEPT = "ßŉǰΐΰևაჰჿẖẚὐᾲᾶῂΐῲ\u0345ǅǈǋǲᾈῼⅰⅿⓐⓩꞹﬀﬆﬓ𖹠𖹿"
RAISED = dict(zip("ǆǉǌǳᾀᾇᾐᾠᾳῃῳàяωıſ𐐨", "ǄǇǊǱᾈᾏᾘᾨᾼῌῼÀЯΩIS𐐀", strict=True))


def test_first_letters_are_raised_as_wikimedia_does():
    assert "".join(RULES.capitalise(letter + "x")[:-1] for letter in KEPT) == KEPT
    assert {letter: RULES.capitalise(letter + "x")[:-1] for letter in RAISED} == RAISED


@pytest.mark.parametrize(("language", "capital"), [("tr", "İ"), ("az", "İ"), ("en", "I")])
def test_a_turkish_i_keeps_its_dot(language, capital):
    rules = TitleRules(Site("xwiki", "", language, "first-letter", default_namespaces()))
    assert rules.resolve("iz") == LinkTarget(0, capital + "z", "")


def test_case_is_by_namespace():
    rules = TitleRules(Site("x", "", "en", "case-sensitive", default_namespaces(), frozenset({0, 10})))
    assert [rules.resolve(raw).title for raw in ("cat", "Template:cat", "User:cat")] == ["cat", "cat", "Cat"]


@pytest.mark.parametrize(
    ("language", "names", "raw", "namespace"),
    [
        ("de", ((6, "Datei"), (14, "Kategorie")), "datei:a.jpg", 6),
        ("de", ((6, "Datei"), (14, "Kategorie")), "Bild:a.jpg", 6),
        ("de", ((6, "Datei"), (14, "Kategorie")), "KATEGORIE:a", 14),
        ("de", ((6, "Datei"), (14, "Kategorie")), "Category:a", 14),
        ("de", ((2, "Benutzer"),), "Benutzerin:A", 2),
        ("ru", ((6, "Файл"),), "ИЗОБРАЖЕНИЕ:a.jpg", 6),
        ("fr", ((3, "Discussion utilisateur"),), "discussion_Utilisateur:A", 3),
        ("en", ((6, "Datei"),), "Bild:a.jpg", 0),
    ],
)
def test_namespaces_go_by_local_names_canonical_names_and_aliases(language, names, raw, namespace):
    rules = TitleRules(Site(f"{language}wiki", "", language, "first-letter", names))
    assert rules.resolve(raw).namespace == namespace


@pytest.mark.parametrize(
    ("dbname", "raw", "title"),
    [
        ("dewiki", "de:X", "X"),
        ("dewiki", "w:X", "X"),
        ("dewiki", "en:X", None),
        ("zh_min_nanwiki", "zh-min-nan:X", "X"),
        ("enwiktionary", "w:X", None),
        ("commonswiki", "w:X", None),
        ("commonswiki", "commons:X", "X"),
    ],
)
def test_the_prefix_of_the_own_wiki_leads_home(dbname, raw, title):
    target = TitleRules(Site(dbname, "", "de", "first-letter", default_namespaces())).resolve(raw)
    assert (target and target.title) == title


@given(st.text())
def test_a_title_hash_is_the_digest_of_its_bytes(title):
    assert hash_title(title) == xxhash.xxh3_64_intdigest(title.encode("utf-8", "surrogatepass"))
    assert 0 < hash_title(title) < 2**64
