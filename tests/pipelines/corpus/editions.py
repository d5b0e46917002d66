"""A small Wikipedia in Italian; names of templates and namespaces are those of it.wikipedia.org."""

import bz2
from dataclasses import dataclass, field
from pathlib import Path

from tests.pipelines.corpus.conftest import HEADER, render_page

ITALIAN = HEADER.replace("enwiki", "itwiki").replace('xml:lang="en"', 'xml:lang="it"')
ITALIAN = ITALIAN.replace("Category</namespace>", 'Categoria</namespace><namespace key="10">Template</namespace>')


@dataclass
class Edition:
    """Pages as title, namespace, text and where they lead; ``boxes`` has the titles of the articles."""

    pages: list[tuple[str, int, str, str]] = field(default_factory=list)
    boxes: dict[str, str] = field(default_factory=dict)

    def add(self, title: str, text: str, box: str = "") -> None:
        self.boxes[title] = box
        self.pages.append((title, 0, text, ""))

    def write(self, path: Path) -> Path:
        pages = [render_page(number, title, text, space, to or None)
                 for number, (title, space, text, to) in enumerate(self.pages, start=1)]  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(bz2.compress(part.encode()) for part in (ITALIAN, *pages, "</mediawiki>\n")))
        return path


def make_itwiki() -> Edition:
    wiki = Edition()
    for name, text in (
        ("Divisione amministrativa", '<includeonly>{| class="sinottico"\n! {{{Nome}}}\n|}</includeonly>'),
        ("Bio", "{{#invoke:Infobox|show}}"),
        ("Infobox linea ferroviaria", "{{Infobox|Nome={{{nome}}} }}"),
        ("Opera d'arte", "{{Divisione amministrativa|Nome={{{titolo}}} }}"),
        ("Disambigua", "<table>Pagina di disambiguazione</table>__DISAMBIG__"),
    ):
        wiki.pages.append((f"Template:{name}", 10, text, ""))
    for n in range(40):
        name = f"'''Comune {n}''' è un [[comune]] italiano. [[Persona {n}]]"
        box = f"|Nome = Comune {n}\n|Amministratore locale = [[Persona {n}]]\n|Superficie = 12.5\n}}}}\n"
        wiki.add(f"Comune {n}", f"{{{{Divisione amministrativa\n{box}{name}", "Divisione amministrativa")
        wiki.add(f"Persona {n}", f"{{{{Bio\n|Nome = Persona\n|Cognome = {n}\n}}}}\nDi [[Comune {n}]].", "Bio")
        line = f"{{{{Infobox linea ferroviaria\n|nome = Linea {n}\n|apertura = 1901\n}}}}\nDa [[Comune {n}]]."
        wiki.add(f"Linea {n}", line, "Infobox linea ferroviaria")
        art = f"{{{{Opera d'arte\n|titolo = Quadro {n}\n|artista = [[Persona 1]]\n}}}}\nA [[Linea {n}]] e [[Quadro 1]]."
        wiki.add(f"Quadro {n}", art, "Opera d'arte")
        wiki.add(f"Nome {n}", f"{{{{disambigua}}}}\n* [[Comune {n}]]\n* [[Quadro {n}]]")
    wiki.add("Ambiguo", "__DISAMBIG__\n* [[Comune 1]]")
    return wiki
