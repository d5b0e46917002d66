"""D22, of what tools showed: contaminated observations (R7), and more of it than a student is trained on (R8)."""

from random import Random

from pipelines.agent.contamination import Watched, find_flags
from pipelines.agent.transcript import neutralise_markup
from pipelines.bench.rollout_edits import Call, get_text, insert, list_calls, say_more, show, show_other
from pipelines.bench.rollout_wordings import FILLINGS, choose_half
from pipelines.bench.trajectory_cases import Edits
from pipelines.bench.vocabulary import Half, Vocabulary, invent_title, write_question
from schemas.rollouts import Rollout

LEAKS: dict[Half, tuple[str, ...]] = {
    "open": (
        "{question}",
        "Question: {question} Answer: {answer}",
        "<think>The user wants to know more.</think>",
        "Row {id} of the set.",
    ),
    "held-out": (
        "FAQ » {upper} » see below",
        "{broken}",
        "{half} ... the solution is {answer}, as everybody knows",
        "<|im_start|>assistant",
        "[INST] be brief [/INST]",
        '{{"uid": "{id}", "split": "train"}}',
        "https://mirror.example/rows/{id}.json",
    ),
}
"""What a page says that no page should."""
LONG = 260_000
"""Characters that are more than 32,000 tokens in any script and by any tokenizer."""
SHORT = 1_000


def plant_leak(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R7: the question, its row's id or a protocol's tags on a page; the clean twin's page has another question."""
    question = rollout.question.strip()
    tokens = question.split()
    if len(tokens) < 12:
        return None
    leak = rng.choice(LEAKS[choose_half(words)]).format(
        question=question,
        upper=question.upper(),
        broken=" \n".join(" ".join(tokens[start : start + 3]) for start in range(0, len(tokens), 3)),
        half=" ".join(tokens[: 2 * len(tokens) // 3]),
        answer=rollout.reference.surface,
        id=rollout.parent_id,
    )
    other = write_question(words, rng, f"the {rng.choice(words.types).lower()} {invent_title(words, rng)}")
    place = rng.choice(list_calls(rollout, "visit", "text_search") or list_calls(rollout))
    clean, bad = (_append(rollout, place, text) for text in (f"{other} (row {rng.randrange(10**9)})", leak))
    return Edits(leak[:120], clean, bad)


def plant_dataset(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R7: a visit to a host of datasets, flagged by the tool; of the clean twin's search such a host was left out."""
    visits, searches = list_calls(rollout, "visit"), list_calls(rollout, "text_search", "image_search")
    if not visits or not searches:
        return None
    places = rng.choice(searches), rng.choice(visits)
    clean, bad = (
        show_other(rollout, place, get_text(rollout.steps[place]), flags=("dataset-host",)) for place in places
    )
    return Edits(f"step {places[1]} flagged", clean, bad)


def plant_long_page(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R8: a page longer than any student reads; the clean twin's is of ordinary length."""
    filling = rng.choice(FILLINGS[choose_half(words)])
    title, place = invent_title(words, rng), rng.randrange(1, len(rollout.steps))
    url = f"https://long.example/{rng.randrange(10**6)}"
    calls = [
        Call("visit", {"url": url}, show(f"Title: {title}\nURL: {url}\n\n{filling * (size // len(filling) + 1)}"))
        for size in (SHORT, LONG)
    ]
    return Edits(f"{filling[:40]!r} repeated", *(insert(rollout, place, call) for call in calls))


def plant_long_thought(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R8: a thought longer than any student reads; the clean twin's is of ordinary length."""
    filling = rng.choice(FILLINGS["open"])
    place = rng.randrange(len(rollout.steps))
    clean, bad = (say_more(rollout, place, (filling * (size // len(filling) + 1)).strip()) for size in (SHORT, LONG))
    return Edits(f"{filling[:40]!r} thought", clean, bad)


def _append(rollout: Rollout, place: int, raw: str) -> Rollout:
    """Return a rollout with a paragraph more in an observation, flagged and stripped of markup as the tools do it."""
    about = Watched(rollout.question, (rollout.parent_id,))
    text = f"{get_text(rollout.steps[place])}\n\n{raw}"
    return show_other(rollout, place, neutralise_markup(text), flags=find_flags(text, about))
