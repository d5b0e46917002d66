"""What kind of thing an article is about: a noun for questions, and one of six domains.

The noun comes from the infobox, because a template is a deliberate classification; the lead sentence ("is a suspension
bridge in ...") gives a finer one beside it.
"""

import re
from functools import cache

from pipelines.corpus.data import read_data, read_names, split_names

PERSON, BUILDING, LOCATION, ORGANISM, ARTIFACT, OTHER = (
    "Person",
    "Building/Place",
    "Location",
    "Organism",
    "Artifact",
    "Other",
)

_NOT_INFOBOX = {"taxobox": "species", "automatic taxobox": "taxon", "speciesbox": "species"}

_IS_A = re.compile(
    r"\b(?:is|was|are|were)\s+(?:(?:also|now|still|once|currently|formerly|often|generally|usually)\s+)?"
    r"(?:an?|the|one of the|any of several|any of various)\s+(?P<phrase>[^.;:()\[\]]{2,160})"
)
_PHRASE_END = re.compile(
    r",|\s[-–—]|\s(?:in|of|by|for|from|that|which|who|whose|where|when|located|situated|lying|and|or|on|at|with|to|as|near"
    r"|between|built|born|based|known|used|named|called|founded|designed|made|found|into|within|along|under|over|he|she"
    r"|it|was|is|are|were|has|had|native|belonging|consisting|held|having|being|during|since|against|through|per)\s"
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


def name_infobox_kind(template: str) -> str:
    """Return the noun of an infobox template: ``Infobox bridge`` gives ``bridge``, ``Infobox settlement`` ``place``.

    Templates that only spell a name give an empty string.
    """
    name = template.lower()
    for start, noun in _NOT_INFOBOX.items():
        if name.startswith(start):
            return noun
    kind = name.removeprefix("infobox").partition("/")[0].strip(" -").removesuffix(" begin").strip()
    return "" if kind in read_names("kinds", "name_boxes") else str(read_data("kinds")["infoboxes"].get(kind, kind))


def choose_kind(infobox_kind: str, lead_kind: str) -> str:
    """Return the noun questions use: the infobox's, or the lead's where that is a known kind of a broad infobox noun.

    ``Infobox settlement`` says "place" of cities, towns and islands alike; a question is clearer with the lead's word.
    An article without an infobox is named by its lead, if that is a known noun at all: else "originally" is one too.
    """
    known = find_domain(lead_kind) != OTHER
    if not infobox_kind:
        return lead_kind if known or lead_kind in read_names("kinds", "general") else ""
    return lead_kind if infobox_kind in read_names("kinds", "broad") and known else infobox_kind


def find_domain(kind: str, lead_kind: str = "") -> str:
    """Return the domain of a noun, else that of the lead's noun, else ``Other``."""
    domains = _map_domains()
    words = (word for noun in (kind, lead_kind) for word in (noun, noun.rpartition(" ")[2]))
    return next((domains[word] for word in words if word in domains), OTHER)


@cache
def _map_domains() -> dict[str, str]:
    """Return the domain of each known noun: the first that lists it."""
    listed = read_data("kinds")["domains"].items()
    return {noun: domain for domain, nouns in reversed(listed) for noun in split_names(nouns)}


def name_lead_kind(lead: str) -> str:
    """Return the head noun of a lead sentence, singular and lower case, one word or two; empty when none is found.

    "The Kelm Bridge is a suspension bridge over ..." gives ``bridge``, "is a species of bird" gives ``bird``.
    """
    match = _IS_A.search(lead[:600])
    if match is None:
        return ""
    phrase = match.group("phrase") + " "
    noun, rest = "", phrase
    # "a small, carnivorous mammal": what stands before the comma has no noun yet.
    for _ in range(3):
        end = _PHRASE_END.search(rest)
        head, rest = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
        noun = _find_head(head)
        if noun or not rest.startswith(","):
            break
        rest = rest[1:]
    if noun in read_names("kinds", "hollow_heads") and rest.startswith(" of "):
        inner = re.sub(r"^ of (?:(?:an?|the)\s)?", "", rest)
        inner_end = _PHRASE_END.search(inner)
        noun = _find_head(inner[: inner_end.start()] if inner_end else inner) or noun
    return noun


def _find_head(phrase: str) -> str:
    words = _WORD.findall(phrase)
    while words and _is_no_noun(words[-1]):
        words.pop()
    if not words or words[-1][0].isupper():
        return ""
    head = make_singular(words[-1].lower())
    if head in read_names("kinds", "compound_heads") and len(words) > 1 and words[-2].islower():
        return f"{words[-2]} {head}"
    return head


def _is_no_noun(word: str) -> bool:
    """Return whether a word can end a phrase without being its head: a participle or an adjective."""
    return word in read_names("kinds", "no_nouns") or (
        word.endswith("ed") and len(word) > 4 and word not in ("breed", "seed", "weed")
    )


def make_singular(noun: str) -> str:
    """Return the singular of a regular English plural; other words come back as they are."""
    if (
        noun in read_names("kinds", "hollow_heads")
        or noun.endswith(("series", "species"))
        or len(noun) < 4
        or noun.endswith(("ss", "us", "is"))
    ):
        return noun
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    if noun.endswith(("ches", "shes", "xes", "sses")):
        return noun[:-2]
    return noun.removesuffix("s")
