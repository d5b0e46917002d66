"""What a toy world is made of: kinds of things, relations and attributes with their wordings, values, facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["person", "place", "building", "species", "work", "organisation", "event", "object", "concept"]
Cardinality = Literal["1:1", "n:1", "1:n"]
ValueKind = Literal["date", "quantity", "count", "text"]


@dataclass(frozen=True, slots=True)
class Subtype:
    """A kind of thing with a noun, an infobox and a share of the world.

    Attributes:
        name: the noun a question uses, such as ``bridge``.
        template: infobox template as enwiki names it.
        class_id: the real Wikidata class (for people the occupation; their P31 is Q5).
        weight: relative share of the entities.
        nouns: noun phrases for the lead sentence.
        years: range of the principal year (birth, opening, publication) where nothing else decides it.
        lead: relation that ends the lead sentence, with ``joint`` before the linked object.
        name_key: infobox parameter of the name.
    """

    name: str
    kind: Kind
    template: str
    class_id: str
    weight: float
    nouns: tuple[str, ...]
    years: tuple[int, int]
    plural: str
    lead: str = ""
    joint: str = ""
    name_key: str = "name"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from an entity to an entity.

    Attributes:
        cardinality: subject to object. ``1:1`` and ``1:n`` use an object once, ``n:1`` as often as it likes.
        keys: infobox parameter by subject subtype, where it is not the relation's name.
        wordings: sentences with ``{s}`` and ``{o}``.
        chance: probability that a subject has it at all.
        gap: allowed range of subject's year minus object's year, ends included.
        dates: the object decides the subject's year (a building opens in its architect's lifetime).
        since: least year of an object, for offices held today.
        most: largest number of objects of a ``1:n`` relation.
        inverse_of: this relation is read off another one, turned round.
    """

    name: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    cardinality: Cardinality
    prop: str
    wordings: tuple[str, ...]
    keys: Mapping[str, str] = field(default_factory=dict)
    chance: float = 0.92
    gap: tuple[int, int] | None = None
    dates: bool = False
    since: int | None = None
    symmetric: bool = False
    most: int = 1
    inverse_of: str = ""

    def key_for(self, subtype: str) -> str:
        """Infobox parameter of this relation on a subject of ``subtype``."""
        return self.keys.get(subtype, self.name)


@dataclass(frozen=True, slots=True)
class ToyAttribute:
    """A literal attribute of an entity; always single-valued.

    Attributes:
        low: least value (a number), or least distance in years from the entity's year (a date).
        high: greatest value or distance.
        unit: unit symbol of a quantity; ``other`` is the unit that ``{{convert}}`` turns it into.
        words: the values a text attribute may take.
        day_share: how often a date has day precision; otherwise it is a bare year.
        stamp: date template used in infoboxes, such as ``birth date``.
    """

    name: str
    subjects: tuple[str, ...]
    kind: ValueKind
    prop: str
    wordings: tuple[str, ...]
    keys: Mapping[str, str] = field(default_factory=dict)
    chance: float = 0.92
    low: float = 0.0
    high: float = 0.0
    unit: str = ""
    other: str = ""
    words: tuple[str, ...] = ()
    day_share: float = 0.5
    stamp: str = "start date"

    def key_for(self, subtype: str) -> str:
        """Infobox parameter of this attribute on a subject of ``subtype``."""
        return self.keys.get(subtype, self.name)


