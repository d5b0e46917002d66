"""Names: word lists, and for every entity a name, a unique title and its aliases."""

import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from pipelines.errors import ConfigError
from pipelines.toy.ontology import ORGANISATIONS, SETTLEMENTS, Entity, ToyFact

# Four tongues: (first syllables, second syllables, town endings, surname endings).
# fmt: off
_TONGUES = (
    (
        "Mar,Hol,Wen,Thorn,Ash,Brack,Cald,Elm,Fen,Hart,Kel,Lang,Pem,Rud,Stav,Tarn,Whit,Yar,Dun,Gar",
        ",el,er,in,low,mere,wick,den,ing,bur",
        "ton,ford,wold,haven,stead,bury,combe,leigh,mouth,thorpe",
        "ley,man,son,well,field,worth,by,ridge,cott,ham",
    ),
    (
        "Dvor,Brez,Chál,Hruš,Jar,Krum,Lud,Mil,Nov,Štěp,Rad,Slav,Týn,Vlád,Zbý,Žel,Bor,Kost,Prách,Holý",
        ",ov,en,ič,áv,or,in,ěl,ot,an",
        "ice,ov,ín,grad,sko,nica,any,čany,bor,ec",
        "ák,ek,ovák,ský,ička,íček,ar,ovic,ář,ata",
    ),
    (
        "Sal,Mont,Ver,Cas,Bel,Tor,Lun,Ner,Pal,Ros,Val,Cir,Dar,Fió,Guá,Mend,Or,Quí,Ram,Zú",
        ",a,el,an,os,ar,in,ur,al,em",
        "era,ona,ella,osa,mar,inho,aldo,ares,uela,ezão",
        "eira,ado,ón,ez,ari,etti,oni,ães,anti,era",
    ),
    (
        "Ås,Bjør,Drang,Ey,Fjäl,Grøn,Hav,Järv,Kvæl,Löv,Møl,Nord,Ods,Ra,Skar,Ty,Ul,Vän,Ydr,Ør",
        ",ne,a,els,in,ar,de,um,or,is",
        "vik,sund,holm,by,dal,heim,fors,havn,ö,strand",
        "qvist,gaard,sen,lund,ström,rud,vold,berg,ås,mark",
    ),
)
TONGUES = tuple(tuple(tuple(parts.split(",")) for parts in tongue) for tongue in _TONGUES)
GIVEN = tuple((
    "Adela Alban Anouk Ansel Arvid Beata Belén Blanka Bruno Calla Casimir Celeste Cyril Dagny Dario Delphine Edda "
    "Elio Eloïse Emeric Enid Esben Fausta Ferran Fiora Gerta Gideon Greta Hanna Hedwig Ilja Imre Ines Isolde Ivo "
    "Jakub Jana Jorun Josefa Kaja Kasper Klara Leander Lenka Linnea Lorenz Ludmila Magnus Mara Marek Maud Milena "
    "Mirko Nadia Nils Oda Oskar Ottilie Paloma Petra Quentin Radim Ragna Renata Rolf Rosalind Rufus Sabina Sander "
    "Selma Sigrid Silvan Søren Tancred Tekla Teodor Thea Tobias Ulla Ulrik Valda Vera Viggo Vit Walda Wenzel Xaver "
    "Ysolde Yvo Zdeněk Zita Zoë"
).split())
COMMON_TOWNS = tuple((
    "Mending, Gentle, Sailing, Early, Warming, Merry, Quiet Bay, Orange Hill, Plain, Bright, Landing, Clement, "
    "Hope, Bury Well, Pleasant, Fair, Corner, Marble, Spring"
).split(", "))
COUNTRIES = (("Ostrania", "Ostranian"), ("Velmark", "Velmarkian"), ("Cindoria", "Cindorian"), ("Tarnovia",
             "Tarnovian"), ("Lumeria", "Lumerian"), ("Bracken Isles", "Brackenese"), ("Quillonia", "Quillonian"),
             ("Hesperland", "Hesperlander"), ("Zantara", "Zantaran"), ("Marrowmere", "Marrowmerish"))
