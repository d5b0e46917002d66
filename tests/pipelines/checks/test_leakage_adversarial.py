"""Leaks and look-alikes that the author thought of; the bench (tests/planted) draws what nobody did."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.leakage import check_demonyms, check_names

LEAKS = [
    (("Australia Zoo", "Beerwah Reptile Park"), "the Australia-Zoo"), (("Australia Zoo",), "AUSTRALIAZOO"),
    (("Australia Zoo",), "the Australian zoo's founder"), (("Antonín Dvořák",), "Dvorak’s opera"),
    (("Antonín Dvořák",), "the DVOŘÁKS"), (("Johann Wolfgang von Goethe",), "the Goethean poem"),
    (("Johann Wolfgang von Goethe",), "Göthe"), (("Buddha",), "the Buddhist temple"),
    (("Buddhism",), "a Buddhist temple"), (("United Nations", "UN"), "a U.N. agency"),
    (("United Nations",), "a U.N. agency"), (("United Nations",), "the U. N. agency"),
    (("UNESCO", "United Nations Educational, Scientific and Cultural Organization"), "unesco"),
    (("United Nations Educational, Scientific and Cultural Organization",), "UNESCO"),
    (("St. Mary's Church",), "Saint Marys church"), (("Sainte-Chapelle",), "the Ste Chapelle"),
    (("Sainte-Marie",), "St Marie"), (("Saint Petersburg",), "St. Petersburg"),
    (("Müller Tower",), "Mueller built it"), (("Mueller Tower",), "Müller built it"),
    (("Øresund Bridge",), "the Oeresund"), (("Åland",), "Aaland"), (("Łódź",), "Lodz"), (("Reykjavík",), "REYKJAVIK"),
    (("Kelmor Bridge",), "Kel\u200bmor"), (("Kelmor Bridge",), "Кеlmor"), (("Kelmor Bridge",), "K e l m o r"),
    (("Kelmor Bridge",), "K-e-l-m-o-r"), (("Kelmor Bridge",), "K.e.l.m.o.r."), (("Kelmor Bridge",), "Kel mor"),
    (("Kelmor Bridge",), "Kel-\nmor"), (("Kelmor Bridge",), "Ke1mor"), (("Goethe",), "G0ethe"),
    (("Kelmor Bridge",), "Kel\ufe0fmor"), (("Kelmor Bridge",), "K\u20dde\u20ddl\u20ddm\u20ddo\u20ddr\u20dd"),
    (("Kelmor Bridge",), "𝓚𝓮𝓵𝓶𝓸𝓻"), (("Kelmor Bridge",), "ᴋᴇʟᴍᴏʀ"), (("Kelmor Bridge",), "🅺🅴🅻🅼🅾🆁"),
    (("Kelmor Bridge",), "Ｋｅｌｍｏｒ"), (("Kelmor Bridge",), "Kelmor%20Bridge"),
    (("Dvořák Hall",), "Dvo%C5%99%C3%A1k"),
    (("Dvořák Hall",), "Dvo&#345;&aacute;k"), (("Kelmor Bridge",), "Kelmor_Bridge"),
    (("Kelmor Bridge",), "K\u0301elmor"), (("Kelmor Bridge",), "Kel\x00mor"), (("Kelmor Bridge",), "ꮶelmor"),
    (("Coca-Cola",), "CocaCola"), (("Coca Cola",), "coca-cola"), (("CocaCola",), "Coca Cola"), (("O'Neal",), "ONeal"),
    (("Oneal",), "O'Neal’s house"), (("Xi'an",), "in Xian"), (("Xian",), "in Xi’an"), (("Hawaiʻi",), "Hawaii"),
    (("The Beatles",), "one Beatle"), (("Beatles",), "the Beatles'"), (("Kennedy",), "the Kennedys"),
    (("Kennedy",), "the Kennedies"), (("Charles Dickens",), "Dickens' house"),
    (("Charles Dickens",), "Dickens's house"), (("World War II",), "World War Two"),
    (("World War II",), "World War 2"), (("Henry VIII",), "Henry the Eighth"),
    (("Old Bridge 2",), "the Old Bridge II"), (("Nice", "Nizza"), "in Nice"), (("Nice",), "in Niçe"),
    (("Nice",), "in Νice"), (("Reading, Berkshire",), "the town of Reading"), (("Estonia", "ES"), "code ES."),
    (("Spain", "🇪🇸"), "flag 🇪🇸 here"), (("Norway", "NO"), "from (NO)"), (("Fo", "Dario Fo"), "by Fo?"),
    (("World Health Organization", "WHO"), "the WHO says"), (("The Who",), "a song by the Who"),
    (("Pirate", "🏴\u200d☠\ufe0f"), "the 🏴\u200d☠\ufe0f flag"), (("東京", "Tokyo"), "where is 東京駅"),
    (("東京スカイツリー",), "東京 スカイツリー"), (("Tokyo (東京)",), "東京"),
    (("กร\u0e38งเทพ",), "ในกร\u0e38งเทพมหานคร"),
    (("Kelmor",), "东京Kelmor大桥"), (("서울",), "서울에서"), (("Москва",), "город Москва"),
    (("Mark Twain", "Samuel Langhorne Clemens"), "Mr Clemens"), (("John Fitzgerald Kennedy",), "J.F.K."),
    (("John Fitzgerald Kennedy",), "JFK"), (("British Broadcasting Corporation",), "BBC"),
    (("Kelmor (river)",), "the Kelmor's mouth"), (("Mount Wood",), "Mt. Wood"), (("Fort Wood",), "Ft. Wood"),
    (("Netherlands",), "a Dutch painter"), (("Kingdom of the Netherlands",), "the Dutchman"),
    (("Switzerland",), "the Swiss bank"), (("Denmark",), "Danish"), (("Italy",), "ITALIAN"),
    (("France",), "a Frenchwoman"), (("Poland",), "the Polish king"), (("London",), "a Londoner"),
    (("Vienna",), "Viennese waltz"), (("Manchester",), "the Mancunian band"), (("Karl Marx",), "the Marxist"),
    (("Isaac Newton",), "Newtonian"), (("Confucius",), "Confucian"), (("Plato",), "Platonic"),
    (("Aristotle",), "Aristotelian"), (("Franz Kafka",), "kafkaesque"), (("New Zealand",), "a New Zealander"),
    (("China",), "Sino-Indian war"), (("Kelmor",), "Kelmorian"), (("Ostrania",), "the Ostranian painter"),
    (("Goethe",), "G\u200boethean"), (("Sikhism",), "Sikh"), (("Israel",), "Israelis"),
    (("Amsterdam",), "Amsterdammers"), (("Panama",), "Panamanian"), (("Cuba",), "Cubans"),
    (("Iceland",), "Icelandic"), (("Galileo",), "Galilean"), (("Quebec",), "Québécois"),
    (("Copernicus",), "Copernican"), (("Shakespeare",), "Shakespearean"), (("Lake Geneva",), "Genevan"),
    (("Corsica",), "Corsicans"), (("Bank of England",), "Anglo-Saxon"), (("Siena",), "Sienese"),
    (("Darwin",), "Darwinism"), (("Martin Luther",), "Lutheran"),
]  # fmt: skip
CLEAN = [
    (("Nice", "Nizza"), "a nice old bridge"), (("Reading, Berkshire",), "the reading room"),
    (("Norway", "NO"), "No one"), (("Norway", "NO"), "with no roof"), (("Indiana", "IN"), "In which town"),
    (("Helium", "He"), "He was born where"), (("Spain", "ES", "🇪🇸"), "yes, in the west"),
    (("Spain", "🇪🇸"), "the flag 🇩🇪🇸🇪"), (("Fo",), "for the food"), (("The Who",), "Who built the tower"),
    (("The Who",), "the man who built it"), (("?",), "what is it?"), (("Canada", "CAN"), "can it be seen"),
    (("Who", "WHO"), "who is"), (("Italy",), "the Gothic organic vital"), (("Goethe",), "gothic"),
    (("Marin County",), "the marine museum"), (("Organ Pipe",), "organic farm"),
    (("Titan (moon)",), "titanic effort"), (("Rome",), "the romantic garden"), (("Paris",), "the parish church"),
    (("Poland",), "to polish the floor"), (("Poland",), "a pole"), (("Kelmor Bridge", "KB"), "the kb of data"),
    (("Kelmor",), "kelm rock"), (("Ana Dvořák",), "in AD 79"), (("Brel Castle",), "in 44 BC"),
    (("Union Station",), "in the U.S. west"), (("Iron Tower",), "it is"), (("Orn",), "born torn horn"),
    (("Kelmor Bridge", "the bridge", "bridge"), "the bridge"), (("August Strindberg",), "in August"),
    (("May Kelmor",), "in May"), (("Bath",), "the bath house"), (("Mobile, Alabama",), "a mobile crane"),
    (("Orange",), "an orange roof"), (("Cork",), "made of cork"), (("Robin Williams",), "named after William"),
    (("Mercury",), "the tourist boat"), (("Tours",), "guided tours"), (("Chad",), "the charity"),
    (("Turkey",), "the turkey farm"), (("Saint Kelmor",), "the saint's day"), (("John Smith",), "the smithy"),
    (("Georgia",), "the gorge"), (("World War II",), "the two world fairs"), (("Henry VIII",), "the eighth king"),
    (("United Nations",), "the united front"), (("Iran",), "the i"), (("Denmark",), "the mark of the den"),
    (("Victoria Bridge",), "the victory column"), (("Bosnia",), "the boss"),
    (("Museum of Kelmor",), "the museum of art"), (("Johann Bach",), "the bachelor"), (("Berlin",), "the Bern liner"),
    (("Peter Stone",), "stone bridge"), (("George Kelm",), "a Georgian house"), (("China",), "the chin"),
    (("Ireland",), "the fire land"), (("Magnet Cove",), "a magnetic field"), (("Park Güell",), "the parking place"),
]  # fmt: skip


def is_found(names, text):
    return "FAIL" in (check_names(text, (names,)).outcome, check_demonyms(text, (names,)).outcome)


def test_each_leak_is_found():
    assert [leak for leak in LEAKS if not is_found(leak[0], f"What stands near {leak[1]} in the image?")] == []


def test_no_look_alike_alarms():
    for names, text in CLEAN:
        again = "" if text[0].isupper() else f" near {text}"
        question = f"{text[0].upper()}{text[1:]}, and what stands{again} in the image?"
        results = check_names(question, (names,)), check_demonyms(question, (names,))
        assert [result.outcome for result in results] == ["PASS", "PASS"], (names, text)


SYLLABLES = st.lists(st.sampled_from("kel mor tarn vask zig r\u0159ek l\u00fcn dov".split()), min_size=2, max_size=3)
NAMES = SYLLABLES.map("".join).map(str.capitalize).filter(lambda name: len(name) >= 6)
CHANGES = st.sampled_from([
    str.upper, str.lower, "\u200b".join, "\u00ad".join, " ".join, "-".join, ".".join,
    lambda name: unicodedata.normalize("NFD", name), lambda name: unicodedata.normalize("NFC", name),
    lambda name: f"{name}\u2019s", lambda name: f"{name}s", lambda name: f"{name[:3]} {name[3:]}",
    lambda name: name.replace("k", "\u043a").replace("o", "\u043e"),
])  # fmt: skip


@given(NAMES, CHANGES, st.sampled_from(["{} Bridge", "{}", "Ana {}", "{} (river)", "Lake {}, Tarn"]))
def test_a_change_of_case_form_or_spacing_hides_no_name(name, change, shape):
    text = f"Who built the house of {change(name)} in the image?"
    assert check_names(text, ((shape.format(name),),)).code == "alias-leak"


@given(
    NAMES, st.sampled_from("ian ese er ean ish i ist ite esque".split()), st.sampled_from([str, str.upper, str.lower])
)
def test_every_regular_demonym_is_found(name, suffix, change):
    text = f"Who is the {change(name + suffix)} painter of the image?"
    assert check_demonyms(text, ((f"Castle of {name}",),)).code == "demonym-leak"


@given(NAMES, NAMES, st.sampled_from("ian ese er ean ish".split()))
def test_more_names_never_turn_a_demonym_into_a_pass(name, other, suffix):
    text = f"Who is the {name + suffix} painter?"
    assert check_demonyms(text, ((name, other),)).outcome == check_demonyms(text, ((name,),)).outcome == "FAIL"
