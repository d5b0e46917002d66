"""Two small Wikipedias in other languages than English, written as their editors write, with the truth about each page.

The names of templates, parameters, namespaces and modules are those of ltg.wikipedia.org (complete dump of 2017) and
it.wikipedia.org; the articles are invented.
"""

import bz2
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape, quoteattr

NAMESPACES = {
    "ltg": {6: "Fails", 8: "MediaWiki", 10: "Taiss", 14: "Kategoreja", 828: "Modulis"},
    "it": {6: "File", 8: "MediaWiki", 10: "Template", 14: "Categoria", 828: "Modulo"},
}


@dataclass
class Edition:
    """A wiki of one language; ``boxes`` has the infobox of every article, or an empty string."""

    language: str
    pages: list[tuple[str, int, str, str]] = field(default_factory=list)
    boxes: dict[str, str] = field(default_factory=dict)
    disambiguations: set[str] = field(default_factory=set)

    def add_template(self, name: str, text: str = "", redirect: str = "") -> None:
        self._add(name, 10, text or f"#REDIRECT [[{NAMESPACES[self.language][10]}:{redirect}]]", redirect)

    def add_article(self, title: str, text: str, box: str = "", disambiguation: bool = False) -> None:
        self.boxes[title] = box
        if disambiguation:
            self.disambiguations.add(title)
        self._add(title, 0, text, "")

    def _add(self, title: str, namespace: int, text: str, redirect: str) -> None:
        prefix = NAMESPACES[self.language].get(namespace, "")
        full = f"{prefix}:{title}" if prefix else title
        target = f"{prefix}:{redirect}" if redirect and prefix else redirect
        self.pages.append((full, namespace, text, target))

    def write(self, path: Path, seed: int | None = None, packed: Callable[[bytes], bytes] | None = None) -> Path:
        """Write the dump; with a seed its pages stand in another order, with ids that stay."""
        numbered = [(number, *page) for number, page in enumerate(self.pages, start=1)]
        if seed is not None:
            Random(seed).shuffle(numbered)
        chunks = [numbered[start : start + 50] for start in range(0, len(numbered), 50)]
        streams = [self._render_header(), *("".join(map(render_page, chunk)) for chunk in chunks), "</mediawiki>\n"]
        pack = packed or (bz2.compress if path.suffix == ".bz2" else bytes)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(pack(stream.encode()) for stream in streams))
        return path

    def _render_header(self) -> str:
        names = "".join(
            f'<namespace key="{number}" case="first-letter">{name}</namespace>'
            for number, name in NAMESPACES[self.language].items()
        )
        return (
            f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="{self.language}">'
            f"<siteinfo><dbname>{self.language}wiki</dbname><base>https://{self.language}.wikipedia.org/wiki/Home</base>"
            f'<case>first-letter</case><namespaces><namespace key="0" case="first-letter" />{names}</namespaces>'
            "</siteinfo>\n"
        )


def render_page(page: tuple[int, str, int, str, str]) -> str:
    number, title, namespace, text, redirect = page
    tag = f"<redirect title={quoteattr(redirect)} />" if redirect else ""
    return (
        f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>{number}</id>{tag}"
        f"<revision><id>{number + 900}</id><timestamp>2026-01-01T00:00:00Z</timestamp>"
        f"<text>{escape(text)}</text></revision></page>\n"
    )


def write_box(name: str, values: dict[str, str], random: Random, keep: float = 0.7) -> str:
    """Write a call: every value is left empty now and then, and some editors write no empty ones."""
    kept = {key: value if random.random() < keep else "" for key, value in values.items()}
    if random.random() < 0.3:
        kept = {key: value for key, value in kept.items() if value}
    lines = "".join(f"\n|{key} = {value}" for key, value in kept.items())
    return f"{{{{{name}{lines}\n}}}}\n"