LANGUAGES = ("Ostric", "Velmari", "Cindoric", "Old Tarnovian")
ADJECTIVES = tuple((
    "Silent Broken Distant Golden Hidden Last Long Lost Narrow Northern Pale Patient Quiet Red Second Seventh Slow "
    "Small Sunken Unfinished White Wooden Borrowed Burning Crooked Empty Frozen Hollow Iron Late"
).split())
NOUNS = tuple((
    "Harbour Orchard Letter Winter Garden Mirror River Window Bell Ladder Lantern Meadow Mountain Night Ocean Path "
    "Promise Shadow Ship Silence Song Stair Stone Storm Summer Thread Tide Voyage Wall Weaver Well Wolf Woods Year "
    "Cartographer Clockmaker Ferryman Glassblower Heiress Beekeeper"
).split())
COMMON_TITLES = tuple("Away Between Enough Here Sooner Together Tomorrow Nothing Elsewhere Again".split())
BODY_PARTS = tuple("crowned breasted winged tailed throated backed billed footed".split())
TINTS = tuple((
    "Rusty Azure Sooty Amber Pied Chestnut Emerald Scaly Spotted Dusky Rosy Ashen Ivory Cinnamon Barred Striped"
).split())
SPECIES_HEADS = {
    "bird": ("finch", "heron", "thrush", "warbler", "petrel", "owl"),
    "orchid": ("slipper orchid", "bog orchid", "moth orchid", "tree orchid"),
    "beetle": ("stag beetle", "jewel beetle", "ground beetle", "leaf beetle"),
}
GENERA = tuple((
    "Velaria Ostrigena Tarnula Lumenia Cindora Marropis Quillea Hesperula Zantera Brackenia Sylvaris Nocturnella "
    "Albiceps Rupellia Fluvialia Montania"
).split())
EPITHETS = tuple((
    "minor elegans borealis insularis viridis gracilis nocturna montana palustris rubra punctata solitaria vulgata "
    "marginata longipes tenebrosa"
).split())
TRADES = tuple((
    "Optical Works, Shipyard, Press, Trading Company, Foundry, Instruments, Mills, Publishing House, Pictures, "
    "Motor Works"
).split(", "))
PAPERS = tuple("Gazette, Courier, Observer, Chronicle, Morning Post, Herald, Evening Star, Ledger".split(", "))
FESTIVALS = tuple((
    "Music Festival, Lantern Festival, Harvest Fair, Film Days, Festival of Song, Boat Parade"
).split(", "))
EPONYMS = ("University", "Institute of Technology", "College of Arts", "Academy of Sciences")
PHOTOGRAPHERS = ("Harbourlight", "J. Tamsen", "Okapi1987", "Mélusine", "R. Quill", "Tern and Tide",
                 "Vostok Lens", "Ardent Plover", "Kestrel07", "Lumière du nord", "B. Halvard", "Old Ferry",
                 "Saxifrage", "Zuzana P.")
EDITORS = tuple("Tamsen Quillfeather AnsgarBot Marlowe77 Lanternfish Hollyhock Zephyrine Plover".split())


_FOLDS = str.maketrans({"ø": "o", "Ø": "O", "æ": "ae", "Æ": "Ae", "ł": "l", "Ł": "L", "ß": "ss"})
_HEADS: Mapping[str, tuple[str, ...]] = {
    "bridge": ("Bridge", "Viaduct"), "museum": ("Museum", "Museum of Art", "Gallery"),
    "tower": ("Tower",), "stadium": ("Stadium", "Park Stadium"), "lighthouse": ("Lighthouse", "Point Light"),
    "theatre": ("Theatre", "Opera House", "Playhouse"), "castle": ("Castle",), "telescope": ("Telescope",),
    "clock": ("Clock",), "helmet": ("Helmet",), "company": TRADES, "newspaper": PAPERS,
    "festival": FESTIVALS, "university": EPONYMS,
}  # fmt: skip
_TITLED = ("novel", "film", "painting", "opera", "ship")


def fold_accents(text: str) -> str:
    """The ASCII form of a name, as redirects have it: ``Žďár`` to ``Zdar``, ``Bjørn`` to ``Bjorn``."""
    spread = unicodedata.normalize("NFD", text.translate(_FOLDS))
    return "".join(letter for letter in spread if not unicodedata.combining(letter))


