import pytest

from pipelines.corpus.kinds import (
    choose_class_kind,
    choose_kind,
    find_domain,
    is_abstract,
    make_singular,
    name_category_kind,
    name_infobox_kind,
    name_lead_kind,
    name_title_kind,
)

INFOBOXES = {
    "Infobox bridge": ("bridge", "Building/Place"),
    "Infobox settlement": ("place", "Location"),
    "Infobox Officeholder": ("politician", "Person"),
    "Infobox artwork": ("artwork", "Artifact"),
    "Taxobox": ("species", "Organism"),
    "Infobox clock": ("clock", "Artifact"),
    "Infobox company": ("company", "Other"),
    "Infobox Korean name": ("", "Other"),
}
LEADS = {
    "The Kelm Bridge is a suspension bridge over the Ost in Varn.": "bridge",
    "Ada Lind (1815 – 1852) was an English mathematician and writer.": "mathematician",
    "The aardwolf is a small, insectivorous mammal native to Africa.": "mammal",
    "Pica is a species of bird in the crow family.": "bird",
    "Actrius is a 1997 film directed by V. Pons.": "film",
    "Raith Rovers is a football club based in Kirkcaldy.": "football club",
    "London is one of the largest cities in Europe.": "city",
    "It was the first of its kind.": "",
    "No verb here.": "",
}


def test_infoboxes_and_leads_give_nouns_and_domains():
    kinds = {template: name_infobox_kind(template) for template in INFOBOXES}
    assert {template: (kind, find_domain(kind)) for template, kind in kinds.items()} == INFOBOXES
    assert {lead: name_lead_kind(lead) for lead in LEADS} == LEADS
    assert find_domain("oddity", "painter") == "Person"


TITLED_LEADS = [
    ("Tiger", "The tiger (Panthera tigris) is the largest living cat species.", "cat"),
    ("Charlemagne", "Charlemagne (English: /shar/; 742 - 814) was King of the Franks from 768.", "king"),
    ("Abraham Lincoln", "Abraham Lincoln (born 1809) was the 16th President of the United States.", "president"),
    ("Mount Rushmore", "Mount Rushmore National Memorial is a massive sculpture carved into granite.", "sculpture"),
    ("Beaver", "Beavers are large, semiaquatic rodents of the Northern Hemisphere.", "rodent"),
    ("Lusaka", "Lusaka is the capital and largest city of Zambia.", "city"),
    ("Raven", "Raven is the common name given to several large black birds of the genus Corvus.", "bird"),
    ("Plato", "Plato, whose real name is believed to have been Aristocles, was a Greek philosopher.", "philosopher"),
    ("Cod", "Cod is the common name for the genus Gadus of fish.", "fish"),
    ("Luther", "Martin Luther was a German theologian, priest and polymath.", "theologian"),
    ("Amity", "The colours of the flag are red and white. Amity is a state of peaceful agreement.", "concept"),
    ("Lake Albert", "It covers 5,300 square kilometres.", "lake"),
    ("Gliese", "Gliese, a star, dims.", ""),
    ("Angola", "The capital of Angola is a port city.", ""),
    ("Diet", "The Diet is the highest legislative body in the United Kingdom.", ""),
    ("Cornea", "Cornea is also a commune in Varn.\nThe cornea is the front tissue of the eye.", "tissue"),
    ("Ann Field", "Ann Field (born May 1, 1950) won every race that she entered.", "person"),
]


@pytest.mark.parametrize(("title", "lead", "noun"), TITLED_LEADS)
def test_a_lead_is_read_for_what_its_title_is(title, lead, noun):
    assert name_lead_kind(lead, title) == noun


def test_a_title_a_category_or_a_class_names_what_the_lead_does_not():
    titles = {
        "Battle of Varn": "battle",
        "Kelm Bridge": "bridge",
        "Ceres (dwarf planet)": "dwarf planet",
        "1815": "year",
    }
    assert {title: name_title_kind(title) for title in titles} == titles
    assert name_category_kind("text [[Category:Featured]] [[Category:Bridges in Varn]]") == "bridge"
    # A class corrects what a lead seems to say; what the page says more closely, and an infobox, stay.
    said = {("god", "Q6256"): "country", ("film", "Q5"): "person", ("", "Q12280"): "bridge", ("poet", "Q5"): "poet",
            ("law", "Q11862829"): "law", ("river", "Q1"): "river", ("resort", "Q515"): "city"}  # fmt: skip
    assert {each: choose_class_kind(each[0], ["Q1", each[1]], boxed=False) for each in said} == said
    assert choose_class_kind("resort", ["Q515"], boxed=True) == "resort"
    assert choose_kind("", "country", name_title_kind("History of Varn")) == "history"
    assert choose_kind("", "oddity", "bridge") == "bridge"
    assert choose_kind("bridge", "canal", "lake") == "bridge"


def test_what_no_picture_shows_is_abstract():
    nouns = {"theory": True, "programming language": True, "quantum theory": True, "bridge": False, "oddity": False}
    assert {noun: is_abstract(noun) for noun in nouns} == nouns


def test_plurals_become_singular():
    words = {
        "cities": "city", "churches": "church", "towers": "tower", "series": "series", "species": "species",
        "glass": "glass", "bus": "bus", "wolves": "wolf", "volcanoes": "volcano",
    }  # fmt: skip
    assert {word: make_singular(word) for word in words} == words