def make_ltgwiki(seed: int = 3) -> Edition:
    """Most infoboxes wrap ``Infoskreine``, one calls Module:Infobox, two have no page in the dump."""
    random, wiki = Random(seed), Edition("ltg")
    wiki.add_template(
        "Infoskreine", '{| class="infobox" style="width:22em"\n! {{{pasauka|}}}\n|}<noinclude>{{doc}}</noinclude>'
    )
    wiki.add_template(
        "Infoskreine Latvejis nūvods", "<noinclude>{{Doc}}</noinclude>{{Infoskreine\n|pasauka={{{pasauka}}} }}"
    )
    wiki.add_template("Infobuokss cylvāks", "{{#invoke:Infobox|infobox\n|title={{{vuords}}} }}")
    wiki.add_template("Cylvāks", redirect="Infobuokss cylvāks")
    wiki.add_template("Nūzeimu škiršona", '<div class="notice">Vuordam ir vairuokys nūzeimis.</div>__DISAMBIG__')
    wiki.add_template("Nūzeimis", redirect="Nūzeimu škiršona")
    wiki.add_template("Latvejis nūvodi", '{| class="navbox"\n| [[A]] • [[B]]\n|}')
    wiki.add_template("Nadabeigts rakstīņs", '<div class="notice stub">Itys rakstīņs nav dabeigts.</div>')
    for number in range(90):
        name = f"Nūvods {number}"
        box = write_box(
            "Infoskreine Latvejis nūvods" if number % 3 else "infoskreine_Latvejis nūvods<!-- taiss -->",
            {
                "pasauka": name,
                "zemislopa": f"Mapa{number}.png",
                "centrys": f"[[Mīsts {number}]]",
                "pluots": f"{number},7",
                "dzeivuotuoju_skaits": str(4000 + number),
                "īstateits": "2009",
            },
            random,
        )
        closing = "\n{{Latvejis nūvodi}}\n{{Nadabeigts rakstīņs}}"
        text = f"{box}'''{name}''' irā [[Latveja|Latvejis]] nūvods.\n{closing}"
        wiki.add_article(name, text, "Infoskreine Latvejis nūvods")
    for number in range(60):
        call = ("Infobuokss cylvāks", "Cylvāks", "Taiss:Cylvāks")[number % 3]
        values = {"vuords": f"Cylvāks {number}", "dzims": "1900", "vīta": f"[[Mīsts {number}]]", "dorbs": "dzejnīks"}
        text = f"{write_box(call, values, random)}'''Cylvāks {number}''' beja dzejnīks.\n\n== Dzeive ==\nRuoda.\n"
        wiki.add_article(f"Cylvāks {number}", text, "Infobuokss cylvāks")
    for number in range(100):
        values = {
            "nūsaukums": f"Mīsts {number}",
            "atvaigs": f"Mīsts {number}.jpg",
            "vaļsts": "{{LVA}}",
            "īdzeivuotuoji": str(900 + number),
            "pluots": "14",
            "mārs": f"[[Cylvāks {number % 60}]]",
        }
        text = f"{write_box('Apdzeivuota vīta', values, random)}'''Mīsts {number}''' irā mīsts.\n"
        wiki.add_article(f"Mīsts {number}", text, "Apdzeivuota vīta")
    _add_traps(wiki, random, "godu symts", "irā laika vyds")
    for number in range(30):
        template = ("Nūzeimu škiršona", "nūzeimis", "Taiss:Nūzeimis")[number % 3]
        text = f"'''Vuords {number}''':\n* [[Mīsts {number}]]\n* [[Nūvods {number}]]\n{{{{{template}}}}}"
        wiki.add_article(f"Vuords {number}", text, disambiguation=True)
    return wiki


