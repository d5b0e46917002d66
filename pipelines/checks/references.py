"""How a final question points to its picture: by the anchor's type, by a broader word, and never by a narrower one.

That the picture is needed was counted over all entities of the anchor's type (N_img). Whatever narrows the reference,
an adjective, a number, a superlative, a clause, tells what the picture alone should tell, and the count does not hold.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pipelines.checks.verdicts import PASSED, CheckResult

_SHOWN = (
    r"(?:shown|pictured|depicted|seen|visible|displayed|portrayed|presented|featured|represented|photographed"
    r"|illustrated|captured|appearing)"
)
_PICTURE = r"(?:image|picture|photo|photograph|snapshot|illustration)(?!\w)"
_THE_PICTURE = rf"(?:the|this|that) (?:(?:given|attached|accompanying|provided|above|input) )?{_PICTURE}"
_RELATIVE = r"(?:,? (?:that|which|who|whom) (?:(?:is|was|can be|appears|we see|you see|you can see) )?|,? as | )"
_POINTERS = re.compile(
    rf"{_RELATIVE}(?:{_SHOWN} (?:in|on|by|from)|in|from|(?<=subject )of) {_THE_PICTURE}"
    rf"|{_RELATIVE}{_SHOWN} (?:here|above|below)(?!\w)"
    rf"| (?:pictured|shown|depicted|photographed)(?=[?.,;:])"
    rf"|(?: that| which| whom)? {_THE_PICTURE} (?:shows|depicts|portrays)(?!\w)",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\b(?:the|this|that) (?:pictured|depicted|photographed|shown) (?=\w)", re.IGNORECASE)
"""``The pictured bridge``: what points stands before the noun."""
_DETERMINERS = frozenset("the this that a an its his her their".split())
_NEUTRAL = frozenset("same very particular specific given entire whole".split())
_WINDOW = 96
"""Characters before a pointer in which its noun is looked for."""
_WORDS = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]")
_ADDED = re.compile(
    r"[,(]? ?(which|who|whose|that|where|with|wearing|holding|carrying)(?= )"
    r"(?! (?:is|was|are) (?:shown|pictured|depicted))"
    r"|[,(] ?(?:located|situated|built|founded|constructed|erected|born|known) (?:in|on|at|by|near|over|as) "
)
"""What is said of the subject. Participles need their comma, and those that may be the question's verb do not count:
``which museum, which stands near the bridge in the image, opened in``."""
_NAMED_KIND = re.compile(r"[,(] ?(?:an?|one of the) ([\w'’ -]{1,60}?)(?=[,?.)])")
_APPOSITION = re.compile(r"[,(] ?(?:a|an|the|one of the) ((?:[\w'’-]+ ?){1,6})")
_HEAD_END = re.compile(r" (?:of|in|for|from|at|on|by|and|or|with|near) |,")
_QUOTED = re.compile(r"“[^“”]*”")
_SPECIES_OF = re.compile(r"^(?:species|genus|breed|kind|type) of ")

_ANY = frozenset("thing subject entity object sight".split())
_PERSON = frozenset(("person", "individual", "human", "human being", "public figure", "figure"))
_BROADER_TEXT = """
place, location, site, spot: town city village settlement municipality commune suburb district country region state
 province county island lake river mountain hill valley volcano waterfall bay beach cape forest park garden square
 street bridge tower museum theatre theater stadium lighthouse castle church cathedral temple palace abbey monastery
 mosque fort
 university school library hospital station airport harbour port cemetery zoo house building monument ruin
building: museum theatre theater stadium lighthouse castle church cathedral temple palace abbey monastery mosque fort
 tower library hospital station house hotel school university
structure, landmark, construction: bridge tower lighthouse dam tunnel viaduct aqueduct pier monument castle museum
 theatre theater stadium church cathedral temple palace fort building mill
settlement, community: town city village municipality commune suburb hamlet
region, area, territory: country state province county district island
geographical feature, landform, natural feature: island lake river mountain hill valley volcano waterfall bay cape
water, body of water: lake river bay sea waterfall
waterway: river canal
organisation, organization, institution: company university school college museum newspaper band orchestra club theatre
 theater library gallery hospital government agency
