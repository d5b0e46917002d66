"""All pages of the wiki: articles, redirects, disambiguation, lists, hubs and other namespaces."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from pipelines.world import vocabulary as words
from pipelines.world.knowledge import Entity, Fact
from pipelines.world.names import surname_of
from pipelines.world.pictures import Picture
from pipelines.world.prose import add_article, write_article
from pipelines.world.wikitext import illustrate_page, render_page
from pipelines.world.world import Redirect, World

MAIN, TEMPLATE, CATEGORY, PORTAL = 0, 10, 14, 100
PREFIXES = {MAIN: "", TEMPLATE: "Template:", CATEGORY: "Category:", PORTAL: "Portal:"}
_CENTURIES = ("17th century", "18th century", "19th century", "20th century", "21st century")
_NO_LINKS = ("Category:", "File:", "Talk:")
_SKIPPED = re.compile(r"<!--.*?-->|<nowiki>.*?</nowiki>", re.DOTALL)
_LINK = re.compile(r"\[\[([^\[\]|#]+)")


@dataclass(frozen=True, slots=True)
class Page:
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

    pages: tuple[Page, ...]
    sentences: Mapping[tuple[int, str, int | None], str]


def compose_wiki(world: World, pictures: Mapping[int, str], seconds: Mapping[int, Picture] | None = None) -> Wiki:
    """Write every page.

    Args:
        world: what is true.
        pictures: file name (with spaces) of the lead picture by entity number.
        seconds: pictures in the body of an article, by entity number; None for none.
    """
    sentences: dict[tuple[int, str, int | None], str] = {}
    pages: list[Page] = []
    for entity in world.entities:
        rng = Random(f"{world.config.seed}:page:{entity.number}")
        article = write_article(world, entity, rng)
        sentences.update((key_of(fact), sentence) for fact, sentence in article.sentences)
        text = render_page(world, entity, pictures.get(entity.number, ""), article, rng)
        second = (seconds or {}).get(entity.number)
        if second is not None:
            text = illustrate_page(text, second.file, second.caption)
        pages.append(Page(entity.title, text, entity=entity.number))
    pages += _compose_disambiguations(world)
    taken = {page.title.casefold() for page in pages}
    extras = [*_compose_surnames(world), *_compose_lists(world), *_compose_centuries(world)]
    extras += [_compose_redirect(redirect) for redirect in world.redirects]
    for page in extras:
        if page.title.casefold() not in taken:
            taken.add(page.title.casefold())
            pages.append(page)
    pages += _compose_other_namespaces(world)
    return Wiki(_number_pages(pages, world), sentences)


def key_of(fact: Fact) -> tuple[int, str, int | None]:
    """What tells a fact from all others: subject, relation, object."""
    return fact.subject, fact.relation, fact.object


def list_links(page: Page) -> list[tuple[int, str]]:
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


def _compose_redirect(redirect: Redirect) -> Page:
    target = redirect.target + (f"#{redirect.fragment}" if redirect.fragment else "")
    return Page(redirect.title, f"#REDIRECT [[{target}]]\n\n{{{{R from alternative name}}}}", redirect=redirect)


def _compose_disambiguations(world: World) -> Iterator[Page]:
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
        yield Page(title, text, disambiguation=True)


def _describe(world: World, entity: Entity) -> str:
    country = world.country_of(entity)
    where = f" in {country.name}" if country is not None and country is not entity else ""
    return f"{'an' if entity.noun[0] in 'aeio' else 'a'} {entity.noun}{where}"


def _compose_surnames(world: World) -> Iterator[Page]:
    bearers: dict[str, list[Entity]] = defaultdict(list)
    for entity in world.entities:
        if entity.subtype.kind == "person":
            bearers[surname_of(entity.name)].append(entity)
    for surname in sorted(bearers):
        if len(bearers[surname]) > 2:
            lines = "\n".join(
                f"* [[{entity.title}]] (born {entity.year}), {entity.noun}" for entity in bearers[surname]
            )
            yield Page(surname, f"'''{surname}''' is a surname. Bearers include:\n\n{lines}\n\n{{{{surname}}}}")


def _compose_lists(world: World) -> Iterator[Page]:
    """``List of bridges in Ostrania``, where there are at least four; the Zipf head of each group is all it names."""
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
        yield Page(f"List of {plural} in {country_title}", text)


def _compose_centuries(world: World) -> Iterator[Page]:
    countries = [entity for entity in world.entities if entity.subtype.name == "country"]
    links = ", ".join(f"[[{country.title}]]" for country in countries)
    for century in _CENTURIES:
        yield Page(century, f"The '''{century}''' is a period of one hundred years. It shaped {links}.\n\n"
                            f"[[Category:Centuries]]")  # fmt: skip


def _compose_other_namespaces(world: World) -> Iterator[Page]:
    countries = [entity for entity in world.entities if entity.subtype.name == "country"]
    for subtype, plural in sorted({(entity.subtype.template, entity.subtype.plural) for entity in world.entities}):
        yield Page(plural.capitalize(), f"The main kind of [[:Category:Things]] with {{{{tl|{subtype}}}}}.", CATEGORY)
    for template in sorted({entity.subtype.template for entity in world.entities}):
        text = (
            f"<includeonly>{{{{{{image|}}}}}}</includeonly><noinclude>{template}, [[{countries[0].title}]]</noinclude>"
        )
        yield Page(template, text, TEMPLATE)
    for country in countries:
        yield Page(country.title, f"Welcome to the portal about {add_article(country)}[[{country.title}]].", PORTAL)


def date_changes(wiki: Wiki, before: Wiki, published: str) -> Wiki:
    """Return a later wiki whose changed pages have a revision of the last year; the others keep theirs.

    Args:
        wiki: of the later snapshot, numbered like the earlier one.
        before: the earlier snapshot.
        published: date of the later one, ``YYYYMMDD``.
    """
    texts = {page.full_title: page.text for page in before.pages}
    year = int(published[:4]) - 1
    pages = (
        page
        if texts.get(page.full_title) == page.text
        else replace(page, revision=page.revision + 2_000_000_000, timestamp=f"{year}{page.timestamp[4:]}")
        for page in wiki.pages
    )
    return replace(wiki, pages=tuple(pages))


def _number_pages(pages: Iterable[Page], world: World) -> tuple[Page, ...]:
    """Ids with gaps in a shuffled order, as pages of a real wiki were made by many hands."""
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
                    editor=rng.choice(words.EDITORS), timestamp=stamp)
        )  # fmt: skip
    return tuple(numbered)
