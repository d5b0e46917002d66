"""Dated attributes: inverted clauses for questions, a noun for the event, a participle for qualifiers."""

from pipelines.backends.phrases_shapes import AttributeWording


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
