"""Plants of names: D01 to D04, names of ordinary words (L4), and a name in the picture's file name."""

from collections.abc import Sequence
from random import Random
from urllib.parse import quote

from pipelines.bench.disguises import DISGUISES
from pipelines.bench.plants import Pair
from pipelines.bench.vocabulary import Vocabulary, invent_title, invent_word, write_question
from pipelines.checks.leakage import check_demonyms, check_file_names, check_names, find_common_tokens
from pipelines.scoring.answers import make_answer
from pipelines.scoring.dates import Date

Aliases = tuple[tuple[str, ...], ...]
_PARTS = (
    "{}", "the {}s", "{}'s house", "{}’s tower", "{}-built houses", "the ex-{} house", "the “{}” house", "K. {}",
    "{}, K.", "Mr {}", "the {}s’ house", "({})", "{}/Tower", "old {}",
)  # fmt: skip
_VOWELS = "aeiouyé"
_IRREGULAR_SHARE = 0.3
_FILES = (
    "File:{}.jpg", "https://pictures.example/wiki/File:{}.JPG", "https://pictures.example/a/a7/320px-{}_01.jpg",
    "View of {} in the morning", "{}2019.png", "https://pictures.example/view?title={}&width=640",
)  # fmt: skip


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


def plant_file_name(words: Vocabulary, rng: Random) -> Pair:
    """D01: a bridge's name in the name, address or description of the picture; the clean twin has the anchor's own."""
    aliases = _draw_aliases(words, rng)
    while set(aliases[0][0].split()) & {word for names in aliases[1:] for word in names[0].split()} - set(words.types):
        aliases = _draw_aliases(words, rng)
    anchor, leak = aliases[0][0], rng.choice(aliases[1:])[0].partition(" (")[0]
    shape, write = rng.choice(_FILES), rng.choice(_WRITE_FILE)
    known = find_common_tokens((*words.types, *aliases[0]))
    answer = make_answer("5 April 1123", Date(1123, 4, 5))
    clean, defective = (
        check_file_names((shape.format(write(name)),), aliases[1:], answer, known) for name in (anchor, leak)
    )
    return Pair(shape.format(write(leak)), clean, defective, ("file-leak",))


_WRITE_FILE = (
    lambda name: name.replace(" ", "_"),
    lambda name: name.replace(" ", ""),
    lambda name: name.replace(" ", "-").lower(),
    lambda name: name.replace(" ", "+"),
    lambda name: quote(name),
)


def _draw_aliases(words: Vocabulary, rng: Random) -> Aliases:
    """Return names of three nodes: title, another name, link text that names nothing, and sometimes a special name."""
    return tuple(
        (
            invent_title(words, rng),
            f"{invent_word(words, rng)} {invent_word(words, rng)}",
            rng.choice(words.types).lower(),
            *_draw_special(words, rng),
        )
        for _ in range(3)
    )


def _draw_special(words: Vocabulary, rng: Random) -> tuple[str, ...]:
    word = invent_word(words, rng)
    return rng.choice(
        (
            (),
            (f"St. {word}",),
            (f"The {word}",),
            (f"{word[0]}.{rng.choice('KQWZ')}.{rng.choice('XJVK')}.",),
            (f"{rng.choice('QXZK')}{rng.choice('JVWQ')}",),
            (f"O'{word}",),
            ("".join(rng.choice("橋城塔駅湖山川町") for _ in range(3)),),
            ("".join(rng.choice("дгжлпфцшы") for _ in range(6)).capitalize(),),
        )
    )


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
