"""What templates of running prose show: measures, languages, dates, formulae; and what those not known leave."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.templates import LEFT_OUT, render_value, show_template
from pipelines.corpus.wikitext import plain_text


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{convert|15|C|F}}", "15°C"),
        ("{{cvt|2|-|3|km}}", "2–3 km"),
        ("{{Cvt|4.5e6|km2}}", "4.5e6 km2"),
        ("{{convert|1.5e6|to|2.0e6|km3}}", "1.5e6 to 2.0e6 km3"),
        ("{{lang|fr|[[sans-culottes]]}}", "sans-culottes"),
        ("{{lang-ru|Алиса}}", "Russian: Алиса"),
        ("{{langx|grc|[[wikt:x|Ἀχιλλεύς]]}}", "Ancient Greek: Ἀχιλλεύς"),
        ("{{lang-ar|{{big|المعلم}}}}", "Arabic: المعلم"),
        ("{{transliteration|grc|áchos}}", "áchos"),
        ("{{Nihongo|[[bayonet]]|銃剣|jūken}}", "bayonet (銃剣, jūken)"),
        ("{{zh|labels=no |c={{linktext|民航}} |l=Civil}}", "民航; Civil"),
        ("{{IPAc-en|lang|æ|l|b}}", "/ælb/"),
        ("{{IPA-fr|alɛ̃|lang}}", "[alɛ̃]"),
        ("{{respell|al|BEE}}", "al-BEE"),
        ("{{as of|2011|5|lc=y}}", "as of May 2011"),
        ("{{As of|2011|since=y}}", "Since 2011"),
        ("{{circa|185}}", "c. 185"),
        ("{{HMS|Ajax|22|6}}", "HMS Ajax"),
        ("{{sclass|Nimitz|aircraft carrier|2}}", "Nimitz-class aircraft carrier"),
        ("{{Coord|13|19|N|169|9|W|type:event}}", "13°19′N 169°9′W"),
        ("{{coord|13.5|-9.25}}", "13.5°, -9.25°"),
        ("{{coord|13|19|N|169|9|W|display=title}}", ""),
        ("{{chem|C|''n''|H|2''n''+2}}", "CnH2n+2"),
        ("{{val|6.241|e=18|u=C}}", "6.241×10^18 C"),
        ("{{frac|3|1|4}}", "3 1⁄4"),
        ("{{US$|2 billion}}", "US$2 billion"),
        ("{{angbr|ɑ}}", "⟨ɑ⟩"),
        ("{{birth date|1990|3|4|df=y}}", "4 March 1990"),
        ("{{quote|text=It {{convert|3|ft|m}} stands.}}", "It 3 ft stands."),
        ("{{sic|hte|the}}", "hte [sic]"),
        ("{{'s}}", "'s"),
        ("{{spaced ndash}}", " – "),
        ("{{age|1969|7|20}}", LEFT_OUT),
        ("{{Inflation|US|800|1861|r=0}}", LEFT_OUT),
        ("{{never heard of|Some [[words]]|http://a.b|x.jpg|k=v}}", "Some words"),
    ],
)
def test_a_template_of_prose_shows_what_a_reader_of_the_page_sees(template, shown):
    assert show_template(template) == shown
    assert plain_text(f"It had {template} then.") == " ".join(f"It had {shown} then.".split())


@pytest.mark.parametrize(
    "template",
    [
        "{{cite web|title=Page}}", "{{sfn|Smith|2001|p=4}}", "{{efn|A note.}}", "{{citation needed|date=May 2020}}",
        "{{rp|12}}", "{{who|date=May 2020}}", "{{refn|A note.}}", "{{better source|date=May 2020}}",
        "{{Use dmy dates}}",
    ],
)  # fmt: skip
def test_notes_citations_and_complaints_show_nothing(template):
    assert show_template(template) == ""


def test_a_quotation_that_stands_alone_is_prose():
    assert (
        plain_text("He said:\n{{blockquote|text=Never\nagain.}}\nThat was it.")
        == "He said:\nNever\nagain.\nThat was it."
    )


@pytest.mark.parametrize("digits", [101, 5000])
def test_a_number_beyond_reason_is_no_value_and_breaks_nothing(digits):
    for name in ("convert|{}|m", "birth date|{}", "as of|{}", "formatnum:{}"):
        template = f"{{{{{name.format('9' * digits)}}}}}"
        assert render_value(template) is None or name.startswith("as of")
        assert "9" in show_template(template)


@given(st.text(alphabet="ab1 {}[]|=<>/'\n&;", max_size=80))
def test_any_arguments_give_plain_text(arguments):
    for name in ("convert", "lang", "as of", "zh", "coord", "nihongo", "unknown thing"):
        shown = plain_text(f"It was {{{{{name}|{arguments}}}}} once.")
        assert shown.startswith("It was")
