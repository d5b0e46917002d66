"""Reading a rollout for its checks: every reply parsed again, every page that a step showed."""

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from urllib.parse import unquote

from pipelines.agent.contamination import Watched, find_flags
from pipelines.agent.dialects import DIALECTS
from pipelines.agent.layout import read_hits, read_page
from pipelines.agent.transcript import BadTurn, parse_turn
from pipelines.checks.rollouts.trails import Leg, Sight, Trail, fold_words
from schemas.rollouts import Observation, Rollout, Step

USED = ("query", "goal", "url")
"""Arguments whose words a name may stand in."""
_HITS = re.compile(r"^(?:\[\d+\] (?=.*\nURL: )|URL: \S+$|Picture: img_\d+$)", re.MULTILINE)
_LAYOUT: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "text_search": _HITS,
        "image_search": _HITS,
        "visit": re.compile(r"(?<=\n)URL: \S+(?=\n\n)"),
        "layout_parsing": re.compile(r" \[\d+, \d+, \d+, \d+\] \(\d\.\d\d\):"),
    }
)
"""By tool that shows something of the world, what of its text is only how that is laid out."""


def read_trail(rollout: Rollout) -> Trail:
    """Return a rollout as its checks read it. Nothing that one may hold fails here; what is wrong is a finding."""
    watched = Watched(rollout.question, (rollout.record_id, rollout.parent_id))
    legs = tuple(_read_leg(step, rollout.dialect, watched) for step in rollout.steps)
    return Trail(rollout, fold_words(rollout.question), legs)


def _read_leg(step: Step, dialect: str, watched: Watched) -> Leg:
    problem, answer = _compare_reply(step, dialect)
    arguments = _read_arguments(step.arguments)
    observation = step.observation
    shown = observation.text if observation is not None and observation.ok else ""
    sights = tuple(_list_sights(step.tool, observation)) if observation is not None and shown else ()
    return Leg(
        step=step,
        problem=problem,
        answer=answer,
        arguments=arguments,
        thought=fold_words(step.thought),
        used=fold_words(" ; ".join(_list_used(arguments))),
        seen=_join_sights(shown, sights),
        told=_blank_layout(step.tool, shown),
        sights=sights,
        # A failed call says again what the model wrote into it, such as the question in a search engine's address.
        flags=_list_flags(shown, watched),
    )


def _list_flags(text: str, watched: Watched) -> tuple[str, ...]:
    plain = text.casefold()
    ids = tuple(name for name in watched.ids if name.casefold() in plain)
    return find_flags(text, Watched(watched.question, ids))


def _compare_reply(step: Step, dialect: str) -> tuple[str, str]:
    """Return why a reply is not the turn that its step records, and what it answers."""
    if dialect not in DIALECTS:
        return f"there is no dialect {dialect!r}", ""
    try:
        turn = parse_turn(step.reply, DIALECTS[dialect])
    except BadTurn as error:
        return str(error), ""
    if (turn.thought, turn.tool, turn.arguments) != (step.thought, step.tool, step.arguments):
        return "the step is not what its reply says", turn.answer
    return "", turn.answer


def _read_arguments(source: str) -> dict[str, object]:
    try:
        arguments = json.loads(source) if source else {}
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _list_used(arguments: dict[str, object]) -> Iterator[str]:
    for name in USED:
        value = arguments.get(name)
        if isinstance(value, str):
            yield unquote(value) if name == "url" else value


def _list_sights(tool: str, observation: Observation) -> Iterator[Sight]:
    """Yield the pages that an observation shows: the one that was opened, or each search result."""
    page = read_page(observation.text) if tool == "visit" else None
    if page is not None:
        yield _make_sight(page.url, page.title, page.text, opened=True)
        return
    hits = read_hits(observation.text) if tool in ("text_search", "image_search") else ()
    yield from (_make_sight(hit.url, hit.title, hit.text, opened=False) for hit in hits)
    told = {hit.url for hit in hits}
    # A result that is kept beside the text was shown by its title at least.
    yield from (
        _make_sight(each.url, each.title, "", opened=False) for each in observation.results if each.url not in told
    )


def _blank_layout(tool: str, shown: str) -> str:
    layout = _LAYOUT.get(tool)
    return layout.sub(lambda found: "|" * len(found[0]), shown) if layout is not None else ""


def _join_sights(shown: str, sights: tuple[Sight, ...]) -> str:
    """Return the folded words of an observation; pages are folded already, and what stands beside them is addresses."""
    return "".join(sight.words for sight in sights) if sights else fold_words(shown)


def _make_sight(url: str, title: str, text: str, *, opened: bool) -> Sight:
    return Sight(url=url, title=title, text=text, words=fold_words(f"{title}\n{text}"), opened=opened)
