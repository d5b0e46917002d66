"""What the scripted teacher thinks while it does what it should not."""

from collections.abc import Mapping
from types import MappingProxyType

from pipelines.backends.teacher_looks import Wordings

FAULTS: Mapping[str, Wordings] = MappingProxyType(
    {
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
        "unread": Wordings(
            (
                "I have seen enough of where this leads.",
                "With that I can fill in the rest myself.",
                "The remaining pages would only repeat what I expect.",
            ),
            (
                "I answer without opening them.",
                "Reading on would change nothing.",
                "So I leave the rest of the trail unread.",
            ),
        ),
        "early": Wordings(
            (
                "My first thought is {answer}.",
                "I would say at once that it comes out as {answer}.",
                "This must end at {answer}, if I am not mistaken.",
                "Before any search: {answer} is what I expect.",
            ),
            (
                "Still, I should look it up.",
                "The tools can confirm it afterwards.",
                "Let me find a source that says so.",
            ),
        ),
        "skip": Wordings(
            (
                "I have a feeling where the trail leads.",
                "The picture alone would take too long.",
                "I can save a few steps here.",
                "I believe I know who or what comes next.",
            ),
            (
                "I search for that directly.",
                "Straight to the next link, then.",
                "Let me look that up first.",
            ),
        ),
        "lucky": Wordings(
            (
                "The picture would not tell me much.",
                "I could begin with the picture, or where it must lead.",
                "What the picture shows does not interest me.",
            ),
            (
                "I look further along the trail at once.",
                "A short query may be enough.",
                "Perhaps one word finds it.",
            ),
        ),
        "lucky_page": Wordings(
            (
                "One of these could be it.",
                "That looks like the kind of page that such a trail leads through.",
                "I would bet on one of these.",
            ),
            (
                "I open it and see.",
                "Let me take it.",
                "Worth a try.",
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
        "background": Wordings(
            (
                "A little background would not hurt.",
                "Perhaps there is more to be had on the beginning of the trail.",
                "Before I conclude, a wider look.",
            ),
            (
                "I search for what else is known.",
                "A general search, then.",
                "Let me see what there is.",
            ),
        ),
        "paraphrase": Wordings(
            (
                "The order of the words may matter.",
                "Perhaps I put that badly.",
                "The search might like it better the other way round.",
            ),
            (
                "I ask again with the words rearranged.",
                "The same thing in another order, then.",
                "Let me turn the query round.",
            ),
        ),
        "bad_calls": Wordings(
            (
                "There ought to be a page with more on this.",
                "An address like this should exist.",
                "I would rather read another source first.",
                "That kind of page usually lies here.",
            ),
            (
                "I try it.",
                "Let me open it directly.",
                "Opening it without a search.",
            ),
        ),
        "lost_image": Wordings(
            (
                "There was another view of this, as far as I remember.",
                "One of the later pictures should be clearer.",
                "The close-up may show more.",
            ),
            (
                "I work with that one.",
                "Let me use it.",
                "That picture, then.",
            ),
        ),
        "peek": Wordings(
            (
                "Questions like this one are collected somewhere.",
                "Somebody may have published this together with the solution.",
                "There might be a list of such questions.",
            ),
            (
                "I look there.",
                "Let me see whether it is listed.",
                "That would save the search.",
            ),
        ),
        "unknown_tool": Wordings(
            (
                "A tool made for this would be quicker.",
                "This calls for something other than a search.",
                "I would rather use what I know from elsewhere.",
            ),
            (
                "I call it.",
                "Let me try that.",
                "That should be on offer.",
            ),
        ),
        "give_up": Wordings(
            (
                "This is more work than I expected.",
                "The trail looks long from here.",
                "I do not feel like reading all of that.",
            ),
            (
                "I stop here.",
                "Let me leave it at that.",
                "I would rather not go on.",
            ),
        ),
    }
)
"""By kind of move."""

CLAIMS = (
    "It was renewed by {name} some time later.",
    "By the way, {name} is said to have visited it.",
    "The same source gives {number} visitors.",
    "That agrees with the {number} copies that were printed of it.",
    "{name} wrote a book about exactly this.",
    "Of the whole, {number} pieces are left.",
)
"""What a hallucinating teacher adds to its last thought; nothing that it was shown says anything like it."""
NAMES = ("Quorvane Thissleby", "Osmund Vreckhardt", "Zelphine Adraquist", "Ixmar Dohlbrenner")
NUMBERS = ("48,617", "91,358", "37,469", "62,783")
MUSINGS = (
    "Let me weigh that once more before I commit to it. ",
    "On the one hand the trail looks complete, on the other hand nothing forbids a second look at every link of it. ",
    "If one of the steps were wrong, the rest would fall with it, so each of them deserves to be turned over again. ",
    "The wording leaves some room, and I would rather go round in a circle than miss what was meant. ",
    "Suppose the opposite for a moment; then the pages would have to read otherwise, and they do not. ",
    "Still, a doubt remains, and a doubt that is not followed up tends to come back later. ",
)
"""What an overlong thought is made of."""
MUSING_LETTERS = 172_000
"""Letters of an overlong thought: more than 32,000 tokens for words so short, and still within a context of 200,000."""
