import pytest

from pipelines.corpus.infobox import parse_value, read_infobox

BRIDGE = """{{Short description|x}}
{{Infobox bridge <!-- see docs -->
| name = Kelm Bridge
| crosses = [[River Ost|Ost]]<ref>{{cite web|title=[[X]]}}</ref>
| designer = {{ubl|[[Ada Lind]]|[[Bo Ek]] (arches)}}
| length = {{convert|320|m|ft}}
| opened = {{start date|1931|4|5|df=y}}
| empty =
| note = {{unknown thing|a}}
| image = Kelm_bridge.jpg
}}
'''Kelm Bridge''' is a bridge."""


def read(raw):
    return [(value.text, value.link, value.iso) for value in parse_value(raw)]


def test_fields_and_values_have_spans_in_the_page():
    box = read_infobox(BRIDGE)
    assert box.template == "Infobox bridge"
    assert BRIDGE[box.start : box.end].endswith("jpg\n}}")
    assert [field.key for field in box.fields] == ["name", "crosses", "designer", "length", "opened", "note", "image"]
    for field in box.fields:
        assert BRIDGE[field.start : field.end].strip() == BRIDGE[field.start : field.end]
        for value in field.values:
            (again,) = parse_value(BRIDGE[value.start : value.end])
            assert (again.text, again.link, again.iso) == (value.text, value.link, value.iso)
            assert value.link is None or BRIDGE[value.link_start : value.link_start + 2] == "[["


def test_the_image_of_an_infobox_is_a_file_name_with_spaces():
    assert read_infobox(BRIDGE).find_image(BRIDGE) == "Kelm bridge.jpg"
    text = "{{Infobox x|logo=[[File:a_b.SVG|100px]]}}"
    assert read_infobox(text).find_image(text) == "A b.SVG"


READ = [
    ("[[River Ost|Ost]]<ref>a, [[b]]</ref>", [("Ost", "River Ost", "")]),
    ("[[James]] (1857–61)", [("James", "James", "")]),
    ("the [[James]] and more", [("the James and more", None, "")]),
    ("{{ubl|[[A]]|[[B]]}}", [("A", "A", ""), ("B", "B", "")]),
    ("{{hlist|class=x|Poet|Lawyer}}", [("Poet", None, ""), ("Lawyer", None, "")]),
    ("{{plainlist|\n* [[A]]{{efn|x}}\n* [[B]] (after 1856)\n}}", [("A", "A", ""), ("B", "B", "")]),
    ("{{plainlist}}\n* [[A]]\n* [[B]]\n{{endplainlist}}", [("A", "A", ""), ("B", "B", "")]),
    ("A<br>B<br/>C", [("A", None, ""), ("B", None, ""), ("C", None, "")]),
    ("[[A]]<br />(1861–1865)", [("A", "A", "")]),
    ("[[Vienna]], [[Austria]]", [("Vienna", "Vienna", ""), ("Austria", "Austria", "")]),
    ("[[Vienna]], Austria", [("Vienna", "Vienna", ""), ("Austria", None, "")]),
    ("Vienna, Austria", [("Vienna, Austria", None, "")]),
    ("{{birth date and age|1937|4|17|df=yes}}", [("17 April 1937", None, "1937-04-17")]),
    ("{{birth date|1809|2|12}}", [("February 12, 1809", None, "1809-02-12")]),
    ("{{death date and age|1865|4|15|1809|2|12}} (aged 56)", [("April 15, 1865 (aged 56)", None, "1865-04-15")]),
    ("{{start date|1931}}", [("1931", None, "1931")]),
    ("5 April 1931", [("5 April 1931", None, "1931-04-05")]),
    ("April 1931", [("April 1931", None, "1931-04")]),
    ("384 BC", [("384 BC", None, "")]),
    ("{{convert|320|m|ft|0}}", [("320 m", None, "")]),
    ("{{convert|6|ft|4|in|m}}", [("6 ft 4 in", None, "")]),
    ("{{cvt|10|-|20|km2}}", [("10–20 km²", None, "")]),
    ("{{convert|23450|t|long ton}}", [("23,450 t", None, "")]),
    ("{{formatnum:396326}}", [("396,326", None, "")]),
    ("{{formatnum:{{odd}}}}", [("", None, "")]),
    ("{{coord|1|2}}", [("", None, "")]),
    ("[[Rome]] {{coord|1|2}}", [("Rome", "Rome", "")]),
    ("{{marriage|[[Mary Todd]]|1842}}", [("Mary Todd", "Mary Todd", "")]),
    ("{{nowrap|{{small|[[A b]]}}}}", [("A b", "A b", "")]),
    ("{{flagicon|FR}} [[France]]", [("France", "France", "")]),
    ("{{flag|France}}", [("France", None, "")]),
    ("half {{odd template|x}} rendered", [("", None, "")]),
    ("''[[The Star]]''", [("The Star", "The Star", "")]),
    ("AT&amp;T&nbsp;Inc<!-- no -->", [("AT&T Inc", None, "")]),
    ("[[File:x.jpg|20px]] [[A]]", [("A", "A", "")]),
    ("[[A]]{{Collapsed infobox section end}}", [("A", "A", "")]),
    ("[[Russian Jew]]ish", [("Russian Jewish", "Russian Jew", "")]),
    ("[[A|a]] SA-506<br>[[B]]-107", [("a", "A", ""), ("B", "B", "")]),
    ("([[A party|AP]])", [("AP", "A party", "")]),
    ("[[Hill High|Tyler (TX) Hill]]", [("Tyler (TX) Hill", "Hill High", "")]),
    ("[[cannabis (drug)|Cannabis]] legalisation", [("Cannabis legalisation", None, "")]),
    ("[[A]] (R){{break}}[[B]] (R)", [("A", "A", ""), ("B", "B", "")]),
    ("Self-released / [[B]]", [("Self-released", None, ""), ("B", "B", "")]),
    ("[[A]] (x / y)", [("A", "A", "")]),
    ("Producer/Director", [("Producer", None, ""), ("Director", None, "")]),
    ("AC/DC", [("AC/DC", None, "")]),
    ("[[A]]\n* [[B]]\n* [[C]]\n[[D]]", [("A", "A", ""), ("B", "B", ""), ("C", "C", ""), ("D", "D", "")]),
    ("{{grid list|\n* [[A]]\n* [[B]]}}", [("A", "A", ""), ("B", "B", "")]),
    ("ads, [[A]], paper", [("ads", None, ""), ("A", "A", ""), ("paper", None, "")]),
    ("[[A]], a painter", [("A, a painter", None, "")]),
    ("[[A]] engineer, [[B c|b]]", [("A engineer", None, ""), ("b", "B c", "")]),
    ('"[[A song|A]]"', [("A", "A song", "")]),
    ("French{{\\}}[[Bulgaria]]n", [("French", None, ""), ("Bulgarian", "Bulgaria", "")]),
    ("[[Election of 2015|5 March 2015]]", [("5 March 2015", None, "2015-03-05")]),
]


