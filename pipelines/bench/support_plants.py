"""D22, of what a rollout knows: unsupported answers and jumps (R4), memory (R5), luck (R6), claims (R10)."""

import re
from collections.abc import Iterator
from random import Random
from urllib.parse import quote

from pipelines.agent.spans import find_name, list_forms
from pipelines.bench.rollout_edits import Call, drop, get_text, insert, list_calls, say_more, show_hits, show_other
from pipelines.bench.rollout_wordings import GUESSES, NAME_CLAIMS, NUMBER_CLAIMS, REQUESTS, choose_half
from pipelines.bench.trajectory_cases import Edits
from pipelines.bench.vocabulary import Vocabulary, invent_person, invent_title
from pipelines.names import fold_name, is_common_word
from pipelines.scoring.dates import MONTHS, parse_date
from pipelines.scoring.decoys import make_decoys
from schemas.proofs import Answer
from schemas.rollouts import Rollout

NOTHING_LIKE_IT = "No page shows a picture like img_1."
_SMALL = re.compile(r"-?\d{1,2}")


def plant_unsupported(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R4: no observation holds the answer, as every line that did says nothing of it, or something else.

    The clean twin lacks other lines.
    """
    forms = _list_forms(rollout)
    other = make_decoys(rollout.reference, 1)[0] if choose_half(words) == "held-out" else ""
    if other and (rollout.reference.type == "number" or any(find_name(form, other) for form in forms)):
        return None
    clean = bad = rollout
    for place in list_calls(rollout):
        text = get_text(rollout.steps[place])
        bad = show_other(bad, place, "\n".join(_leave_out(line, forms, other) for line in text.split("\n")))
        clean = show_other(clean, place, _drop_line(text, rollout, forms))
    if any(find_name(get_text(step), form) for step in bad.steps for form in forms):
        return None
    return Edits(f"{rollout.answer!r} nowhere{f', {other!r} instead' if other else ''}", clean, bad)


def plant_jump(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R4: a bridge named in a call before anything has shown it; the clean twin names a stranger there."""
    bridges = [title for title in rollout.bridges if not find_name(rollout.question, list_forms(title)[-1])]
    bridges = [title for title in bridges if _tells(title)]
    if not bridges:
        return None
    name = list_forms(rng.choice(bridges))[-1]
    stranger = list_forms(invent_person(words, rng) if " " in name else invent_title(words, rng))[-1]
    say = rng.choice(REQUESTS[choose_half(words)])
    by_address = choose_half(words) == "held-out" and rng.random() < 0.3
    calls = [_address(each) if by_address else _ask(say(each)) for each in (stranger, name)]
    said = str(calls[1].arguments)
    return Edits(f"step 0: {said}", insert(rollout, 0, calls[0]), insert(rollout, 0, calls[1]))


def plant_memory(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R5: the answer in a thought before any tool has shown it; the clean twin guesses wrong."""
    answer = rollout.reference
    if answer.type == "number" and _SMALL.fullmatch(answer.value) and not answer.unit:
        return None
    held_out = choose_half(words) == "held-out"
    said = rng.choice(list(_rewrite(answer))) if held_out else answer.surface
    decoy = make_decoys(answer, 1)[0]
    sentence = rng.choice(GUESSES[choose_half(words)])
    clean, bad = (say_more(rollout, 0, sentence.format(said=each)) for each in (decoy, said))
    return Edits(sentence.format(said=said), clean, bad)


def plant_no_tool(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R5: the last step alone."""
    bad = drop(rollout, range(len(rollout.steps) - 1))
    return Edits("no call", rollout, bad.model_copy(update={"images": rollout.images[:1]}))


def plant_luck(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R6: nothing shows the page of a bridge, or that of the anchor; the clean twin goes the whole way.

    Only where no other observation names that page together with its neighbour, which is as good.
    """
    path = rollout.path
    if len(path) < 3:
        return None
    number = len(path) - 2 if choose_half(words) == "open" else rng.randrange(len(path) - 1)
    places = [place for place, step in enumerate(rollout.steps) if _shows_page(get_text(step), path[number])]
    looks = [place for place in places if rollout.steps[place].tool == "image_search"]
    bad = rollout
    for place in looks:
        bad = show_other(bad, place, NOTHING_LIKE_IT, results=())
    bad = drop(bad, [place for place in places if place not in looks])
    around = [(path[at], path[at + 1]) for at in (number - 1, number) if at >= 0]
    texts = [get_text(step) for step in bad.steps]
    if all(any(_names(text, one) and _names(text, other) for text in texts) for one, other in around):
        return None
    if not any(find_name(text, form) for text in texts for form in _list_forms(rollout)):
        return None
    return Edits(f"without {path[number]!r}", say_more(rollout, 0, "One step after the other."), bad)


def plant_name_claim(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R10: a name in the last thought that stands nowhere; the clean twin's stands in what was read."""
    sentence = rng.choice(NAME_CLAIMS[choose_half(words)])
    seen = [title for title in rollout.path if _tells(title) and any(_names(get_text(s), title) for s in rollout.steps)]
    if not seen:
        return None
    names = list_forms(rng.choice(seen))[-1], invent_person(words, rng)
    clean, bad = (say_more(rollout, len(rollout.steps) - 1, sentence.format(name=name)) for name in names)
    return Edits(sentence.format(name=names[1]), clean, bad)


def plant_number_claim(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R10: a number in the last thought that stands nowhere; the clean twin claims nothing."""
    sentence = rng.choice(NUMBER_CLAIMS[choose_half(words)])
    number = str(rng.randint(10_001, 99_999))
    if choose_half(words) == "held-out":
        number = f"{int(number):,}"
    last = len(rollout.steps) - 1
    clean = say_more(rollout, last, sentence.format(number="many").replace("£", ""))
    return Edits(sentence.format(number=number), clean, say_more(rollout, last, sentence.format(number=number)))


def _list_forms(rollout: Rollout) -> tuple[str, ...]:
    answer = rollout.reference
    return tuple(dict.fromkeys((rollout.answer, answer.surface, answer.value, *answer.aliases)))


def _leave_out(line: str, forms: tuple[str, ...], other: str) -> str:
    """Return a line without what it says of the answer, or with another value in its place."""
    if not any(find_name(line, form) for form in forms):
        return line
    if not other:
        return "(no text)" if line else line
    for form in forms:
        while (span := find_name(line, form)) is not None:
            line = f"{line[: span[0]]}{other}{line[span[1] :]}"
    return line


def _drop_line(text: str, rollout: Rollout, forms: tuple[str, ...]) -> str:
    """Return a page without its last line that names nothing of the path and does not hold the answer."""
    lines = text.split("\n")
    for place in range(len(lines) - 1, 2, -1):
        line = lines[place]
        kept = any(_names(line, title) for title in rollout.path) or any(find_name(line, form) for form in forms)
        if line and not kept and not line.startswith(("[", "URL:")):
            return "\n".join((*lines[:place], "(no text)", *lines[place + 1 :]))
    return text


def _rewrite(answer: Answer) -> Iterator[str]:
    """Yield an answer in other writings than that of its page."""
    yield from (form for form in (*answer.aliases, answer.surface.upper()) if form)
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is not None and date.day and date.month:
        yield f"the {date.day}. of {MONTHS[date.month - 1]} {date.year}"
        yield f"{MONTHS[date.month - 1][:3]}. {date.day}, {date.year}"
    if answer.type in ("name", "string"):
        yield fold_name(answer.surface)


def _ask(query: str) -> Call:
    return Call("text_search", {"query": query[:400]}, show_hits())


def _address(name: str) -> Call:
    url = f"https://elsewhere.example/wiki/{quote(name.replace(' ', '_'))}"
    return Call("visit", {"url": url}, show_hits())


def _tells(title: str) -> bool:
    """Say whether a title has a word by which it can be told."""
    return any(len(word) > 2 and not is_common_word(word) for word in fold_name(list_forms(title)[-1]).split())


def _shows_page(text: str, title: str) -> bool:
    return any(
        line in (f"Title: {title}", title) for line in (re.sub(r"^\[\d+\] ", "", each) for each in text.split("\n"))
    )


def _names(text: str, title: str) -> bool:
    folded = f" {fold_name(text)} "
    words = fold_name(list_forms(title)[-1]).split()
    telling = [word for word in words if len(word) > 2 and not is_common_word(word)]
    return all(f" {word} " in folded for word in telling or words)
