"""A wiki that is one chain of eleven relations, each page leading to the next: every round of injection has one way."""

from pathlib import Path

from pipelines.corpus.store import Corpus
from tests.toy import box, build_toy_corpus

CHAIN = (
    ("Edda Marn", "painter", "birth_place"),
    ("Ostrel", "settlement", "founder"),
    ("Jon Vask", "architect", "alma_mater"),
    ("Haddow College", "university", "city"),
    ("Lumby", "settlement", "river"),
    ("Tarn Beck", "river", "mouth"),
    ("Lake Orra", "lake", "etymology"),
    ("Greta Pohl", "scientist", "workplaces"),
    ("Dunn Works", "company", "hq_location"),
    ("Sellby", "settlement", "named_for"),
    ("Ivo Rask", "architect", "birth_place"),
    ("Pennow", "settlement", ""),
)
"""Title, infobox, and the relation to the next."""
KINDS = {"settlement": "town"}
TITLES = tuple(title for title, _, _ in CHAIN)
BORN = ("birth_date = {{birth date|1871|4|2}}", "movement = Tonalism")
PROSE = " Edda Marn was born on 2 April 1871 in [[Ostrel]]."


def make_pages() -> dict[str, str]:
    pages = {}
    for number, (title, template, relation) in enumerate(CHAIN):
        fields = [f"{relation} = [[{TITLES[number + 1]}]]"] if relation else []
        fields += ["settlement_type = Town"] if template == "settlement" else []
        fields += BORN if number == 0 else []
        lead = f"'''{title}''' was a {KINDS.get(template, template)}."
        pages[title] = box(template, lead + (PROSE if number == 0 else ""), *fields)
    return pages


def build_chain_wiki(folder: Path, **others: str) -> Corpus:
    """Build the chain's corpus with other pages, their titles with underscores, added or put in place of its own."""
    pages = make_pages() | {title.replace("_", " "): text for title, text in others.items()}
    return build_toy_corpus(folder, pages, {"E. Marn": "Edda Marn"})
