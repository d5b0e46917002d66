from collections import Counter, defaultdict

from rdflib import Graph, Namespace

from pipelines.toy.wikitext import Page, list_links

WIKIBASE = Namespace("http://wikiba.se/ontology#")
SCHEMA = Namespace("http://schema.org/")
WDT = Namespace("http://www.wikidata.org/prop/direct/")
WD = "http://www.wikidata.org/entity/"


def test_page_table_agrees_with_the_dump(world_200):
    rows = world_200.table("page")
    assert [row["page_id"] for row in rows] == [line[1] for line in world_200.index]
    texts = world_200.texts()
    for row in rows:
        if row["page_namespace"] == "0":
            text = texts[row["page_title"].replace("_", " ")]
            assert int(row["page_len"]) == len(text.encode())
            assert (row["page_is_redirect"] == "1") == text.startswith("#REDIRECT")


def test_pagelinks_are_the_links_of_the_wikitext(world_200):
    targets = {row["lt_id"]: row["lt_title"] for row in world_200.table("linktarget") if row["lt_namespace"] == "0"}
    links = defaultdict(set)
    for row in world_200.table("pagelinks"):
        if row["pl_target_id"] in targets:
            links[row["pl_from"]].add(targets[row["pl_target_id"]])
    texts = world_200.texts()
    for row in world_200.table("page"):
        if row["page_namespace"] == "0":
            found = list_links(Page("x", texts[row["page_title"].replace("_", " ")]))
            assert links[row["page_id"]] == {title for namespace, title in found if namespace == 0}


def test_no_article_links_to_a_page_that_is_not_there(world_200):
    titles = {row["page_title"] for row in world_200.table("page") if row["page_namespace"] == "0"}
    linked = {row["lt_title"] for row in world_200.table("linktarget") if row["lt_namespace"] == "0"}
    assert linked <= titles


def test_links_in_comments_and_nowiki_do_not_count():
    page = Page("x", "[[a b]] <!-- [[c]] --> <nowiki>[[d]]</nowiki> [[Category:E]] [[:Category:F]] [[A b#g|h]]")
    assert list_links(page)[0] == (0, "A_b")
    assert (0, "C") not in list_links(page)
    assert (14, "F") in list_links(page)
    assert (14, "E") not in list_links(page)
    assert len([link for link in list_links(page) if link[0] == 0 and link[1] == "A_b"]) == 1


def test_free_pictures_are_told_apart_in_page_props(world_200):
    free = {entity["picture"]: entity["picture_free"] for entity in world_200.truth("entities") if entity["picture"]}
    props = {row["pp_value"]: row["pp_propname"] for row in world_200.table("page_props")}
    for picture, is_free in free.items():
        assert props[picture] == ("page_image_free" if is_free else "page_image")


def test_homonyms_have_a_disambiguation_page_with_links_to_all(world_200):
    names = Counter(entity["name"].casefold() for entity in world_200.truth("entities"))
    pages = {row["pp_page"] for row in world_200.table("page_props") if row["pp_propname"] == "disambiguation"}
    assert len(pages) == sum(count > 1 for count in names.values()) > 0


def test_turtle_holds_counts_on_the_data_node_as_in_page_props(world_200):
    graph = Graph().parse(world_200.root / "wikidata-20260101.ttl")
    qids = {row["page_id"]: row["page_title"] for row in world_200.table("page", "wikidatawiki")}
    counts = {
        (qids[row["pp_page"]], row["pp_propname"]): row["pp_value"]
        for row in world_200.table("page_props", "wikidatawiki")
    }
    nodes = {str(entity).removeprefix(WD): node for node, entity in graph.subject_objects(SCHEMA.about)}
    for qid in qids.values():
        data = next(
            node
            for node in graph.subjects(SCHEMA.about, next(graph.objects(nodes[qid], SCHEMA.about)))
            if "EntityData" in node
        )
        assert str(graph.value(data, WIKIBASE.sitelinks)) == counts[qid, "wb-sitelinks"]
        assert str(graph.value(data, WIKIBASE.statements)) == counts[qid, "wb-claims"]


def test_turtle_states_only_true_facts_and_names_the_article(world_200):
    graph = Graph().parse(world_200.root / "wikidata-20260101.ttl")
    true = {(fact["subject_qid"], fact["object_qid"]) for fact in world_200.truth("facts") if fact["object_qid"]}
    ours = {entity["qid"]: entity["title"] for entity in world_200.truth("entities")}
    for subject, predicate, target in graph:
        pair = (str(subject).removeprefix(WD), str(target).removeprefix(WD))
        if predicate.startswith(str(WDT)) and pair[1] in ours:
            assert pair in true
    names = {
        (str(e).removeprefix(WD), str(graph.value(a, SCHEMA.name))) for a, e in graph.subject_objects(SCHEMA.about)
    }
    assert set(ours.items()) <= names
