"""The wiki: articles with infoboxes, the occasional mess included, and all other pages."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from pipelines.graph.values import MONTHS
from pipelines.toy import names
from pipelines.toy.names import surname_of
from pipelines.toy.ontology import ATTRIBUTES, Entity, ToyAttribute, ToyFact, Value
from pipelines.toy.pictures import PlannedPicture
from pipelines.toy.world import Redirect, World

MAIN, TEMPLATE, CATEGORY, PORTAL = 0, 10, 14, 100
PREFIXES = {MAIN: "", TEMPLATE: "Template:", CATEGORY: "Category:", PORTAL: "Portal:"}
_CENTURIES = ("17th century", "18th century", "19th century", "20th century", "21st century")
_NO_LINKS = ("Category:", "File:", "Talk:")
_SKIPPED = re.compile(r"<!--.*?-->|<nowiki>.*?</nowiki>", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]|#]+)")


@dataclass(frozen=True, slots=True)
class ToyPage:
    """One page as the dump has it.

    Attributes:
        title: without namespace prefix; ``full_title`` has it.
        redirect: target of a redirect page, else None.
        entity: number of the entity the page is about, -1 for none.
        editor: user name of its last revision.
        timestamp: ISO 8601 with ``Z``, at the latest the day before the snapshot.
    """

    title: str
    text: str
    namespace: int = MAIN
    redirect: Redirect | None = None
    entity: int = -1
    disambiguation: bool = False
    page_id: int = 0
    revision: int = 0
    editor: str = ""
    timestamp: str = ""

    @property
    def full_title(self) -> str:
        """Title with the namespace prefix."""
        return PREFIXES[self.namespace] + self.title


@dataclass(frozen=True, slots=True)
class Wiki:
    """Pages by ascending id, and the sentence of every fact that prose states."""

    pages: tuple[ToyPage, ...]
    sentences: Mapping[tuple[int, str, int | None], str]


def compose_wiki(
    world: World, pictures: Mapping[int, str], seconds: Mapping[int, PlannedPicture] | None = None
) -> Wiki:
    """Write every page."""
    sentences: dict[tuple[int, str, int | None], str] = {}
    pages: list[ToyPage] = []
    for entity in world.entities:
        rng = Random(f"{world.config.seed}:page:{entity.number}")
        article = write_article(world, entity, rng)
        sentences.update((key_of(fact), sentence) for fact, sentence in article.sentences)
        text = render_page(world, entity, pictures.get(entity.number, ""), article, rng)
        second = (seconds or {}).get(entity.number)
        if second is not None:
            text = illustrate_page(text, second.file, second.caption)
        pages.append(ToyPage(entity.title, text, entity=entity.number))
    pages += _compose_disambiguations(world)
    taken = {page.title.casefold() for page in pages}
    extras = [*_compose_surnames(world), *_compose_lists(world), *_compose_centuries(world)]
    for redirect in world.redirects:
        target = redirect.target + (f"#{redirect.fragment}" if redirect.fragment else "")
        text = f"#REDIRECT [[{target}]]\n\n{{{{R from alternative name}}}}"
        extras.append(ToyPage(redirect.title, text, redirect=redirect))
    for page in extras:
        if page.title.casefold() not in taken:
            taken.add(page.title.casefold())
            pages.append(page)
    pages += _compose_other_namespaces(world)
    return Wiki(_number_pages(pages, world), sentences)


def key_of(fact: ToyFact) -> tuple[int, str, int | None]:
    """What tells a fact from all others: subject, relation, object."""
    return fact.subject, fact.relation, fact.object


def list_links(page: ToyPage) -> list[tuple[int, str]]:
    """Targets of the page's own links as (namespace, title with underscores), each once, in order.

    Links in comments and nowiki do not count; ``[[Category:X]]`` is no link,
    ``[[:Category:X]]`` is one. Links made by templates are left out.
    """
    links: dict[tuple[int, str], None] = {}
    for match in _LINK.finditer(_SKIPPED.sub("", page.text)):
        written = match.group(1).strip()
        if written.startswith(_NO_LINKS):
            continue
        title = written.removeprefix(":")
        namespace = next((key for key, prefix in PREFIXES.items() if prefix and title.startswith(prefix)), MAIN)
        bare = title.removeprefix(PREFIXES[namespace])
        links[namespace, (bare[0].upper() + bare[1:]).replace(" ", "_")] = None
    return list(links)


def _compose_disambiguations(world: World) -> Iterator[ToyPage]:
    groups: dict[str, list[Entity]] = defaultdict(list)
    for entity in world.entities:
        groups[entity.name.casefold()].append(entity)
    for group in groups.values():
        if len(group) < 2:
            continue
        name = group[0].name
        primary = any(entity.title == entity.name for entity in group)
        title = f"{name} (disambiguation)" if primary else name
        lines = "\n".join(f"* [[{entity.title}]], {_describe(world, entity)}" for entity in group)
        text = f"'''{name}''' may refer to:\n\n{lines}\n\n{{{{disambiguation}}}}"
        yield ToyPage(title, text, disambiguation=True)


def _describe(world: World, entity: Entity) -> str:
    country = world.country_of(entity)
    where = f" in {country.name}" if country is not None and country is not entity else ""
    return f"{'an' if entity.noun[0] in 'aeio' else 'a'} {entity.noun}{where}"


def _compose_surnames(world: World) -> Iterator[ToyPage]:
    bearers: dict[str, list[Entity]] = defaultdict(list)
    for entity in world.entities:
        if entity.subtype.kind == "person":
            bearers[surname_of(entity.name)].append(entity)
    for surname in sorted(bearers):
        if len(bearers[surname]) > 2:
            lines = "\n".join(f"* [[{each.title}]] (born {each.year}), {each.noun}" for each in bearers[surname])
            yield ToyPage(surname, f"'''{surname}''' is a surname. Bearers include:\n\n{lines}\n\n{{{{surname}}}}")


def _compose_lists(world: World) -> Iterator[ToyPage]:
    groups: dict[tuple[str, str], list[Entity]] = defaultdict(list)
    for entity in world.entities:
        country = world.country_of(entity)
        if country is not None and country is not entity and entity.subtype.kind in ("building", "place", "event"):
            groups[entity.subtype.plural, country.title].append(entity)
    for (plural, country_title), group in sorted(groups.items(), key=lambda each: each[0]):
        if len(group) < 4:
            continue
        famous = sorted(group, key=lambda entity: (-entity.fame, entity.number))[:25]
        lines = "\n".join(f"* [[{entity.title}]]" for entity in famous)
        text = f"This is a '''list of {plural} in [[{country_title}]]'''.\n\n{lines}\n\n[[Category:Lists of {plural}]]"
        yield ToyPage(f"List of {plural} in {country_title}", text)


def _compose_centuries(world: World) -> Iterator[ToyPage]:
    countries = [entity for entity in world.entities if entity.subtype.name == "country"]
    links = ", ".join(f"[[{country.title}]]" for country in countries)
    for century in _CENTURIES:
        yield ToyPage(century, f"The '''{century}''' is a period of one hundred years. It shaped {links}.\n\n"
                            f"[[Category:Centuries]]")  # fmt: skip


def _compose_other_namespaces(world: World) -> Iterator[ToyPage]:
    countries = [entity for entity in world.entities if entity.subtype.name == "country"]
    for subtype, plural in sorted({(entity.subtype.template, entity.subtype.plural) for entity in world.entities}):
        yield ToyPage(
            plural.capitalize(), f"The main kind of [[:Category:Things]] with {{{{tl|{subtype}}}}}.", CATEGORY
        )
    for template in sorted({entity.subtype.template for entity in world.entities}):
        text = (
            f"<includeonly>{{{{{{image|}}}}}}</includeonly><noinclude>{template}, [[{countries[0].title}]]</noinclude>"
        )
        yield ToyPage(template, text, TEMPLATE)
    for country in countries:
        yield ToyPage(country.title, f"Welcome to the portal about {add_article(country)}[[{country.title}]].", PORTAL)


def _number_pages(pages: Iterable[ToyPage], world: World) -> tuple[ToyPage, ...]:
    rng = Random(f"{world.config.seed}:page-ids")
    shuffled = list(pages)
    rng.shuffle(shuffled)
    year = int(world.config.snapshot[:4])
    page_id, numbered = 100, []
    for page in shuffled:
        page_id += rng.randint(1, 9)
        stamp = (f"{rng.randint(year - 6, year - 1)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
                 f"T{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}Z")  # fmt: skip
        numbered.append(
            replace(page, page_id=page_id, revision=1_200_000_000 + page_id * 7 + rng.randint(0, 6),
                    editor=rng.choice(names.EDITORS), timestamp=stamp)
        )  # fmt: skip
    return tuple(numbered)


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
    sentences: tuple[tuple[ToyFact, str], ...]


def write_article(world: World, entity: Entity, rng: Random) -> Article:
    """Write the article of one entity.

    A fact that the infobox hides is always stated; one that it shows is restated with probability 0.45.
    """
    lead, told = _write_lead(world, entity, rng)
    stated: list[tuple[ToyFact, str]] = [(fact, lead) for fact in told]
    paragraphs: list[list[str]] = [[], []]
    for fact in world.facts_of.get(entity.number, ()):
        if fact in told or (fact.shown and rng.random() >= RESTATED_SHARE):
            continue
        sentence = _state_fact(world, entity, fact, rng)
        stated.append((fact, sentence))
        reference = rng.choice(_REFERENCES) % rng.randint(1, 400) if rng.random() < 0.12 else ""
        paragraphs[rng.randrange(2)].append(sentence + reference)
    if entity.year > 1600 and rng.random() < 0.3:
        person = entity.subtype.kind == "person"
        told_of = "made a name in" if person else "belongs to the remarkable things of"
        century = name_century(entity.year + 30 * person)
        paragraphs[0].insert(0, f"{_refer(entity)} {told_of} the [[{century}]].")
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


def name_century(year: int) -> str:
    """``19th century`` for 1801 to 1900."""
    number = (year - 1) // 100 + 1
    return f"{number}{'st' if number == 21 else 'th'} century"


def _write_lead(world: World, entity: Entity, rng: Random) -> tuple[str, tuple[ToyFact, ...]]:
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
    country = world.country_of(entity) if entity.subtype.kind == "person" else None
    if country is None or rng.random() < 0.4:
        return entity.noun
    demonym = next((alias for alias, kind in country.aliases if kind == "demonym"), country.name)
    return f"{demonym} {entity.noun}"


def _refer(entity: Entity) -> str:
    if entity.subtype.kind == "person":
        return surname_of(entity.name)
    if entity.subtype.name in ("country", "language"):
        return entity.name
    return f"The {entity.subtype.name}"


def _state_fact(world: World, entity: Entity, fact: ToyFact, rng: Random) -> str:
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
    return subject[0].lower() + subject[1:] if subject.startswith("The ") else subject


MESSY_SHARE = 0.04
_HEADING = re.compile(r"^== (?!References)[^=\n]+ ==\n", re.MULTILINE)
_ATTRIBUTE_OF = {(attribute.name, subtype): attribute for attribute in ATTRIBUTES for subtype in attribute.subjects}
_COMMENTS = ("<!-- please do not change without a source -->", "<!-- see [[Talk:Example]] and {{tl|Infobox}} -->",
             "<!-- | former_name = unknown -->")  # fmt: skip
_NOTES = ("<ref>{{cite web|url=https://example.org/record|title=Record|date=2 May 2011}}</ref>",
          "<ref name=\"guide\" />", "&nbsp;<nowiki>[sic]</nowiki>", "{{efn|Sources differ.}}")  # fmt: skip


def render_infobox(world: World, entity: Entity, picture: str, rng: Random) -> str:
    """The infobox of an entity with its shown facts, one parameter a line."""
    subtype = entity.subtype
    lines = [(subtype.name_key, entity.name)]
    if picture:
        caption = entity.name
        if subtype.kind == "person":  # shown between 25 and 44 years old
            caption += f", {entity.year + rng.randint(25, 44)}"
        elif year := rng.randint(2013, 2024) if rng.random() < 0.6 else 0:
            caption += f" in {year}"
        lines += [("image", picture), ("caption", caption)]
    elif rng.random() < 0.5:
        lines.append(("image", ""))
    if subtype.kind == "species":
        lines += [("genus", rng.choice(names.GENERA)), ("species", rng.choice(names.EPITHETS))]
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


def _list_fields(world: World, entity: Entity, rng: Random) -> list[tuple[str, str]]:
    fields: dict[str, list[ToyFact]] = {}
    for fact in world.facts_of.get(entity.number, ()):
        if fact.shown:
            fields.setdefault(fact.key, []).append(fact)
    return [(key, _render_field(world, entity, facts, rng)) for key, facts in fields.items()]


def _render_field(world: World, entity: Entity, facts: Sequence[ToyFact], rng: Random) -> str:
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


def _show_object(world: World, fact: ToyFact, rng: Random) -> str:
    target = world.entities[fact.object or 0]
    return link_to(world, target, rng, plain_share=0.93) if fact.linked else target.name


def _add_country(world: World, fact: ToyFact, rng: Random) -> str:
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
    if not value or rng.random() < 0.5 or value.endswith((".jpg", ".png")):
        return value
    return f"{value} {rng.choice(_COMMENTS)}" if rng.random() < 0.4 else value + rng.choice(_NOTES)


def show_inline(value: Value, rng: Random) -> str:
    """The value in running text: dates in one of two orders, numbers with their unit."""
    if value.kind == "date" and value.day and rng.random() < 0.25:
        return f"{MONTHS[value.month - 1]} {value.day}, {int(value.number)}"
    if value.kind == "quantity" and value.unit not in ("minutes", "t") and rng.random() < 0.3:
        return f"{{{{convert|{value.number:g}|{value.unit}}}}}"
    return value.text


def show_boxed(value: Value, attribute: ToyAttribute, rng: Random) -> str:
    """The value as an infobox holds it, in one of the forms that enwiki uses."""
    plain = rng.random() < 0.4
    if value.kind == "date":
        return _box_date(value, attribute.stamp, plain)
    if value.kind == "count":
        return f"{{{{formatnum:{int(value.number)}}}}}" if rng.random() < 0.1 else value.text
    if value.kind == "quantity":
        return _box_quantity(value, attribute.other, plain, rng)
    return value.text


def _box_date(value: Value, stamp: str, plain: bool) -> str:
    year = int(value.number)
    if not stamp or plain:
        return value.text
    if not value.day:
        return f"{{{{{stamp}|{year}}}}}"
    tail = "|df=yes" if stamp == "start date" else "|df=y"
    name = "birth date and age" if stamp == "birth date" and year > 1945 else stamp
    return f"{{{{{name}|{year}|{value.month}|{value.day}{tail}}}}}"


def _box_quantity(value: Value, other: str, plain: bool, rng: Random) -> str:
    if plain or not other:
        return value.text
    name = "cvt" if rng.random() < 0.2 else "convert"
    tail = "|abbr=on" if name == "convert" and rng.random() < 0.3 else ""
    return f"{{{{{name}|{value.number:g}|{value.unit}|{other}{tail}}}}}"