business, firm, enterprise: company manufacturer publisher brewery airline newspaper
publication: newspaper magazine journal book novel
work, creative work, creation: film book novel painting opera album song play sculpture poem artwork
artwork, work of art, art work: painting sculpture drawing fresco
event, occasion: battle festival war competition ceremony tournament election
conflict: battle war siege
animal: beetle bird fish insect mammal butterfly moth
insect: beetle butterfly moth
plant: orchid
organism, living thing, creature, taxon: species animal plant beetle bird orchid fish insect mammal
vehicle: ship car locomotive aircraft train tram bus vessel
vessel: ship boat
device, instrument, artefact, artifact, item: telescope clock helmet sword camera artifact watch machine ship
"""


def _index_broader() -> dict[str, frozenset[str]]:
    index: dict[str, frozenset[str]] = {}
    for line in _BROADER_TEXT.replace("\n ", " ").strip().splitlines():
        broad, _, heads = line.partition(":")
        for word in broad.split(","):
            index[word.strip()] = frozenset(heads.split())
    return index


_BROADER = _index_broader()
"""Broader words, and the heads of the types for which each may stand."""
_THINGS = frozenset(head for heads in _BROADER.values() for head in heads)


@dataclass(frozen=True, slots=True)
class Reference:
    """One place where a question points to its picture."""

    noun: str
    """What it calls what is to be seen, with all that stands before the head, in lower case; empty if nothing."""
    after: str
    """How the text goes on, in lower case."""


def check_reference(text: str, anchor_type: str, known_types: Collection[str]) -> CheckResult:
    """Check how a final question points to its picture.

    Args:
        text: the question.
        anchor_type: the type over which the need for the picture was counted, empty where it has none.
        known_types: types of the corpus; one that is narrower than the anchor's may not be added in apposition.

    Returns:
        FAIL ``reference-missing`` when no phrase points to the picture, or the text is no question that holds together;
        FAIL ``reference-narrower`` when one says more than the type, or something else.
    """
    incoherent = find_incoherence(text)
    if incoherent:
        return CheckResult("FAIL", "reference-missing", f"{incoherent} in {text!r}")
    references = list(find_references(text))
    if not any(reference.noun for reference in references):
        return CheckResult("FAIL", "reference-missing", f"{text!r} does not say what to look at in the image")
    for reference in references:
        if reference.noun and not is_no_narrower(reference.noun, anchor_type):
            return _refuse_narrower(f"{reference.noun!r} is not {anchor_type!r} or a broader word")
        added = _find_added(reference, anchor_type, known_types)
        if added:
            return _refuse_narrower(f"{added!r} is said of the {reference.noun} in the image")
    return PASSED


def find_references(text: str) -> Iterator[Reference]:
    """Yield the places where a text points to a picture, in order."""
    flat = " ".join(text.split())
    for found in _POINTERS.finditer(flat):
        noun = _read_noun(flat[max(0, found.start() - _WINDOW) : found.start()])
        yield Reference(noun, flat[found.end() :][:_WINDOW].casefold())
    for found in _BEFORE.finditer(flat):
        words = _WORDS.findall(flat[found.end() :][:_WINDOW].casefold())
        yield Reference(words[0] if words else "", "")


def is_no_narrower(noun: str, anchor_type: str) -> bool:
    """Say whether a noun phrase means any entity of a type, or more than those: the type, its head, a broader word."""
    words = [word for word in noun.split() if word not in _NEUTRAL]
    said, kind = " ".join(words), " ".join(anchor_type.casefold().split())
    whole = _SPECIES_OF.sub("", kind)
    phrase = _HEAD_END.split(whole, maxsplit=1)[0]
    parts = phrase.split()
    if said in {kind, whole, *(" ".join(parts[start:]) for start in range(len(parts)))} or said in _ANY:
        return True
    head = parts[-1] if parts else ""
    if said in _PERSON:
        return head not in _THINGS and said != head
    return head in _BROADER.get(said, frozenset())


def find_incoherence(text: str) -> str:
    """Return why a text is no question that holds together, empty if nothing is found."""
    if not text.rstrip().rstrip("\"'”’)").endswith("?"):
        return "no question mark at the end"
    # A quoted sentence is a page's, with a gap in it or not.
    own = _QUOTED.sub("“”", text)
    slot = re.search(r"\[[a-z_ ]+\]|\{\w*\}|<\w+>|__+", own)
    if slot:
        return f"the place {slot[0]!r} was not filled"
    if not _is_balanced(own):
        return "a bracket without its pair"
    # Names such as Bora Bora repeat a word, and so does "the place that that river"; articles never do.
    doubled = re.search(r"(?<![\w'’-])(?!that |had )([a-z]+) \1(?![\w'’-])|\b(?:the|an?) (?:the|this|an?)\b", own)
    if doubled:
        return f"{doubled[0]!r}"
    stray = re.search(r" [,;?]|,,|\(\s*\)|\? *\?", own)
    return f"{stray[0]!r}" if stray else ""


def _is_balanced(text: str) -> bool:
    expected: list[str] = []
    for letter in text:
        if letter in "([{":
            expected.append({"(": ")", "[": "]", "{": "}"}[letter])
        elif letter in ")]}" and (not expected or expected.pop() != letter):
            return False
    return not expected


def _read_noun(before: str) -> str:
    """Return the noun phrase at the end of a text, without its article; empty if there is none."""
    words = _WORDS.findall(before.casefold())
    for place in range(len(words) - 1, -1, -1):
        if words[place] in _DETERMINERS:
            return " ".join(words[place + 1 :])
        if not words[place][0].isalnum():
            break
    return ""


def _find_added(reference: Reference, anchor_type: str, known_types: Collection[str]) -> str:
    """Return what the text goes on to say of what is to be seen, empty if nothing is."""
    clause = _ADDED.match(reference.after)
    if clause and (clause[1] != "who" or _may_be_person(anchor_type)):
        return reference.after.strip()
    head = (anchor_type.casefold().split() or [""])[-1]
    named = _NAMED_KIND.match(reference.after)
    if named and named[1].endswith(f" {head}"):
        return named[1]
    apposed = _APPOSITION.match(reference.after)
    if apposed:
        starts = apposed[1].split()
        phrases = {" ".join(starts[:count]) for count in range(1, len(starts) + 1)}
        narrower = (kind for kind in map(str.casefold, known_types) if kind.endswith(f" {head}") and kind in phrases)
        return next(narrower, "")
    return ""


def _may_be_person(anchor_type: str) -> bool:
    head = _HEAD_END.split(anchor_type.casefold(), maxsplit=1)[0].split()[-1:]
    return not head or head[0] not in _THINGS


def _refuse_narrower(detail: str) -> CheckResult:
    return CheckResult("FAIL", "reference-narrower", detail)
