"""Nouns, units and key words: what decides between two wordings of the same fact."""

import re
from functools import lru_cache

from pipelines.backends.phrases_shapes import Kind

NOUNS: dict[Kind, str] = {
    "person": (
        "person people man woman actor actress architect artist astronaut astronomer athlete author baker banker "
        "baron baroness baritone biographer bishop botanist boxer broadcaster builder cardinal cartoonist "
        "chancellor chef chemist choreographer coach collector comedian comedienne commander composer conductor "
        "cricketer critic cyclist dancer deity designer diplomat director doctor dramatist driver duchess duke "
        "economist editor emperor empress engineer engraver entrepreneur essayist explorer filmmaker footballer "
        "founder general geographer geologist god goddess golfer governor guitarist historian illustrator "
        "industrialist inventor journalist judge jurist king lawyer leader librettist lyricist maker manager "
        "mathematician mayor merchant minister missionary model monarch monk musician mystic naturalist navigator "
        "novelist nun nurse officer painter patron philanthropist philosopher photographer physician physicist "
        "pianist pilot pirate playwright player poet politician pope potter presenter president priest prince "
        "princess printer printmaker producer professor prophet psychologist publisher queen racer rapper rector "
        "rower ruler runner sailor saint scholar scientist screenwriter sculptor senator singer skater skier "
        "sociologist soldier soprano songwriter statesman student surgeon surveyor swimmer teacher tenor theologian "
        "translator violinist wife wrestler writer zoologist"
    ),
    "settlement": (
        "borough capital city commune hamlet locality municipality neighborhood neighbourhood parish port resort "
        "settlement suburb town township village"
    ),
    "region": (
        "area canton colony continent country county department district emirate empire kingdom nation oblast "
        "prefecture principality province region republic state territory"
    ),
    "nature": (
        "archipelago atoll bay beach canyon cape cave cliff coast creek desert fjord forest glacier gulf hill "
        "island islet lagoon lake landform marsh moor mountain oasis ocean peak peninsula plain plateau pond reef "
        "reserve reservoir river sea spring strait stream swamp valley volcano waterfall wetland wood"
    ),
    "building": (
        "abbey airport amphitheatre aqueduct arch arena aquarium basilica bridge building campus canal castle "
        "cathedral cemetery chapel church cinema citadel complex convent courthouse dam factory farmhouse fort "
        "fortress fountain gallery garden gate hall harbour hospital hotel house landmark library lighthouse "
        "mansion manor mausoleum memorial mill minster monastery monument mosque museum observatory pagoda palace "
        "park pavilion pier plaza prison pyramid ruin school shrine skyscraper square stadium station street "
        "structure stupa synagogue temple theater theatre tomb tower tunnel velodrome venue viaduct villa windmill "
        "zoo"
    ),
    "organisation": (
        "academy agency airline alliance army association band bank brand brewery broadcaster bureau business "
        "charity choir club college committee company conglomerate consortium corporation council duo ensemble "
        "federation firm foundation government group institute institution journal label laboratory league "
        "legislature magazine manufacturer ministry navy newspaper operator orchestra order organisation "
        "organization parliament party periodical quartet retailer seminary shipyard society studio supermarket "
        "syndicate team trio troupe union university"
    ),
    "work": (
        "album anime ballet book cantata comic concerto documentary drama episode essay fable film franchise fresco "
        "game landscape manga memoir movie mural musical novel novella opera oratorio painting play poem portrait "
        "record serial series show single sitcom sonata song soundtrack story symphony trilogy treatise watercolour "
        "work"
    ),
    "event": (
        "accident assassination battle campaign celebration ceremony championship coup competition concert "
        "conference conflict congress cup disaster earthquake election eruption event exhibition expedition expo "
        "fair festival final fire flood games hurricane invasion marathon massacre match mission mutiny olympics "
        "operation pilgrimage race rebellion regatta revolt revolution riot season siege storm strike summit "
        "tournament treaty uprising war wedding"
    ),
    "species": (
        "amphibian animal ant bat bear bee beetle bird breed bug butterfly cactus cat cephalopod crab crustacean "
        "deer dinosaur dog dolphin dragonfly duck eagle fern finch fish flower fly fossil frog fungus gecko genus "
        "goose grass gull heron insect lichen lizard lobster mammal mollusc mollusk monkey moss moth mouse mushroom "
        "newt orchid owl palm parrot penguin plant primate rat reptile rodent rose salamander seal shark shrew "
        "shrub skink snail snake sparrow species spider squirrel subspecies swallow taxon thrush toad tortoise tree "
        "turtle vine warbler wasp whale woodpecker"
    ),
    "object": (
        "aeroplane aircraft airliner airship artefact artifact asteroid automobile bell bicycle boat bowl brooch "
        "car chalice clock coin comet constellation crater crown cruiser destroyer device diamond dwarf engine "
        "exoplanet ferry frigate galaxy gun helicopter helmet instrument jewel lander locomotive manuscript medal "
        "meteorite moon motorcycle nebula object piano planet relic ring rocket satellite schooner sculpture shield "
        "ship spacecraft star statue steamship stone submarine sword tank tapestry telescope throne train tram vase "
        "vehicle vessel watch yacht"
    ),
    "concept": (
        "award currency discipline dialect genre game ideology language method movement music philosophy prize "
        "religion script sport style theory"
    ),
}
"""Head nouns by kind. A noun that is listed twice belongs to its first kind."""

ONES: dict[Kind, str] = {
    "person": "person",
    "settlement": "place",
    "region": "place",
    "building": "place",
    "organisation": "organisation",
    "work": "work",
    "event": "event",
    "species": "species",
    "object": "object",
}
"""The weakest noun of a kind."""

STRUCTURES = "aqueduct arch bridge canal dam lighthouse monument pier pyramid skyscraper tower tunnel viaduct windmill"

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
    "l": "litres",
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
    "c": "degrees Celsius",
    "k": "kelvins",
    "w": "watts",
    "kw": "kilowatts",
    "mw": "megawatts",
    "hp": "horsepower",
    "%": "per cent",
    "/km2": "people per square kilometre",
}
_UNIT_SPELLINGS = str.maketrans({"²": "2", "³": "3", "°": None})
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
    kind = _index_nouns().get(head) or _index_nouns().get(head.removesuffix("s"))
    if kind is None:
        return "person" if head.endswith(_PERSON_ENDINGS) else ""
    return kind


def name_kind(noun: str, fallback: str) -> str:
    """Return the weakest noun for a thing of this type: ``person`` for ``painter``, ``structure`` for ``bridge``."""
    if find_head(noun) in STRUCTURES.split():
        return "structure"
    return ONES.get(classify_noun(noun), fallback)


def fits_noun(wanted: str, noun: str) -> bool:
    """Say whether a noun's head or kind is among ``wanted``; every noun fits an empty list."""
    words = wanted.split()
    return not words or find_head(noun) in words or classify_noun(noun) in words


def name_unit(unit: str) -> str:
    """Return a unit as the plural a question uses; one that is not in the table stays as it is."""
    folded = unit.translate(_UNIT_SPELLINGS).strip()
    return UNITS.get(folded.lower(), unit.strip())


def choose_article(noun: str) -> str:
    """Return ``a`` or ``an`` for the word that follows."""
    if _SILENT_H.match(noun):
        return "an"
    if _SILENT_OR_GLIDE.match(noun):
        return "a"
    return "an" if noun[:1].lower() in set("aeiou") else "a"
