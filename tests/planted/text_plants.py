"""Plants that need no corpus: leaks in texts (D01 to D05, L4), picture data (D13), wrong gold (D14), form (D16)."""

from collections.abc import Sequence
from random import Random

from pipelines.checks.answers import check_form, check_precision
from pipelines.checks.leakage import check_answer, check_demonyms, check_names, find_common_tokens
from pipelines.checks.pictures import check_picture
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.answers import compare_answers, make_answer, type_answer
from pipelines.graph.values import MONTHS, Date, Number, group_thousands, render_date, render_number, render_ordinal
from schemas.proofs import Answer
from tests.planted.disguises import DISGUISES, convert_measure, spell_number, spell_ordinal, spell_year, write_roman
from tests.planted.shares import type_text
from tests.planted.words import Defect, Pair, Vocabulary, invent_person, invent_title, invent_word, write_question

Aliases = tuple[tuple[str, ...], ...]
_PARTS = (
    "{}", "the {}s", "{}'s house", "{}’s tower", "{}-built houses", "the ex-{} house", "the “{}” house", "K. {}",
    "{}, K.", "Mr {}", "the {}s’ house", "({})", "{}/Tower", "old {}",
)  # fmt: skip
_VOWELS = "aeiouyé"
_IRREGULAR_SHARE = 0.3


def plant_name(words: Vocabulary, rng: Random) -> Pair:
    """D01: a name of some node, as it stands: title, other name, short name, initials, saint, another script."""
    aliases = _draw_aliases(words, rng)
    name = rng.choice([name for names in aliases for name in names if not name[0].islower()])
    return _pair_names(words, rng, aliases, name)


def plant_disguised_name(words: Vocabulary, rng: Random) -> Pair:
    """D02: a name in another case, Unicode form or script, with invisible characters, taken apart or escaped."""
    aliases = _draw_aliases(words, rng)
    name = rng.choice(aliases)[0].partition(" (")[0]
    return _pair_names(words, rng, aliases, rng.choice(DISGUISES)(name))


def plant_partial_name(words: Vocabulary, rng: Random) -> Pair:
    """D03: the telling word of a title, also in the plural, possessive or a compound."""
    aliases = _draw_aliases(words, rng)
    title = rng.choice(aliases)[0].partition(" (")[0]
    first, last = title.split(" ", 1)
    part = first if last in words.types else last
    return _pair_names(words, rng, aliases, rng.choice(_PARTS).format(part))


def plant_ordinary_name(words: Vocabulary, rng: Random) -> Pair:
    """L4: a whole title of ordinary words; the clean twin has these words in lower case and apart."""
    return _pair_ordinary(words, rng, ("{} {}", "the “{} {}”", "Mr {} {}", "the {} {} house"))


def plant_ordinary_part(words: Vocabulary, rng: Random) -> Pair:
    """L4: the last or first word of a title of ordinary words, capitalised; the clean twin as above."""
    return _pair_ordinary(words, rng, ("Mr {1}", "the {1}s", "{1}’s house", "young {0}", "the {1} collection"))


def plant_demonym(words: Vocabulary, rng: Random) -> Pair:
    """D04: a demonym of a node's name, by suffix or irregular; the clean twin has a stranger's, or a look-alike."""
    name, demonym = _draw_demonym(words, rng)
    _, other = _draw_demonym(words, rng)
    aliases = ((invent_title(words, rng),), _place(name, words, rng))
    while other[:3].lower() in " ".join((demonym, *aliases[0])).lower():
        _, other = _draw_demonym(words, rng)
    noun = rng.choice(("painter", "owner", "firm", "house"))
    state = rng.getstate()
    texts = []
    for adjective in (rng.choice((other, rng.choice(words.adjectives))), demonym):
        rng.setstate(state)
        texts.append(write_question(words, rng, f"the house of the {adjective} {noun} in the image"))
    types = find_common_tokens(words.types)
    clean, defective = (check_demonyms(text, aliases, types) for text in texts)
    return Pair(f"{name}: {demonym}", clean, defective, ("demonym-leak",))


def _draw_aliases(words: Vocabulary, rng: Random) -> Aliases:
    """Return names of three nodes: title, another name, link text that names nothing, and sometimes a special name."""
    return tuple(
        (invent_title(words, rng), f"{invent_word(words, rng)} {invent_word(words, rng)}",
         rng.choice(words.types).lower(), *_draw_special(words, rng))
        for _ in range(3)
    )  # fmt: skip


