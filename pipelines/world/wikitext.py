"""Infoboxes and whole article pages in wikitext, the occasional mess included."""

import re
from collections.abc import Sequence
from random import Random

from pipelines.world import vocabulary as words
from pipelines.world.attributes import ATTRIBUTES
from pipelines.world.knowledge import Entity, Fact
from pipelines.world.prose import Article, link_to
from pipelines.world.values import show_boxed
from pipelines.world.world import World

MESSY_SHARE = 0.04
_HEADING = re.compile(r"^== (?!References)[^=\n]+ ==\n", re.MULTILINE)
_ATTRIBUTE_OF = {(attribute.name, subtype): attribute for attribute in ATTRIBUTES for subtype in attribute.subjects}
_COMMENTS = ("<!-- please do not change without a source -->", "<!-- see [[Talk:Example]] and {{tl|Infobox}} -->",
             "<!-- | former_name = unknown -->")  # fmt: skip
_NOTES = ("<ref>{{cite web|url=https://example.org/record|title=Record|date=2 May 2011}}</ref>",
          "<ref name=\"guide\" />", "&nbsp;<nowiki>[sic]</nowiki>", "{{efn|Sources differ.}}")  # fmt: skip


def render_infobox(world: World, entity: Entity, picture: str, rng: Random) -> str:
    """The infobox of an entity with its shown facts, one parameter a line.

    Args:
        world: supplies facts and link targets.
        entity: whose infobox it is.
        picture: file name with spaces, empty for none.
        rng: decides formats, padding and mess.
    """
    subtype = entity.subtype
    lines = [(subtype.name_key, entity.name)]
    if picture:
        lines += [("image", picture), ("caption", _caption(entity, rng))]
    elif rng.random() < 0.5:
        lines.append(("image", ""))
    if subtype.kind == "species":
        lines += [("genus", rng.choice(words.GENERA)), ("species", rng.choice(words.EPITHETS))]
    lines += _list_fields(world, entity, rng)
    if subtype.kind in ("building", "organisation") and rng.random() < 0.3:
        lines.append(("website", f"{{{{URL|https://example.org/{entity.number}}}}}"))
    width = rng.choice((0, 0, 14, 18))
    messy = rng.random() < MESSY_SHARE
    if messy:
        lines = [(key, _soil(value, rng)) for key, value in lines]
    body = "\n".join(f"| {key.ljust(width)} = {value}" for key, value in lines)
    comment = f"\n{rng.choice(_COMMENTS)}" if messy else ""
    return f"{{{{{subtype.template}{comment}\n{body}\n}}}}"


def render_page(world: World, entity: Entity, picture: str, article: Article, rng: Random) -> str:
    """The whole wikitext of an entity's page."""
    country = world.country_of(entity)
    where = f" in {country.name}" if country is not None and country is not entity else ""
    infobox = render_infobox(world, entity, picture, rng)
    parts = [f"{{{{Short description|{entity.noun.capitalize()}{where}}}}}"]
    if "(" in entity.title and rng.random() < 0.3:
        parts.append(f"{{{{other uses|{entity.name} (disambiguation)}}}}")
    parts.append(f"{infobox}\n{article.text}")
    if "<ref" in article.text or "<ref" in infobox:
        parts.append("\n== References ==\n{{reflist}}")
    text = "\n".join(parts)
    if entity.number % 701 == 11:  # an editor forgot to close a template, or closed one too many
        text += "\n{{citation needed|date=May 2019" if entity.number % 2 else "\n}}"
    stamp = "{{Authority control}}\n" if entity.subtype.kind == "person" else ""
    return f"{text}\n\n{stamp}[[Category:{entity.subtype.plural.capitalize()}{where}]]"


def illustrate_page(text: str, file: str, caption: str) -> str:
    """The page with a picture under its first heading, or at the end of its lead where it has none."""
    picture = f"[[File:{file}|thumb|{caption}]]"
    heading = _HEADING.search(text)
    if heading is not None:
        return f"{text[: heading.end()]}{picture}\n{text[heading.end() :]}"
    head, gap, tail = text.rpartition("\n\n")
    return f"{head}\n\n{picture}{gap}{tail}"


def _caption(entity: Entity, rng: Random) -> str:
    """What is shown and often when; a person is shown between 25 and 44 years old."""
    if entity.subtype.kind == "person":
        return f"{entity.name}, {entity.year + rng.randint(25, 44)}"
    return f"{entity.name} in {rng.randint(2013, 2024)}" if rng.random() < 0.6 else entity.name


def _list_fields(world: World, entity: Entity, rng: Random) -> list[tuple[str, str]]:
    fields: dict[str, list[Fact]] = {}
    for fact in world.facts_of.get(entity.number, ()):
        if fact.shown:
            fields.setdefault(fact.key, []).append(fact)
    return [(key, _render_field(world, entity, facts, rng)) for key, facts in fields.items()]


def _render_field(world: World, entity: Entity, facts: Sequence[Fact], rng: Random) -> str:
    first = facts[0]
    if first.value is not None:
        return show_boxed(first.value, _ATTRIBUTE_OF[first.relation, entity.subtype.name], rng)
    shown = [_show_object(world, fact, rng) for fact in facts]
    if len(shown) > 1:
        return _render_list(shown, rng)
    if first.relation == "birth_place" and rng.random() < 0.3:
        return shown[0] + _add_country(world, first, rng)
    if first.relation == "spouse" and rng.random() < 0.6:
        return f"{{{{marriage|{shown[0]}|{entity.year + rng.randint(20, 45)}}}}}"
    return shown[0]


def _show_object(world: World, fact: Fact, rng: Random) -> str:
    target = world.entities[fact.object or 0]
    return link_to(world, target, rng, plain_share=0.93) if fact.linked else target.name


def _add_country(world: World, fact: Fact, rng: Random) -> str:
    country = world.object_of(fact.object or 0, "country")
    if country is None:
        return ""
    return f", [[{country.title}]]" if rng.random() < 0.25 else f", {country.name}"


def _render_list(shown: Sequence[str], rng: Random) -> str:
    form = rng.randrange(4)
    if form == 0:
        return "{{ubl|" + "|".join(shown) + "}}"
    if form == 1:
        return "{{plainlist|\n" + "\n".join(f"* {each}" for each in shown) + "\n}}"
    return (", " if form == 2 else "<br />").join(shown)


def _soil(value: str, rng: Random) -> str:
    """Add what careless editing leaves behind: references, comments, entities."""
    if not value or rng.random() < 0.5 or value.endswith((".jpg", ".png")):
        return value
    return f"{value} {rng.choice(_COMMENTS)}" if rng.random() < 0.4 else value + rng.choice(_NOTES)
