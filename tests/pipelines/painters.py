"""A small wiki of painters and the towns they were born in: what backward hops lead to, and who else may fit."""

from pathlib import Path

from pipelines.corpus.store import Corpus
from pipelines.graph.query import Query
from schemas.proofs import Constraint, Evidence, Hop
from tests.planted.scenes import OverlayCorpus
from tests.toy import box, build_toy_corpus

NOWHERE = Evidence(page_id=0, title="", revision=0, kind="infobox", key="", start=0, end=0, text="", link_start=-1)


def paint(name, *fields, kind="painter", prose=""):
    return box(kind, f"'''{name}''' was a {kind}. {prose}", *fields)


def born(year, month=4, day=2):
    return f"birth_date = {{{{birth date|{year}|{month}|{day}}}}}"


PAGES = {
    "Ostrel": box(
        "settlement",
        "'''Ostrel''' is a town.",
        "settlement_type = Town",
        "established_date = 1204",
        "leader_name1 = [[Gus Hald]]",
        "leader_name2 = [[Ada Brill]]",
    ),
    "Lumby": box("settlement", "'''Lumby''' is a town.", "settlement_type = Town", "established_date = 1310"),
    "Marn": box("settlement", "'''Marn''' is a town near [[Ostrel]].", "settlement_type = Town"),
    "Ada Brill": paint("Ada Brill", "birth_place = [[Ostrel]]", born(1871), "movement = Luminist", "height = 170 cm"),
    "Ben Corr": paint("Ben Corr", "birth_place = [[Lumby]]", born(1875), "movement = Luminist"),
    "Cleo Dahl": paint("Cleo Dahl", "birth_place = [[Ostrel]]", born(1912), "movement = Tonalist"),
    "Dora Esk": paint("Dora Esk", "birth_place = [[Marn]]", born(1879), "movement = Tonalist"),
    "Emil Foss": paint("Emil Foss", "birth_place = [[Ostrel]]", born(1873), kind="sculptor"),
    "Gus Hald": paint("Gus Hald", "residence = {{ubl|[[Lumby]]|[[Marn]]}}", born(1830), kind="politician"),
    "Pell Bridge": box(
        "bridge",
        "'''Pell Bridge''' is a bridge. It was designed by [[Emil Foss]], and its lamps were made at [[Marn]].",
        "designer = [[Emil Foss]]",
        "length = 95 m",
    ),
    "Orsa Bridge": box("bridge", "'''Orsa Bridge''' is a bridge.", "designer = [[Ada Brill]]", "length = 410 m"),
}
REDIRECTS = {"Old Ostrel": "Ostrel"}
TYPE = ("type", "painter")
DECADE = ("birth_date", "1870s")


def build_painters(folder: Path) -> Corpus:
    return build_toy_corpus(folder, PAGES, REDIRECTS)


def make_hop(index, relation, backward=False):
    return Hop(
        index=index, relation=relation, subject_id=0, object_id=0, clause="", evidence=NOWHERE, backward=backward
    )


def ask_back(corpus, town="Ostrel", *facts, relation="birth_place", attribute="movement"):
    """Return the query for an attribute of the one who was born in a town, with facts of that one."""
    given = facts or (TYPE, DECADE)
    constraints = tuple(Constraint(node=1, relation=key, value=value) for key, value in given)
    return Query(corpus.find(town), (make_hop(1, relation, backward=True),), constraints, attribute, ())


def add_pages(corpus, **pages):
    """Return the corpus with pages added; a title's underscores are spaces."""
    return OverlayCorpus(corpus, {}, [(title.replace("_", " "), text) for title, text in pages.items()])


def edit_page(corpus, title, old, new):
    """Return the corpus with a text on one page replaced."""
    node = corpus.find(title)
    text = corpus.text(node)
    assert old in text
    return OverlayCorpus(corpus, {node: text.replace(old, new)})
