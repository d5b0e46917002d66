"""Finding the words for an infobox key: relations between entities, and literal attributes.

The tables cover the keys of the toy world and the common keys of enwiki's infoboxes; any other key is put into words
by its own words, which is clumsy but true.

Shapes of the word tables.

In every table ``{s}`` is the slot for whatever refers to the subject. ``keys``, ``subjects`` and ``objects`` are words
separated by spaces; ``subjects`` and ``objects`` hold kinds (``building``) or head nouns (``bridge``), and a row
without them fits every noun. The first row that fits is used, so a general row comes after its exceptions.

Nouns, units and key words: what decides between two wordings of the same fact.

Dated attributes: inverted clauses for questions, a noun for the event, a participle for qualifiers.

Measured and counted attributes.

Relations that usually lead to a person.

Relations that usually lead to a place.

Relations that usually lead to an organisation, a work, an event or an idea.

Attributes whose value is a word or a short name.

Facts as qualifiers of a noun, which of them a descriptor may use, and how several clauses follow one noun.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

from pipelines.ids import draw_unit
from schemas.tasks import FactView, HopView

SLOT = "{s}"

Kind = Literal[
    "",
    "person",
    "settlement",
    "region",
    "nature",
    "building",
    "organisation",
    "work",
    "event",
    "species",
    "object",
    "concept",
]
Form = Literal["date", "number", "word"]


@dataclass(frozen=True, slots=True)
class RelationWording:
    """How one relation between entities is put into words.

    Attributes:
        keys: normalised infobox keys, as ``phrases.normalise_key`` makes them.
        noun: what to call the object when its type is unknown.
        plains: complete phrases for the object, such as ``the architect of {s}``.
        tails: what may follow ``the <noun> ``; ``{who}`` becomes ``who`` for a person and ``that`` otherwise. The first
            begins with a relative word, so that a qualifier can stand between the noun and it.
        subjects: kinds or head nouns the subject must have.
        objects: kinds or head nouns the object must have.
        inverses: the relation the other way round, ``{s}`` being the object: what may follow ``the <noun> `` of the
            subject, such as ``designed by {s}``. One of them at least is a relative clause that ends with its slot.
    """

    keys: str
    noun: str
    plains: tuple[str, ...]
    tails: tuple[str, ...]
    subjects: str = ""
    objects: str = ""
    inverses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttributeWording:
    """How one literal attribute is asked for and used as a qualifier.

    Attributes:
        keys: normalised infobox keys.
        form: what its values are; an answer of another form is asked for by ``noun`` alone.
        noun: completes ``the <noun> of {s}``.
        asks: for a date, inverted clauses (``was {s} born``) that follow ``In what year``; otherwise whole questions
            without the question mark, where those with ``{unit}`` are for answers with a unit and the others for those
            without.
        qualifier: follows a noun, ``{v}`` being the value and ``{a}`` its article: ``printed as {a} {v}``. For a date
            only the participle: ``born``.
        subjects: kinds or head nouns the subject must have.
    """

    keys: str
    form: Form
    noun: str
    asks: tuple[str, ...]
    qualifier: str = ""
    subjects: str = ""


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


def _date(keys: str, noun: str, asks: tuple[str, ...], participle: str, subjects: str = "") -> AttributeWording:
    return AttributeWording(keys, "date", noun, asks, participle, subjects)


# fmt: off
_ESTABLISHED = "established established_date foundation founded formation formed inception incorporated"
_OPENED = "open opened opening opening_date inaugurated inauguration_date opened_date date_opened"
_COMPLETED = "completion_date completed complete year_completed yearbuilt built year_built construction_end finished"

DATES: tuple[AttributeWording, ...] = (
    _date("birth_date birthdate date_of_birth born", "birth", ("was {s} born",), "born"),
    _date("death_date deathdate date_of_death died", "death", ("did {s} die",), "who died", "person"),
    _date("death_date died extinct", "end", ("did {s} die out",), "that died out"),
    _date(_ESTABLISHED, "opening", ("was {s} founded", "was {s} established"), "established", "building"),
    _date(_ESTABLISHED, "establishment", ("was {s} established", "did {s} come into being"), "established",
          "region settlement"),
    _date(_ESTABLISHED, "foundation", ("was {s} founded", "did {s} first appear"), "founded",
          "newspaper magazine journal periodical"),
    _date(_ESTABLISHED, "first edition", ("was {s} founded", "was {s} first held"), "founded", "event"),
    _date(_ESTABLISHED, "foundation", ("was {s} founded", "was {s} established", "was {s} set up"), "founded"),
    _date(_OPENED, "opening", ("was {s} opened to traffic", "was {s} opened"), "opened",
          "bridge tunnel viaduct road canal railway"),
    _date(_OPENED, "opening", ("did {s} open", "was {s} opened"), "opened"),
    _date(_COMPLETED, "completion", ("was {s} completed", "was {s} finished"), "completed"),
    _date("construction_start construction_date start_date began groundbreaking broke_ground",
          "start of construction",
          ("did work on {s} begin",), "begun"),
    _date("closed closing_date close demolished demolition_date", "closure", ("was {s} closed",), "closed"),
    _date("pub_date publication_date published release_date_book publication", "publication",
          ("was {s} published", "did {s} first appear in print"), "published"),
    _date("released release_date release film_date first_aired first_release premiere_date_film", "release",
          ("was {s} released", "did {s} come out"), "released", "work"),
    _date("released release_date first_release", "release", ("was {s} released",), "released"),
    _date("premiere_date premiere first_performance", "first performance",
          ("was {s} first performed", "did {s} have its premiere"), "first performed"),
    _date("last_aired", "last broadcast", ("was {s} last broadcast",), "last broadcast"),
    _date("year year_painted date completion_year", "completion",
          ("was {s} painted", "was {s} finished"), "finished", "painting portrait fresco mural watercolour landscape"),
    _date("year date", "creation", ("was {s} made", "did {s} appear"), "made", "work object"),
    _date("date year event_date dates", "", ("did {s} take place", "was {s} fought"), "fought", "battle siege"),
    _date("date year event_date", "", ("did {s} take place",), "held", "event"),
    _date("first_light", "first light", ("did {s} see first light", "did {s} first look at the sky"), "first used"),
    _date("made created year_made date_made creation_date built_date", "making",
          ("was {s} made", "was {s} created"), "made"),
    _date("launched ship_launched launch_date", "launch", ("was {s} launched",), "launched"),
    _date("commissioned ship_commissioned", "commissioning", ("was {s} commissioned",), "commissioned"),
    _date("first_flight", "first flight", ("did {s} first fly",), "first flown"),
    _date("introduced introduction", "introduction", ("was {s} introduced",), "introduced"),
    _date("discovered discovered_date discovery_date found_date discovery", "discovery",
          ("was {s} discovered", "was {s} found"), "discovered"),
    _date("fall_date observed_fall", "fall", ("did {s} fall to earth", "did {s} come down"), "that fell"),
    _date("described authority_year year_described", "first description",
          ("was {s} first described", "did science first describe {s}"), "first described"),
    _date("admittance_date accession_date independence_date", "admission", ("was {s} admitted",), "admitted"),
    _date("term_start reign_start start_term", "start of the term",
          ("did {s} take office", "did the term of {s} begin"), "who took office"),
    _date("term_end reign_end", "end of the term", ("did {s} leave office", "did the term of {s} end"),
          "who left office"),
)
# fmt: on


def _measure(keys: str, noun: str, asks: tuple[str, ...] = (), subjects: str = "") -> AttributeWording:
    return AttributeWording(keys, "number", noun, asks, f"{{who}} has {choose_article(noun)} {noun} of {{v}}", subjects)


def _count(keys: str, noun: str, asks: tuple[str, ...], counted: str, subjects: str = "") -> AttributeWording:
    return AttributeWording(keys, "number", noun, asks, f"{{who}} has {{v}} {counted}", subjects)


# fmt: off
_HEIGHT = "height height_m height_ft height_metric roof tip antenna_spire"
_LENGTH = "length length_km length_m length_mi ship_length length_ft total_length mainspan"

NUMBERS: tuple[AttributeWording, ...] = (
    _measure(_HEIGHT, "height", ("How tall is {s}, in {unit}", "How many {unit} tall is {s}", "How tall is {s}"),
             "person"),
    _measure(_HEIGHT, "height",
             ("How tall is {s}, in {unit}", "How high is {s}, in {unit}", "How many {unit} high is {s}",
             "How tall is {s}")),
    _measure("highest_point elevation_max highest_elevation", "highest point",
             ("How high, in {unit}, is the highest point of {s}",
             "How many {unit} high is the highest point of {s}")),
    _measure("elevation elevation_m elevation_ft altitude", "elevation",
             ("How many {unit} above sea level is {s}", "How far above sea level, in {unit}, is {s}")),
    _measure("prominence", "prominence"),
    _measure(_LENGTH, "length", ("How long is {s}, in {unit}", "How many {unit} long is {s}", "How long is {s}")),
    _measure("width width_metric width_cm width_m beam ship_beam", "width",
             ("How wide is {s}, in {unit}", "How many {unit} wide is {s}", "How wide is {s}")),
    _measure("height_metric_cm", "height"),
    _measure("depth max_depth", "maximum depth",
             ("How deep is {s} at its deepest, in {unit}", "How many {unit} deep is {s} at most"), "nature"),
    _measure("depth max_depth draft ship_draft", "depth",
             ("How deep is {s}, in {unit}", "How many {unit} deep is {s}")),
    _measure("area area_km2 area_total_km2 area_total area_sq_mi area_land_km2 area_total_sq_mi size", "area",
             ("How large is {s}, in {unit}", "How many {unit} does the area of {s} come to",
              "How large an area, in {unit}, is covered by {s}")),
    _measure("volume", "volume"),
    _measure("discharge discharge_avg", "discharge"),
    _measure("diameter aperture", "diameter",
             ("What is the diameter of the mirror, in {unit}, of {s}", "How many {unit} across is the mirror of {s}"),
             "telescope observatory"),
    _measure("diameter", "diameter", ("How many {unit} across is {s}",)),
    _measure("mass weight launch_mass", "mass",
             ("How heavy is {s}, in {unit}", "How many {unit} does {s} weigh", "How heavy is {s}")),
    _measure("wingspan", "wingspan",
             ("How wide are the outspread wings, in {unit}, of {s}",
             "How many {unit} does the wingspan of {s} measure")),
    _measure("displacement ship_displacement tonnage ship_tonnage", "displacement",
             ("How many {unit} of water are displaced by {s}",)),
    _measure("speed ship_speed max_speed top_speed", "top speed", ("How fast is {s}, in {unit}",)),
    _measure("runtime length_min duration running_time", "running time",
             ("How long does {s} run, in {unit}", "How many {unit} long is {s}"), "work"),
    _measure("duration mission_duration", "duration", ("How long, in {unit}, was {s}",)),
    _measure("density population_density population_density_km2", "population density"),
    _count("population population_total population_estimate population_census pop", "population",
           ("How many people live in {s}", "How many inhabitants does {s} have",
           "How many inhabitants are counted in {s}"),
           "inhabitants"),
    _count("capacity seating_capacity seats", "capacity",
           ("How many people can {s} hold", "How many seats are there in {s}", "How many spectators fit into {s}"),
           "seats",
           "building"),
    _measure("capacity", "capacity"),
    _count("visitors attendance_museum visitors_num", "yearly number of visitors",
           ("How many visitors a year come to {s}", "How many people visit {s} in a year"), "visitors a year"),
    _count("pages page_count", "number of pages",
           ("How many pages are there in {s}", "How many pages does {s} have", "How many pages long is {s}"),
           "pages"),
    _count("num_employees employees number_of_employees staff workforce", "number of employees",
           ("How many people work for {s}", "How many employees does {s} have",
           "How many people are employed by {s}"),
           "employees"),
    _count("students enrollment enrolment num_students", "number of students",
           ("How many students are enrolled at {s}", "How many students does {s} have",
           "How many people study at {s}"),
           "students"),
    _count("circulation", "circulation",
           ("How many copies are printed of {s}", "How many copies of {s} are printed"), "printed copies"),
    _count("casualties1", "number of casualties on the first side",
           ("How many casualties did the first side suffer in {s}",
           "How many casualties are counted for the first side in {s}"), "casualties on the first side"),
    _count("casualties2", "number of casualties on the second side",
           ("How many casualties did the second side suffer in {s}",
           "How many casualties are counted for the second side in {s}"), "casualties on the second side"),
    _count("casualties deaths fatalities", "number of casualties",
           ("How many casualties were there in {s}", "How many people fell in {s}"), "casualties",
           "battle siege war"),
    _count("casualties deaths fatalities", "number of deaths", ("How many people died in {s}",), "deaths"),
    _count("attendance", "attendance",
           ("How many people come to {s}", "How many people attend {s}"), "people attending"),
    _count("speakers native_speakers", "number of speakers",
           ("How many people speak {s}", "How many speakers does {s} have"), "speakers"),
    _count("floor_count floors storeys stories", "number of floors",
           ("How many floors are there in {s}", "How many floors does {s} have"), "floors"),
    _count("num_episodes episodes", "number of episodes",
           ("How many episodes are there of {s}", "How many episodes does {s} have"), "episodes"),
    _count("num_seasons seasons", "number of seasons",
           ("How many seasons are there of {s}", "How many seasons does {s} have"), "seasons"),
    _count("spans", "number of spans", ("How many spans are there in {s}", "How many spans does {s} have"), "spans"),
    _count("platforms", "number of platforms", ("How many platforms are there at {s}",), "platforms"),
    _count("crew_size crew complement ship_complement", "size of the crew",
           ("How many people make up the crew of {s}",), "crew"),
    _measure("gdp_ppp", "gross domestic product at purchasing power parity"),
    _measure("gdp_ppp_per_capita", "gross domestic product per head at purchasing power parity"),
    _measure("gdp_nominal", "nominal gross domestic product"),
    _measure("gdp_nominal_per_capita", "nominal gross domestic product per head"),
    _measure("gini", "Gini coefficient"),
    _measure("hdi", "Human Development Index"),
    _measure("percent_water area_water_percent", "percentage of water in the area"),
    _measure("revenue", "revenue"),
    _measure("budget", "budget", ("How much did it cost to make {s}",)),
    _measure("cost construction_cost", "cost", ("How much was spent on {s}",)),
    _measure("gross box_office", "box-office takings"),
)
# fmt: on


# fmt: off
MAKERS: tuple[RelationWording, ...] = (
    RelationWording("architect", "person",
        ("the architect of {s}", "the architect behind {s}"), ("{who} designed {s}", "{who} drew the plans for {s}"),
        inverses=("designed by {s}", "{who} was designed by {s}", "that {s} designed", "whose architect was {s}")),
    RelationWording("designer", "person",
        ("the designer of {s}",), ("{who} designed {s}", "{who} drew up the design of {s}"),
        inverses=("designed by {s}", "{who} was designed by {s}", "that {s} designed")),
    RelationWording("author", "person",
        ("the author of {s}",), ("{who} wrote {s}", "{who} is the author of {s}"),
        inverses=("written by {s}", "{who} was written by {s}", "that {s} wrote")),
    RelationWording("director", "person",
        ("the director of {s}",), ("{who} directed {s}", "{who} was the director of {s}"), "work",
        inverses=("directed by {s}", "{who} was directed by {s}", "that {s} directed")),
    RelationWording("artist", "person",
        ("the painter of {s}", "the artist behind {s}"), ("{who} painted {s}", "{who} is the artist of {s}"),
        "painting portrait fresco mural watercolour landscape",
        inverses=("painted by {s}", "{who} was painted by {s}", "that {s} painted")),
    RelationWording("artist", "person",
        ("the artist behind {s}",), ("{who} recorded {s}", "{who} released {s}"), "album song single record",
        inverses=("recorded by {s}", "{who} was recorded by {s}", "that {s} recorded")),
    RelationWording("artist", "person",
        ("the artist behind {s}", "the artist of {s}"), ("{who} created {s}", "{who} made {s}"),
        inverses=("created by {s}", "{who} was created by {s}", "that {s} made")),
    RelationWording("composer", "person",
        ("the composer of the music for {s}",), ("{who} wrote the music for {s}", "{who} scored {s}"),
        "film movie documentary series serial show game play",
        inverses=("for which {s} wrote the music", "{who} has music by {s}", "whose music was written by {s}")),
    RelationWording("composer", "person",
        ("the composer of {s}",), ("{who} composed {s}", "{who} wrote the music of {s}"),
        inverses=("composed by {s}", "{who} was composed by {s}", "that {s} composed")),
    RelationWording("editor", "person",
        ("the editor of {s}",), ("{who} edits {s}", "{who} is the editor of {s}"), "organisation",
        inverses=("edited by {s}", "{who} is edited by {s}", "that {s} edits")),
    RelationWording("editor", "person",
        ("the editor of {s}",), ("{who} edited {s}", "{who} was the editor of {s}"),
        inverses=("edited by {s}", "{who} was edited by {s}", "that {s} edited")),
    RelationWording("founder founders", "person",
        ("the founder of {s}",), ("{who} founded {s}", "{who} set up {s}", "{who} started {s}"),
        inverses=("founded by {s}", "{who} was founded by {s}", "that {s} founded")),
    RelationWording("discoverer discovered_by", "person",
        ("the discoverer of {s}",), ("{who} discovered {s}", "{who} is credited with the discovery of {s}"),
        inverses=("discovered by {s}", "{who} was discovered by {s}", "that {s} discovered")),
    RelationWording("maker built_by builder",
        "maker", ("the builder of {s}",), ("{who} built {s}", "{who} carried out the construction of {s}"),
        "building ship vessel boat frigate schooner steamship submarine",
        inverses=("built by {s}", "{who} was built by {s}", "that {s} built")),
    RelationWording("maker built_by builder", "maker",
        ("the maker of {s}",), ("{who} built {s}", "{who} made {s}"),
        inverses=("made by {s}", "{who} was made by {s}", "that {s} made")),
    RelationWording("commander1", "person",
        ("the commander on the first side listed for {s}",),
        ("{who} led the first side listed for {s}", "{who} commanded the first side listed for {s}"),
        inverses=("in which the first listed side was led by {s}", "whose first listed commander was {s}",
        "in which {s} led the first listed side")),
    RelationWording("commander", "person",
        ("the commander of {s}",), ("{who} commanded {s}", "{who} was in command of {s}"),
        inverses=("commanded by {s}", "{who} was commanded by {s}", "that {s} commanded")),
)

LEADERS: tuple[RelationWording, ...] = (
    RelationWording("leader_name leader_name1", "person",
        ("the leader of {s}",), ("{who} leads {s}", "{who} is listed as the leader of {s}"),
        inverses=("led by {s}", "{who} is led by {s}", "whose leader is {s}", "that {s} leads")),
    RelationWording("rector", "person",
        ("the head of {s}",), ("{who} heads {s}", "{who} holds the highest office at {s}"),
        inverses=("headed by {s}", "{who} is headed by {s}", "whose head is {s}")),
    RelationWording("director", "person",
        ("the head of {s}",), ("{who} heads {s}", "{who} runs {s}", "{who} is in charge of {s}"),
        inverses=("headed by {s}", "{who} is headed by {s}", "whose head is {s}", "run by {s}")),
    RelationWording("key_people", "person",
        ("the key figure named for {s}",), ("{who} is named as a key figure of {s}",
        "{who} is listed among the leading people of {s}"),
        inverses=("{who} has {s} among its leading people", "whose key people include {s}",
        "{who} names {s} as a key figure")),
)

RELATIVES: tuple[RelationWording, ...] = (
    RelationWording("spouse", "person",
        ("the spouse of {s}", "the husband or wife of {s}"), ("{who} married {s}", "{who} was married to {s}"),
        inverses=("married to {s}", "{who} married {s}", "{who} was married to {s}", "whom {s} married")),
    RelationWording("children", "person",
        ("the child of {s}", "the son or daughter of {s}"), ("{who} is listed as a child of {s}",
        "{who} is the son or daughter of {s}"),
        inverses=("{who} was a parent of {s}", "whose child was {s}", "{who} was the father or mother of {s}")),
    RelationWording("doctoral_advisor", "person",
        ("the doctoral advisor of {s}", "the doctoral supervisor of {s}"),
        ("{who} supervised the doctorate of {s}", "{who} advised the doctoral work of {s}"),
        inverses=("{who} wrote a doctoral thesis under {s}", "whose doctoral advisor was {s}",
        "whose doctorate was supervised by {s}")),
    RelationWording("students", "person",
        ("the student of {s}",), ("{who} was a student of {s}", "{who} studied under {s}"), "person",
        inverses=("{who} taught {s}", "whose students included {s}", "{who} was a teacher of {s}")),
    RelationWording("namesake named_after named_for etymology", "person",
        ("the person after whom {s} is named",),
        ("{who} is honoured in the name of {s}", "{who} is commemorated by the name of {s}"),
        "", "person",
        inverses=("named after {s}", "{who} is named after {s}", "whose name honours {s}")),
    RelationWording("namesake named_after named_for etymology", "one",
        ("the source of the name of {s}",), ("{who} lent a name to {s}", "after which {s} is named"),
        inverses=("named after {s}", "{who} is named after {s}", "whose name comes from {s}")),
)
# fmt: on


# fmt: off
_SITES = "location locale locality place city site town located_in address municipality"
_HOLDERS = "location museum collection gallery held_at current_location place city repository owner_location"
_HOMES = "headquarters hq_location hq_location_city location_city headquarters_location hq_city base"

LIVES: tuple[RelationWording, ...] = (
    RelationWording("birth_place", "place",
        ("the birthplace of {s}", "the place of birth of {s}"), ("where {s} was born",
        "that is the birthplace of {s}"),
        inverses=("born in {s}", "{who} was born in {s}", "whose birthplace is {s}",
        "{who} came into the world in {s}")),
    RelationWording("death_place", "place",
        ("the place of death of {s}",), ("where {s} died", "that saw the death of {s}"),
        inverses=("{who} died in {s}", "whose place of death is {s}", "whose life ended in {s}")),
)

SITES: tuple[RelationWording, ...] = (
    RelationWording("location museum collection place city", "collection",
        ("the place where {s} is kept",), ("that holds {s}", "where {s} is kept", "that houses {s}"),
        "object work", "building organisation",
        inverses=("held by {s}", "kept at {s}", "{who} is held by {s}", "{who} is kept at {s}")),
    RelationWording("museum collection", "collection",
        ("the place where {s} is kept",), ("that holds {s}", "where {s} is kept", "that houses {s}"),
        inverses=("held by {s}", "kept at {s}", "{who} is held by {s}", "{who} is kept at {s}")),
    RelationWording("place location", "place",
        ("the place of discovery of {s}",), ("where {s} was found", "that was the place of discovery of {s}"),
        "meteorite fossil artefact artifact helmet relic",
        inverses=("found at {s}", "{who} was found at {s}", "whose place of discovery is {s}")),
    RelationWording("discovered_place",
    "place",
        ("the place of discovery of {s}", "the finding place of {s}"),
        ("where {s} was found", "that was the place of discovery of {s}"),
        inverses=("found at {s}", "{who} was found at {s}", "whose place of discovery is {s}")),
    RelationWording("location locale place city", "place",
        ("the home of {s}",), ("where {s} is held", "that hosts {s}", "that is home to {s}"),
        "festival fair regatta",
        inverses=("held in {s}", "{who} is held in {s}", "{who} takes place in {s}")),
    RelationWording("location locale place city", "place",
        ("the scene of {s}", "the site of {s}"), ("where {s} took place", "that was the scene of {s}"), "event",
        inverses=("{who} took place at {s}", "whose site was {s}", "whose scene was {s}")),
    RelationWording("headquarters hq_location location locale place city", "place",
        ("the seat of {s}",), ("where {s} has its seat", "that is the seat of {s}", "that is home to {s}"),
        "organisation",
        inverses=("based in {s}", "{who} is based in {s}", "{who} has its seat in {s}")),
    RelationWording("location locale place city", "place",
        ("the place where {s} stands", "the location of {s}"), ("where {s} stands", "in which {s} is situated",
        "that is given as the location of {s}"), "building",
        inverses=("situated in {s}", "{who} stands in {s}", "{who} can be found in {s}")),
    RelationWording("location locale place city", "place",
        ("the setting of {s}",), ("in which {s} is set", "that provides the setting of {s}"),
        "film movie novel book opera play series serial show game story novella drama musical",
        inverses=("set in {s}", "{who} is set in {s}", "whose setting is {s}")),
    RelationWording("headquarters hq_location location locale place city", "place",
        ("the location of {s}",), ("where {s} is found", "in which {s} lies", "that is home to {s}"),
        inverses=("situated in {s}", "{who} is found in {s}", "whose location is {s}")),
    RelationWording("venue", "venue",
        ("the home ground of {s}",), ("where {s} plays at home", "that is the home ground of {s}"),
        "club team league",
        inverses=("based at {s}", "{who} plays at home at {s}", "whose home ground is {s}")),
    RelationWording("venue", "venue",
        ("the venue of {s}",), ("that hosts {s}", "where {s} is held", "that serves as the venue of {s}"),
        inverses=("held at {s}", "{who} takes place at {s}", "whose venue is {s}")),
    RelationWording("premiere_location", "venue",
        ("the place of the first performance of {s}",),
        ("that saw the first performance of {s}", "where {s} was first performed",
        "that staged the premiere of {s}"),
        inverses=("first performed at {s}", "{who} was first performed at {s}", "{who} had its premiere at {s}")),
    RelationWording("homeport", "port",
        ("the home port of {s}",), ("that is the home port of {s}", "where {s} is at home"),
        inverses=("{who} sails from {s}", "whose home port is {s}", "{who} is at home in {s}")),
)

LANDS: tuple[RelationWording, ...] = (
    RelationWording("country", "country",
        ("the country of origin of {s}",), ("that produced {s}", "where {s} was made"), "work object",
        inverses=("made in {s}", "{who} was made in {s}", "{who} comes from {s}")),
    RelationWording("country", "country",
        ("the country represented by {s}",), ("that {s} represented", "that is given as the country of {s}"),
        "person",
        inverses=("{who} represented {s}", "representing {s}", "whose country is given as {s}")),
    RelationWording("country subdivision_name", "country",
        ("the country of {s}", "the country that includes {s}"),
        ("in which {s} lies", "that includes {s}", "that has {s} within its borders"),
        "settlement region nature building",
        inverses=("in {s}", "{who} lies in {s}", "situated in {s}", "within the borders of {s}")),
    RelationWording("country", "country",
        ("the country of {s}", "the home country of {s}"), ("that is home to {s}", "that {s} belongs to"),
        inverses=("from {s}", "whose home country is {s}", "{who} belongs to {s}")),
    RelationWording("capital", "city", ("the capital of {s}", "the capital city of {s}"),
        ("that is the capital of {s}", "that serves as the capital of {s}"),
        inverses=("whose capital is {s}", "{who} has its capital at {s}", "governed from {s}")),
    RelationWording("largest_city", "place", ("the principal settlement of {s}",), ("that is the principal settlement of {s}",  # noqa: E501
        "that is named as the chief settlement of {s}"),
        inverses=("whose principal settlement is {s}", "whose chief settlement is {s}",
        "with {s} as its principal settlement")),
    RelationWording("cities", "settlement",
        ("the settlement nearest to {s}",), ("that lies by {s}", "that is the nearest settlement to {s}"),
        inverses=("near {s}", "{who} lies by {s}", "situated near {s}")),
    RelationWording("twin", "town",
        ("the twin town of {s}", "the place twinned with {s}"), ("that is twinned with {s}",
        "that is a twin of {s}"),
        inverses=("twinned with {s}", "{who} is twinned with {s}", "whose twin town is {s}")),
    RelationWording("range", "mountain range",
        ("the mountain range of {s}",), ("that includes {s}", "that {s} is part of"), "nature",
        inverses=("in {s}", "{who} belongs to {s}", "{who} is part of {s}")),
    RelationWording("range native_range", "place",
        ("the home of {s}", "the native land of {s}"),
        ("where {s} lives", "that is home to {s}", "to which {s} is native"), "species",
        inverses=("native to {s}", "{who} is native to {s}", "whose home is {s}")),
)

WATERS: tuple[RelationWording, ...] = (
    RelationWording("river", "river",
        ("the river at {s}",), ("that flows through {s}", "on which {s} stands"),
        inverses=("on {s}", "{who} stands on {s}", "situated on {s}", "through which {s} flows")),
    RelationWording("crosses", "waterway",
        ("the water beneath {s}",), ("that {s} crosses", "that lies beneath {s}", "that is spanned by {s}"),
        inverses=("across {s}", "{who} crosses {s}", "{who} spans {s}")),
    RelationWording("mouth", "body of water",
        ("the body of water at the mouth of {s}",), ("into which {s} flows", "that receives the waters of {s}"),
        inverses=("flowing into {s}", "{who} flows into {s}", "{who} empties into {s}")),
    RelationWording("source_location", "place",
        ("the place near the source of {s}",), ("near which {s} rises", "that lies near the source of {s}"),
        "nature",
        inverses=("rising near {s}", "{who} rises near {s}", "whose source is near {s}")),
)
# fmt: on


# fmt: off
ORGANISATIONS: tuple[RelationWording, ...] = (
    RelationWording("alma_mater education training", "institution",
        ("the alma mater of {s}",),
        ("where {s} studied", "that educated {s}", "that trained {s}"), "person",
        inverses=("educated at {s}", "{who} studied at {s}", "trained at {s}", "{who} was educated at {s}")),
    RelationWording("employer workplaces practice",
        "organisation",
        ("the employer of {s}",),
        ("that employed {s}", "where {s} worked", "that gave work to {s}"), "person",
        inverses=("employed by {s}", "{who} worked for {s}", "{who} was employed by {s}")),
    RelationWording("owner ship_owner", "owner",
        ("the owner of {s}",), ("{who} owns {s}", "{who} is the owner of {s}"),
        inverses=("owned by {s}", "{who} is owned by {s}", "that {s} owns")),
    RelationWording("organization", "operator",
        ("the operator of {s}",), ("{who} operates {s}", "{who} runs {s}"),
        inverses=("operated by {s}", "{who} is operated by {s}", "that {s} runs")),
    RelationWording("publisher", "publisher",
        ("the publisher of {s}",), ("{who} published {s}", "{who} brought out {s}"),
        inverses=("published by {s}", "{who} was published by {s}", "that {s} published")),
    RelationWording("studio", "company",
        ("the studio behind {s}",), ("{who} produced {s}", "{who} made {s}"), "work",
        inverses=("produced by {s}", "{who} was produced by {s}", "that {s} produced")),
    RelationWording("party", "party",
        ("the political party of {s}",), ("to which {s} belongs", "{who} is the political party of {s}"), "person",
        inverses=("{who} belongs to {s}", "whose political party is {s}", "{who} is a member of {s}")),
)

WORKS: tuple[RelationWording, ...] = (
    RelationWording("notable_works works", "work",
        ("the notable work of {s}",),
        ("that is listed as the notable work of {s}", "that is named among the works of {s}"),
        inverses=("known for {s}", "{who} is known for {s}", "whose notable works include {s}")),
    RelationWording("subject", "subject",
        ("the subject of {s}",), ("{who} is depicted in {s}", "{who} is the subject of {s}"),
        "painting artwork portrait sculpture statue fresco mural",
        inverses=("depicting {s}", "{who} depicts {s}", "{who} shows {s}")),
    RelationWording("subject", "theme",
        ("the subject of {s}", "the theme of {s}"),
        ("{who} is the subject of {s}", "{who} stands at the centre of {s}"),
        inverses=("about {s}", "{who} is about {s}", "whose subject is {s}")),
    RelationWording("based_on", "work",
        ("the work adapted into {s}",), ("on which {s} is based", "that was adapted into {s}"),
        inverses=("based on {s}", "{who} is based on {s}", "{who} takes its plot from {s}")),
)

EVENTS: tuple[RelationWording, ...] = (
    RelationWording("combatant2", "belligerent",
        ("the second belligerent listed for {s}",),
        ("that is listed as the second belligerent in {s}", "that fought on the second side listed for {s}"),
        inverses=("whose second listed belligerent is {s}", "in which {s} fought on the second listed side",
        "fought on the second listed side by {s}")),
)

LANGUAGES: tuple[RelationWording, ...] = (
    RelationWording("language official_languages",
    "language",
        ("the official language of {s}",), ("that is the official language of {s}", "in which {s} is governed"),
        "region settlement",
        inverses=("whose official language is {s}", "{who} is governed in {s}", "governed in {s}")),
    RelationWording("language", "language",
        ("the language of {s}",), ("in which {s} is written", "that is used in {s}"),
        "work newspaper journal magazine",
        inverses=("written in {s}", "{who} is written in {s}", "whose language is {s}")),
    RelationWording("language", "language",
        ("the language of {s}",), ("that is given as the language of {s}", "that is used by {s}"),
        inverses=("whose language is {s}", "{who} uses {s}", "using {s}")),
)

MENTIONS: tuple[str, ...] = (
    "{who} fills the blank in “{clause}” in the article about {s}",
    "{who} belongs in the gap in “{clause}” in the article on {s}",
    "{who} completes the line “{clause}” in the article about {s}",
    "whose name is left out of “{clause}” in the article on {s}",
    "whose name is blanked in the line “{clause}” from the article about {s}",
)
"""Tails for a hop that only a sentence supports."""
# fmt: on


def _word(keys: str, noun: str, asks: tuple[str, ...], qualifier: str = "", subjects: str = "") -> AttributeWording:
    return AttributeWording(keys, "word", noun, asks, qualifier or f"whose {noun} is {{v}}", subjects)


# fmt: off
WORDS: tuple[AttributeWording, ...] = (
    _word("material materials construction building_material", "building material",
          ("What material is {s} made of", "What material was used to build {s}", "Of what material was {s} built"),
          "that is built of {v}", "building"),
    _word("material materials medium", "medium",
          ("What materials were used to make {s}", "In what medium was {s} made"), "that is made in {v}", "work"),
    _word("material materials", "material",
          ("What material is {s} made of", "What material was used to make {s}"), "that is made of {v}"),
    _word("medium", "medium", ("In what medium did {s} work",), "who worked in {v}", "person"),
    _word("architectural_style architecture_style style architecture", "architectural style",
          ("In what style is {s} built", "Which style of architecture is represented by {s}",
           "What is the style of the architecture of {s}"), "that is built in the {v} style", "building"),
    _word("style", "style", ("What style is attributed to {s}",), "in the {v} style"),
    _word("movement school_tradition school", "artistic movement",
          ("Which movement did {s} belong to", "What movement is associated with {s}"), "of the {v} movement"),
    _word("genre genres", "usual genre",
          ("What genre is given for the works of {s}", "In what genre did {s} work"),
          "whose genre is given as {v}", "person"),
    _word("genre genres", "genre",
          ("What genre does {s} belong to", "Which genre is given for {s}"), "whose genre is given as {v}"),
    _word("instrument instruments", "instrument",
          ("What instrument did {s} play", "Which instrument was played by {s}", "What was the instrument of {s}"),
          "who played the {v}"),
    _word("rank", "military rank",
          ("What military rank did {s} reach", "What was the highest military rank of {s}"),
          "who held the rank of {v}"),
    _word("field fields main_interests", "field of work",
          ("In what field did {s} work", "Which field of research is associated with {s}"), "who worked in {v}"),
    _word("discipline", "discipline",
          ("What was the discipline of {s}", "In what discipline did {s} work"), "who worked in {v}", "person"),
    _word("party political_party", "political party",
          ("Which political party does {s} belong to", "What is the name of the political party of {s}"),
          "who belongs to the {v}"),
    _word("motto national_motto slogan", "motto",
          ("What is the motto of {s}", "What motto is used by {s}", "Which words form the motto of {s}"),
          "whose motto is “{v}”"),
    _word("currency", "currency",
          ("What currency is used in {s}", "Which currency does {s} use", "What money is legal tender in {s}"),
          "whose currency is the {v}"),
    _word("order ordo", "order", ("To what order does {s} belong", "Which order includes {s}"), "of the order {v}",
          "species"),
    _word("family familia", "family",
          ("To what family does {s} belong", "Which family includes {s}"), "of the family {v}", "species"),
    _word("genus", "genus", ("To what genus does {s} belong", "Which genus includes {s}"), "of the genus {v}"),
    _word("class classis", "class", ("To what class does {s} belong",), "of the class {v}", "species"),
    _word("phylum", "phylum", ("To what phylum does {s} belong",), "of the phylum {v}"),
    _word("status conservation_status", "conservation status",
          ("How endangered is {s} said to be", "What is the conservation status of {s}"), "", "species"),
    _word("flower_colour flower_color", "flower colour",
          ("What colour are the flowers of {s}", "What is the colour of the flowers of {s}"), "that has {v} flowers"),
    _word("wing_colour wing_color", "wing colour",
          ("What colour are the wings of {s}", "What is the colour of the wings of {s}"), "that has {v} wings"),
    _word("colour colours color colors", "official colour",
          ("What is the official colour of {s}", "Which colour is the official one of {s}"), "whose colour is {v}",
          "organisation"),
    _word("colour colours color colors", "colour", ("What colour is {s}", "What is the colour of {s}"),
          "that is coloured {v}"),
    _word("products product", "product",
          ("What is {s} known for making", "Which product is associated with {s}"), "that is known for {v}"),
    _word("industry", "industry", ("In what industry is {s} active", "Which industry is served by {s}"),
          "that is active in {v}"),
    _word("format", "format", ("In what format is {s} printed", "What is the printed format of {s}"),
          "that is printed as {a} {v}",
          "newspaper magazine journal periodical"),
    _word("composition", "main mineral",
          ("What does {s} mostly consist of", "What mineral makes up most of {s}"), "that consists mostly of {v}",
          "meteorite object"),
    _word("nationality citizenship", "nationality", ("What was the nationality of {s}",)),
    _word("occupation profession", "occupation",
          ("What was the occupation of {s}", "What did {s} do for a living"), "who worked as {a} {v}"),
    _word("religion denomination", "religion", ("What religion is given for {s}", "What is the religion of {s}")),
    _word("demonym population_demonym", "demonym",
          ("What are the people called who come from {s}", "What is the demonym of {s}"), ""),
    _word("government_type government", "form of government",
          ("What form of government is found in {s}", "How is {s} governed")),
    _word("timezone time_zone", "time zone", ("Which time zone is used in {s}", "In what time zone is {s}"), ""),
    _word("postal_code postcode", "postal code", ("What is the postal code of {s}",)),
    _word("area_code calling_code", "dialling code", ("What is the dialling code of {s}",)),
    _word("cctld tld", "internet domain", ("Which internet domain is used by {s}",)),
    _word("drives_on", "side of the road used", ("On which side of the road do people drive in {s}",)),
    _word("position", "playing position", ("In what position did {s} play", "What was the playing position of {s}")),
    _word("known_for", "claim to fame", ("What is {s} known for", "What made the name of {s}")),
    _word("awards award", "award", ("What award was won by {s}", "Which award did {s} receive")),
    _word("symbol emblem", "symbol", ("What is the symbol of {s}", "What symbol stands for {s}")),
    _word("nickname nicknames", "nickname", ("What is the nickname of {s}", "What nickname is given to {s}")),
    _word("gauge", "track gauge", ("What is the track gauge of {s}",)),
    _word("ship_type class ship_class", "class", ("What is the class of {s}", "To what class does {s} belong")),
    _word("type settlement_type", "type", ("What type is given for {s}", "What sort of thing is {s} said to be")),
    _word("leader_party", "party of the leader", ("Which party provides the leader of {s}",)),
    _word("era period", "era", ("In what era did {s} live", "Which era is given for {s}"), "", "person"),
)
# fmt: on


OptionT = TypeVar("OptionT")
RowT = TypeVar("RowT", RelationWording, AttributeWording)

RELATIONS: tuple[RelationWording, ...] = (
    *MAKERS,
    *LEADERS,
    *RELATIVES,
    *LIVES,
    *SITES,
    *LANDS,
    *WATERS,
    *ORGANISATIONS,
    *WORKS,
    *EVENTS,
    *LANGUAGES,
)
ATTRIBUTES: tuple[AttributeWording, ...] = (*DATES, *NUMBERS, *WORDS)

_INITIALS = {word: word.upper() for word in ("gdp", "hdi", "id", "iso", "iucn", "ppp", "tv", "uk", "us", "utc")}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GAP = re.compile(r"[^0-9a-z]+")
_DIGITS = re.compile(r"\d+(?=_|$)")
_UNIT_ENDING = re.compile(r"_(?:m|km|cm|mm|ft|mi|sq_mi|sqmi|km2|m2|ha|acre|acres|kg|lb|metric|imperial)$")


def normalise_key(key: str) -> str:
    """Return an infobox key in the tables' spelling: ``LargestCity`` and ``Largest city`` become ``largest_city``."""
    return _GAP.sub("_", _CAMEL.sub("_", key).lower()).strip("_")


