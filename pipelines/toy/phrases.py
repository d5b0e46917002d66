"""Words for the writer: tables of ``phrases.toml``, nouns and their kinds, keys, and facts as qualifiers of a noun.

The tables hold the keys of the toy world. Any other key is said in its own words, which is clumsy but true.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, TypeVar

from pipelines.ids import digest_value, draw_unit
from schemas.tasks import FactView, HopView

SLOT = "{s}"
WEAK = 2
"""Highest grade of a fact that many entities share."""
EXACT = 4
"""Lowest grade of a fact that few entities share."""
AGENTS = frozenset(("owner", "operator", "maker", "publisher", "builder", "employer"))
"""Nouns for a person or an organisation, whichever it is."""

_QUALIFIERS = {"date": "", "number": "{who} has {a} {noun} of {v}", "word": "whose {noun} is {v}"}
_SUPERSCRIPTS = str.maketrans({"²": "2", "³": "3"})
_PERSON_ENDINGS = ("ologist", "grapher", "ist", "ician", "smith", "wright")
_HEAD_END = re.compile(r"\s(?:of|in|for|from|at|on|by|and|or|with|near)\s|,")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_SILENT_H = re.compile(r"^(?:hour|honou?r|honest|heir)", re.IGNORECASE)
_GLIDE = re.compile(r"^(?:uni(?!n)|use|usu|eu|one\b|ou[ij])", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GAP = re.compile(r"[^0-9a-z]+")
_DIGITS = re.compile(r"\d+(?=_|$)")
_UNIT_ENDING = re.compile(r"_(?:m|km|cm|mm|ft|mi|sq_mi|sqmi|km2|m2|ha|acre|acres|kg|lb|metric|imperial)$")
_MAX_FACT_WORDS = 6
_UNSAFE = re.compile(r"[\[\]{}<>|?;“”\"\n\ue000-\uf8ff]|\.\.|http|_")
_DAY = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?,? +(?:of +)?[A-Z][a-z]+|\b[A-Z][a-z]+ +\d{1,2}\b(?!\d)|^\d{4}-\d\d-\d\d$")
_CENTURY = re.compile(r"\bcentury\b")
_DECADE = re.compile(r"^\d{1,4}s\b")
_YEAR = re.compile(r"^\d{1,4}(?: (?:BC|AD))?$")
_NAMING = frozenset(
    "name names fullname nickname nicknames title caption image logo alt map flag coat signature website url "
    "homepage coordinates coord footnotes footnote ref isbn oclc issn code abbreviation acronym demonym alias "
    "aliases module embed pseudonym taxon binomial synonyms".split()
)
_RELATIVE = re.compile(r"^(?:who|whom|that|whose|where|\w+ (?:which|whom)) ")
_PARTICIPLE = re.compile(
    r"^(?:first |last )?(?:\w+ed|\w+ing|born|built|made|held|kept|run|led|shot|cut|found|written|taught|known|set"
    r"|fought|broadcast|begun|flown) "
)


@dataclass(frozen=True, slots=True)
class RelationWording:
    """How one relation between entities is put into words; ``phrases.toml`` says what the fields hold."""

    keys: str
    noun: str
    subjects: str
    objects: str
    plains: Sequence[str]
    tails: Sequence[str]
    inverses: Sequence[str]


@dataclass(frozen=True, slots=True)
class AttributeWording:
    """How one literal attribute is asked for and used as a qualifier; an answer of another form takes the noun alone.

    Attributes:
        form: what its values are: ``date``, ``number`` or ``word``.
    """

    form: str
    keys: str
    noun: str
    subjects: str
    qualifier: str
    asks: Sequence[str]


OptionT = TypeVar("OptionT")
RowT = TypeVar("RowT", RelationWording, AttributeWording)


@cache
def read_tables() -> Mapping[str, Any]:
    """Return the tables of ``phrases.toml``."""
    return tomllib.loads(resources.files("pipelines.toy").joinpath("phrases.toml").read_text("utf-8"))


@cache
def digest_tables() -> str:
    """Return 16 hex digits for the contents of the tables."""
    return digest_value(read_tables())[:16]


@cache
def list_relations() -> tuple[RelationWording, ...]:
    """Return the wordings of relations, exceptions before general ones."""
    return tuple(RelationWording(*row) for row in read_tables()["relations"])


@cache
def list_attributes() -> tuple[AttributeWording, ...]:
    """Return the wordings of literal attributes, exceptions before general ones."""
    return tuple(_read_attribute(form, *row) for form, rows in read_tables()["attributes"].items() for row in rows)


def _read_attribute(
    form: str, keys: str, noun: str, subjects: str, qualifier: str, asks: Sequence[str]
) -> AttributeWording:
    filled = qualifier or _QUALIFIERS[form].replace("{a}", choose_article(noun)).replace("{noun}", noun)
    return AttributeWording(form, keys, noun, subjects, filled, asks)


@cache
def invert_table(name: str, separator: str | None = None) -> Mapping[str, str]:
    """Return the key of a table by each part of its values (words without a separator); the first one wins."""
    table: dict[str, str] = {}
    for key, parts in read_tables()[name].items():
        for part in parts.split(separator):
            table.setdefault(part, key)
    return table


def pick(options: Sequence[OptionT], *parts: object) -> OptionT:
    """Return one of the options, decided by the parts alone."""
    return options[int(draw_unit(*parts) * len(options))]


def clean_noun(noun: str) -> str:
    """Return a type noun without a leading article and with single spaces."""
    return _ARTICLE.sub("", " ".join(noun.split()))


def find_head(noun: str) -> str:
    """Return the head of a noun phrase in lower case: ``city`` for ``Port city in the north``."""
    words = _HEAD_END.split(clean_noun(noun).lower(), maxsplit=1)[0].split()
    return words[-1] if words else ""


def classify_noun(noun: str) -> str:
    """Return the kind of thing a noun phrase names, ``""`` when its head is not in the table."""
    head = find_head(noun)
    kinds = invert_table("nouns")
    found = kinds.get(head) or kinds.get(head.removesuffix("s"))
    return found or ("person" if head.endswith(_PERSON_ENDINGS) else "")


def name_kind(noun: str, fallback: str) -> str:
    """Return the weakest noun for a thing of this type: ``person`` for ``painter``, ``structure`` for ``bridge``."""
    weakest: Mapping[str, str] = read_tables()["weakest"]
    return weakest.get(find_head(noun)) or weakest.get(classify_noun(noun), fallback)


def choose_pronoun(noun: str) -> str:
    """Return ``who`` for a person, ``that`` for anything else."""
    return "who" if classify_noun(noun) == "person" else "that"


def choose_article(noun: str) -> str:
    """Return ``a`` or ``an`` for the word that follows."""
    vowel = noun[:1].lower() in {*"aeiou"} and not _GLIDE.match(noun)
    return "an" if vowel or _SILENT_H.match(noun) else "a"


def name_unit(unit: str) -> str:
    """Return a unit of measure as the plural a question uses, empty for a counted thing such as ``inhabitants``."""
    units: Mapping[str, str] = read_tables()["units"]
    plain = unit.translate(_SUPERSCRIPTS).strip()
    return units.get(plain) or (plain if plain in units.values() else "")


def normalise_key(key: str) -> str:
    """Return an infobox key in the tables' spelling: ``LargestCity`` and ``Largest city`` become ``largest_city``."""
    return _GAP.sub("_", _CAMEL.sub("_", key).lower()).strip("_")


