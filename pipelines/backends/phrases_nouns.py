"""Nouns, units and key words: what decides between two wordings of the same fact."""

import re
from functools import lru_cache

from pipelines.backends.phrases_shapes import Kind

NOUNS: dict[Kind, str] = {
    "person": (
        "academic actor actress architect artist astronaut astronomer athlete author baker banker baritone baron "
        "baroness biographer biography bishop botanist boxer broadcaster builder cardinal cartoonist chancellor "
        "character chef chemist choreographer clergy coach collector comedian comedienne commander composer "
        "conductor congressman cricketer criminal critic curator cyclist dancer deity designer diplomat director "
        "doctor dramatist driver duchess duke economist editor emperor empress engineer engraver entrepreneur "
        "essayist explorer filmmaker footballer founder general geographer geologist god goddess golfer governor "
        "guitarist historian illustrator industrialist inventor journalist judge jurist king lawyer leader "
        "librettist lyricist maker man manager mathematician mayor merchant minister missionary model monarch monk "
        "musician mystic naturalist navigator noble novelist nun nurse officer painter patron people person pharaoh "
        "philanthropist philosopher photographer physician physicist pianist pilot pirate player playwright poet "
        "politician pope potter presenter president priest prince princess printer printmaker producer professor "
        "prophet psychologist publisher queen racer rapper rector rower ruler runner sailor saint scholar scientist "
        "screenwriter sculptor senator singer skater skier sociologist soldier songwriter soprano spy statesman "
        "student surgeon surveyor swimmer teacher tenor theologian translator violinist wife woman wrestler writer "
        "zoologist"
    ),
    "settlement": (
        "borough capital city commune comune hamlet locality municipality neighborhood neighbourhood parish place "
        "port quarter resort settlement suburb town township village ward"
    ),
    "region": (
        "area canton colony continent country county department district division emirate empire kingdom nation "
        "oblast prefecture principality province region republic state territory"
    ),
    "nature": (
        "archipelago atoll basin bay beach body canyon cape cave cliff coast creek desert fjord forest glacier gulf "
        "hill island island_group islet lagoon lake landform landmass marsh moor mountain oasis ocean pass peak "
        "peninsula plain plateau pond range reef reserve reservoir ridge river sea spring strait stream summit "
        "swamp valley volcano waterfall wetland wood"
    ),
    "building": (
        "abbey airport amphitheatre aquarium aqueduct arch arena base basilica bridge building campus canal castle "
        "cathedral cemetery chapel church cinema citadel complex convent courthouse dam factory farmhouse fort "
        "fortress fountain gallery garden gate hall harbour highway hospital hotel house installation landmark "
        "library lighthouse line mall manor mansion market mausoleum memorial mill mine minster monastery monument "
        "mosque museum observatory pagoda palace park pavilion pier plaza prison pyramid railway road ruin school "
        "shrine site skyscraper square stadium station stele street structure stupa synagogue temple theater "
        "theatre tomb tower tunnel velodrome venue viaduct villa wall windmill zoo"
    ),
    "organisation": (
        "academy agency airline alliance army association band bank battalion brand brewer brewery broadcaster "
        "bureau business charity choir club college committee company conglomerate consortium corporation council "
        "duo ensemble federation firm foundation government group institute institution journal label laboratory "
        "league legislature magazine manufacturer ministry navy newspaper operator orchestra order organisation "
        "organization parliament party periodical publication quartet regiment retailer seminary shipyard society "
        "squadron studio supermarket syndicate team trio troupe union unit university"
    ),
    "work": (
        "album anime artwork ballet book cantata comic composition concerto documentary drama episode essay fable "
        "film franchise fresco game landscape manga memoir movie mural musical novel novella opera oratorio "
        "painting play poem portrait program record serial series show single sitcom software sonata song "
        "soundtrack story symphony treatise trilogy watercolour work"
    ),
    "event": (
        "accident assassination battle campaign celebration celebrations ceremony championship competition concert "
        "conference conflict congress coup cup disaster earthquake election eruption event exhibition expedition "
        "expo fair festival final fire flood games hurricane invasion marathon massacre match mission mutiny "
        "olympics operation pilgrimage race rebellion regatta revolt revolution riot season siege storm strike "
        "summit tournament treaty uprising war wedding"
    ),
    "species": (
        "amphibian animal ant bat bear bee beetle bird breed bug butterfly cactus cat cephalopod crab crustacean "
        "cultivar deer dinosaur dog dolphin dragonfly duck eagle fern finch fish flower fly fossil frog fungus "
        "gecko genus goose grass gull heron insect lichen lizard lobster mammal mollusc mollusk monkey moss moth "
        "mouse mushroom newt orchid organism owl palm parrot penguin plant primate rat reptile rodent rose "
        "salamander seal shark shrew shrub skink snail snake sparrow species spider squirrel subspecies swallow "
        "taxon thrush toad tortoise tree turtle variety vine warbler wasp whale woodpecker"
    ),
    "object": (
        "aeroplane aircraft airliner airship appliance artefact artifact asteroid automobile barque bell beverage "
        "bicycle boat bowl brooch camera car chalice cheese clock coin comet computer constellation corvette crater "
        "crown cruiser destroyer device diamond dish drink dwarf engine exoplanet ferry flag food frigate galaxy "
        "gemstone gun helicopter helmet instrument jewel lander locomotive manuscript medal meteorite moon "
        "motorcycle nebula object phone piano planet product relic ring rocket satellite schooner sculpture shield "
        "ship spacecraft star statue steamship stone submarine sword tank tapestry telescope throne train tram vase "
        "vehicle vessel watch weapon yacht"
    ),
    "concept": (
        "alphabet award condition currency dialect discipline disease family game genre ideology language method "
        "movement music philosophy prize religion script sport style theory"
    ),
}
"""Head nouns by kind; two words are joined by an underscore. A noun that is listed twice belongs to its first kind."""

