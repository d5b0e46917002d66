"""The subtypes of the world, in the order in which entities are made and named."""

from pipelines.world.ontology import Subtype

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

BY_NAME: dict[str, Subtype] = {subtype.name: subtype for subtype in SUBTYPES}
PEOPLE: tuple[str, ...] = tuple(subtype.name for subtype in SUBTYPES if subtype.kind == "person")
SETTLEMENTS: tuple[str, ...] = ("city", "town")
ORGANISATIONS: tuple[str, ...] = ("university", "company", "newspaper")
BUILDINGS: tuple[str, ...] = tuple(subtype.name for subtype in SUBTYPES if subtype.kind == "building")
SPECIES: tuple[str, ...] = ("bird", "orchid", "beetle")
WORKS: tuple[str, ...] = ("novel", "film", "painting", "opera")
LANDS: tuple[str, ...] = ("city", "town", "river", "lake", "island")
