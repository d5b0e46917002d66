from collections import Counter, defaultdict

import mwparserfromhell
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.toy.ontology import RELATIONS
from pipelines.toy.world import WorldConfig, build_world


def read_infobox(text, template):
    for found in mwparserfromhell.parse(text).filter_templates(recursive=False):
        if str(found.name).split("<!--")[0].strip() == template:
            return {str(param.name).strip(): str(param.value).strip() for param in found.params}
    return None


@pytest.fixture(scope="module")
def boxes(world_200):
    texts = world_200.texts()
    return {e["title"]: read_infobox(texts[e["title"]], e["template"]) for e in world_200.truth("entities")}


def resolve(world):
    ahead = world.redirects()

    def follow(title):
        while title in ahead:
            title = ahead[title]
        return title

    return follow


def test_every_shown_entity_fact_is_a_link_in_its_infobox_field(world_200, boxes):
    follow = resolve(world_200)
    shown = [fact for fact in world_200.truth("facts") if fact["linked"]]
    assert len(shown) > 300
    for fact in shown:
        links = mwparserfromhell.parse(boxes[fact["subject"]][fact["key"]]).filter_wikilinks()
        assert fact["object"] in {follow(str(link.title).split("#")[0]) for link in links}


def test_every_shown_literal_can_be_read_from_its_infobox_field(world_200, boxes):
    for fact in world_200.truth("facts"):
        if fact["shown"] and fact["value"]:
            field = boxes[fact["subject"]][fact["key"]]
            number = "" if fact["value_number"] is None else f"{fact['value_number']:g}"
            assert fact["value"] in field or number in field.replace(",", "")


def test_a_hidden_fact_has_no_infobox_field_but_a_sentence(world_200, boxes):
    texts = world_200.texts()
    hidden = [fact for fact in world_200.truth("facts") if not fact["shown"]]
    assert 0.06 < len(hidden) / len(world_200.truth("facts")) < 0.14
    for fact in hidden:
        assert fact["key"] not in boxes[fact["subject"]]
        assert fact["sentence"] in texts[fact["subject"]]


def test_lead_sentence_names_the_subject_in_bold_with_its_noun(world_200):
    texts = world_200.texts()
    for entity in world_200.truth("entities"):
        lead = next(line for line in texts[entity["title"]].splitlines() if line.startswith(("'''", "The '''")))
        assert entity["name"] in lead
        assert entity["noun"] in lead


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_declared_cardinalities_hold(seed):
    world = build_world(WorldConfig(entities=150, seed=seed))
    objects, subjects = defaultdict(set), defaultdict(set)
    for fact in world.facts:
        if fact.object is not None:
            objects[fact.relation, fact.subject].add(fact.object)
            subjects[fact.relation, fact.object].add(fact.subject)
    for relation in RELATIONS:
        if relation.cardinality in ("1:1", "n:1"):
            assert all(len(group) == 1 for (name, _), group in objects.items() if name == relation.name)
        if relation.cardinality in ("1:1", "1:n"):
            assert all(len(group) == 1 for (name, _), group in subjects.items() if name == relation.name)


def test_makers_live_when_their_work_is_made():
    world = build_world(WorldConfig(entities=400))
    gaps = {
        (relation.name, name): relation.gap for relation in RELATIONS if relation.dates for name in relation.subjects
    }
    for fact in world.facts:
        gap = gaps.get((fact.relation, world.entities[fact.subject].subtype.name))
        if gap and fact.object is not None:
            distance = world.entities[fact.subject].year - world.entities[fact.object].year
            assert 0 < distance <= gap[1]


def test_chains_of_single_links_reach_five_literals_from_nearly_every_pictured_entity(world_200):
    facts = [fact for fact in world_200.truth("facts") if fact["shown"]]
    fields = Counter((fact["subject"], fact["key"]) for fact in facts)
    ahead, literals = defaultdict(set), defaultdict(set)
    for fact in facts:
        if fact["linked"] and fields[fact["subject"], fact["key"]] == 1:
            ahead[fact["subject"]].add(fact["object"])
        elif fact["value"]:
            literals[fact["subject"]].add(fact["relation"])
    reach = []
    for entity in world_200.truth("entities"):
        seen, front = {entity["title"]}, {entity["title"]}
        for _ in range(3):
            front = {target for title in front for target in ahead[title]} - seen
            seen |= front
        reach.append(sum(len(literals[title]) for title in seen - {entity["title"]}))
    assert sum(count >= 5 for count in reach) > 0.9 * len(reach)