def name_entities(entities: Sequence[Entity], facts: Sequence[ToyFact], seed: int) -> tuple[Entity, ...]:
    """Name all entities, qualify clashing titles and list aliases.

    Names may follow from facts: children carry a parent's surname, battles the name of the nearest town, some films
    the name of their novel. The first use of ``entities`` order matters: places are named before what stands in them.
    """
    namer = _Namer(entities, facts, seed)
    named = [_settle_noun(replace(entity, name=namer.name(entity))) for entity in entities]
    titles = _title_all(named, Random(f"{seed}:titles"))
    return tuple(replace(entity, title=titles[entity.number], aliases=_list_aliases(entity)) for entity in named)


def surname_of(name: str) -> str:
    """Last word of a person's name."""
    return name.rsplit(" ", 1)[-1]


def _settle_noun(entity: Entity) -> Entity:
    heads = SPECIES_HEADS.get(entity.subtype.name, ())
    head = next((head for head in heads if entity.name.endswith(head)), "")
    return replace(entity, noun=f"species of {head}") if head else entity


def _list_aliases(entity: Entity) -> tuple[tuple[str, str], ...]:
    aliases: dict[str, str] = {}
    kind, name = entity.subtype.kind, entity.name
    if (folded := fold_accents(name)) != name:
        aliases[folded] = "ascii"
    if kind == "person":
        aliases[surname_of(name)] = "surname"
        aliases[f"{name[0]}. {surname_of(name)}"] = "variant"
    if kind == "place":
        aliases[_form_demonym(name)] = "demonym"
    capitals = "".join(word[0] for word in name.split() if word[0].isupper())
    if entity.subtype.name in ORGANISATIONS and len(capitals) >= 3:
        aliases[fold_accents(capitals)] = "acronym"
    if name.startswith("The "):
        aliases[name[4:]] = "variant"
    if name.startswith("University of "):
        aliases[f"{name[14:]} University"] = "variant"
    aliases.pop(name, None)
    return tuple(aliases.items())


def _form_demonym(name: str) -> str:
    known = dict(COUNTRIES)
    if name in known:
        return known[name]
    stem = name.removeprefix("River ").removeprefix("Lake ").removeprefix("Isle of ").removesuffix(" Island")
    if stem[-1] in "aeiouyöãáíéóú":
        return stem[:-1] + "ian"
    return stem + ("er" if len(stem) % 2 else "ian")


def _title_all(entities: Sequence[Entity], rng: Random) -> dict[int, str]:
    groups: dict[str, list[Entity]] = defaultdict(list)
    for entity in entities:
        groups[entity.name.casefold()].append(entity)
    titles: dict[int, str] = {}
    for group in groups.values():
        primary = len(group) == 1 or rng.random() < 0.3
        for place, entity in enumerate(sorted(group, key=lambda each: (-each.fame, each.number))):
            bare = primary and place == 0
            titles[entity.number] = entity.name if bare else f"{entity.name} ({entity.subtype.name})"
    return titles


