"""Words of the benches, in two halves: one to look at while checks are written, one held out.

A check that was tuned on its own test words measures its author. The held-out half has other sounds, other sentences
and other type words, and the benches report the halves apart. No word is taken from the toy world or from the checks.
"""

from dataclasses import dataclass
from random import Random
from typing import Literal

Half = Literal["open", "held-out"]
HALVES: tuple[Half, Half] = ("open", "held-out")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What one half draws from."""

    half: Half
    starts: tuple[str, ...]
    middles: tuple[str, ...]
    ends: tuple[str, ...]
    given: tuple[str, ...]
    types: tuple[str, ...]
    """Nouns that a title may end with and a question may use."""
    questions: tuple[str, ...]
    """Sentences with ``{ref}`` for the anchor and ``{type}`` for another noun; they hold no digits or number words."""
    words: tuple[str, ...]
    """Common-noun answers."""


OPEN = Vocabulary(
    "open",
    ("Brel", "Dov", "Fenz", "Gork", "Havl", "Jusk", "Krim", "Lomb", "Nadr", "Pels", "Rov", "Sten", "Tuv", "Vask"),
    ("a", "o", "ei", "u", "ar", "en", "il"),
    ("rov", "mick", "dal", "nest", "zig", "tham", "lund", "vik", "\u0159ek", "s\u00f8", "\u0142ow", "n\u00e9"),
    ("Orla", "Tomek", "Brid", "Ansgar", "Lida", "Ottmar"),
    ("Bridge", "Castle", "Museum", "Theatre", "Tower", "Lighthouse"),
    (
        "What is the height of {ref}?",
        "Who designed the {type} that stands next to {ref}?",
        "On what date was the architect of {ref} born?",
        "Which material was used for the {type} built by the owner of {ref}?",
        "In the town where {ref} stands, how many people live there according to the page?",
    ),
    ("pale green", "cast iron", "baroque", "spruce timber", "geodesy", "alto flute"),
)
HELD_OUT = Vocabulary(
    "held-out",
    ("Aqu", "Cyth", "Eld", "Iph", "Menz", "Ochr", "Quil", "Syrr", "Thal", "Umb", "Wyx", "Xan", "Yth", "Zeph"),
    ("io", "ae", "y", "uo", "ess", "ith", "ong"),
    ("mara", "phon", "quet", "bryn", "dottir", "oglu", "wen", "ssi", "\u015fi", "\u0111o", "\u00f1a", "\u00e6l"),
    ("Ysolde", "Quirin", "Zenon", "Fairuz", "Ignace", "Wilhelmina"),
    ("Abbey", "Reservoir", "Stadium", "Railway", "Fountain", "Observatory"),
    (
        "According to its page, when did {ref} open?",
        "Name the person after whom the {type} beside {ref} was named.",
        "The founder of the company that owns {ref} died in what month and year?",
        "How long is the river crossed near {ref}, measured to its mouth?",
        "Which style is given for the {type} by the engineer who also planned {ref}?",
    ),
    ("brick red", "soapstone", "art deco", "larch shingle", "limnology", "bass clarinet"),
)
BY_HALF: dict[Half, Vocabulary] = {"open": OPEN, "held-out": HELD_OUT}


def invent_word(words: Vocabulary, rng: Random) -> str:
    """Return an invented proper word of two or three syllables, at least six letters long."""
    middle = rng.choice(words.middles) if rng.random() < 0.6 else ""
    word = rng.choice(words.starts) + middle + rng.choice(words.ends)
    return word if len(word) >= 6 else word + rng.choice(words.middles) + "m"


def invent_person(words: Vocabulary, rng: Random) -> str:
    """Return an invented full name."""
    return f"{rng.choice(words.given)} {invent_word(words, rng)}"


def invent_title(words: Vocabulary, rng: Random) -> str:
    """Return an invented page title: a person, a thing with its type word, or either with a qualifier."""
    shape = rng.randrange(4)
    if shape == 0:
        return invent_person(words, rng)
    title = f"{invent_word(words, rng)} {rng.choice(words.types)}"
    return f"{title} ({invent_word(words, rng)})" if shape == 1 else title


def write_question(words: Vocabulary, rng: Random, reference: str) -> str:
    """Return a question that refers to the anchor by ``reference``."""
    return rng.choice(words.questions).format(ref=reference, type=rng.choice(words.types).lower())
