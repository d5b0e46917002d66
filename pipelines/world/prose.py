"""Running text: the lead sentence, one sentence per stated fact, mentions in passing, sections."""

from dataclasses import dataclass
from random import Random

from pipelines.world.knowledge import Entity, Fact
from pipelines.world.names import surname_of
from pipelines.world.values import Value, show_inline
from pipelines.world.world import World

RESTATED_SHARE = 0.45
_ARTICLED = ("river", "museum", "theatre", "university", "tower", "stadium", "battle", "telescope")
_SECTIONS = {"person": ("Life", "Work"), "species": ("Description", "Taxonomy"), "work": ("Background", "Reception")}
_MENTIONS = ("{s} is often discussed together with {o}.", "Several writers compare {s_low} with {o}.",
             "Local guides mention {s_low} beside {o}.", "An exhibition of 1998 showed {s_low} next to {o}.",
             "A popular almanac treats {s_low} and {o} in one chapter.", "School books set {s_low} against {o}.",
             "Collectors of postcards know {s_low} as well as {o}.", "A radio play of 1974 joins {s_low} and {o}.",
             "A series of stamps shows {s_low} together with {o}.")  # fmt: skip
_PERSON_MENTIONS = ("{s} kept up a long correspondence about {o}.", "{s} left a diary that describes {o}.",
                    "A biography compares {s} with {o}.", "{s} admired {o}.")  # fmt: skip
_REFERENCES = ("<ref>{{cite book|last=Quill|first=R.|title=A Gazetteer of Small Things|year=1987|page=%d}}</ref>",
               "<ref name=\"survey\">''Survey of the Coast'', vol. %d.</ref>",
               "<ref>[https://example.org/archive/%d Archive record]</ref>")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Article:
    """The text below an infobox, and which sentence states which fact.

    Attributes:
        text: wikitext from the lead sentence to the see-also list.
        sentences: pairs of (fact, its sentence as it stands in ``text``).
    """

    text: str
    sentences: tuple[tuple[Fact, str], ...]


def write_article(world: World, entity: Entity, rng: Random) -> Article:
    """Write the article of one entity.

    A fact that the infobox hides is always stated; one that it shows is restated with probability 0.45.
    """
    lead, told = _write_lead(world, entity, rng)
    stated: list[tuple[Fact, str]] = [(fact, lead) for fact in told]
    paragraphs: list[list[str]] = [[], []]
    for fact in world.facts_of.get(entity.number, ()):
        if fact in told or (fact.shown and rng.random() >= RESTATED_SHARE):
            continue
        sentence = _state_fact(world, entity, fact, rng)
        stated.append((fact, sentence))
        reference = rng.choice(_REFERENCES) % rng.randint(1, 400) if rng.random() < 0.12 else ""
        paragraphs[rng.randrange(2)].append(sentence + reference)
    if entity.year > 1600 and rng.random() < 0.3:
        paragraphs[0].insert(0, _recall_century(entity))
    mentions = [world.entities[number] for number in world.mentions[entity.number]]
    cut = rng.randint(0, len(mentions))
    paragraphs[1].extend(_mention(world, entity, other, rng) for other in mentions[:cut])
    heads = _SECTIONS.get(entity.subtype.kind, ("History", "Description"))
    parts = [lead]
    parts += [f"== {head} ==\n{' '.join(body)}" for head, body in zip(heads, paragraphs, strict=True) if body]
    if mentions[cut:]:
        parts.append("== See also ==\n" + "\n".join(f"* {link_to(world, other, rng)}" for other in mentions[cut:]))
    return Article("\n\n".join(parts), tuple(stated))


def link_to(world: World, entity: Entity, rng: Random, plain_share: float = 0.88) -> str:
    """A wikilink to ``entity`` whose text is its name; now and then through a redirect or a section."""
    name = entity.name
    drawn = rng.random()
    if drawn > plain_share:
        shortcuts = world.shortcuts.get(entity.number, ())
        if shortcuts and drawn > plain_share + 0.03:
            alias = rng.choice(shortcuts)
            return f"[[{alias}|{name}]]" if rng.random() < 0.7 else f"[[{alias}]]"
        if drawn < plain_share + 0.03:
            return f"[[{entity.title}#History|{name}]]"
    return f"[[{entity.title}]]" if entity.title == name else f"[[{entity.title}|{name}]]"


