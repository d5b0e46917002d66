"""What kind of thing an article is about: a noun for questions, and one of six domains.

The noun comes from the infobox, because a template is a deliberate classification; the lead sentence ("is a suspension
bridge in ...") gives a finer one beside it.
"""

import re

PERSON, BUILDING, LOCATION, ORGANISM, ARTIFACT, OTHER = (
    "Person",
    "Building/Place",
    "Location",
    "Organism",
    "Artifact",
    "Other",
)

_NOUNS = {
    "settlement": "place",
    "artist": "artist",
    "officeholder": "politician",
    "military person": "military officer",
    "military conflict": "battle",
    "military unit": "military unit",
    "islands": "island",
    "football biography": "footballer",
    "football club": "football club",
    "sportsperson": "athlete",
    "christian leader": "religious leader",
    "royalty": "monarch",
    "former country": "country",
    "u.s. state": "state",
    "us state": "state",
    "province or territory of canada": "province",
    "german location": "place",
    "french commune": "commune",
    "italian comune": "comune",
    "uk place": "place",
    "nrhp": "historic site",
    "uk station": "railway station",
    "gb station": "railway station",
    "station": "railway station",
    "television": "television series",
    "television episode": "television episode",
    "vg": "video game",
    "video game series": "video game series",
    "nfl biography": "American football player",
    "nfl player": "American football player",
    "mlb player": "baseball player",
    "baseball biography": "baseball player",
    "basketball biography": "basketball player",
    "ice hockey player": "ice hockey player",
    "adult biography": "person",
    "comics character": "character",
    "organization": "organisation",
    "non-profit": "organisation",
    "political party": "political party",
    "spaceflight": "space mission",
    "space mission": "space mission",
    "historic site": "historic site",
    "ancient site": "archaeological site",
    "medical condition": "medical condition",
    "medical condition (new)": "medical condition",
    "programming language": "programming language",
    "ethnic group": "people",
    "uk disused station": "railway station",
    "power station": "power station",
    "religious building": "religious building",
    "dog breed": "dog breed",
}
_NAME_BOXES = frozenset(["", "korean name", "chinese", "name", "mapframe"])
_NOT_INFOBOX = {"taxobox": "species", "automatic taxobox": "taxon", "speciesbox": "species"}

_PERSON_NOUNS = """
person, politician, artist, painter, writer, scientist, architect, engineer, composer, military officer, musical
artist, footballer, athlete, religious leader, monarch, actor, cricketer, philosopher, saint, character, biography,
philosopher, journalist, economist, comedian, model, chef, criminal, president, governor, judge, senator, clergy,
academic, boxer, swimmer, cyclist, racing driver, golfer, tennis biography, chess player, astronaut, dancer,
theologian, pharaoh, pope, American football player, baseball player, basketball player, ice hockey player, medical
person, sculptor, noble, spy, congressman, prime minister, film director, entrepreneur, photographer, singer, poet,
novelist, botanist, astronomer
"""
_BUILDING_NOUNS = """
building, bridge, museum, stadium, lighthouse, theatre, castle, tower, church, mosque, temple, cathedral, monument,
railway station, airport, religious building, historic building, hotel, hospital, prison, dam, tunnel, venue, school,
historic site, archaeological site, power station, university, fort, palace, synagogue, library, mine, shopping mall,
military installation, cemetery, pyramid, amusement park, zoo, park, observatory, skyscraper, road, street, canal,
house, world heritage site, unesco world heritage site, military structure, fountain, gallery, abbey, monastery,
market, garden
"""
_LOCATION_NOUNS = """
place, country, river, lake, island, mountain, body of water, state, province, commune, comune, valley, glacier,
volcano, city, town, village, desert, sea, protected area, region, continent, ocean, waterfall, cave, peninsula, bay,
strait, county, district, municipality, mountain range, mountain pass, spring, forest, beach, reef, planet,
constellation, crater, island group, landform, administrative division, territory, galaxy, star, moon, borough,
neighborhood, township, parish, range
"""
_ORGANISM_NOUNS = (
    "species, taxon, organism, plant, animal, bird, dog breed, cat breed, horse breed, cultivar, breed, fungus"
)
_ARTIFACT_NOUNS = """
artwork, painting, ship, clock, telescope, artifact, meteorite, aircraft, automobile, weapon, train, locomotive,
sculpture, book, film, album, song, single, opera, video game, television series, musical composition, instrument,
spacecraft, drink, food, coin, currency, flag, product, device, computer, camera, engine, motorcycle, rocket,
gemstone, manuscript, play, poem, information appliance, mobile phone, prepared food, beverage, cheese, newspaper,
magazine, journal, musical, software
"""


def _read_nouns(nouns: str) -> frozenset[str]:
    return frozenset(" ".join(noun.split()) for noun in nouns.split(","))


_DOMAINS = (
    (PERSON, _read_nouns(_PERSON_NOUNS)),
    (BUILDING, _read_nouns(_BUILDING_NOUNS)),
    (LOCATION, _read_nouns(_LOCATION_NOUNS)),
    (ORGANISM, _read_nouns(_ORGANISM_NOUNS)),
    (ARTIFACT, _read_nouns(_ARTIFACT_NOUNS)),
)