class _Namer:
    def __init__(self, entities: Sequence[Entity], facts: Sequence[ToyFact], seed: int) -> None:
        self._entities = entities
        self._seed = seed
        self._objects = {(fact.subject, fact.relation): fact.object for fact in facts if fact.object is not None}
        self._parents = {
            fact.object: fact.subject for fact in facts if fact.relation == "children" and fact.object is not None
        }
        self._eponyms = [
            each.number for each in entities if each.subtype.kind == "person" or each.subtype.name == "town"
        ]
        self._names: dict[int, str] = {}
        self._taken: set[tuple[str, str]] = set()

    def name(self, entity: Entity) -> str:
        rng = Random(f"{self._seed}:name:{entity.number}")
        for attempt in range(200):
            name = self._propose(entity, rng, attempt)
            if (entity.subtype.name, name.casefold()) not in self._taken:
                break
        else:
            raise ConfigError(f"world.entities: no free name left for a {entity.subtype.name}; ask for fewer entities")
        self._taken.add((entity.subtype.name, name.casefold()))
        self._names[entity.number] = name
        return name

    def _propose(self, entity: Entity, rng: Random, attempt: int) -> str:
        kind, subtype = entity.subtype.kind, entity.subtype.name
        if subtype in ("language", "country"):
            return self._list_name(entity, subtype)
        if kind == "place":
            return _propose_place(subtype, rng, attempt)
        if kind == "person":
            return f"{rng.choice(GIVEN)} {self._surname(entity.number)}"
        if kind == "species":
            return _propose_species(subtype, rng)
        if subtype in _TITLED:
            return self._propose_work(entity, rng, attempt)
        return self._propose_located(entity, rng, attempt)

    def _list_name(self, entity: Entity, subtype: str) -> str:
        first = next(each.number for each in self._entities if each.subtype.name == subtype)
        place = entity.number - first
        return LANGUAGES[place] if subtype == "language" else COUNTRIES[place][0]

    def _surname(self, number: int) -> str:
        seen = {number}
        while self._parents.get(number, -1) not in seen and number in self._parents:
            number = self._parents[number]
            seen.add(number)
        return _draw_surname(Random(f"{self._seed}:surname:{number}"))

    def _place_of(self, entity: Entity) -> str:
        for relation in ("location", "headquarters", "discovered_place", "held_at"):
            found = self._objects.get((entity.number, relation))
            if found is not None and self._entities[found].subtype.name in (*SETTLEMENTS, "island"):
                return self._names[found]
        return ""

    def _propose_located(self, entity: Entity, rng: Random, attempt: int) -> str:
        subtype = entity.subtype.name
        place = self._place_of(entity) if attempt < 2 else ""
        stem = place if place and rng.random() < 0.5 else _draw_surname(rng)
        if rng.random() < 0.15:
            stem = rng.choice(ADJECTIVES)
        if subtype == "battle":
            return f"Battle of {place or _draw_town(rng)}"
        if subtype == "meteorite":
            return place or _draw_town(rng)
        if subtype == "university" and rng.random() < 0.5:
            return f"University of {place or _draw_town(rng)}"
        head = rng.choice(_HEADS[subtype])
        if subtype == "newspaper" and rng.random() < 0.5:
            return f"The {stem} {head}"
        return f"{stem} {head}"

    def _propose_work(self, entity: Entity, rng: Random, attempt: int) -> str:
        source = self._objects.get((entity.number, "based_on"))
        if source is not None and attempt == 0 and rng.random() < 0.5:
            return self._names[source]
        namesake = self._objects.get((entity.number, "namesake"))
        if namesake is not None and attempt == 0 and rng.random() < 0.6:
            return self._names[namesake]
        if rng.random() < 0.06:
            return rng.choice(COMMON_TITLES)
        if rng.random() < 0.06:
            return self._names[rng.choice(self._eponyms)]
        return _propose_title(rng)


def _propose_title(rng: Random) -> str:
    noun, other = rng.choice(NOUNS), rng.choice(NOUNS)
    forms = (f"The {rng.choice(ADJECTIVES)} {noun}", f"The {noun} of {_draw_town(rng)}",
             f"{rng.choice(ADJECTIVES)} {noun}", f"The {noun} and the {other}",
             f"A {noun} for {rng.choice(GIVEN)}", f"{rng.choice(GIVEN)}'s {noun}")  # fmt: skip
    return rng.choice(forms)


def _propose_species(subtype: str, rng: Random) -> str:
    head = rng.choice(SPECIES_HEADS[subtype])
    if rng.random() < 0.45:
        return f"{_draw_surname(rng)}'s {head}"
    if subtype == "bird":
        return f"{rng.choice(TINTS)}-{rng.choice(BODY_PARTS)} {head}"
    return f"{rng.choice(TINTS)} {_draw_town(rng)} {head}"


def _propose_place(subtype: str, rng: Random, attempt: int) -> str:
    if subtype in SETTLEMENTS:
        common = attempt == 0 and rng.random() < 0.04
        return rng.choice(COMMON_TOWNS) if common else _draw_town(rng)
    stem = _draw_town(rng) if rng.random() < 0.5 else _draw_surname(rng)
    forms = {"river": ("River {}", "{} River"), "lake": ("Lake {}",), "island": ("{} Island", "Isle of {}")}
    return rng.choice(forms[subtype]).format(stem)


def _draw_town(rng: Random) -> str:
    first, second, ends, _ = rng.choice(TONGUES)
    return rng.choice(first) + rng.choice(second) + rng.choice(ends)


def _draw_surname(rng: Random) -> str:
    first, second, _, ends = rng.choice(TONGUES)
    return rng.choice(first) + rng.choice(second) + rng.choice(ends)
