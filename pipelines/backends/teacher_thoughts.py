"""What the scripted teacher thinks aloud: an observation, then an intention, each in several wordings.

Slots are filled only with what the transcript has shown: ``name`` (the entity at hand), ``next`` (what was just read),
``clue`` (where it stood), ``asked`` (what is looked for now). Of a fault alone, ``answer`` may come from nowhere.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.backends.teacher_faults import FAULTS
from pipelines.backends.teacher_looks import LOOKS, Wordings
from pipelines.ids import draw_unit

THOUGHTS: Mapping[str, Wordings] = MappingProxyType(
    {
        **LOOKS,
        **FAULTS,
        "open_anchor": Wordings(
            (
                "The search identifies the picture as {name}.",
                "So the picture shows {name}.",
                "{name} is the match, which gives me a starting point.",
                "This looks like {name}; the result fits the question's wording.",
                "That answers what is in the picture: {name}.",
                "Good, a title: {name}.",
            ),
            (
                "I will open its page and look for {asked}.",
                "Next I need {asked}, so I read the page.",
                "The page should say something about {asked}.",
                "What I am after there is {asked}. Opening it.",
                "Let me read the article itself; the first link in the chain is {asked}.",
            ),
        ),
        "find": Wordings(
            (
                "Here it is: {clue} gives {next}.",
                "For {name}, {clue} says {next}.",
                "I read {next} in {clue}, which is the link I was looking for.",
                "That step is done: going by {clue}, the trail leads from {name} to {next}.",
                "{next} is what {clue} has for {name}.",
                "In {clue} I find {next}.",
            ),
            (
                "Now I need a page about {next}, to learn {asked}.",
                "The question goes on to {asked}, so I look for {next}.",
                "I have no address for {next} yet. A search first.",
                "Let me find {next}; what I want there is {asked}.",
                "Next comes {asked}, and for that I search for {next}.",
            ),
        ),
        "find_again": Wordings(
            (
                "None of those titles is quite {name}.",
                "The page of {name} is not among these results.",
                "Those words pulled in other pages.",
                "Too many words in that query.",
            ),
            (
                "Let me search for {name} alone.",
                "I will try the plain name, {name}.",
                "A narrower query should do: {name}.",
            ),
        ),
        "open": Wordings(
            (
                "{name} has a page of its own in the results.",
                "One of the hits is exactly {name}.",
                "The search found {name}.",
                "There is the entry for {name}.",
                "I have the address of {name} now.",
            ),
            (
                "A snippet is not enough for {asked}; I open the page.",
                "I will read it to find {asked}.",
                "Opening it, with an eye on {asked}.",
                "The full page should give {asked}.",
                "Let me check {asked} on the page itself.",
            ),
        ),
        "open_next": Wordings(
            (
                "According to {clue}, {name} leads on to {next}.",
                "{next}, then: that is what {clue} gives for {name}.",
                "The results show it: {clue} for {name} reads {next}.",
                "With {next} I have the next link, from {clue}.",
            ),
            (
                "Its address is already in the results, so I open it to find {asked}.",
                "I have seen its page listed. Let me read it for {asked}.",
                "No new search needed; I open that page and look for {asked}.",
            ),
        ),
        "not_on_page": Wordings(
            (
                "The page of {name} does not spell out {asked}.",
                "I have read the article on {name} and {asked} is not there.",
                "Nothing on this page settles {asked}.",
                "The article leaves {asked} open.",
            ),
            (
                "One search for it, then I will see.",
                "Another source may have it.",
                "I will search for {name} together with it.",
                "Let me ask the search directly.",
            ),
        ),
        "answer": Wordings(
            (
                "The page of {name} states {asked}: {next}.",
                "For {name}, {clue} reads {next}.",
                "There it is in {clue}: {next}.",
                "{asked_capital} of {name} is given as {next}.",
                "In {clue} the page has {next}.",
                "I was looking for {asked}, and the source says {next}.",
            ),
            (
                "Every step from the picture to here rests on a page, so I can answer.",
                "That is what was asked.",
                "The chain is complete.",
                "Nothing is left open; I answer with that.",
                "This closes the trail that began with the picture.",
                "I have it from the source and need no further search.",
            ),
        ),
        "unknown": Wordings(
            (
                "The trail ends here: I have not seen what I would need to go on.",
                "What is missing did not turn up in the pages or in the search.",
                "I cannot get to the next link with what the tools returned.",
                "The sources I could reach do not say.",
            ),
            (
                "A guess would not be honest, so I say that I do not know.",
                "I stop here without an answer.",
                "Better no answer than an invented one.",
            ),
        ),
    }
)


def choose_thought(kind: str, slots: Mapping[str, str], *seed: object) -> str:
    """Return a thought of a kind; the seed alone decides its wording.

    Args:
        kind: a key of :data:`THOUGHTS`.
        slots: must hold every slot that the kind's wordings use.
        seed: question, attempt, turn and teacher's name.
    """
    wordings = THOUGHTS[kind]
    first = wordings.firsts[int(draw_unit(*seed, kind, "first") * len(wordings.firsts))]
    second = wordings.seconds[int(draw_unit(*seed, kind, "second") * len(wordings.seconds))]
    return f"{first} {second}".format_map(slots)