def strip_digits(key: str) -> str:
    """Drop the numbers of a normalised key: ``leader_name1`` becomes ``leader_name``."""
    return _GAP.sub("_", _DIGITS.sub("", key)).strip("_")


def strip_unit(key: str) -> str:
    """Drop the unit that ends a normalised key: ``area_km2`` becomes ``area``. The answer carries its own."""
    return _UNIT_ENDING.sub("", key)


def split_key(key: str) -> str:
    """Return the words of a key without its numbers and unit, ``entry`` when nothing is left.

    Only letters and single spaces come out, whatever a page used as a parameter name; well-known initials are capitals.
    """
    words = strip_digits(strip_unit(normalise_key(key))).replace("_", " ")
    return " ".join(_INITIALS.get(word, word) for word in re.sub(r"[^a-z]+", " ", words).split()) or "entry"


@lru_cache(maxsize=1)
def _index_relations() -> dict[str, tuple[RelationWording, ...]]:
    return _index_rows(RELATIONS)


@lru_cache(maxsize=1)
def _index_attributes() -> dict[str, tuple[AttributeWording, ...]]:
    return _index_rows(ATTRIBUTES)


def _index_rows(rows: Sequence[RowT]) -> dict[str, tuple[RowT, ...]]:
    index: dict[str, list[RowT]] = {}
    for row in rows:
        for key in dict.fromkeys(row.keys.split()):
            index.setdefault(key, []).append(row)
    return {key: tuple(found) for key, found in index.items()}