def _draw_special(words: Vocabulary, rng: Random) -> tuple[str, ...]:
    word = invent_word(words, rng)
    names = (
        "", f"St. {word}", f"The {word}", f"{word[0]}.{rng.choice('KQWZ')}.{rng.choice('XJVK')}.",
        f"{rng.choice('QXZK')}{rng.choice('JVWQ')}", f"O'{word}",
        "".join(rng.choice("橋城塔駅湖山川町") for _ in range(3)),
        "".join(rng.choice("дгжлпфцшы") for _ in range(6)).capitalize(),
    )  # fmt: skip
    return tuple(filter(None, (rng.choice(names),)))


def _place(name: str, words: Vocabulary, rng: Random) -> tuple[str, ...]:
    """Return the names of a node called after a name, which stands alone, with a type word, or is a person's last."""
    return rng.choice(((name,), (f"{name} {rng.choice(words.types)}",), (f"{rng.choice(words.types)} of {name}",)))


def _draw_demonym(words: Vocabulary, rng: Random) -> tuple[str, str]:
    if rng.random() < _IRREGULAR_SHARE:
        return rng.choice(words.demonyms)
    name = invent_word(words, rng)
    stem = name[:-1] if name[-1] in _VOWELS else name
    demonym = stem + rng.choice(words.suffixes)
    while demonym == name:
        demonym = stem + rng.choice(words.suffixes)
    return name, rng.choice((demonym, f"{demonym}s", demonym.lower(), demonym.upper(), f"{demonym}-born"))


def _pair_ordinary(words: Vocabulary, rng: Random, shapes: Sequence[str]) -> Pair:
    """Return twins whose defective one names a node by a title of ordinary words, in one of some shapes."""
    name = rng.choice(words.ordinary)
    first, last = name.split()
    aliases = ((invent_title(words, rng),), (name,), (invent_title(words, rng),))
    leak, state = rng.choice(shapes).format(first, last), rng.getstate()
    texts = []
    for reference in (f"the {last.lower()} in the image, beside the {first.lower()} one", leak):
        rng.setstate(state)
        texts.append(write_question(words, rng, reference))
    clean, defective = (check_names(text, aliases, find_common_tokens(words.types)) for text in texts)
    return Pair(f"{name}: {leak}", clean, defective, ("alias-leak",))


def _pair_names(words: Vocabulary, rng: Random, aliases: Sequence[Sequence[str]], leak: str) -> Pair:
    known = " ".join(name for names in aliases for name in names)
    stranger = invent_word(words, rng)
    while stranger in known:
        stranger = invent_word(words, rng)
    state = rng.getstate()
    clean = write_question(words, rng, f"the nice old {aliases[0][2]} of Mr {stranger} in the image")
    rng.setstate(state)
    defective = write_question(words, rng, leak)
    common = find_common_tokens(words.types)
    clean_result, defective_result = (check_names(text, aliases, common) for text in (clean, defective))
    return Pair(leak, clean_result, defective_result, ("alias-leak",))


Drawn = tuple[Answer, tuple[str, ...]]
_MAX_TOKENS = 6
_FREE = ("CC BY-SA 4.0", "CC BY 2.0", "CC0", "Public domain", "PD-old-70", "CC BY-SA 3.0 nl")
_UNFREE = ("CC BY-NC 4.0", "CC BY-ND 2.0", "CC BY-NC-SA 3.0", "Fair use", "", "All rights reserved", "Non-free logo")
_UNITS = ("m", "kg", "km", "km2")
_ASKING = {
    "day": ("On what date did {} open?", "What is the date of birth of the owner of {}?",
            "When, to the day, did {} open?"),
    "month": ("In what month and year did {} open?",),
    "year": ("In which year did {} open?", "What year was {} built?"),
}  # fmt: skip
"""Questions by the precision they ask for."""