def test_values_are_read():
    assert [(raw, read(raw)) for raw, _ in READ] == READ


def test_the_last_of_a_repeated_key_counts():
    box = read_infobox("{{infobox_x|a=1|b=2|a=3}}")
    assert box.template == "Infobox x"
    assert [(field.key, field.values[0].text) for field in box.fields] == [("b", "2"), ("a", "3")]


@pytest.mark.parametrize(
    ("field", "places"),
    [
        ("birth_place = [[Vienna]], [[Austria]]", ["Vienna"]),
        ("birth_place = [[Toronto]], Canada", ["Toronto"]),
        ("death_place = [[Bethesda, Maryland|Bethesda]], [[Maryland]], [[United States|U.S.]]", ["Bethesda"]),
        ("ground = [[Stark's Park]],<br/>[[Kirkcaldy]], [[Scotland]]", ["Stark's Park"]),
        ("location2 = [[Leeds]]<ref>a, b</ref>, [[England]]", ["Leeds"]),
        (
            "assembly = [[Longbridge]], [[England]]<br>[[Cowley, Oxfordshire|Cowley]], [[England]]",
            ["Longbridge", "Cowley"],
        ),
        ("residence = {{plainlist|\n* [[Basra]], [[Iraq]]\n* [[Cairo]]\n}}", ["Basra", "Cairo"]),
        ("headquarters = [[Paris]]<br>[[London]]", ["Paris", "London"]),
        ("spouse = [[Ann Roe]], [[Eve Poe]]", ["Ann Roe", "Eve Poe"]),
        ("region = [[Horn of Africa]], [[Sahel]]", ["Horn of Africa", "Sahel"]),
        ("alma_mater = [[Yale]], Connecticut", ["Yale"]),
        ("alma_mater = [[Yale]], [[Oxford]]", ["Yale", "Oxford"]),
        ("anthem = ''[[The Song]]''<br>{{small|A translation}}<br>[[File:x.ogg]]", ["The Song"]),
        ("site = [[The Sea]]<br>{{Coord|1|2}}", ["The Sea"]),
        ("gdp = [[Much]]<br>Rank: 66", ["Much"]),
    ],
)
def test_a_place_is_told_from_what_it_lies_in_and_lists_keep_their_values(field, places):
    text = f"{{{{Infobox thing\n| {field}\n}}}}"
    (found,) = read_infobox(text).fields
    assert [value.text for value in found.values] == places
    for value in found.values:
        assert text[value.link_start :].startswith("[[")
        assert parse_value(text[value.start : value.end])[0].text == value.text


def test_the_link_of_a_field_that_names_a_case_of_something_is_no_value():
    (field,) = read_infobox("{{Infobox x\n| drives_on = [[Right- and left-hand traffic|right]]}}").fields
    assert [(value.text, value.link) for value in field.values] == [("right", None)]
