"""Facts as qualifiers of a noun, which of them a descriptor may use, and how several clauses follow one noun."""

import re
from collections.abc import Sequence

from pipelines.backends.phrases import find_attribute, split_key
from pipelines.backends.phrases_nouns import choose_article, choose_pronoun
from pipelines.ids import draw_unit
from schemas.tasks import FactView, HopView

WEAK = 2
"""Highest grade of a fact that many entities share."""
EXACT = 4
"""Lowest grade of a fact that few entities share."""

_MAX_FACT_WORDS = 6
_UNSAFE = re.compile(r"[\[\]{}<>|?;“”\"\n\ue000-\uf8ff]|\.\.|http|_")
_DAY = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?,? +(?:of +)?[A-Z][a-z]+|\b[A-Z][a-z]+ +\d{1,2}\b(?!\d)|^\d{4}-\d\d-\d\d$")
_CENTURY = re.compile(r"\bcentury\b")
_DECADE = re.compile(r"^\d{1,4}s\b")
_YEAR = re.compile(r"^\d{1,4}(?: (?:BC|AD))?$")
_NAMING = (
    "name names fullname nickname nicknames title caption image logo alt map flag coat signature website url "
    "homepage coordinates coord footnotes footnote ref isbn oclc issn code abbreviation acronym demonym alias "
    "aliases module embed pseudonym taxon binomial synonyms"
)
_RELATIVE = re.compile(r"^(?:who|whom|that|whose|where|\w+ (?:which|whom)) ")
_PARTICIPLE = re.compile(
    r"^(?:first |last )?(?:\w+ed|\w+ing|born|built|made|held|kept|run|led|shot|cut|found|written|taught|known|set"
    r"|fought|broadcast|begun|flown) "
)


def qualify_fact(fact: FactView, object_type: str) -> str:
    """Return a fact as a phrase that follows a noun: ``born in the 1870s``, ``who played the lute``."""
    value = " ".join(fact.text.split())
    row = find_attribute(fact.relation, object_type)
    if row is None or not row.qualifier:
        return f"whose {split_key(fact.relation)} is {value}"
    if row.form != "date":
        qualifier = row.qualifier.replace("{a}", choose_article(value)).replace("{who}", choose_pronoun(object_type))
        return qualifier.replace("{v}", value)
    if _CENTURY.search(value) or _DECADE.search(value):
        return f"{row.qualifier} in the {value}"
    return f"{row.qualifier} {'on' if _DAY.search(value) else 'in'} {value}"


def grade_fact(fact: FactView, object_type: str) -> int:
    """Return how few entities share a fact like this: 0 for a word, 1 a century, 2 a decade, 3 a year, then exact."""
    row = find_attribute(fact.relation, object_type)
    if _CENTURY.search(fact.text):
        return 1
    if _DECADE.search(fact.text):
        return 2
    if row is None:
        return 5
    if row.form == "date":
        return 5 if _DAY.search(fact.text) else 3 if _YEAR.search(fact.text) else 4
    return 0 if row.form == "word" else 4


def list_usable_facts(hop: HopView, facts: Sequence[FactView], variety: str) -> list[FactView]:
    """Return the facts that may be said of a hop's object, those that many entities share first.

    A fact is left out when its text is long, holds markup, may hold the object's name, or its key names things.
    """

    def rank(fact: FactView) -> tuple[int, float]:
        return grade_fact(fact, hop.object_type), draw_unit("fact", variety, fact.relation, fact.text)

    return sorted((fact for fact in facts if _is_usable(hop, fact)), key=rank)


def add_clauses(noun: str, qualifiers: Sequence[str], tails: Sequence[str]) -> list[str]:
    """Return noun phrases that end with one of the tails, all qualifiers before it.

    Prepositional phrases come first, then participles, then relative clauses, and clauses of one sort are joined by
    ``and``: ``the painter born in the 1870s who died in Oster and studied at [subject]``. A qualifier about the
    event of the tail goes into it: ``founded in 1871 by [subject]``. A tail that cannot follow the qualifiers is left
    out.
    """
    phrases: list[str] = []
    clumsy: list[str] = []
    for tail in tails:
        merged, rest = _merge_event(qualifiers, tail)
        relative = [clause for clause in rest if _RELATIVE.match(clause)]
        participles = [clause for clause in rest if _PARTICIPLE.match(clause) and clause not in relative]
        near = [clause for clause in rest if clause not in relative and clause not in participles]
        if _RELATIVE.match(merged):
            relative.append(merged)
        elif rest and (relative or not _PARTICIPLE.match(merged)):
            continue
        else:
            participles.append(merged)
        parts = [noun, *near, _join_clauses(participles), _join_clauses(_elide_pronouns(relative))]
        # "born in the 1870s who was born in Oster" says one thing twice.
        said = {word for clause in participles[:1] for word in clause.split()[:2]} - {"first", "last", "in", "on"}
        (clumsy if said & set(merged.split()) and rest else phrases).append(" ".join(part for part in parts if part))
    return phrases or clumsy


def _merge_event(qualifiers: Sequence[str], tail: str) -> tuple[str, list[str]]:
    """Return the tail with the date of its own event, and the other qualifiers."""
    for index, clause in enumerate(qualifiers):
        found = re.match(r"(.*?) (?=(?:on|in) )", clause)
        if found and tail.startswith(f"{found[1]} "):
            return f"{clause}{tail[len(found[1]) :]}", [*qualifiers[:index], *qualifiers[index + 1 :]]
    return tail, list(qualifiers)


def _elide_pronouns(clauses: Sequence[str]) -> list[str]:
    """Drop ``who`` or ``that`` from all clauses but the first when it is the subject of each."""
    pronouns = {re.match(r"(?:(who|that) (?!\[))?", clause)[1] for clause in clauses}  # type: ignore[index]
    if len(pronouns) != 1 or None in pronouns:
        return list(clauses)
    return [clauses[0], *(clause.partition(" ")[2] for clause in clauses[1:])]


def _join_clauses(clauses: Sequence[str]) -> str:
    *first, last = clauses or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _is_usable(hop: HopView, fact: FactView) -> bool:
    words = fact.text.split()
    if not 1 <= len(words) <= _MAX_FACT_WORDS or _UNSAFE.search(fact.text):
        return False
    if set(_NAMING.split()) & set(split_key(fact.relation).split()):
        return False
    spoken = {word.strip(".,()'’").casefold() for word in words}
    return not any(part.casefold() in spoken for part in re.findall(r"\w{4,}", hop.object_name))
