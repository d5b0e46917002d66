"""What the scripted teacher thinks aloud: an observation, then an intention, each in several wordings.

Slots are filled only with what the transcript has shown: ``name`` (the entity at hand), ``next`` (what was just read),
``clue`` (where it stood), ``asked`` (what is looked for now).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pipelines.ids import draw_unit


@dataclass(frozen=True, slots=True)
class Wordings:
    """First and second sentences; any first goes with any second."""

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]


THOUGHTS: Mapping[str, Wordings] = MappingProxyType(
    {
        "look": Wordings(
            (
                "The question turns on what the picture shows, and nothing in its wording says what that is.",
                "Before anything else I have to know what I am looking at.",
                "No starting point is named in the question, so the picture is the only way in.",
                "Everything asked here hangs on the thing in img_1.",
                "I could guess what this is, but a wrong guess would spoil every later step.",
                "The wording only points at the picture; the rest follows from whatever that is.",
            ),
            (
                "I will look the picture up.",
                "A search by picture should give me a title to start from.",
                "Let me see which pages use this picture.",
                "An image search on img_1 is the natural first move.",
                "So: find pages that show the same thing.",
            ),
        ),
        "crop": Wordings(
            (
                "There is a good deal of background in this picture.",
                "The subject does not fill the frame.",
                "The edges of img_1 look like surroundings rather than the thing itself.",
                "A tighter view may be easier to match than the whole scene.",
            ),
            (
                "I will cut out the middle first and look at that.",
                "Let me crop to the main subject before searching.",
                "Cropping costs one turn and may make the match cleaner.",
                "First a crop around the centre, then the search.",
            ),
        ),
        "look_crop": Wordings(
            (
                "The crop holds the main subject.",
                "That is a closer view of what matters.",
                "Now I have the subject without most of its surroundings.",
                "The cut-out looks usable.",
            ),
            (
                "Let me search with it.",
                "I will look up the cropped picture.",
                "Time to see whether any page shows this.",
                "An image search on the crop comes next.",
            ),
        ),
        "look_whole": Wordings(
            (
                "I do not want to rest on the crop alone.",
                "A part of a picture can match the wrong page.",
                "The cropped view is only half the evidence.",
                "To be sure about the identification I need the full frame as well.",
            ),
            (
                "Now the same search with the whole of img_1.",
                "Let me search the uncropped picture and compare.",
                "The original picture gets its own search.",
                "I will look up img_1 itself.",
            ),
        ),
        "lost_picture": Wordings(
            (
                "The image search did not settle what the picture shows.",
                "None of these pages is convincing as the subject of the picture.",
                "That did not identify the picture.",
                "The picture alone does not lead anywhere I can trust.",
            ),
            (
                "I will try the question's own words in a text search.",
                "Perhaps the details in the question find the page.",
                "Let me search for what the question describes.",
                "A text search with the question may still turn up the subject.",
            ),
        ),
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
        "doubt": Wordings(
            (
                "The page gives several values and one of them should be what is asked.",
                "I think I have what I need from the last page.",
                "That page covers the question well enough.",
                "Reading quickly, the value seems clear.",
            ),
            (
                "I will answer now.",
                "No need to check again.",
                "That should be it.",
                "I am fairly sure of this.",
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
        "memory": Wordings(
            (
                "I recognise this at once.",
                "This is familiar to me.",
                "I know this one without looking anything up.",
                "There is no need for tools here.",
            ),
            (
                "I can answer straight away.",
                "The answer comes to mind directly.",
                "Searching would only confirm it.",
            ),
        ),
        "repeat": Wordings(
            (
                "I am not sure I read that result properly.",
                "Let me look at that again.",
                "Something about that result may have escaped me.",
                "I would like to see the same thing once more.",
            ),
            (
                "I repeat the call.",
                "The same call again, then.",
                "Once more with the same words.",
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