def _find_rows(index: dict[str, tuple[RowT, ...]], key: str) -> tuple[RowT, ...]:
    normal = normalise_key(key)
    plain = strip_unit(normal)
    return index.get(normal) or index.get(plain) or index.get(strip_digits(plain), ())


def find_attribute(key: str, subject_type: str) -> AttributeWording | None:
    """Return the first row for a literal attribute that fits the subject, None when no row does."""
    rows = _find_rows(_index_attributes(), key)
    return next((row for row in rows if fits_noun(row.subjects, subject_type)), None)


def find_relation(key: str, subject_type: str, object_type: str) -> RelationWording | None:
    """Return the first row for a relation that fits subject and object, None when no row does."""
    rows = _find_rows(_index_relations(), key)
    fitting = (r for r in rows if fits_noun(r.subjects, subject_type) and fits_noun(r.objects, object_type))
    return next(fitting, None)


def word_relation(key: str, subject_type: str, object_type: str) -> RelationWording:
    """Return the wording of a relation, made from the key's own words when no table has it."""
    found = find_relation(key, subject_type, object_type)
    if found is not None:
        return found
    attribute = find_attribute(key, subject_type)
    noun = attribute.noun if attribute is not None and attribute.form == "word" else split_key(key)
    plains = (f"the {noun} given for {SLOT}", f"the {noun} listed for {SLOT}", f"the {noun} on record for {SLOT}")
    tails = (
        f"{{who}} is given as the {noun} of {SLOT}",
        f"{{who}} is listed as the {noun} of {SLOT}",
        f"{{who}} appears as the {noun} of {SLOT}",
    )
    inverses = (f"whose {noun} is {SLOT}", f"whose {noun} is given as {SLOT}", f"with {SLOT} given as the {noun}")
    return RelationWording(key, noun, plains, tails, inverses=inverses)