ONES: dict[Kind, str] = {
    "person": "person",
    "settlement": "place",
    "building": "building",
    "organisation": "organisation",
    "work": "work",
    "event": "event",
    "species": "species",
    "object": "object",
}
"""The weakest noun of a kind; other kinds take the noun of the relation."""

ONES_BY_HEAD: dict[str, str] = {
    "structure": "aqueduct arch bridge canal dam lighthouse monument pier pyramid skyscraper tower tunnel viaduct mill",
    "institution": "academy college institute laboratory school seminary university",
    "museum": "museum",
    "gallery": "gallery",
    "library": "library",
    "venue": "amphitheatre arena cinema hall house stadium theater theatre velodrome",
    "place": (
        "airport campus cemetery complex garden harbour landmark market mine park plaza railway resort ruin site "
        "square station zoo"
    ),
    "publication": "newspaper magazine journal periodical",
    "land": "country empire kingdom nation republic",
    "route": "highway line road street",
}
"""Weakest nouns that suit some heads better than that of their kind."""

UNITS: dict[str, str] = {
    "mm": "millimetres",
    "cm": "centimetres",
    "m": "metres",
    "km": "kilometres",
    "in": "inches",
    "ft": "feet",
    "yd": "yards",
    "mi": "miles",
    "nmi": "nautical miles",
    "m2": "square metres",
    "km2": "square kilometres",
    "ha": "hectares",
    "acre": "acres",
    "sqft": "square feet",
    "sqmi": "square miles",
    "m3": "cubic metres",
    "km3": "cubic kilometres",
    "m3/s": "cubic metres per second",
    "mg": "milligrams",
    "g": "grams",
    "kg": "kilograms",
    "t": "tonnes",
    "oz": "ounces",
    "lb": "pounds",
    "long ton": "long tons",
    "ton": "tons",
    "s": "seconds",
    "min": "minutes",
    "h": "hours",
    "d": "days",
    "km/h": "kilometres per hour",
    "mph": "miles per hour",
    "kn": "knots",
    "hp": "horsepower",
    "week": "weeks",
    "month": "months",
    "year": "years",
    "short ton": "short tons",
    "m/s": "metres per second",
    "°": "degrees",
    "°C": "degrees Celsius",
    "°F": "degrees Fahrenheit",
    "K": "kelvins",
    "L": "litres",
    "W": "watts",
    "kW": "kilowatts",
    "MW": "megawatts",
    "GW": "gigawatts",
    "V": "volts",
    "Hz": "hertz",
    "kHz": "kilohertz",
    "MHz": "megahertz",
    "GHz": "gigahertz",
    "$": "US dollars",
    "€": "euros",
    "£": "pounds sterling",
    "¥": "yen",
    "%": "per cent",
}
AGENTS = frozenset("owner operator builder maker publisher distributor broadcaster developer employer holder".split())
"""Nouns for a person or an organisation, whichever it is."""
_SUPERSCRIPTS = str.maketrans({"²": "2", "³": "3"})
_PERSON_ENDINGS = ("ologist", "grapher", "ist", "ician", "smith", "wright")
_HEAD_END = re.compile(r"\s(?:of|in|for|from|at|on|by|and|or|with|near)\s|,")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_SILENT_OR_GLIDE = re.compile(r"^(?:uni(?!n)|use|usu|eu|one\b|ou[ij])", re.IGNORECASE)
_SILENT_H = re.compile(r"^(?:hour|honou?r|honest|heir)", re.IGNORECASE)