@dataclass(frozen=True, slots=True)
class Value:
    """One literal.

    Attributes:
        text: canonical short form, the gold answer: ``5 April 1931``, ``1931``, ``320 m``, ``48,213``, ``granite``.
        number: the amount of a quantity or count, the year of a date, 0.0 of a text.
        month: 1 to 12, or 0 for a date of year precision and for other kinds; ``day`` likewise.
        unit: unit symbol as ``{{convert}}`` takes it, or empty.
    """

    kind: ValueKind
    text: str
    number: float = 0.0
    month: int = 0
    day: int = 0
    unit: str = ""

    @property
    def iso(self) -> str:
        """A date as ``YYYY-MM-DD``; a year as ``YYYY-01-01``, the way Wikidata's simple values do."""
        return f"{int(self.number):04d}-{self.month or 1:02d}-{self.day or 1:02d}"


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing of the world.

    Attributes:
        number: position in the world's tuple of entities.
        noun: the noun phrase of its lead sentence.
        fame: Zipf weight; how readily others link to it.
        year: principal year (birth, opening, publication, discovery).
        name: bare name; ``title`` adds a qualifier where names clash.
        aliases: pairs of (alias, kind), kinds ``ascii``, ``surname``, ``acronym``, ``demonym``, ``variant``.
    """

    number: int
    subtype: Subtype
    noun: str
    fame: float
    year: int
    name: str = ""
    title: str = ""
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def qid(self) -> str:
        """Wikidata item, from a block no real item uses."""
        return f"Q{900_000_001 + self.number}"


@dataclass(frozen=True, slots=True)
class ToyFact:
    """One true statement.

    Attributes:
        key: infobox parameter that holds it, or would.
        object: number of the object entity, or None for a literal ``value``.
        shown: whether the infobox holds it; all objects of one relation share this.
        linked: whether the infobox links the object rather than only naming it.
    """

    subject: int
    relation: str
    key: str
    cardinality: Cardinality
    prop: str
    wordings: tuple[str, ...]
    object: int | None = None
    value: Value | None = None
    shown: bool = True
    linked: bool = True


_MODERN = (1820, 2010)
_LIVES = (1780, 1975)

# fmt: off
SUBTYPES: tuple[Subtype, ...] = (
    Subtype("language", "concept", "Infobox language", "Q34770", 0, ("language",), (900, 1200), "languages"),
    Subtype("country", "place", "Infobox country", "Q6256", 0, ("country",), (1250, 1900), "countries",
            name_key="common_name"),
    Subtype("city", "place", "Infobox settlement", "Q515", 5.0, ("city", "port city", "cathedral city"), (900, 1700),
            "cities", "country", "in"),
    Subtype("town", "place", "Infobox settlement", "Q3957", 7.0, ("town", "market town", "mining town"), (950, 1800),
            "towns", "country", "in"),
    Subtype("river", "place", "Infobox river", "Q4022", 2.0, ("river",), (1000, 1700), "rivers", "country", "in"),
    Subtype("lake", "place", "Infobox body of water", "Q23397", 2.0, ("lake", "crater lake", "glacial lake"), (1000,
            1700), "lakes", "country", "in"),
    Subtype("island", "place", "Infobox islands", "Q23442", 2.5, ("island", "volcanic island"), (1000, 1700),
            "islands", "country", "of"),
    Subtype("architect", "person", "Infobox architect", "Q42973", 3.0, ("architect",), _LIVES, "architects"),
    Subtype("engineer", "person", "Infobox engineer", "Q81096", 3.0, ("engineer", "instrument maker"), _LIVES,
            "engineers"),
    Subtype("painter", "person", "Infobox artist", "Q1028181", 3.0, ("painter", "landscape painter"), _LIVES,
            "painters"),
    Subtype("writer", "person", "Infobox writer", "Q36180", 3.0, ("writer", "novelist"), _LIVES, "writers"),
    Subtype("composer", "person", "Infobox person", "Q36834", 2.0, ("composer",), _LIVES, "composers"),
    Subtype("film director", "person", "Infobox person", "Q2526255", 2.0, ("film director",), (1880, 1975),
            "film directors"),
    Subtype("scientist", "person", "Infobox scientist", "Q901", 5.0, ("naturalist", "scientist", "botanist",
            "astronomer"), _LIVES, "scientists"),
    Subtype("general", "person", "Infobox military person", "Q189290", 2.0, ("general", "army officer"), (1780, 1910),
            "generals"),
    Subtype("politician", "person", "Infobox officeholder", "Q82955", 5.0, ("politician",), (1946, 1985),
            "politicians"),
    Subtype("entrepreneur", "person", "Infobox person", "Q131524", 4.0, ("entrepreneur", "publisher"), (1790, 1985),
            "entrepreneurs"),
    Subtype("university", "organisation", "Infobox university", "Q3918", 3.0, ("university", "public university"),
            (1420, 1790), "universities", "headquarters", "in"),
    Subtype("company", "organisation", "Infobox company", "Q783794", 4.0, ("shipbuilding company",
            "manufacturing company", "publishing company", "trading company"), _MODERN, "companies", "headquarters",
            "based in"),
    Subtype("newspaper", "organisation", "Infobox newspaper", "Q11032", 2.0, ("daily newspaper", "weekly newspaper"),
            _MODERN, "newspapers", "headquarters", "published in"),
    Subtype("bridge", "building", "Infobox bridge", "Q12280", 3.0, ("suspension bridge", "arch bridge",
            "stone bridge"), _MODERN, "bridges", "location", "in"),
    Subtype("museum", "building", "Infobox museum", "Q33506", 3.0, ("art museum", "natural history museum", "museum"),
            _MODERN, "museums", "location", "in"),
    Subtype("tower", "building", "Infobox building", "Q12518", 2.5, ("tower", "observation tower", "clock tower"),
            _MODERN, "towers", "location", "in"),
    Subtype("stadium", "building", "Infobox stadium", "Q483110", 2.0, ("stadium", "football stadium"), _MODERN,
            "stadiums", "location", "in"),
    Subtype("lighthouse", "building", "Infobox lighthouse", "Q39715", 2.0, ("lighthouse",), _MODERN, "lighthouses",
            "location", "near"),
    Subtype("theatre", "building", "Infobox theatre", "Q24354", 2.5, ("theatre", "opera house"), _MODERN, "theatres",
            "location", "in"),
    Subtype("castle", "building", "Infobox building", "Q23413", 2.0, ("castle", "hilltop castle"), _MODERN, "castles",
            "location", "in"),
    Subtype("novel", "work", "Infobox book", "Q8261", 3.5, ("novel", "historical novel"), _MODERN, "novels",
            "creator", "by"),
    Subtype("film", "work", "Infobox film", "Q11424", 3.0, ("film", "drama film", "comedy film"), (1925, 2015),
            "films", "creator", "directed by"),
    Subtype("painting", "work", "Infobox artwork", "Q3305213", 3.5, ("painting", "oil painting"), _MODERN,
            "paintings", "creator", "by", "title"),
    Subtype("opera", "work", "Infobox opera", "Q1344", 1.5, ("opera", "comic opera"), _MODERN, "operas", "creator",
            "by"),
    Subtype("bird", "species", "Speciesbox", "Q16521", 2.5, ("species of finch", "species of heron",
            "species of thrush"), _MODERN, "birds", "range", "found in"),
    Subtype("orchid", "species", "Speciesbox", "Q16521", 2.0, ("species of orchid",), _MODERN, "orchids", "range",
            "native to"),
    Subtype("beetle", "species", "Speciesbox", "Q16521", 2.0, ("species of beetle",), _MODERN, "beetles", "range",
            "found in"),
    Subtype("battle", "event", "Infobox military conflict", "Q178561", 2.5, ("battle",), (1810, 1945), "battles",
            "location", "fought near", "conflict"),
    Subtype("festival", "event", "Infobox festival", "Q132241", 2.0, ("music festival", "annual festival"), (1860,
            2010), "festivals", "location", "held in"),
    Subtype("telescope", "object", "Infobox telescope", "Q4213", 1.5, ("reflecting telescope", "telescope"), _MODERN,
            "telescopes", "location", "near"),
    Subtype("clock", "object", "Infobox clock", "Q376", 1.5, ("astronomical clock", "clock"), _MODERN, "clocks",
            "held_at", "kept at"),
    Subtype("ship", "object", "Infobox ship", "Q11446", 2.0, ("sailing ship", "steamship", "research ship"), _MODERN,
            "ships", "builder", "built by"),
    Subtype("helmet", "object", "Infobox artifact", "Q173603", 1.5, ("bronze helmet", "ceremonial helmet"), _MODERN,
            "helmets", "held_at", "kept at"),
    Subtype("meteorite", "object", "Infobox meteorite", "Q60186", 1.0, ("stony meteorite", "iron meteorite"), _MODERN,
            "meteorites", "discovered_place", "found near"),
)
# fmt: on

PEOPLE: tuple[str, ...] = tuple(subtype.name for subtype in SUBTYPES if subtype.kind == "person")
SETTLEMENTS: tuple[str, ...] = ("city", "town")
ORGANISATIONS: tuple[str, ...] = ("university", "company", "newspaper")
BUILDINGS: tuple[str, ...] = tuple(subtype.name for subtype in SUBTYPES if subtype.kind == "building")
SPECIES: tuple[str, ...] = ("bird", "orchid", "beetle")
WORKS: tuple[str, ...] = ("novel", "film", "painting", "opera")
LANDS: tuple[str, ...] = ("city", "town", "river", "lake", "island")


_MAKERS = ("engineer",)
_LEADERS = ("entrepreneur", "politician")

# fmt: off
RELATIONS: tuple[Relation, ...] = (
    Relation("founder", ("company", "newspaper", "festival"), ("entrepreneur", "engineer", "composer"), "1:n", "P112",
             ("{s} was founded by {o}.", "{s} owes its beginnings to {o}, who founded it."), {"company": "founders"},
             gap=(24, 60), dates=True, most=3),
    Relation("architect", ("museum", "tower", "stadium", "lighthouse", "theatre", "castle"), ("architect",), "n:1",
             "P84", ("{s} was designed by {o}.", "The architect of {s_low} was {o}."), {"lighthouse": "designer"},
             chance=0.96, gap=(27, 62), dates=True),
    Relation("designer", ("bridge",), ("engineer", "architect"), "n:1", "P84", ("{s} was designed by {o}.",
             "{o} drew the plans for {s_low}."), chance=0.96, gap=(27, 62), dates=True),
    Relation("creator", ("novel",), ("writer",), "n:1", "P50", ("{s} was written by {o}.", "{o} wrote {s_low}."),
             {"novel": "author"}, chance=0.98, gap=(24, 65), dates=True),
    Relation("creator", ("film",), ("film director",), "n:1", "P57", ("{s} was directed by {o}.",
             "{o} directed {s_low}."), {"film": "director"}, chance=0.98, gap=(26, 65), dates=True),
    Relation("creator", ("painting",), ("painter",), "n:1", "P170", ("{s} was painted by {o}.",
             "{o} painted {s_low}."), {"painting": "artist"}, chance=0.98, gap=(22, 68), dates=True),
    Relation("creator", ("opera",), ("composer",), "n:1", "P86", ("The music of {s_low} was composed by {o}.",
             "{o} composed {s_low}."), {"opera": "composer"}, chance=0.98, gap=(24, 65), dates=True),
    Relation("discoverer", (*SPECIES, "helmet"), ("scientist",), "n:1", "P61", ("{s} was discovered by {o}.",
             "{o} was the first to describe {s_low}."), {"helmet": "discovered_by"}, gap=(24, 62), dates=True),
    Relation("commander", ("battle",), ("general",), "n:1", "P598", ("The victorious army was led by {o}.",
             "{o} commanded the winning side."), {"battle": "commander1"}, gap=(24, 60), dates=True),
    Relation("maker", ("telescope", "clock"), _MAKERS, "n:1", "P176", ("{s} was built by {o}.",
             "The maker of {s_low} was {o}."), {"telescope": "built_by"}, gap=(24, 62), dates=True),
    Relation("builder", ("ship",), ("company",), "n:1", "P176", ("{s} was built by {o}.", "{o} built {s_low}."),
             gap=(2, 90), dates=True),
    Relation("country", LANDS, ("country",), "n:1", "P17", ("{s} lies in {o}.", "{s} belongs to {o}.",
             "{s} is part of {o}."), {"city": "subdivision_name", "town": "subdivision_name"}, chance=0.98),
    Relation("capital", ("country",), ("city",), "1:1", "P36", ("The capital of {s_low} is {o}.",), chance=1.0),
    Relation("language", ("country", "novel", "opera", "newspaper"), ("language",), "n:1", "P407", ("{s} uses {o}.",
             "The language of {s_low} is {o}."), {"country": "official_languages"}),
    Relation("leader", ("country", *SETTLEMENTS), ("politician",), "1:1", "P6", ("{s} is led by {o}.",
             "The head of government of {s_low} is {o}."), {"country": "leader_name1", "city": "leader_name", "town":
             "leader_name"}, since=1946, chance=0.85),
    Relation("twin_town", SETTLEMENTS, SETTLEMENTS, "1:1", "P190", ("{s} is twinned with {o}.",
             "The twin town of {s_low} is {o}."), {"city": "twin1", "town": "twin1"}, chance=0.5, symmetric=True),
    Relation("river", SETTLEMENTS, ("river",), "n:1", "P206", ("{s} stands on {o}.", "{o} flows through {s_low}."),
             chance=0.75),
    Relation("mouth", ("river",), ("lake",), "n:1", "P403", ("{s} flows into {o}.", "{s} empties into {o}.")),
    Relation("source", ("river",), ("town",), "n:1", "P885", ("{s} rises near {o}.",
             "The source of {s_low} is near {o}."), {"river": "source1_location"}),
    Relation("nearest_town", ("lake", "island"), SETTLEMENTS, "n:1", "P131",
             ("The settlement nearest to {s_low} is {o}.", "{s} is reached from {o}."), {"lake": "cities", "island":
             "largest_city"}),
    Relation("namesake", ("lake", "island", "ship"), PEOPLE, "n:1", "P138", ("{s} is named after {o}.",
             "The name of {s_low} honours {o}."), {"lake": "etymology", "island": "named_for"}, chance=0.6),
    Relation("birth_place", PEOPLE, SETTLEMENTS, "n:1", "P19", ("{s} was born in {o}.", "{s} came from {o}.",
             "{s} was a native of {o}."), chance=0.97),
    Relation("death_place", PEOPLE, SETTLEMENTS, "n:1", "P20", ("{s} died in {o}.",
             "{s} spent the last years in {o} and died there."), chance=0.85),
    Relation("spouse", PEOPLE, PEOPLE, "1:1", "P26", ("{s} married {o}.", "{s} was married to {o}."), chance=0.3,
             gap=(-12, 12), symmetric=True),
    Relation("children", PEOPLE, PEOPLE, "1:n", "P40", ("{s} was a parent of {o}.",
             "The children of {s_low} include {o}."), chance=0.12, gap=(-44, -22), most=3),
    Relation("alma_mater", PEOPLE, ("university",), "n:1", "P69", ("{s} studied at {o}.", "{s} graduated from {o}.",
             "{s} was educated at {o}."), {"painter": "training", "composer": "education", "film director":
             "education"}, chance=0.9, gap=(-17, 900)),
    Relation("employer", ("architect", "engineer", "writer", "scientist", "politician"), ORGANISATIONS, "n:1", "P108",
             ("{s} worked for {o}.", "{s} spent a career at {o}."), {"architect": "practice", "scientist":
             "workplaces"}, chance=0.85, gap=(-45, 900)),
    Relation("doctoral_advisor", ("scientist",), ("scientist",), "n:1", "P184", ("{s} was a doctoral student of {o}.",
             "The doctoral advisor of {s_low} was {o}."), chance=0.6, gap=(15, 45)),
    Relation("headquarters", ORGANISATIONS, SETTLEMENTS, "n:1", "P159", ("{s} has its seat in {o}.",
             "{s} is based in {o}."), {"university": "city", "company": "hq_location"}, chance=0.98),
    Relation("head", (*ORGANISATIONS, "museum"), _LEADERS, "1:1", "P488", ("{s} is headed by {o}.",
             "The present head of {s_low} is {o}."), {"university": "rector", "company": "key_people", "newspaper":
             "editor", "museum": "director"}, since=1946, chance=0.75),
    Relation("owner", (*BUILDINGS, "newspaper", "ship"), ("company", "university"), "n:1", "P127",
             ("{s} is owned by {o}.", "The owner of {s_low} is {o}."), {"ship": "ship_owner"}, chance=0.75),
    Relation("location", (*BUILDINGS, "battle", "festival", "telescope"), SETTLEMENTS, "n:1", "P131",
             ("{s} is situated in {o}.", "{s} can be found in {o}."), {"bridge": "locale", "theatre": "city",
             "battle": "place"}, chance=0.98),
    Relation("crosses", ("bridge",), ("river", "lake"), "n:1", "P177", ("{s} crosses {o}.", "{s} spans {o}."),
             chance=0.95),
    Relation("publisher", ("novel",), ("company",), "n:1", "P123", ("{s} was published by {o}.",
             "{o} published {s_low}."), gap=(0, 400)),
    Relation("studio", ("film",), ("company",), "n:1", "P272", ("{s} was produced by {o}.", "{o} produced {s_low}."),
             gap=(0, 400)),
    Relation("premiere_location", ("opera",), ("theatre",), "n:1", "P4647", ("{s} was first performed at {o}.",
             "The first performance of {s_low} took place at {o}."), gap=(0, 400)),
    Relation("held_at", ("painting", "clock", "helmet", "meteorite"), ("museum",), "n:1", "P195",
             ("{s} is held by {o}.", "Today {s_low} is on display at {o}."), {"painting": "museum", "clock":
             "collection", "helmet": "location", "meteorite": "collection"}),
    Relation("subject", ("novel", "painting"), ("battle", "island", "castle", "lighthouse", "ship", "general"), "n:1",
             "P921", ("{s} is about {o}.", "The subject of {s_low} is {o}."), gap=(0, 900), chance=0.75),
    Relation("based_on", ("film", "opera"), ("novel",), "n:1", "P144", ("{s} is based on {o}.",
             "{s} takes its plot from {o}."), gap=(1, 180), chance=0.7),
    Relation("range", SPECIES, ("island", "lake", "country"), "n:1", "P183", ("{s} is endemic to {o}.",
             "{s} occurs only around {o}."), {"orchid": "native_range"}, chance=0.96),
    Relation("named_after", SPECIES, PEOPLE, "n:1", "P138", ("{s} was named in honour of {o}.",
             "The name of {s_low} remembers {o}."), chance=0.55, gap=(15, 200)),
    Relation("opponent", ("battle",), ("country",), "n:1", "P710", ("The defeated army came from {o}.",),
             {"battle": "combatant2"}),
    Relation("venue", ("festival",), ("theatre", "stadium"), "n:1", "P276", ("{s} takes place at {o}.",), chance=0.6),
    Relation("operator", ("telescope",), ("university",), "n:1", "P137", ("{s} is operated by {o}.",),
             {"telescope": "organization"}),
    Relation("home_port", ("ship",), ("city",), "n:1", "P504", ("The home port of {s_low} is {o}.",
             "{s} sails from {o}."), {"ship": "homeport"}),
    Relation("discovered_place", ("helmet", "meteorite"), ("town", "island"), "n:1", "P189",
             ("{s} was found near {o}.", "{s} came to light close to {o}."), {"meteorite": "place"}, chance=0.96),
    Relation("notable_works", ("writer", "painter", "composer", "film director"), WORKS, "1:n", "P800",
             ("The works of {s_low} include {o}.", "{s} created {o}."), {"painter": "works"}, chance=0.8, most=3,
             inverse_of="creator"),
)
# fmt: on


_COLOURS = tuple(
    (
        "crimson, saffron yellow, pale blue, ivory white, violet, copper red, olive green, lilac, slate grey, deep "
        "purple"
    ).split(", ")
)
_STONES = tuple(
    (
        "granite, sandstone, limestone, basalt, brick, wrought iron, steel, reinforced concrete, marble, oak timber"
    ).split(", ")
)
_STYLES = tuple(
    (
        "neoclassical, Gothic Revival, Baroque Revival, Art Nouveau, brutalist, functionalist, Romanesque Revival, Art "
        "Deco"
    ).split(", ")
)
_GENRES = tuple(
    (
        "satire, ghost story, family saga, adventure, tragedy, romance, mystery, pastoral, coming-of-age story, "
        "science fiction"
    ).split(", ")
)
_MOTTOES = ("Light before gold", "Steady as stone", "By water and will", "Always the harbour", "Truth needs no crown",
            "Work and song", "From ashes, bread", "Many hands, one roof", "Patience conquers", "The gate stands open",
            "Salt and honour", "Onward without haste")  # fmt: skip

# fmt: off
ATTRIBUTES: tuple[ToyAttribute, ...] = (
    ToyAttribute("birth_date", PEOPLE, "date", "P569", ("{s} was born {when}.",), chance=0.97, day_share=0.8,
              stamp="birth date"),
    ToyAttribute("death_date", PEOPLE, "date", "P570", ("{s} died {when}.",), chance=0.97, low=44, high=91,
              day_share=0.8, stamp="death date"),
    ToyAttribute("movement", ("painter", "architect"), "text", "P135", ("{s} belonged to the {o} movement.",),
              chance=0.8, words=("Luminist", "Tonalist", "Secessionist", "Symbolist", "Constructivist", "Naturalist",
              "Vorticist")),
    ToyAttribute("genre", ("writer", "novel", "film", "composer", "festival"), "text", "P136",
              ("The genre of {s_low} is usually given as {o}.",), chance=0.8, words=_GENRES),
    ToyAttribute("instrument", ("composer",), "text", "P1303", ("{s} played the {o}.",), {"composer": "instruments"},
              words=("viola", "cello", "pipe organ", "harpsichord", "oboe", "French horn", "lute", "hurdy-gurdy")),
    ToyAttribute("rank", ("general",), "text", "P410", ("{s} reached the rank of {o}.",), words=("field marshal",
              "lieutenant general", "major general", "brigadier", "colonel general")),
    ToyAttribute("field", ("scientist",), "text", "P101", ("{s} worked mainly in {o}.",), {"scientist": "fields"},
              words=("mycology", "ornithology", "entomology", "limnology", "spectroscopy", "palaeobotany", "geodesy",
              "celestial mechanics")),
    ToyAttribute("discipline", ("engineer",), "text", "P101", ("The discipline of {s_low} was {o}.",),
              words=("structural engineering", "hydraulics", "precision optics", "horology", "naval engineering")),
    ToyAttribute("party", ("politician",), "text", "P102", ("{s} is a member of the {o}.",), words=("Harbour Party",
              "Union of the Centre", "Green Meadow Alliance", "Liberal League", "Party of Labour")),
    ToyAttribute("population", SETTLEMENTS, "count", "P1082", ("{s} has {o} inhabitants.",
              "The population of {s_low} is {o}."), {"city": "population_total", "town": "population_total"}, low=900,
              high=900_000),
    ToyAttribute("established", ("country", "city", "town", "university"), "date", "P571",
              ("{s} was established {when}.", "{s} dates from {o}."), {"country": "established_date1", "city":
              "established_date", "town": "established_date"}, day_share=0.25),
    ToyAttribute("elevation", (*SETTLEMENTS, "lake"), "quantity", "P2044", ("{s} lies {o} above sea level.",),
             {"city": "elevation", "town": "elevation"}, low=3, high=2300, unit="m", other="ft", chance=0.75),
    ToyAttribute("motto", ("country", *SETTLEMENTS, "university"), "text", "P1451", ('The motto of {s_low} is "{o}".',),
              {"country": "national_motto"}, chance=0.5, words=_MOTTOES),
    ToyAttribute("currency", ("country",), "text", "P38", ("The currency of {s_low} is the {o}.",), chance=1.0,
              words=("talar", "grivna dor", "silver lyn", "marek", "koruna nova", "shellen")),
    ToyAttribute("area", ("country", "lake", "island"), "quantity", "P2046", ("{s} covers {o}.",), low=2, high=900,
              unit="km2", other="sqmi"),
    ToyAttribute("depth", ("lake",), "quantity", "P4511", ("{s} is up to {o} deep.",), {"lake": "max-depth"}, low=6,
              high=420, unit="m", other="ft"),
    ToyAttribute("highest_point", ("island",), "quantity", "P610", ("{s} rises to {o}.",), {"island": "elevation_max"},
              low=20, high=2600, unit="m", other="ft"),
    ToyAttribute("length", ("river",), "quantity", "P2043", ("{s} is {o} long.",), low=18, high=1400, unit="km",
              other="mi"),
    ToyAttribute("length", ("bridge", "ship"), "quantity", "P2043", ("{s} is {o} long.",), {"ship": "ship_length"},
              low=24, high=900, unit="m", other="ft"),
    ToyAttribute("height", ("bridge", "tower", "lighthouse", "castle"), "quantity", "P2048", ("{s} is {o} high.",
              "{s} rises {o} above the ground."), low=14, high=260, unit="m", other="ft"),
    ToyAttribute("opened", ("bridge", "museum", "tower", "stadium", "lighthouse", "theatre", "castle"), "date", "P1619",
              ("{s} was opened {when}.", "{s} was completed {when}."), {"bridge": "open", "museum": "established",
              "tower": "completion_date", "lighthouse": "yearbuilt", "castle": "completion_date"}),
    ToyAttribute("material", ("bridge", "lighthouse", "castle"), "text", "P186", ("{s} was built of {o}.",),
              {"lighthouse": "construction"}, words=_STONES),
    ToyAttribute("architectural_style", ("museum", "tower", "theatre", "castle"), "text", "P149",
              ("{s} is a work of {o} architecture.",), {"museum": "style"}, chance=0.8, words=_STYLES),
    ToyAttribute("capacity", ("stadium", "theatre"), "count", "P1083", ("{s} holds {o} people.",), low=250,
              high=78_000),
    ToyAttribute("visitors", ("museum",), "count", "P1174", ("{s} receives {o} visitors a year.",), low=4_000,
              high=900_000),
    ToyAttribute("described", SPECIES, "date", "P574", ("{s} was described {when}.",), day_share=0.0, stamp=""),
    ToyAttribute("order", SPECIES, "text", "", ("{s} belongs to the order {o}.",), {"orchid": "ordo", "beetle": "ordo"},
              words=("Velariformes", "Ostrigales", "Tarniformes", "Lumenoptera", "Cindales", "Marroptera")),
    ToyAttribute("mass", ("beetle",), "quantity", "P2067", ("{s} weighs {o}.",), low=1, high=38, unit="g", other="oz"),
    ToyAttribute("mass", ("helmet",), "quantity", "P2067", ("{s} weighs {o}.",), low=1, high=9, unit="kg", other="lb"),
    ToyAttribute("mass", ("bird",), "quantity", "P2067", ("{s} weighs {o}.",), low=6, high=980, unit="g", other="oz"),
    ToyAttribute("mass", ("meteorite",), "quantity", "P2067", ("{s} weighs {o}.",), low=1, high=640, unit="kg",
              other="lb"),
    ToyAttribute("wingspan", ("bird",), "quantity", "P2050", ("The wingspan of {s_low} is {o}.",), low=14, high=210,
              unit="cm", other="in"),
    ToyAttribute("colour", ("orchid", "beetle", "university"), "text", "P462", ("The colour of {s_low} is {o}.",),
              {"orchid": "flower_colour", "beetle": "wing_colour"}, words=_COLOURS),
    ToyAttribute("published", ("novel", "film", "opera"), "date", "P577", ("{s} first appeared {when}.",),
             {"novel": "pub_date", "film": "released", "opera": "premiere_date"}, day_share=0.6),
    ToyAttribute("year", ("painting",), "date", "P571", ("{s} was finished {when}.",), day_share=0.0, stamp=""),
    ToyAttribute("pages", ("novel",), "count", "P1104", ("The first edition of {s_low} has {o} pages.",), low=90,
              high=990),
    ToyAttribute("runtime", ("film",), "quantity", "P2047", ("{s} runs for {o}.",), low=61, high=212, unit="minutes"),
    ToyAttribute("medium", ("painting",), "text", "P186", ("{s} was made in {o}.",), words=("oil on canvas",
              "tempera on panel", "oil on copper", "watercolour", "gouache", "pastel on paper")),
    ToyAttribute("width", ("painting",), "quantity", "P2049", ("{s} is {o} wide.",), {"painting": "width_metric"},
              low=24, high=410, unit="cm", other="in"),
    ToyAttribute("founded", ("company", "newspaper", "festival"), "date", "P571", ("{s} was founded {when}.",),
              {"newspaper": "foundation"}),
    ToyAttribute("employees", ("company",), "count", "P1128", ("{s} has {o} employees.",), {"company": "num_employees"},
              low=40, high=60_000),
    ToyAttribute("product", ("company",), "text", "P1056", ("{s} is known for {o}.",), {"company": "products"},
              words=("marine engines", "field glasses", "printing presses", "enamel ware", "bicycles", "tea blends",
              "school atlases", "grand pianos")),
    ToyAttribute("students", ("university",), "count", "P2196", ("{s} has {o} students.",), low=900, high=48_000),
    ToyAttribute("circulation", ("newspaper",), "count", "P5169", ("{s} prints {o} copies.",), low=3_000, high=500_000),
    ToyAttribute("format", ("newspaper",), "text", "P437", ("{s} is printed as a {o}.",), chance=0.8,
              words=("broadsheet", "tabloid", "Berliner", "octavo pamphlet")),
    ToyAttribute("date", ("battle",), "date", "P585", ("{s} took place {when}.",), day_share=0.85),
    ToyAttribute("casualties", ("battle",), "count", "P1120", ("The losses came to {o} men.",),
             {"battle": "casualties1"}, low=80, high=24_000),
    ToyAttribute("attendance", ("festival",), "count", "P1110", ("{s} draws {o} people.",), low=700, high=120_000),
    ToyAttribute("first_light", ("telescope",), "date", "P571", ("{s} saw first light {when}.",)),
    ToyAttribute("diameter", ("telescope",), "quantity", "P2386", ("The mirror of {s_low} measures {o}.",), low=30,
              high=980, unit="cm", other="in"),
    ToyAttribute("made", ("clock",), "date", "P571", ("{s} was made {when}.",), {"clock": "created"}, day_share=0.1),
    ToyAttribute("material", ("clock", "helmet"), "text", "P186", ("{s} is made of {o}.",), words=("gilt brass",
              "walnut", "silver", "bronze", "iron", "ebony and ivory", "copper alloy")),
    ToyAttribute("launched", ("ship",), "date", "P729", ("{s} was launched {when}.",), {"ship": "ship_launched"},
              day_share=0.85),
    ToyAttribute("displacement", ("ship",), "quantity", "P2067", ("{s} displaces {o}.",), {"ship": "ship_displacement"},
              low=90, high=24_000, unit="t", other="long ton"),
    ToyAttribute("discovered", ("helmet", "meteorite"), "date", "P575", ("{s} was found {when}.",),
             {"helmet": "discovered_date", "meteorite": "fall_date"}),
    ToyAttribute("composition", ("meteorite",), "text", "P186", ("{s} consists mostly of {o}.",), words=("kamacite",
              "enstatite", "olivine", "troilite", "plagioclase")),
    ToyAttribute("speakers", ("language",), "count", "P1098", ("{s} is spoken by {o} people.",), low=90_000,
              high=9_000_000),
)
# fmt: on