def pick(options: Sequence[OptionT], *parts: object) -> OptionT:
    """Return one of the options, decided by the parts alone."""
    return options[int(draw_unit(*parts) * len(options))]


WEAK = 2
"""Highest grade of a fact that many entities share."""
EXACT = 4
"""Lowest grade of a fact that few entities share."""

_MAX_FACT_WORDS = 6
_UNSAFE = re.compile(r"[\[\]{}<>|?;“”\"\n\ue000-\uf8ff]|\.\.|http|_")
_DAY = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?,? +(?:of +)?[A-Z][a-z]+|\b[A-Z][a-z]+ +\d{1,2}\b(?!\d)|^\d{4}-\d\d-\d\d$")
_CENTURY = re.compile(r"\bcentury\b")
_DECADE = re.compile(r"^\d{1,4}s\b")
_YEAR = re.compile(r"^\d{1,4}(?: (?:BC|AD))?$")
_NAMING = (
    "name names fullname nickname nicknames title caption image logo alt map flag coat signature website url "
    "homepage coordinates coord footnotes footnote ref isbn oclc issn code abbreviation acronym demonym alias "
    "aliases module embed pseudonym taxon binomial synonyms"
)
_RELATIVE = re.compile(r"^(?:who|whom|that|whose|where|\w+ (?:which|whom)) ")
_PARTICIPLE = re.compile(
    r"^(?:first |last )?(?:\w+ed|\w+ing|born|built|made|held|kept|run|led|shot|cut|found|written|taught|known|set"
    r"|fought|broadcast|begun|flown) "
)