def make_itwiki(seed: int = 5) -> Edition:
    """Infoboxes without the word in their names: by page, by TemplateData, and by shape alone."""
    random, wiki = Random(seed), Edition("it")
    wiki.add_template("Divisione amministrativa", '<includeonly>{| class="sinottico"\n! {{{Nome}}}\n|}</includeonly>')
    wiki.add_template(
        "Opera d'arte",
        '{{{titolo}}}<noinclude><templatedata>{"params": {"titolo": {}, "immagine": {"type": "wiki-file-name"}, '
        '"artista": {}, "data": {}, "tecnica": {}}}</templatedata></noinclude>',
    )
    wiki.add_template("Infobox linea ferroviaria", "{{Infobox|Nome={{{nome}}} }}")
    wiki.add_template("Calciatore", redirect="Sportivo")
    wiki.add_template("Disambigua", '<table class="metadata">Pagina di disambiguazione</table>__DISAMBIG__')
    wiki.add_template("Disambiguazione", redirect="Disambigua")
    wiki.add_template("Interprogetto", '<div class="toccolours metadata">{{{commons|}}}</div>')
    for number in range(60):
        values = {
            "Nome": f"Comune {number}",
            "Panorama": f"Comune {number}.jpg",
            "Stato": "ITA",
            "Grado amministrativo": "3",
            "Abitanti": str(2000 + number),
            "Amministratore locale": f"[[Persona {number}]]",
            "Superficie": "12.5",
        }
        name = "Divisione amministrativa" if number % 4 else "divisione_amministrativa"
        box = write_box(name, values, random)
        text = f"{box}'''Comune {number}''' è un [[comune]] italiano.\n{{{{Portale|Italia}}}}\n"
        wiki.add_article(f"Comune {number}", text, "Divisione amministrativa")
    for number in range(70):
        sport = number % 2 == 0
        sports = {
            "Nome": f"Persona {number}",
            "Immagine": f"Persona {number}.jpg",
            "Sesso": "M",
            "CodiceNazione": "{{ITA}}",
            "Disciplina": "Calcio",
            "Ruolo": "[[Attaccante]] <small>(ex)</small>",
            "Squadre": "\n{{Carriera sportivo\n|sport = calcio |pos = G\n |1980-1981 |Lazio |12 (0)\n}}",
        }
        biography = {
            "Nome": "Persona",
            "Cognome": str(number),
            "Sesso": "M",
            "LuogoNascita": f"Comune {number % 60}",
            "GiornoMeseNascita": "4 marzo",
            "AnnoNascita": "1950",
            "Attività": "calciatore" if sport else "scrittore",
            "Nazionalità": "italiano",
        }
        box = write_box("Calciatore" if number % 6 == 0 else "Sportivo", sports, random) if sport else ""
        box += write_box("Bio", biography, random)
        text = f"{{{{Nota disambigua|il comune|Comune {number}}}}}\n{box}\n== Vita ==\nX.\n"
        wiki.add_article(f"Persona {number}", text, "Sportivo" if sport else "Bio")
    for number in range(20):
        values = {
            "titolo": f"Quadro {number}",
            "immagine": f"Q{number}.jpg",
            "artista": "[[Persona 1]]",
            "data": "1605",
        }
        text = f"{write_box('Opera d' + chr(39) + 'arte', values, random)}'''Quadro {number}''' è un dipinto.\n"
        wiki.add_article(f"Quadro {number}", text, "Opera d'arte")
    for number in range(36):
        values = {"nome": f"Linea {number}", "apertura": "1901", "lunghezza": "40 km"}
        text = f"{write_box('Infobox linea ferroviaria', values, random)}La '''linea {number}''' è una ferrovia.\n"
        wiki.add_article(f"Linea {number}", text, "Infobox linea ferroviaria")
    for number in range(20):
        values = {
            "nome": f"Felis {number}",
            "statocons": "LC",
            "immagine": f"Felis {number}.jpg",
            "regno": "[[Animalia]]",
            "classe": "[[Mammalia]]",
            "genere": "''[[Felis]]''",
        }
        text = f"{write_box('Tassobox', values, random)}Il '''felis {number}''' è un felino.\n"
        wiki.add_article(f"Felis {number}", text, "Tassobox")
    _add_traps(wiki, random, "secolo", "è un periodo")
    for number in range(29):
        template = ("Disambigua", "disambiguazione", "Template:disambigua")[number % 3]
        wiki.add_article(
            f"Nome {number}", f"{{{{{template}}}}}\n* [[Comune {number}]]\n* [[Felis 1]]", disambiguation=True
        )
    wiki.add_article("Ambiguo", "__DISAMBIG__\n* [[Comune 1]]", disambiguation=True)
    return wiki


def _add_traps(wiki: Edition, random: Random, noun: str, says: str) -> None:
    """Add articles without an infobox, with all else that stands in a lead or is called with many names."""
    file = NAMESPACES[wiki.language][6]
    openings: list[Callable[[int], str]] = [
        lambda n: (
            f"{{{{Gallery|image1=A{n}.jpg|caption1=One|image2=B{n}.jpg|caption2=Two|align=right|width1=220|footer=Z}}}}"
        ),
        lambda n: f"{{{{Quote box|It is said.|author=[[Persona {n}]]|source=A book of {n}}}}}",
        lambda n: f"{{{{Notice|reason=No source {n}|date=March 2020|discuss=yes}}}}",
        lambda n: f"{{{{Coord|45|{n}|N|9|{n}|E|display=title|type=city|region=IT}}}}",
        lambda n: f"{{{{Location map|Italy|label=P{n}|lat=4{n % 10}|long=9|caption=Where|float=right}}}}",
        lambda n: f"[[{file}:Century{n}.jpg|thumb|A [[caption]]]]",
        lambda n: f"{{{{About|the century|year {n}}}}}",
        lambda n: f"{{{{Use dates|date=March {n}}}}}",
    ]
    for number in range(80):
        opening = openings[number % len(openings)](number)
        cited = (
            f"<ref>{{{{Cite book\n|title=A{number}\n|author=B\n|year=1999\n|publisher=C\n|isbn=9\n|pages=1}}}}</ref>"
        )
        closing = (
            f"\n{{{{Succession\n|office=King\n|before=[[Persona {number}]]\n|after=[[Persona {number + 1}]]"
            "\n|years=1900\n|image=K.jpg}}\n{{Interprogetto|commons=Category:A|wikt=a|q=b|s=c|n=d}}"
            f"\n{{{{Persondata\n|NAME=X{number}\n|BORN=1900\n|DIED=1950\n|PLACE=[[Comune {number}]]\n|WORK=Y}}}}\n"
        )
        middle = "\n== Note ==\n" if random.random() < 0.5 else ""
        wiki.add_article(f"{number} {noun}", f"{opening}\n'''{number} {noun}''' {says}.{cited}\n{middle}{closing}")
