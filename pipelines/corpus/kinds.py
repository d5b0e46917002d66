"""What kind of thing an article is about: a noun for questions, and one of six domains.

The noun comes from the infobox, because a template is a deliberate classification; the lead ("is a suspension bridge in
...") gives a finer one beside it, and names an article without an infobox, as do its title ("Battle of ...") and its
classes in Wikidata. Only known nouns name an article, those of ``data/kinds.toml``: else "originally" is one too.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from pipelines.corpus.data import read_data, read_names, split_names
from pipelines.names import fold_name

PERSON, BUILDING, LOCATION, ORGANISM, ARTIFACT, OTHER = (
    "Person",
    "Building/Place",
    "Location",
    "Organism",
    "Artifact",
    "Other",
)

_NOT_INFOBOX = {"taxobox": "species", "automatic taxobox": "taxon", "speciesbox": "species"}

_LINE_CHARACTERS = 1_200
_MOST_SENTENCES = 3
_SUBJECT_WORDS, _LATER_SUBJECT_WORDS = 30, 8
"""Most words before the verb: a longer subject is a row of a table, or says more than what its title is."""
_MOST_NOUNS = 4
"""Nouns that a sentence is asked for: "a German monk, theologian, priest and writer" has four."""
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_QUOTES = str.maketrans("", "", "\"“”'‘*")
_SENTENCE_END = re.compile(r"[.;](?:(?<=[^\W\d_]{3}.)|(?<=[\d)%].))\s+(?=[A-Z\d])")
_IS_A = re.compile(
    r"\b(?:is|was|are|were|(?:usually |generally |commonly |often )?refers? to)\s+"
    r"(?:(?:also|both|now|still|once|currently|formerly|often|generally|usually|typically|commonly|originally|perhaps"
    r"|arguably|probably|considered|to be|either|a former|any of)\s+)*"
    r"(?:(?:any (?:of (?:several|various|the)|one of)|(?:one|some|each|the first|the second|the last) of(?: the)?"
    r"|an?|the|any|each|his|her|its|their|several|various|many)\s+)?"
    r"(?P<phrase>(?:[^.;:]|\.(?=\S|\s[a-z\d])){2,240})"
)
_PHRASE_END = re.compile(
    r"\s[-–—]\s|[–—]|\s(?:in|of|by|for|from|that|which|who|whom|whose|where|when|located|situated|lying|on|at|with|to|as"
    r"|near|between|built|born|based|known|used|named|called|founded|designed|made|found|into|within|along|under|over|he"
    r"|she|it|was|is|are|were|has|had|belonging|consisting|held|having|being|during|since|against|through|per"
    r"|given|written|published|developed|produced|created|released|containing|around|than|inhabiting|serving"
    r"|directed|practi[cs]ed|throughout|across|among|above|below|just|only|also|not|applied|occurring|describing|formed"
    r"|bearing|dating|ever|so|but|because|while|after|before|about)\s"
)
_NOTICE = re.compile(
    r"(?:For (?:other|the|an?) |This (?:article|page) |Not to be confused|See also|Disambiguation"
    r"|.{1,60} redirects here|.{1,40} may (?:also )?refer to |.{1,40} is also an? )"
)
_CLAUSE = re.compile(r"(?:While|Although|Though|Before|After|Because|Since|If|When)\b")
_VERB = re.compile(r" (?:is|was|are|were|refers?) ")
_PARTS = re.compile(r"\s*(?:,|/|\s(?:and|or)\s)\s*")
_OF = re.compile(
    r"^\s(?:of|for|in|(?:given|applied)\s+to|used for)\s+"
    r"(?:(?:an?|the|about|both|either|several|various|over|more than|some|all)\s)*"
)
_OF_NOTHING = re.compile(r"^ of (?!the |an? )[a-z]")
"""What follows "a state" where it is none: "of disagreement"."""
_ASIDE = re.compile(r"^(?:In|As|On|At|For|With|Within|Among|According|During|Under|By|From)\b[^,]*,\s*")
_TOPIC = re.compile(r"^In (?:[\w-]+ )?(?P<topic>[a-z]+),")
_OF_WHAT = re.compile(r"\b(?:of|in|for)\s+(?:the\s+)?\S+")
_PRONOUN = re.compile(r"^(?:It|He|She|They|This|These)\b")
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_LIFE = re.compile(rf"\([^()]*(?:\bborn\b|(?:{_MONTH})[^()]*\d{{4}}\s*[-–—][^()]*\d{{4}})")
_HE = re.compile(r"\b(?:he|she|his|her)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_YEAR = re.compile(r"\d{1,4}s?(?: BCE?)?|\d+(?:st|nd|rd|th) (?:century|millennium)(?: BCE?)?")
_DAY = re.compile(rf"(?:{_MONTH}) \d{{1,2}}")
_CATEGORY = re.compile(r"\[\[\s*Category:\s*([^\]|]+)")


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


def choose_kind(infobox_kind: str, lead_kind: str, title_kind: str = "") -> str:
    """Return the noun questions use: the infobox's, or the lead's where that is a known kind of a broad infobox noun.

    ``Infobox settlement`` says "place" of cities, towns and islands alike; a question is clearer with the lead's word.
    An article without an infobox is named by its lead if that is a known noun, else by its title. What the title calls
    by a topic ("History of Angola") is that whatever the lead begins with.
    """
    if not infobox_kind:
        by_title = title_kind in read_names("kinds", "topics") or not is_known(lead_kind)
        return title_kind if by_title else lead_kind
    finer = infobox_kind in read_names("kinds", "broad") and find_domain(lead_kind) != OTHER
    return lead_kind if finer else infobox_kind


def choose_class_kind(kind: str, classes: Iterable[str], boxed: bool) -> str:
    """Return the noun of an entity's classes in Wikidata (P31), or its page's own where that says the same or more.

    Leads call Saudi Arabia a god. But "novelist" says more than "person", and an infobox is as deliberate as a class.
    """
    nouns = [str(noun) for qid in classes if (noun := read_data("kinds")["classes"].get(qid))]
    broad, general = (read_names("kinds", name) for name in ("broad", "broad_classes"))
    for noun in nouns:
        near = find_domain(noun) == find_domain(kind) != OTHER
        if noun == kind or (near and (boxed or noun in broad | general)) or (is_abstract(noun) and is_abstract(kind)):
            return kind
    return nouns[0] if nouns else kind


def find_domain(kind: str, lead_kind: str = "") -> str:
    """Return the domain of a noun, else that of the lead's noun, else ``Other``."""
    domains = _map_domains()
    words = (word for noun in (kind, lead_kind) for word in (noun, noun.rpartition(" ")[2]))
    return next((domains[word] for word in words if word in domains), OTHER)


