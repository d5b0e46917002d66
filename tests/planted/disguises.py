"""Other writings of names, numbers and measures, and sentences that state a relation.

Written independently of the checks, so that a plant does not depend on the check that must find it. Sentences are taken
from the wiki's own prose.
"""

import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random
from urllib.parse import quote

from pipelines.corpus.store import Corpus
from tests.planted.words import Vocabulary

Disguise = Callable[[str], str]

_CYRILLIC = str.maketrans("aeopcxyKMTBHE", "аеорсхуКМТВНЕ")
_GREEK = str.maketrans("oABEZHIKMNOPTYX", "οΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
_SMALL = str.maketrans("abcdefghijklmnoprtuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ")
_UMLAUTS = str.maketrans({"ü": "ue", "ö": "oe", "ä": "ae", "ø": "oe", "å": "aa"})
_LEET = str.maketrans("oe", "03")


def _shift(name: str, upper: int, lower: int) -> str:
    """Return a name with its ASCII letters moved to another alphabet of Unicode."""
    return "".join(
        chr(ord(char) - ord("A") + upper)
        if "A" <= char <= "Z"
        else chr(ord(char) - ord("a") + lower)
        if "a" <= char <= "z"
        else char
        for char in name
    )


def _space_letters(name: str, mark: str) -> str:
    return mark.join(name.replace(" ", ""))


def _strip_marks(name: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", name) if not unicodedata.combining(char))


def _swap_ends(name: str) -> str:
    """Return ``Kelmor, Ana`` for ``Ana Kelmor``; a name of one word stays."""
    head, _, last = name.rpartition(" ")
    return f"{last}, {head}" if head else name


DISGUISES: tuple[Disguise, ...] = (
    str.upper,
    str.lower,
    lambda name: name.replace(" ", "-"),
    lambda name: name.replace(" ", "_"),
    lambda name: name.replace(" ", ""),
    lambda name: name.replace(" ", " \n"),
    lambda name: "\u200b".join(name),
    lambda name: "\ufe0f".join(name),
    lambda name: name[:2] + "\u00ad" + name[2:],
    lambda name: "\u202e" + name + "\u202c",
    lambda name: name.translate(_CYRILLIC),
    lambda name: name.translate(_GREEK),
    lambda name: name.lower().translate(_SMALL),
    lambda name: name.translate(_UMLAUTS),
    lambda name: name.translate(_LEET),
    lambda name: unicodedata.normalize("NFD", name),
    _strip_marks,
    lambda name: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in name),
    lambda name: _shift(name, 0x1D4D0, 0x1D4EA),
    lambda name: _shift(name, 0x24B6, 0x24D0),
    lambda name: _shift(name.upper(), 0x1F170, 0x1F170),
    lambda name: "\u20dd".join(name) + "\u20dd",
    lambda name: name[0] + "\u0301" + name[1:],
    lambda name: _space_letters(name, " "),
    lambda name: _space_letters(name, "-"),
    lambda name: _space_letters(name, "."),
    lambda name: name[:3] + " " + name[3:],
    lambda name: name[:4] + "-\n" + name[4:],
    lambda name: quote(name),
    lambda name: quote(quote(name)),
    lambda name: "".join(f"&#{ord(char)};" if not char.isascii() else char for char in name),
    lambda name: "".join(f"&#x{ord(char):x};" for char in name),
    lambda name: name + "\u2019s",
    lambda name: f"\u201c{name}\u201d",
    lambda name: f"東京{name}駅",
    _swap_ends,
)
"""Each maps a name to another writing of it; where there is nothing to disguise, to itself."""


_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
_IRREGULAR = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
              "twelve": "twelfth"}  # fmt: skip
_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip
_CONVERSIONS = {
    "m": (("ft", 3.28084), ("yd", 1.0936133), ("cm", 100.0), ("km", 0.001)),
    "km": (("mi", 0.62137119), ("m", 1000.0)),
    "kg": (("lb", 2.20462262), ("g", 1000.0)),
    "km2": (("sq mi", 0.38610216), ("hectares", 100.0), ("acres", 247.105381)),
}


def spell_number(number: int) -> str:
    """Return a number below a million in words: ``one thousand two hundred and four``."""
    if number >= 1000:
        rest = f" {'and ' if number % 1000 < 100 else ''}{spell_number(number % 1000)}" if number % 1000 else ""
        return f"{spell_number(number // 1000)} thousand{rest}"
    if number >= 100:
        return f"{_ONES[number // 100]} hundred" + (f" and {spell_number(number % 100)}" if number % 100 else "")
    if number >= 20:
        return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    return _ONES[number]


def spell_ordinal(number: int) -> str:
    """Return ``twenty-first``."""
    words = spell_number(number)
    start = max(words.rfind("-"), words.rfind(" ")) + 1
    head, last = words[:start], words[start:]
    return head + (_IRREGULAR.get(last) or (last[:-1] + "ieth" if last.endswith("y") else f"{last}th"))