def plant_answer(words: Vocabulary, rng: Random) -> Pair:
    """D05: the answer in the question, written in another way; the clean twin holds another answer of its type."""
    draw = rng.choice((_draw_date, _draw_number, _draw_word, _draw_share))
    answer, writings = draw(words, rng)
    other, other_writings = draw(words, rng)
    while _share_parts(answer, other):
        other, other_writings = draw(words, rng)
    question = write_question(words, rng, f"the {rng.choice(words.types).lower()} in the image").removesuffix("?")
    writing = rng.choice(writings)
    return Pair(
        f"{answer.surface}: {writing}",
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
    """D14: a reference beside the truth (one year, one day, one unit of the last place, a sibling).

    Siblings have no name in common: one of the same given name is left to a judge.
    """
    shape = rng.randrange(3)
    if shape == 0:
        date = _draw_day(rng)
        other = rng.choice((Date(date.year + rng.choice((-1, 1)), date.month, date.day), _turn_page(date)))
        truth, wrong = render_date(date), render_date(other)[0]
        reference = make_answer(truth[0], date)
    elif shape == 1:
        number = Number(str(rng.randint(21, 99_999)), rng.choice(("", *_UNITS)))
        other_number = Number(str(int(number.value) + rng.choice((-1, 1, 10))), number.unit)
        truth, wrong = render_number(number), render_number(other_number)[0]
        reference = make_answer(truth[0], number)
    else:
        name, wrong = invent_person(words, rng), invent_person(words, rng)
        while set(wrong.split()) & set(name.split()):
            wrong = invent_person(words, rng)
        truth, reference = (name.upper(), name.lower()), type_text(name)
    return Pair(wrong, _match(rng.choice(truth), reference), _match(wrong, reference), ("wrong-answer",))


def plant_form(words: Vocabulary, rng: Random) -> Pair:
    """D16: an answer that is a list, a range, a hedge, a sentence, or too long."""
    value = rng.choice((invent_person(words, rng), rng.choice(words.words), f"{rng.randint(2, 900)} m"))
    other = invent_person(words, rng)
    person, year = invent_person(words, rng), rng.randint(1500, 2000)
    bad, code = rng.choice(
        (
            *((each, "answer-untyped") for each in _list_untyped(person, other, year)),
            (" ".join(invent_word(words, rng) for _ in range(8)), "answer-too-long"),
        )
    )
    return Pair(bad, _check_form(value), _check_form(bad), (code,))


def _list_untyped(person: str, other: str, year: int) -> tuple[str, ...]:
    """Return lists, ranges, hedges, sentences, addresses, markup and empty values."""
    return (
        f"{person}, {other}", f"{person} and {other}", f"{person}; {other}", f"{person}\n{other}",
        f"{person} / {other}", f"{year}\u2013{year + 3}", f"about {year}", f"c. {year}", f"{year} or {year + 1}",
        f"over {year} m", f"{person} (disputed)?", "various", "unknown", f"It was built by {person}.",
        f"https://{person.split()[-1].lower()}.example.org", f"[[{person}]]", f"{year // 10}0s", "\u2014",
    )  # fmt: skip


def plant_precision(words: Vocabulary, rng: Random) -> Pair:
    """D16: a date asked for at another precision than the answer has."""
    date = _draw_day(rng)
    date = rng.choice((date, Date(date.year, date.month), Date(date.year)))
    wrong = rng.choice([precision for precision in _ASKING if precision != date.precision])
    answer = make_answer(render_date(date)[0], date)
    reference = f"the {rng.choice(words.types).lower()} in the image"
    right, asked = (rng.choice(_ASKING[precision]).format(reference) for precision in (date.precision, wrong))
    return Pair(
        f"{answer.surface}: {asked}",
        check_precision(right, answer),
        check_precision(asked, answer),
        ("precision-unasked",),
    )


def plant_unit(words: Vocabulary, rng: Random) -> Pair:
    """D16: an answer without the unit that its page gives, or with another."""
    unit, other = rng.sample(_UNITS, 2)
    number = Number(str(rng.randint(21, 9_999)), unit)
    shown = rng.choice(render_number(number))
    bare = rng.choice((Number(number.value), Number(number.value, other)))
    good, bad = (make_answer(render_number(each)[0], each) for each in (number, bare))
    codes = ("answer-form",)
    return Pair(f"{shown}: {bad.surface}", check_form(shown, good, 6), check_form(shown, bad, 6), codes)


DEFECTS: tuple[Defect, ...] = (
    Defect("D01", "name or alias in the question", plant_name),
    Defect("D02", "disguised name", plant_disguised_name),
    Defect("D03", "part of a name", plant_partial_name),
    Defect("D04", "demonym", plant_demonym),
    Defect("D05", "answer in another form", plant_answer),
    Defect("D13", "picture too small or not free", plant_picture),
    Defect("D14", "wrong gold", plant_gold),
    Defect("D16", "answer form", plant_form),
    Defect("D16", "precision not asked for", plant_precision),
    Defect("D16", "unit missing or wrong", plant_unit),
)
MEASURED: tuple[Defect, ...] = (
    Defect("L4", "title of ordinary words", plant_ordinary_name),
    Defect("L4", "one ordinary word of a title", plant_ordinary_part),
)
"""Of which the design demands nothing."""


def _draw_day(rng: Random) -> Date:
    return Date(rng.randint(1100, 2020), rng.randint(1, 12), rng.randint(1, 28))


def _turn_page(date: Date) -> Date:
    """Return the next day, within the month."""
    return Date(date.year, date.month, date.day % 28 + 1)


def _draw_date(words: Vocabulary, rng: Random) -> Drawn:
    date = _draw_day(rng)
    name, day, year = MONTHS[date.month - 1], date.day, date.year
    numeric = (f"{day:02d}", f"{date.month:02d}")
    writings = (
        *render_date(date), str(year), f"{day} {name}", f"{name} {day}", f"the {spell_ordinal(day)} of {name}",
        f"{name} the {render_ordinal(day)}", f"the {render_ordinal(day)} day of {name}", f"{name[:3].upper()}. {day}",
        *(mark.join((*numeric, str(year))) for mark in "./-"),
        *(mark.join((str(year), *reversed(numeric))) for mark in "./"),
        f"{year}{numeric[1]}{numeric[0]}", f"{day}/{date.month}/{year % 100:02d}",
        f"{day}.{write_roman(date.month)}.{year}", spell_year(year), spell_number(year), write_roman(year),
        " ".join(str(year)), f"{year // 100}\u200b{year % 100:02d}",
        "".join(chr(ord(char) + 0xFEE0) for char in str(year)),
    )  # fmt: skip
    return make_answer(render_date(date)[0], date), writings


def _draw_number(words: Vocabulary, rng: Random) -> Drawn:
    number = Number(str(rng.randint(1001, 99_999)), rng.choice(("", *_UNITS)))
    value, whole = number.value, int(number.value)
    head, tail = value[:-3], value[-3:]
    writings = (
        *render_number(number), value,
        *(f"{head}{mark}{tail}" for mark in (" ", "\u202f", "'", ".", "_", "\u00a0")),
        f"{value}.0", f"{group_thousands(value).replace(',', '.')},0", f"{whole / 1000} thousand",
        spell_number(whole), f"the {spell_ordinal(whole)}", render_ordinal(whole),
        *((write_roman(whole),) if whole < 4000 else ()), *convert_measure(whole, number.unit),
    )  # fmt: skip
    return make_answer(render_number(number)[0], number), writings


def _draw_share(words: Vocabulary, rng: Random) -> Drawn:
    """Return a percentage, which has fewer digits to go wrong and more ways to be said."""
    whole = rng.choice([number for number in range(21, 100) if number != 50])  # a lone L is a letter
    number = Number(str(whole), "%")
    writings = (f"{whole}%", f"{whole} percent", f"{spell_number(whole)} per cent", f"0.{whole}", f"{whole}/100",
                f"0,{whole}", f"{whole}.0 %", write_roman(whole))  # fmt: skip
    return make_answer(f"{whole}%", number), writings


def _draw_word(words: Vocabulary, rng: Random) -> Drawn:
    text = rng.choice((rng.choice(words.words), invent_person(words, rng)))
    plural = text if text.endswith("s") else f"{text}s"
    return type_text(text), (text, text.upper(), text.lower(), text.replace(" ", "-"), text.replace(" ", "_"),
                             f"the {text}", plural, f"{text}’s", "\u200b".join(text))  # fmt: skip


def _share_parts(answer: Answer, other: Answer) -> bool:
    """Say whether two answers have a year, a day of a month, or a word in common, or sizes close by: no clean twin."""
    if answer.type == "date":
        return answer.value[2:4] == other.value[2:4] or answer.value[5:] == other.value[5:]
    if answer.type == "number" and other.type == "number":
        sizes = [float(factor) * float(answer.value) for factor in _FACTORS]
        return answer.value == other.value or any(abs(size / float(other.value) - 1) < 0.03 for size in sizes)
    return bool(set(answer.value.lower().split()) & set(other.value.lower().split()))


_FACTORS = (1.0, 0.001, 1000.0, 100.0, 0.01)


def _match(given: str, reference: Answer) -> CheckResult:
    verdict = compare_answers(given, reference)
    if verdict == "correct":
        return PASSED
    return CheckResult("FAIL", "wrong-answer") if verdict == "incorrect" else CheckResult("UNKNOWN", "undecided")


def _check_form(text: str) -> CheckResult:
    answer = type_answer(text, "", "label")
    return CheckResult("FAIL", "answer-untyped") if answer is None else check_form(text, answer, _MAX_TOKENS)