def is_abstract(kind: str) -> bool:
    """Say whether a noun names what no picture shows: a theory, a language, a period."""
    abstract = read_names("kinds", "abstract")
    return kind in abstract or (kind not in _list_known() and kind.rpartition(" ")[2] in abstract)


@cache
def list_hubs() -> frozenset[str]:
    """Return the nouns of hubs: articles that are no seed and no step of a walk, whatever links to them."""
    return read_names("kinds", "hubs")


def list_kinds() -> frozenset[str]:
    """Return all known nouns: in lower case, the titles of articles about a kind of thing."""
    return _list_known()


@cache
def _map_domains() -> dict[str, str]:
    listed = read_data("kinds")["domains"].items()
    return {noun: domain for domain, nouns in reversed(listed) for noun in split_names(nouns)}


@cache
def _list_known() -> frozenset[str]:
    listed = (read_names("kinds", "abstract"), read_names("kinds", "general"), read_data("kinds")["renamed"])
    return frozenset(_map_domains()).union(*listed)


def is_known(kind: str) -> bool:
    """Say whether a noun is one of the known ones."""
    return kind in _list_known() or kind in read_data("kinds")["renamed"].values()


def name_lead_kind(lead: str, title: str = "") -> str:
    """Return the noun of a lead, singular and lower case; empty when none is found.

    "The Kelm Bridge is a suspension bridge over ..." gives ``bridge``, "is a species of bird" ``bird``. Read are the
    sentences that name the title before their verb, and, after one, those that begin with a pronoun. The noun is a
    known one, the longest that ends a phrase, or else what the first of these sentences calls its subject.
    """
    sentences = [sentence for sentence, _ in zip(_list_sentences(lead, title), range(_MOST_SENTENCES), strict=False)]
    first = _read_sentence(sentences[0]) if sentences else ""
    if first and not is_abstract(first):
        return first
    if any(_LIFE.search(line[:300]) and _HE.search(line) and _names(line[:60], title) for line in lead.split("\n")):
        return "person"
    title_kind = name_title_kind(title)
    if title_kind and not is_abstract(title_kind):
        return title_kind
    later = map(_read_sentence, sentences[1:])
    found = first or next((noun for noun in later if noun and not is_abstract(noun)), "")
    if found:
        return found
    topic = _TOPIC.match(sentences[0]) if sentences else None
    return "concept" if topic and is_abstract(topic["topic"]) else next(filter(None, map(_read_unknown, sentences)), "")