def qualify_fact(fact: FactView, object_type: str) -> str:
    """Return a fact as a phrase that follows a noun: ``born in the 1870s``, ``who played the lute``."""
    value = " ".join(fact.text.split())
    row = find_attribute(fact.relation, object_type)
    if row is None or not row.qualifier:
        return f"whose {split_key(fact.relation)} is {value}"
    if row.form != "date":
        qualifier = row.qualifier.replace("{a}", choose_article(value)).replace("{who}", choose_pronoun(object_type))
        return qualifier.replace("{v}", value)
    if _CENTURY.search(value) or _DECADE.search(value):
        return f"{row.qualifier} in the {value}"
    return f"{row.qualifier} {'on' if _DAY.search(value) else 'in'} {value}"


def grade_fact(fact: FactView, object_type: str) -> int:
    """Return how few entities share a fact like this: 0 for a word, 1 a century, 2 a decade, 3 a year, then exact."""
    row = find_attribute(fact.relation, object_type)
    if _CENTURY.search(fact.text):
        return 1
    if _DECADE.search(fact.text):
        return 2
    if row is None:
        return 5
    if row.form == "date":
        return 5 if _DAY.search(fact.text) else 3 if _YEAR.search(fact.text) else 4
    return 0 if row.form == "word" else 4


