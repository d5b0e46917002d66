"""``ATTRIBUTION.tsv``: every picture and every page a release draws on, with author, licence and source."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from urllib.parse import urlsplit

from pipelines.agent.layout import Shown, read_hits, read_page
from pipelines.backends.local_pages import make_page_url
from pipelines.errors import GateNotMet
from pipelines.release.making import Example
from schemas.groundings import Picture
from schemas.proofs import Evidence
from schemas.trajectories import Trajectory

PAGE_AUTHOR = "Wikipedia contributors"
PAGE_LICENCE = "CC BY-SA 4.0"
PAGE_LICENCE_URL = "https://creativecommons.org/licenses/by-sa/4.0/"
UNCHANGED, EXCERPT, SCALED = "none", "excerpt", "scaled down"
UNKNOWN = "unknown"
"""Licence of what live tools bring; only a run that was told to lets it pass."""
SPACES = re.compile(r"[\s\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True, order=True)
class Credit:
    """One line of the attribution file."""

    kind: str
    """``image``; ``page``: evidence of a proof; ``page-read``: shown in a trajectory, opened or quoted by a search."""
    title: str
    url: str
    author: str
    licence: str
    licence_url: str
    source: str
    """For a picture the sha256 of its bytes, for a page the corpus it was read from."""
    changes: str
    """What was done to a picture, in order, as licences ask to be told: ``none``, or such as ``crop``; of a page an
    excerpt is shown."""


def make_revision_url(base_url: str, title: str, revision: int) -> str:
    """Return the permanent link of a page's revision.

    Raises:
        GateNotMet: if the corpus gives no web address to link to.
    """
    if urlsplit(base_url).scheme not in ("http", "https"):
        raise GateNotMet(f"attribution: base_url {base_url!r} is no http address; every page needs a link")
    return f"{make_page_url(base_url, title)}?oldid={revision}"


def list_evidence(example: Example) -> tuple[Evidence, ...]:
    """Return the evidence of an example's hops and of its answer."""
    proof = example.question.proof
    return (*(hop.evidence for hop in proof.hops), proof.answer_evidence)


def list_credits(examples: Sequence[Example], base_url: str, corpus: str, lenient: bool = False) -> list[Credit]:
    """Return each picture and page of the examples once, sorted.

    Args:
        examples: the release's rows.
        base_url: of the corpus's wiki.
        corpus: its digest.
        lenient: let pages and pictures pass whose licence is not known; their lines say so.

    Raises:
        GateNotMet: if a picture or a page has no known licence, or pages cannot be linked to.
    """
    found: set[Credit] = set()
    for example in examples:
        changes = list_changes(example)
        found.update(credit_picture(picture, changes[picture.sha256], lenient) for picture in example.list_pictures())
        found.update(credit_picture(picture, SCALED, lenient) for picture in example.list_thumbnails())
        for evidence in list_evidence(example):
            url = make_revision_url(base_url, evidence.title, evidence.revision)
            found.add(credit_page("page", evidence.title, url, corpus))
        if example.trajectory is not None:
            found.update(credit_shown(page, base_url, corpus, lenient) for page in list_shown_pages(example.trajectory))
    return sorted(found)


def list_changes(example: Example) -> dict[str, str]:
    """Return what was done to each of an example's pictures by sha256: its degradation, then the tools behind it."""
    question, trajectory = example.question, example.trajectory
    trial = question.trial
    first = UNCHANGED if trial is None else f"{trial.degradation} of strength {trial.strength:g}"
    changes = {"img_1": first}
    for step in trajectory.steps if trajectory else ():
        for made in step.observation.images if step.observation else ():
            if step.tool == "image_search":
                changes[made] = SCALED
                continue
            before = changes.get(json.loads(step.arguments).get("image", "img_1"), first)
            changes[made] = step.tool if before == UNCHANGED else f"{before}; {step.tool}"
    pictures = {image.id: image.picture for image in trajectory.images} if trajectory else {}
    told = {picture.sha256: changes.get(name, first) for name, picture in pictures.items()}
    return told | ({question.picture.sha256: first} if question.picture else {})


def credit_picture(picture: Picture, changes: str, lenient: bool = False) -> Credit:
    """Return a picture's line.

    Raises:
        GateNotMet: if it has no licence: such a picture may not be passed on.
    """
    if picture.licence.strip() in ("", UNKNOWN) and not lenient:
        raise GateNotMet(f"attribution: picture {picture.file!r} has no licence; it cannot be released")
    author = picture.author.strip() or "author not stated at the source"
    licence = (picture.licence.strip() or UNKNOWN, picture.licence_url)
    return Credit("image", picture.file, picture.source_url, author, *licence, picture.sha256, changes)


def credit_page(kind: str, title: str, url: str, corpus: str) -> Credit:
    """Return a page's line; the text of Wikipedia is CC BY-SA 4.0."""
    return Credit(kind, title, url, PAGE_AUTHOR, PAGE_LICENCE, PAGE_LICENCE_URL, f"corpus {corpus}", EXCERPT)


def list_shown_pages(trajectory: Trajectory) -> Iterator[Shown]:
    """Yield every page whose text an observation shows: the one that was opened, or each that a search quotes."""
    for step in trajectory.steps:
        if step.observation is None or not step.observation.ok:
            continue
        page = read_page(step.observation.text)
        # A page's own text may look like hits, and is not read as such.
        yield from (page,) if page is not None else read_hits(step.observation.text)


def credit_shown(page: Shown, base_url: str, corpus: str, lenient: bool = False) -> Credit:
    """Return the line of a page that a trajectory shows.

    Raises:
        GateNotMet: if it is no page of the corpus's wiki, so that its licence is not known.
    """
    if not page.url.startswith(base_url) and lenient:
        return Credit("page-read", page.title, page.url, "not stated", UNKNOWN, "", "live tools", EXCERPT)
    if not page.url.startswith(base_url):
        raise GateNotMet(f"attribution: a trajectory shows {page.url!r}; only pages of {base_url} have a known licence")
    return credit_page("page-read", page.title, page.url, corpus)


def render_credits(credit_lines: Sequence[Credit]) -> str:
    """Return the file: a header, then one tab-separated line each; white space inside a value becomes one space."""
    header = "\t".join(field.name for field in fields(Credit))
    lines = ["\t".join(SPACES.sub(" ", value).strip() for value in astuple(credit)) for credit in credit_lines]
    return "\n".join([header, *lines]) + "\n"