def _list_sentences(lead: str, title: str) -> Iterator[str]:
    named = False
    for line in lead.split("\n"):
        if not _VERB.search(line) or _NOTICE.match(line):
            continue
        opened = bool(title) and f"({title}" in line[:200]
        for sentence in _SENTENCE_END.split(_drop_asides(line[:_LINE_CHARACTERS])):
            verb = _IS_A.search(sentence)
            most = _LATER_SUBJECT_WORDS if named else _SUBJECT_WORDS
            if verb and sentence.count(" ", 0, verb.start()) <= most and not _CLAUSE.match(sentence):
                subject = _ASIDE.sub("", sentence[: verb.start()])
                if opened or _names(subject, title) or (named and _PRONOUN.match(sentence)):
                    named = True
                    yield sentence
            opened = False


def name_title_kind(title: str) -> str:
    """Return the known noun that a title holds, or an empty string.

    It is the year or day itself, the head before "of" ("Battle of ..."), a first word such as "Lake", the last word
    ("... Bridge"), or what stands in brackets ("Ceres (dwarf planet)").
    """
    plain, _, note = title.partition(" (")
    if _YEAR.fullmatch(plain) or _DAY.fullmatch(plain):
        return "year"
    plain = plain.partition(",")[0]
    first, _, inner = plain.partition(" ")
    before, of, _ = plain.partition(" of ")
    topic = _find_known(re.split(r" (?:of|in|and|on) ", plain)[0])
    if topic in read_names("kinds", "topics") and (topic == first.lower() or (inner and topic in plain)):
        return topic
    note_kind = _find_known(note.rstrip(")"))
    if note_kind and not is_abstract(note_kind):
        return note_kind
    if first.lower() in read_data("kinds")["first_words"] and inner[:1].isupper():
        return str(read_data("kinds")["first_words"][first.lower()])
    return _find_known(before if of else plain) if inner else ""


def name_category_kind(text: str) -> str:
    """Return the noun of the first category of a wikitext that holds a known one, or an empty string.

    "Suspension bridges in Varn" gives ``bridge``, "1815 births" ``person``.
    """
    for name in _CATEGORY.findall(text):
        noun = _find_known(re.split(r" (?:of|in|by|from|for|at|on) ", name)[0])
        if noun:
            return noun
    return ""


def _drop_asides(paragraph: str) -> str:
    while "(" in paragraph or "[" in paragraph:
        paragraph, count = _BRACKETS.subn("", paragraph)
        if not count:
            break
    return " ".join(paragraph.translate(_QUOTES).split())