def list_usable_facts(hop: HopView, facts: Sequence[FactView], variety: str) -> list[FactView]:
    """Return the facts that may be said of a hop's object, those that many entities share first.

    A fact is left out when its text is long, holds markup, may hold the object's name, or its key names things.
    """

    def rank(fact: FactView) -> tuple[int, float]:
        return grade_fact(fact, hop.object_type), draw_unit("fact", variety, fact.relation, fact.text)

    return sorted((fact for fact in facts if _is_usable(hop, fact)), key=rank)


def add_clauses(noun: str, qualifiers: Sequence[str], tails: Sequence[str]) -> list[str]:
    """Return noun phrases that end with one of the tails, all qualifiers before it.

    Prepositional phrases come first, then participles, then relative clauses, and clauses of one sort are joined by
    ``and``: ``the painter born in the 1870s who died in Oster and studied at [subject]``. A qualifier about the
    event of the tail goes into it: ``founded in 1871 by [subject]``. A tail that cannot follow the qualifiers is left
    out.
    """
    phrases: list[str] = []
    clumsy: list[str] = []
    for tail in tails:
        merged, rest = _merge_event(qualifiers, tail)
        relative = [clause for clause in rest if _RELATIVE.match(clause)]
        participles = [clause for clause in rest if _PARTICIPLE.match(clause) and clause not in relative]
        near = [clause for clause in rest if clause not in relative and clause not in participles]
        if _RELATIVE.match(merged):
            relative.append(merged)
        elif rest and (relative or not _PARTICIPLE.match(merged)):
            continue
        else:
            participles.append(merged)
        parts = [noun, *near, _join_clauses(participles), _join_clauses(_elide_pronouns(relative))]
        # "born in the 1870s who was born in Oster" says one thing twice.
        said = {word for clause in participles[:1] for word in clause.split()[:2]} - {"first", "last", "in", "on"}
        (clumsy if said & set(merged.split()) and rest else phrases).append(" ".join(part for part in parts if part))
    return phrases or clumsy


