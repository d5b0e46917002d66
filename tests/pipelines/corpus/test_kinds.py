from pipelines.corpus.kinds import find_domain, make_singular, name_infobox_kind, name_lead_kind

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


def test_plurals_become_singular():
    words = ["cities", "churches", "towers", "series", "species", "glass", "bus"]
    assert [make_singular(word) for word in words] == ["city", "church", "tower", "series", "species", "glass", "bus"]
