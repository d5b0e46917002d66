"""The world's Wikidata: what it holds of the knowledge base, its counts, and which page belongs to which entity."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from pipelines.world.knowledge import Entity, Fact
from pipelines.world.pages import MAIN, Page, Wiki
from pipelines.world.world import World

HUMAN, DISAMBIGUATION_PAGE, LIST_PAGE = "Q5", "Q4167410", "Q13406463"
_MOST_SITELINKS = 150


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """One Wikidata entity.

    Attributes:
        label: English label, the bare name.
        classes: values of P31, and of P106 where ``occupation`` is set.
        facts: the literal and entity facts it holds; text attributes are left out, being entities on Wikidata.
        statements: what ``wikibase:statements`` says: the triples written, and the identifiers, which are not written.
    """

    qid: str
    page: Page
    label: str
    aliases: tuple[str, ...]
    description: str
    instance_of: str
    occupation: str
    facts: tuple[Fact, ...]
    picture: str
    statements: int
    sitelinks: int
    identifiers: int


def qid_of(page: Page, world: World) -> str:
    """Wikidata entity of a page; empty for redirects, surname pages and all that Wikidata would not know."""
    if page.entity >= 0:
        return world.entities[page.entity].qid
    known = page.disambiguation or (page.namespace == MAIN and page.title.startswith("List of ") and not page.redirect)
    return f"Q{950_000_000 + page.page_id}" if known else ""


def record_entities(world: World, wiki: Wiki, pictures: Mapping[int, str]) -> tuple[EntityRecord, ...]:
    """All Wikidata entities in the order of their ids.

    Each fact is held with probability ``1 - missing``, drawn apart from what the infobox shows.
    """
    records = []
    for page in wiki.pages:
        qid = qid_of(page, world)
        if not qid:
            continue
        if page.entity >= 0:
            records.append(_record(world, world.entities[page.entity], page, pictures.get(page.entity, "")))
        else:
            kind = DISAMBIGUATION_PAGE if page.disambiguation else LIST_PAGE
            label = "Wikimedia disambiguation page" if page.disambiguation else "Wikimedia list article"
            records.append(EntityRecord(qid, page, page.title, (), label, kind, "", (), "", 1, 1, 0))
    return tuple(sorted(records, key=lambda record: int(record.qid[1:])))


def _record(world: World, entity: Entity, page: Page, picture: str) -> EntityRecord:
    rng = Random(f"{world.config.seed}:wikidata:{entity.number}")
    held = [
        fact
        for fact in world.facts_of.get(entity.number, ())
        if rng.random() >= world.config.missing and fact.prop and (fact.value is None or fact.value.kind != "text")
    ]
    person = entity.subtype.kind == "person"
    identifiers = rng.randint(0, 24)
    return EntityRecord(
        qid=entity.qid,
        page=page,
        label=entity.name,
        aliases=tuple(alias for alias, kind in entity.aliases if kind != "demonym"),
        description=entity.noun,
        instance_of=HUMAN if person else entity.subtype.class_id,
        occupation=entity.subtype.class_id if person else "",
        facts=tuple(held),
        picture=picture,
        statements=len(held) + 1 + person + bool(picture) + identifiers,
        sitelinks=1 + int(_MOST_SITELINKS * (entity.fame / 0.56) ** 0.6),
        identifiers=identifiers,
    )
