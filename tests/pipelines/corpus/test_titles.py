import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.dump import DEFAULT_NAMESPACES, Site
from pipelines.corpus.titles import LinkTarget, TitleRules, is_disambiguation_title, is_list_title, strip_qualifier

SITE = Site("enwiki", "https://en.wikipedia.org/wiki/", "en", "first-letter", DEFAULT_NAMESPACES)
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
        (":en:Paris", 0, "Paris", ""),
    ],
)
def test_target_is_normalised(raw, namespace, title, fragment):
    assert RULES.resolve(raw) == LinkTarget(namespace, title, fragment)


@pytest.mark.parametrize("raw", ["#here", "", " ", ":", "fr:Paris", ":de:X", "wikt:cat", "a<b", "x" * 300, "Category:"])
def test_what_is_no_page_of_this_wiki_is_none(raw):
    assert RULES.resolve(raw) is None


def test_case_sensitive_wiki_keeps_the_first_letter():
    rules = TitleRules(Site("xwiktionary", "", "en", "case-sensitive", DEFAULT_NAMESPACES))
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