_BROAD_NOUNS = frozenset(["place", "building", "artwork", "species", "body of water", "artifact"])
_GENERAL_NOUNS = _read_nouns("""
acid, act, aircraft, alphabet, animal, art, asteroid, author, band, battle, beer, biologist, bread, bridge, century,
chemical, chemist, club, comet, company, compound, cyclone, dance, decade, dinosaur, disease, dish, document, dynasty,
earthquake, element, emperor, empire, empress, enzyme, era, event, explorer, fabric, festival, fighter, film, fish,
flower, franchise, frog, fruit, game, gas, general, genre, god, goddess, group, herb, historian, holiday, hormone,
hurricane, insect, inventor, king, language, law, letter, machine, mammal, material, mathematician, metal, meteorite,
mineral, month, movement, myth, newspaper, novel, organisation, organization, particle, party, people, period,
philosophy, physicist, prince, princess, profession, protein, queen, religion, reptile, revolution, rock, rodent,
science, script, series, shark, ship, shrub, snake, soil, soup, spider, sport, storm, story, style, submarine, tank,
team, theory, tool, tornado, treaty, tree, tribe, typhoon, unit, university, vegetable, vehicle, vitamin, war, whale,
wine, word, writer, year
""")

_IS_A = re.compile(
    r"\b(?:is|was|are|were)\s+(?:(?:also|now|still|once|currently|formerly|often|generally|usually)\s+)?"
    r"(?:an?|the|one of the|any of several|any of various)\s+(?P<phrase>[^.;:()\[\]]{2,160})"
)
_PHRASE_END = re.compile(
    r",|\s[-–—]|\s(?:in|of|by|for|from|that|which|who|whose|where|when|located|situated|lying|and|or|on|at|with|to|as|near"
    r"|between|built|born|based|known|used|named|called|founded|designed|made|found|into|within|along|under|over|he|she"
    r"|it|was|is|are|were|has|had|native|belonging|consisting|held|having|being|during|since|against|through|per)\s"
)
_HOLLOW_HEADS = frozenset(
    ["species", "type", "kind", "genus", "form", "family", "breed", "group", "part", "class", "name"]
)
_COMPOUND_HEADS = frozenset(
    ["station", "club", "party", "game", "series", "player", "director", "house", "site", "unit"]
)
_NO_NOUN_LIST = """
written given spoken made held best largest first small large common important ever endemic similar allegorical
primary oldest longest highest most ending playing composed caused produced directed well main kept fought laid major
minor famous popular central widely north south east west northern southern eastern western young second third last
only smallest private new old
"""
_NO_NOUNS = frozenset(_NO_NOUN_LIST.split())
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


def name_infobox_kind(template: str) -> str:
    """Return the noun of an infobox template: ``Infobox bridge`` gives ``bridge``, ``Infobox settlement`` ``place``.

    Templates that only spell a name give an empty string.
    """
    name = template.lower()
    for start, noun in _NOT_INFOBOX.items():
        if name.startswith(start):
            return noun
    kind = name.removeprefix("infobox").partition("/")[0].strip(" -").removesuffix(" begin").strip()
    return "" if kind in _NAME_BOXES else _NOUNS.get(kind, kind)


def choose_kind(infobox_kind: str, lead_kind: str) -> str:
    """Return the noun questions use: the infobox's, or the lead's where that is a known kind of a broad infobox noun.

    ``Infobox settlement`` says "place" of cities, towns and islands alike; a question is clearer with the lead's word.
    An article without an infobox is named by its lead, if that is a known noun at all: else "originally" is one too.
    """
    known = find_domain(lead_kind) != OTHER
    if not infobox_kind:
        return lead_kind if known or lead_kind in _GENERAL_NOUNS else ""
    return lead_kind if infobox_kind in _BROAD_NOUNS and known else infobox_kind


def find_domain(kind: str, lead_kind: str = "") -> str:
    """Return the domain of a noun, else that of the lead's noun, else ``Other``."""
    for noun in (kind, lead_kind):
        for word in (noun, noun.rpartition(" ")[2]):
            for domain, nouns in _DOMAINS:
                if word and word in nouns:
                    return domain
    return OTHER


def name_lead_kind(lead: str) -> str:
    """Return the head noun of a lead sentence, singular and lower case, one word or two; empty when none is found.

    "The Kelm Bridge is a suspension bridge over ..." gives ``bridge``, "is a species of bird" gives ``bird``.
    """
    match = _IS_A.search(lead[:600])
    if match is None:
        return ""
    phrase = match.group("phrase") + " "
    noun, rest = "", phrase
    # "a small, carnivorous mammal": what stands before the comma has no noun yet.
    for _ in range(3):
        end = _PHRASE_END.search(rest)
        head, rest = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
        noun = _find_head(head)
        if noun or not rest.startswith(","):
            break
        rest = rest[1:]
    if noun in _HOLLOW_HEADS and rest.startswith(" of "):
        inner = re.sub(r"^ of (?:(?:an?|the)\s)?", "", rest)
        inner_end = _PHRASE_END.search(inner)
        noun = _find_head(inner[: inner_end.start()] if inner_end else inner) or noun
    return noun


def _find_head(phrase: str) -> str:
    words = _WORD.findall(phrase)
    while words and _is_no_noun(words[-1]):
        words.pop()
    if not words or words[-1][0].isupper():
        return ""
    head = make_singular(words[-1].lower())
    if head in _COMPOUND_HEADS and len(words) > 1 and words[-2].islower():
        return f"{words[-2]} {head}"
    return head


def _is_no_noun(word: str) -> bool:
    """Say whether a word can end a phrase without being its head: a participle, or an adjective that lost its noun."""
    return word in _NO_NOUNS or (word.endswith("ed") and len(word) > 4 and word not in ("breed", "seed", "weed"))


def make_singular(noun: str) -> str:
    """Return the singular of a regular English plural; other words come back as they are."""
    if (
        noun in _HOLLOW_HEADS
        or noun.endswith(("series", "species"))
        or len(noun) < 4
        or noun.endswith(("ss", "us", "is"))
    ):
        return noun
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    if noun.endswith(("ches", "shes", "xes", "sses")):
        return noun[:-2]
    return noun.removesuffix("s")