def spell_year(year: int) -> str:
    """Return a year as it is said: ``nineteen thirty-one``, ``nineteen oh five``, ``two thousand``."""
    century, rest = divmod(year, 100)
    if century % 10 == 0:
        return spell_number(year)
    return f"{spell_number(century)} " + (
        "hundred" if not rest else f"oh {_ONES[rest]}" if rest < 10 else spell_number(rest)
    )


def write_roman(number: int) -> str:
    """Return a number below 4000 in Roman numerals."""
    shown = ""
    for value, letters in _ROMAN:
        shown += letters * (number // value)
        number %= value
    return shown


def convert_measure(value: int, unit: str) -> tuple[str, ...]:
    """Return a whole measure in other units, to four digits or as many as it is whole with."""
    return tuple(f"{_round(value * factor)} {name}" for name, factor in _CONVERSIONS.get(unit, ()))


def _round(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


KEPT = 16
"""Corpora whose sentences are kept."""
OWN = 0.5
"""Share of its greatest frequency that a sentence must have among the values of a relation to be of it."""
_REFERENCE = re.compile(r"<ref[^>/]*/>|<ref.*?</ref>", re.DOTALL)
_SENTENCE = re.compile(r"[^\n.!?]*\[\[[^\n]*?[.!?](?=\s|$)")


def link(corpus: Corpus, node: int) -> str:
    """Return a link to an article, as prose has it."""
    title = corpus.page(node).title
    shown = title.partition(" (")[0]
    return f"[[{title}]]" if shown == title else f"[[{title}|{shown}]]"


def draw_sentence(kind: str, words: Vocabulary, rng: Random) -> str:
    """Return a sentence with blanks of a kind of ``data/wiki.toml``; added vocabularies take the held-out ones."""
    return rng.choice(_read_sentences()["open" if words.half == "open" else "held-out"][kind])


@lru_cache(maxsize=1)
def _read_sentences() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((Path(__file__).with_name("data") / "wiki.toml").read_text("utf-8"))


def state_fact(corpus: Corpus, relation: str, subject: str, target: int, rng: Random) -> str | None:
    """Return a sentence that says a relation of a new subject, worded like one of the wiki; None when it has none."""
    frames = find_statements(corpus, relation)
    if not frames:
        return None
    said = rng.choice(frames).format(subject=subject, object=link(corpus, target))
    return said[:1].upper() + said[1:]


def find_statements(corpus: Corpus, relation: str) -> tuple[str, ...]:
    """Return sentences whose only link is the value of a field, with subject and object blanked.

    A page may state several relations to one entity, so a sentence belongs to the relations where it is most frequent.
    """
    frames, pages = _count_frames(corpus)
    shares = {frame: count / pages[relation] for frame, count in frames.get(relation, {}).items()}
    return tuple(
        frame
        for frame, share in shares.items()
        if all(share >= OWN * other[frame] / pages[key] for key, other in frames.items() if frame in other)
    )


@lru_cache(maxsize=KEPT)
def _count_frames(corpus: Corpus) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Return how often each sentence stands on pages with a relation, and the number of these pages."""
    frames: dict[str, Counter[str]] = defaultdict(Counter)
    pages: Counter[str] = Counter()
    for node in corpus.article_nodes():
        for fact in corpus.facts(node):
            if fact.target >= 0 and fact.value_count == 1:
                pages[fact.key] += 1
                frame = _find_frame(corpus, node, fact.target)
                if frame is not None:
                    frames[fact.key][frame] += 1
    return frames, pages


def _find_frame(corpus: Corpus, node: int, target: int) -> str | None:
    """Return the sentence of a page, after its lead, that links to a node."""
    text, page = corpus.text(node), corpus.page(node)
    body = _REFERENCE.sub("", text[text.find("\n== ") :] if "\n== " in text else "")
    shown, name = link(corpus, target), page.title.partition(" (")[0]
    nouns = "|".join(re.escape(noun) for noun in {page.type, page.lead_type, page.lead_type.rpartition(" ")[2]} if noun)
    subject = re.compile(rf"\b[Tt]he (?:{nouns or name})\b|\b{re.escape(name)}\b|\b{re.escape(name.split()[-1])}\b")
    for match in _SENTENCE.finditer(body):
        sentence = match.group().strip()
        if sentence.count("[[") != 1 or shown not in sentence or "{" in sentence or "}" in sentence:
            continue
        frame, count = subject.subn("{subject}", sentence.replace(shown, "{object}"), count=1)
        if count and not _is_passing(sentence):
            return frame
    return None


def _is_passing(sentence: str) -> bool:
    """Say whether a sentence names two things without relating them."""
    marks = ("compare", "together with", "next to", "beside", "as well as", "against", "in one chapter", "joins",
             "diary", "correspondence", "admired", "almanac")  # fmt: skip
    return any(mark in sentence for mark in marks)