@lru_cache(maxsize=1)
def _index_nouns() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for kind, nouns in NOUNS.items():
        for noun in nouns.split():
            kinds.setdefault(noun, kind)
    return kinds


def clean_noun(noun: str) -> str:
    """Return a type noun without a leading article and with single spaces."""
    return _ARTICLE.sub("", " ".join(noun.split()))


def find_head(noun: str) -> str:
    """Return the head of a noun phrase in lower case: ``city`` for ``Port city in the north``."""
    words = _HEAD_END.split(clean_noun(noun).lower(), maxsplit=1)[0].split()
    return words[-1] if words else ""


def classify_noun(noun: str) -> Kind:
    """Return the kind of thing a noun phrase names, ``""`` when its head is not in the table."""
    head = find_head(noun)
    whole = clean_noun(noun).lower().replace(" ", "_")
    kind = _index_nouns().get(whole) or _index_nouns().get(head) or _index_nouns().get(head.removesuffix("s"))
    if kind is None:
        return "person" if head.endswith(_PERSON_ENDINGS) else ""
    return kind


def name_kind(noun: str, fallback: str) -> str:
    """Return the weakest noun for a thing of this type: ``person`` for ``painter``, ``structure`` for ``bridge``."""
    head = find_head(noun)
    special = next((one for one, heads in ONES_BY_HEAD.items() if head in heads.split()), "")
    return special or ONES.get(classify_noun(noun), fallback)


def choose_pronoun(noun: str) -> str:
    """Return ``who`` for a person, ``that`` for anything else."""
    return "who" if classify_noun(noun) == "person" else "that"


def fits_noun(wanted: str, noun: str) -> bool:
    """Say whether a noun's head or kind is among ``wanted``; every noun fits an empty list."""
    words = wanted.split()
    return not words or find_head(noun) in words or classify_noun(noun) in words


def name_unit(unit: str) -> str:
    """Return a unit as the plural a question uses; one that is not in the table stays as it is."""
    plain = unit.translate(_SUPERSCRIPTS).strip()
    return UNITS.get(plain) or UNITS.get(plain.lower()) or unit.strip()


def is_known_unit(unit: str) -> bool:
    """Say whether a unit is one of measure or money, not a counted thing such as ``inhabitants``."""
    return name_unit(unit) in UNITS.values()


def choose_article(noun: str) -> str:
    """Return ``a`` or ``an`` for the word that follows."""
    if _SILENT_H.match(noun):
        return "an"
    if _SILENT_OR_GLIDE.match(noun):
        return "a"
    return "an" if noun[:1].lower() in set("aeiou") else "a"