def _merge_event(qualifiers: Sequence[str], tail: str) -> tuple[str, list[str]]:
    """Return the tail with the date of its own event, and the other qualifiers."""
    for index, clause in enumerate(qualifiers):
        found = re.match(r"(.*?) (?=(?:on|in) )", clause)
        if found and tail.startswith(f"{found[1]} "):
            return f"{clause}{tail[len(found[1]) :]}", [*qualifiers[:index], *qualifiers[index + 1 :]]
    return tail, list(qualifiers)


def _elide_pronouns(clauses: Sequence[str]) -> list[str]:
    """Drop ``who`` or ``that`` from all clauses but the first when it is the subject of each."""
    pronouns = {re.match(r"(?:(who|that) (?!\[))?", clause)[1] for clause in clauses}  # type: ignore[index]
    if len(pronouns) != 1 or None in pronouns:
        return list(clauses)
    return [clauses[0], *(clause.partition(" ")[2] for clause in clauses[1:])]


def _join_clauses(clauses: Sequence[str]) -> str:
    *first, last = clauses or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _is_usable(hop: HopView, fact: FactView) -> bool:
    words = fact.text.split()
    if not 1 <= len(words) <= _MAX_FACT_WORDS or _UNSAFE.search(fact.text):
        return False
    if set(_NAMING.split()) & set(split_key(fact.relation).split()):
        return False
    spoken = {word.strip(".,()'’").casefold() for word in words}
    return not any(part.casefold() in spoken for part in re.findall(r"\w{4,}", hop.object_name))