def split_key(key: str) -> str:
    """Return the words of a key without its numbers and unit, ``entry`` when nothing is left.

    Only letters and single spaces come out, whatever a page used as a parameter name.
    """
    words = _DIGITS.sub("", _UNIT_ENDING.sub("", normalise_key(key)))
    return " ".join(re.findall("[a-z]+", words)) or "entry"


@lru_cache(maxsize=4096)
def find_attribute(key: str, subject_type: str) -> AttributeWording | None:
    """Return the first row for a literal attribute that fits the subject, None when no row does."""
    rows = _find_rows(list_attributes(), key)
    return next((row for row in rows if _fits(row.subjects, subject_type)), None)


@lru_cache(maxsize=4096)
def find_relation(key: str, subject_type: str, object_type: str) -> RelationWording | None:
    """Return the first row for a relation that fits subject and object, None when no row does."""
    rows = _find_rows(list_relations(), key)
    return next((row for row in rows if _fits(row.subjects, subject_type) and _fits(row.objects, object_type)), None)


def word_relation(key: str, subject_type: str, object_type: str) -> RelationWording:
    """Return the wording of a relation, made from the key's own words when no table has it."""
    found = find_relation(key, subject_type, object_type)
    if found is not None:
        return found
    attribute = find_attribute(key, subject_type)
    noun = attribute.noun if attribute is not None and attribute.form == "word" else split_key(key)
    plains = [f"the {noun} {verb} for {SLOT}" for verb in ("given", "listed", "on record")]
    tails = [f"{{who}} {verb} as the {noun} of {SLOT}" for verb in ("is given", "is listed", "appears")]
    inverses = [f"whose {noun} is {SLOT}", f"whose {noun} is given as {SLOT}", f"with {SLOT} given as the {noun}"]
    return RelationWording(key, noun, "", "", plains, tails, inverses)