def _names(subject: str, title: str) -> bool:
    if " of " not in title:
        subject = _OF_WHAT.sub("", subject)
    stems = {word[:4] for word in _WORD.findall(fold_name(title)) if len(word) > 1}
    own = {word[:4] for word in _WORD.findall(fold_name(subject))}
    return not stems or not stems.isdisjoint(own)


def _read_sentence(sentence: str) -> str:
    verb = _IS_A.search(sentence)
    while verb is not None:
        noun = _read_phrase(verb["phrase"] + " ")
        if noun:
            return noun
        verb = _IS_A.search(sentence, verb.start("phrase"))
    return ""


def _read_phrase(phrase: str) -> str:
    end = _PHRASE_END.search(phrase)
    head, rest = (phrase[: end.start()], phrase[end.start() :]) if end else (phrase, "")
    for part in _PARTS.split(head + " ")[:_MOST_NOUNS]:
        found = _find_known(part)
        if found in read_names("kinds", "abstract_of") and _OF_NOTHING.match(rest):
            return "concept"
        found = _read_inner(part, rest) or found
        if found:
            return found
    return ""


def _read_inner(part: str, rest: str) -> str:
    words = _list_words(part)
    head = make_singular(words[-1]) if words else ""
    joined = f"{head}{' '.join(rest.split(' ')[:3])}"
    if rest.startswith(" of ") and joined in _list_known():
        return joined
    if head not in read_names("kinds", "hollow_heads"):
        return ""
    of = _OF.match(rest)
    # "A body in the United Kingdom" is no kingdom: what is meant stands in small letters.
    inner = _read_phrase(rest[of.end() :]) if of else ""
    inner = inner if inner.split(" ")[-1][:3] in rest else ""
    if head == "member" and find_domain(inner) != ORGANISM:
        inner = ""
    modified = head in read_names("kinds", "modified_heads")
    return inner or (_find_known(" ".join(words[:-1])) if modified else "")


def _list_words(part: str) -> list[str]:
    words = _WORD.findall(part)
    named = any(word.islower() for word in words)
    while named and words[-1][0].isupper() and not _knows(words[-1]):
        words.pop()
    if words and not _knows(words[-1]):
        words = words[: next((n for n, word in enumerate(words) if n and _is_no_noun(word)), len(words))]
    return [word.lower() for word in words]


def _knows(word: str) -> bool:
    return word.lower() in _list_known() or make_singular(word.lower()) in _list_known()


def _find_known(part: str) -> str:
    words = _list_words(part)
    for start in range(max(len(words) - 3, 0), len(words)):
        for last in (words[-1], make_singular(words[-1])):
            noun = " ".join([*words[start:-1], last])
            if noun in _list_known():
                return str(read_data("kinds")["renamed"].get(noun, noun))
    return ""


def _read_unknown(sentence: str) -> str:
    verb = _IS_A.search(sentence)
    if verb is None:
        return ""
    end = _PHRASE_END.search(verb["phrase"] + " ")
    words = _WORD.findall(_PARTS.split(verb["phrase"][: end.start()] if end else verb["phrase"])[0])
    while words and _is_no_noun(words[-1]):
        words.pop()
    found = make_singular(words[-1]) if words and words[-1].islower() else ""
    return "" if found in read_names("kinds", "hollow_heads") else found


def _is_no_noun(word: str) -> bool:
    return word in read_names("kinds", "no_nouns") or (
        word.endswith(("ed", "ing", "ly")) and len(word) > 4 and word not in ("breed", "seed", "weed", "family")
    )


def make_singular(noun: str) -> str:
    """Return the singular of an English plural; other words come back as they are."""
    irregular = read_data("kinds")["singulars"]
    if noun in irregular:
        return str(irregular[noun])
    if noun in read_names("kinds", "hollow_heads") or len(noun) < 4 or noun.endswith(("ss", "us", "is")):
        return noun
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    if noun.endswith(("ches", "shes", "xes", "sses", "oes")):
        return noun[:-2]
    return noun.removesuffix("s")