def add_article(entity: Entity) -> str:
    """``the `` where English wants it before the name in running text, else nothing."""
    wanted = entity.subtype.name in _ARTICLED and not entity.name.startswith(("The ", "A "))
    return "the " if wanted else ""


def _recall_century(entity: Entity) -> str:
    if entity.subtype.kind == "person":
        return f"{_refer(entity)} made a name in the [[{name_century(entity.year + 30)}]]."
    return f"{_refer(entity)} belongs to the remarkable things of the [[{name_century(entity.year)}]]."


def name_century(year: int) -> str:
    """``19th century`` for 1801 to 1900."""
    number = (year - 1) // 100 + 1
    return f"{number}{'st' if number == 21 else 'th'} century"


def _write_lead(world: World, entity: Entity, rng: Random) -> tuple[str, tuple[Fact, ...]]:
    """``'''X''' is a suspension bridge in [[Y]].`` and the facts that this states."""
    subtype = entity.subtype
    past = subtype.kind == "person" and any(f.relation == "death_date" for f in world.facts_of.get(entity.number, ()))
    verb = "was" if past or subtype.name == "battle" else "is"
    style = "''" if subtype.kind == "work" or subtype.name == "ship" else ""
    start = f"'''{style}{entity.name}{style}'''"
    opening = "The " if add_article(entity) else ""
    noun = _qualify_noun(world, entity, rng)
    article = "an" if noun[0].lower() in "aeio" else "a"
    facts = [fact for fact in world.facts_of.get(entity.number, ()) if fact.relation == subtype.lead]
    if not facts or facts[0].object is None or (facts[0].shown and rng.random() < 0.15):
        return f"{opening}{start} {verb} {article} {noun}.", ()
    target = world.entities[facts[0].object]
    tail = f"{subtype.joint} {add_article(target)}{link_to(world, target, rng)}"
    return f"{opening}{start} {verb} {article} {noun} {tail}.", (facts[0],)


def _qualify_noun(world: World, entity: Entity, rng: Random) -> str:
    """``Ostranian painter``: people often carry the demonym of the country they were born in."""
    country = world.country_of(entity) if entity.subtype.kind == "person" else None
    if country is None or rng.random() < 0.4:
        return entity.noun
    return f"{_demonym_of(country)} {entity.noun}"


def _demonym_of(country: Entity) -> str:
    return next((alias for alias, kind in country.aliases if kind == "demonym"), country.name)


def _refer(entity: Entity) -> str:
    """How later sentences call the entity: people by surname, countries by name, others by ``The`` and the noun."""
    if entity.subtype.kind == "person":
        return surname_of(entity.name)
    if entity.subtype.name in ("country", "language"):
        return entity.name
    return f"The {entity.subtype.name}"


def _state_fact(world: World, entity: Entity, fact: Fact, rng: Random) -> str:
    subject = _refer(entity)
    low = _lower(subject)
    if fact.object is not None:
        target = world.entities[fact.object]
        shown, when = f"{add_article(target)}{link_to(world, target, rng)}", ""
    else:
        value = fact.value or Value("text", "")
        shown = show_inline(value, rng)
        when = f"on {shown}" if value.day else f"in {shown}"
    sentence = rng.choice(fact.wordings).format(s=subject, s_low=low, o=shown, when=when)
    return sentence[0].upper() + sentence[1:]


def _mention(world: World, entity: Entity, other: Entity, rng: Random) -> str:
    wordings = _PERSON_MENTIONS if entity.subtype.kind == "person" else _MENTIONS
    link = add_article(other) + link_to(world, other, rng)
    subject = _refer(entity)
    return rng.choice(wordings).format(s=subject, s_low=_lower(subject), o=link)


def _lower(subject: str) -> str:
    """The subject as it stands inside a sentence."""
    return subject[0].lower() + subject[1:] if subject.startswith("The ") else subject