def _find_rows(table: Iterable[RowT], key: str) -> list[RowT]:
    normal = normalise_key(key)
    plain = _UNIT_ENDING.sub("", normal)
    found: dict[str, list[RowT]] = {normal: [], plain: [], _GAP.sub("_", _DIGITS.sub("", plain)).strip("_"): []}
    for row in table:
        for each in found.keys() & set(row.keys.split()):
            found[each].append(row)
    return next((rows for rows in found.values() if rows), [])


def _fits(wanted: str, noun: str) -> bool:
    words = wanted.split()
    return not words or find_head(noun) in words or classify_noun(noun) in words


def qualify_fact(fact: FactView, object_type: str) -> str:
    """Return a fact as a phrase that follows a noun: ``born in the 1870s``, ``who played the lute``."""
    value = " ".join(fact.text.split())
    row = find_attribute(fact.relation, object_type)
    if row is None:
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


def _is_usable(hop: HopView, fact: FactView) -> bool:
    words = fact.text.split()
    if not 1 <= len(words) <= _MAX_FACT_WORDS or _UNSAFE.search(fact.text):
        return False
    if not _NAMING.isdisjoint(split_key(fact.relation).split()):
        return False
    spoken = {word.strip(".,()'’").casefold() for word in words}
    return not any(part.casefold() in spoken for part in re.findall(r"\w{4,}", hop.object_name))


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
    for index, clause in enumerate(qualifiers):
        found = re.match(r"(.*?) (?=(?:on|in) )", clause)
        if found and tail.startswith(f"{found[1]} "):
            return f"{clause}{tail[len(found[1]) :]}", [*qualifiers[:index], *qualifiers[index + 1 :]]
    return tail, list(qualifiers)


def _elide_pronouns(clauses: Sequence[str]) -> list[str]:
    for pronoun in ("who ", "that "):
        if clauses and all(re.match(rf"{pronoun}(?!\[)", clause) for clause in clauses):
            return [clauses[0], *(clause.removeprefix(pronoun) for clause in clauses[1:])]
    return list(clauses)


def _join_clauses(clauses: Sequence[str]) -> str:
    *first, last = clauses or [""]
    return f"{', '.join(first)} and {last}" if first else last
