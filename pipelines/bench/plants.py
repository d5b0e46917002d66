"""Minimal pairs: a clean row and the same row with one planted defect, with the check that must tell them apart."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from pipelines.bench.vocabulary import Vocabulary, invent_person, invent_title, invent_word, write_question
from pipelines.checks.images import check_picture
from pipelines.checks.leakage import check_answer, check_names, find_common_tokens
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.scoring.answers import count_tokens, make_answer, type_answer
from pipelines.scoring.compare import compare_answers
from pipelines.scoring.dates import MONTHS, Date, render_date
from pipelines.scoring.numbers import Number, render_number
from schemas.proofs import Answer

_CYRILLIC = str.maketrans("aeopcxyKMTBHE", "аеорсхуКМТВНЕ")
_MAX_TOKENS = 6
_FREE = ("CC BY-SA 4.0", "CC BY 2.0", "CC0", "Public domain", "PD-old-70", "CC BY-SA 3.0 nl")
_UNFREE = ("CC BY-NC 4.0", "CC BY-ND 2.0", "CC BY-NC-SA 3.0", "Fair use", "", "All rights reserved", "Non-free logo")


@dataclass(frozen=True, slots=True)
class Pair:
    """What the check said of both twins, and what was planted."""

    plant: str
    """The defective value, for a reader."""
    clean: CheckResult
    defective: CheckResult
    codes: tuple[str, ...]
    """Codes that count as having recognised the defect."""


@dataclass(frozen=True, slots=True)
class Defect:
    """One kind of defect with the demands on its check (research/quality.md 4.3)."""

    code: str
    title: str
    recall: float
    false_alarm: float
    plant: Callable[[Vocabulary, Random], Pair]


def plant_name(words: Vocabulary, rng: Random) -> Pair:
    """D01: a name of some node, as it stands."""
    aliases = _draw_aliases(words, rng)
    name = rng.choice([name for names in aliases for name in names if name[0].isupper()])
    return _pair_names(words, rng, aliases, name)


def plant_disguised_name(words: Vocabulary, rng: Random) -> Pair:
    """D02: a name in another case, Unicode form, script, or with invisible characters."""
    aliases = _draw_aliases(words, rng)
    name = rng.choice(aliases)[0].partition(" (")[0]
    return _pair_names(words, rng, aliases, rng.choice(_DISGUISES)(name))


def plant_partial_name(words: Vocabulary, rng: Random) -> Pair:
    """D03: the telling word of a title, also in the plural or possessive."""
    aliases = _draw_aliases(words, rng)
    title = rng.choice(aliases)[0].partition(" (")[0]
    first, last = title.split(" ", 1)
    part = first if last in words.types else last
    return _pair_names(
        words, rng, aliases, rng.choice(("{}", "the {}s", "{}'s house", "{}’s {}")).format(part, "tower")
    )


def plant_answer(words: Vocabulary, rng: Random) -> Pair:
    """D05: the answer in the question, written in another way; the clean twin holds another answer of its type."""
    draw = rng.choice((_draw_date, _draw_number, _draw_word))
    answer, writings = draw(words, rng)
    other, other_writings = draw(words, rng)
    while _share_parts(answer, other):
        other, other_writings = draw(words, rng)
    question = write_question(words, rng, f"the {rng.choice(words.types).lower()} in the image").removesuffix("?")
    writing = rng.choice(writings)
    return Pair(
        writing,
        check_answer(f"{question}, given {rng.choice(other_writings)}?", answer),
        check_answer(f"{question}, given {writing}?", answer),
        ("answer-leak",),
    )


def plant_picture(words: Vocabulary, rng: Random) -> Pair:
    """D13, the part that needs no pixels: a picture too small or not free."""
    width, height, licence = rng.randint(512, 6000), rng.randint(512, 6000), rng.choice(_FREE)
    clean = check_picture(width, height, licence, 512)
    if rng.random() < 0.5:
        side = rng.randint(1, 511)
        width, height = (side, height) if rng.random() < 0.5 else (width, side)
        return Pair(f"{width}x{height}", clean, check_picture(width, height, licence, 512), ("picture-too-small",))
    bad = rng.choice(_UNFREE)
    return Pair(bad, clean, check_picture(width, height, bad, 512), ("picture-not-free",))


def plant_gold(words: Vocabulary, rng: Random) -> Pair:
    """D14: a reference beside the truth (one year, one day, one unit of the last place, a sibling)."""
    shape = rng.randrange(3)
    if shape == 0:
        date = _draw_day(rng)
        other = Date(date.year + rng.choice((-1, 1)), date.month, date.day)
        truth, wrong = render_date(date), render_date(other)[0]
        reference = make_answer(truth[0], date)
    elif shape == 1:
        number = Number(str(rng.randint(21, 99_999)), rng.choice(("", "m", "kg", "km2")))
        other_number = Number(str(int(number.value) + rng.choice((-1, 1, 10))), number.unit)
        truth, wrong = render_number(number), render_number(other_number)[0]
        reference = make_answer(truth[0], number)
    else:
        name, wrong = invent_person(words, rng), invent_person(words, rng)
        truth, reference = (name.upper(), name.lower()), _type(name)
    return Pair(wrong, _match(rng.choice(truth), reference), _match(wrong, reference), ("wrong-answer", "undecided"))


def plant_form(words: Vocabulary, rng: Random) -> Pair:
    """D16: an answer that is a list, a range, a hedge, a sentence, or too long."""
    value = rng.choice((invent_person(words, rng), rng.choice(words.words), f"{rng.randint(2, 900)} m"))
    other = invent_person(words, rng)
    person, year = invent_person(words, rng), rng.randint(1500, 2000)
    bad = rng.choice(
        (
            f"{person}, {other}",
            f"{person} and {other}",
            f"{person}; {other}",
            f"{person}\n{other}",
            f"{year}\u2013{year + 3}",
            f"about {year}",
            f"c. {year}",
            f"{year} or {year + 1}",
            f"{person} (disputed)?",
            "various",
            f"It was built by {person}.",
            f"https://{invent_word(words, rng).lower()}.example.org",
            f"{year // 10}0s",
            " ".join(invent_word(words, rng) for _ in range(8)),
        )
    )
    return Pair(bad, _check_form(value), _check_form(bad), ("answer-untyped", "answer-too-long"))


DEFECTS: tuple[Defect, ...] = (
    Defect("D01", "name or alias in the question", 1.0, 0.01, plant_name),
    Defect("D02", "disguised name", 0.99, 0.01, plant_disguised_name),
    Defect("D03", "part of a name", 0.95, 0.02, plant_partial_name),
    Defect("D05", "answer in another form", 0.99, 0.01, plant_answer),
    Defect("D13", "picture too small or not free", 0.95, 0.03, plant_picture),
    Defect("D14", "wrong gold", 1.0, 0.0, plant_gold),
    Defect("D16", "answer form", 0.99, 0.01, plant_form),
)


def _draw_aliases(words: Vocabulary, rng: Random) -> tuple[tuple[str, ...], ...]:
    """Return names of three nodes: title, another name, and link text that names nothing."""
    return tuple(
        (
            invent_title(words, rng),
            f"{invent_word(words, rng)} {invent_word(words, rng)}",
            rng.choice(words.types).lower(),
        )
        for _ in range(3)
    )


def _pair_names(words: Vocabulary, rng: Random, aliases: Sequence[Sequence[str]], leak: str) -> Pair:
    known = " ".join(name for names in aliases for name in names)
    stranger = invent_word(words, rng)
    while stranger in known:
        stranger = invent_word(words, rng)
    state = rng.getstate()
    clean = write_question(words, rng, f"the nice old {aliases[0][-1]} of Mr {stranger} in the image")
    rng.setstate(state)
    defective = write_question(words, rng, leak)
    common = find_common_tokens(words.types)
    clean_result, defective_result = (check_names(text, aliases, common) for text in (clean, defective))
    return Pair(leak, clean_result, defective_result, ("alias-leak",))


_DISGUISES: tuple[Callable[[str], str], ...] = (
    str.upper,
    str.lower,
    lambda name: name.replace(" ", "-"),
    lambda name: name.replace(" ", "_"),
    lambda name: name.replace(" ", ""),
    lambda name: "\u200b".join(name),
    lambda name: name[:2] + "\u00ad" + name[2:],
    lambda name: "\u202e" + name + "\u202c",
    lambda name: name.translate(_CYRILLIC),
    lambda name: unicodedata.normalize("NFD", name),
    lambda name: "".join(char for char in unicodedata.normalize("NFD", name) if not unicodedata.combining(char)),
    lambda name: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in name),
    lambda name: name + "\u2019s",
)


def _draw_day(rng: Random) -> Date:
    return Date(rng.randint(1100, 2020), rng.randint(1, 12), rng.randint(1, 28))


def _draw_date(words: Vocabulary, rng: Random) -> tuple[Answer, tuple[str, ...]]:
    date = _draw_day(rng)
    name = MONTHS[date.month - 1]
    extra = (str(date.year), f"{date.day} {name}", f"{name} {date.day}", f"{date.day:02d}.{date.month:02d}.{date.year}")
    hidden = f"{date.year // 100}\u200b{date.year % 100:02d}"
    return make_answer(render_date(date)[0], date), (*render_date(date), *extra, hidden)


def _draw_number(words: Vocabulary, rng: Random) -> tuple[Answer, tuple[str, ...]]:
    number = Number(str(rng.randint(1001, 99_999)), rng.choice(("", "m", "kg")))
    value = number.value
    spaced = f"{value[:-3]} {value[-3:]}"
    return make_answer(render_number(number)[0], number), (*render_number(number), value, spaced, f"{value}.0")


def _draw_word(words: Vocabulary, rng: Random) -> tuple[Answer, tuple[str, ...]]:
    text = rng.choice((rng.choice(words.words), invent_person(words, rng)))
    return _type(text), (text, text.upper(), text.replace(" ", "-"), f"the {text}", "\u200b".join(text))


def _share_parts(answer: Answer, other: Answer) -> bool:
    """Say whether two answers have a year, a day of a month, or a word in common: no clean twin then."""
    if answer.type == "date":
        return answer.value[:4] == other.value[:4] or answer.value[5:] == other.value[5:]
    return bool(set(answer.value.lower().split()) & set(other.value.lower().split()))


def _type(text: str) -> Answer:
    answer = type_answer(text, "", "label")
    if answer is None:
        raise AssertionError(f"bench vocabulary: {text!r} has no type; a clean twin must have one")
    return answer


def _match(given: str, reference: Answer) -> CheckResult:
    verdict = compare_answers(given, reference)
    if verdict == "correct":
        return PASSED
    return CheckResult("FAIL", "wrong-answer") if verdict == "incorrect" else CheckResult("UNKNOWN", "undecided")


def _check_form(text: str) -> CheckResult:
    answer = type_answer(text, "", "label")
    if answer is None:
        return CheckResult("FAIL", "answer-untyped")
    return CheckResult("FAIL", "answer-too-long") if count_tokens(answer.surface) > _MAX_TOKENS else PASSED
