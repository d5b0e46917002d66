"""What the scripted teacher thinks while it looks at the picture, before it knows any name."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Wordings:
    """First and second sentences; any first goes with any second."""

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]


LOOKS: Mapping[str, Wordings] = MappingProxyType(
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
        "sharpen": Wordings(
            (
                "Nothing in this picture has a clear edge.",
                "img_1 is out of focus.",
                "The picture is blurred, and a search may not recognise it like that.",
                "Fine detail is washed out here.",
            ),
            (
                "I will sharpen it before I search.",
                "Sharpening first, then the search.",
                "Let me raise the detail with sharpen.",
                "A sharpened copy should be easier to match and to read.",
            ),
        ),
        "super_resolution": Wordings(
            (
                "This picture is very small.",
                "img_1 has so few pixels that its details are lost.",
                "At this size there is hardly anything to go by.",
                "The picture looks like a thumbnail.",
            ),
            (
                "I will enlarge it before I search.",
                "Super-resolution first, then the search.",
                "Let me get a larger version of it.",
                "An enlarged copy should be easier to match and to read.",
            ),
        ),
        "perspective_correct": Wordings(
            (
                "The picture is seen at an angle.",
                "img_1 is skewed: its sides run together.",
                "What I am to look at lies askew on a plain ground.",
                "The view is distorted by perspective.",
            ),
            (
                "I will straighten it before I search.",
                "Correcting the perspective first, then the search.",
                "Let me see it straight on.",
                "A straightened copy should be easier to match and to read.",
            ),
        ),
        "look_repaired": Wordings(
            (
                "That looks better than img_1.",
                "The new picture is the one to work with.",
                "Now there is a version that can be used.",
                "The repair gives a clearer view.",
            ),
            (
                "I will search with it.",
                "Now the search by picture, on the new version.",
                "Let me see which pages show this.",
                "An image search on the repaired picture comes next.",
            ),
        ),
    }
)
"""By kind of move; a repair is called after its tool."""
