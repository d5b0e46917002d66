"""What a released row claims, compared with its proof, and what its proof claims, compared with the corpus.

A row is made again from its proof row by the functions that publishing uses, so a column that is not compared does not
exist. What no proof can decide, a transcript, is held to the rules it was accepted by; its length is told, as are the
pages that a search by picture finds.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

from pipelines.checks.descriptors import check_spoken
from pipelines.checks.injections import list_hidden_checks
from pipelines.checks.proofs import Claim, find_problems
from pipelines.checks.verdicts import Check, run_checks
from pipelines.checks.wording import check_named
from pipelines.errors import RecordFailed
from pipelines.graph.ground import Ground
from pipelines.graph.proofs import make_question_id
from pipelines.graph.query import locate_nodes
from pipelines.pictures import probe_picture
from pipelines.release.making import make_bridge_row, make_rl_row, make_sft_row, read_transcript
from pipelines.release.picture_claims import find_picture_problems
from pipelines.release.rows import BridgeRow, EmbeddedImage, ProofRow, ReleaseRow, RlRow, SftRow
from pipelines.release.transcript import strip_page_text
from pipelines.release.transcript_claims import find_transcript_problems, shorten
from schemas.groundings import Picture


def find_question_problems(ground: Ground, proof: ProofRow) -> list[str]:
    """Return what does not hold of a question: its query, its text, its picture, its id; empty when it verifies."""
    corpus = ground.corpus
    problems = find_problems(ground, Claim(proof.text, proof.answer, proof.proof))
    if problems:
        return problems
    (anchor,) = locate_nodes(corpus, proof.proof.nodes[:1])
    page = corpus.page(anchor)
    if proof.domain != page.domain:
        problems.append(f"domain: {page.title} is of {page.domain}, the proof says {proof.domain}")
    problems += find_picture_problems(ground, anchor, proof)
    problems += _find_wording_problems(ground, proof)
    sha256 = proof.picture.sha256 if proof.picture else ""
    wanted = make_question_id(proof.text, sha256, proof.answer, proof.proof)
    if proof.record_id != wanted:
        problems.append(f"id: the question's id is {wanted}, the proof says {proof.record_id}")
    return problems


def _find_wording_problems(ground: Ground, row: ProofRow) -> Iterator[str]:
    """Hold the earlier wordings to what they were: the canonical one names the path, the fuzzy one its anchor alone."""
    proof = row.proof
    # Injection starts with a question about its answer node alone, and hides it in the first round.
    grown = any(hop.backward for hop in proof.hops)
    named = proof.nodes[-1:] if grown else proof.nodes[:-1]
    earlier: dict[str, tuple[Check, ...]] = {
        "canonical": tuple(partial(check_named, row.canonical, node.title) for node in named),
        "fuzzy": (
            partial(check_named, row.fuzzy, proof.nodes[0].title),
            *list_hidden_checks(ground.corpus, row.fuzzy, proof, row.answer),
            partial(check_spoken, row.fuzzy, proof.descriptors),
        ),
    }
    for name, checks in earlier.items():
        if not getattr(row, name).rstrip().endswith("?"):
            yield f"{name}: it is no question"
        for result in run_checks(checks, audit=True):
            yield f"{name}: {result.code}: {result.detail}"


def find_row_problems(proof: ProofRow, row: ReleaseRow, index: int) -> list[str]:
    """Return what does not hold of a row.

    Args:
        proof: the row of the question's proof, which verifies.
        row: the row as it was read.
        index: its place in its split.
    """
    images = _list_images(row)
    problems = list(_find_image_problems(proof.picture, images))
    match row:
        case SftRow():
            made: ReleaseRow = make_sft_row(proof, read_transcript(row, images))
            problems += find_transcript_problems(proof, row)
        case RlRow():
            made = make_rl_row(proof, images, index, row.image_search)
            problems += _find_thumbnail_problems(row)
        case BridgeRow():
            made = make_bridge_row(proof, images)
    for name in type(row).model_fields:
        given, right = getattr(row, name), getattr(made, name)
        if given != right:
            problems.append(f"{name}: the row says {shorten(given)}, its proof {shorten(right)}")
    return problems


def _list_images(row: ReleaseRow) -> tuple[EmbeddedImage, ...]:
    if isinstance(row, BridgeRow):
        return () if row.image is None else (row.image,)
    return row.images


def _find_image_problems(picture: Picture | None, images: Sequence[EmbeddedImage]) -> Iterator[str]:
    """Hash and decode every embedded picture again; the first one must be the anchor's."""
    first = hashlib.sha256(images[0].bytes).hexdigest() if images else ""
    if first != (picture.sha256 if picture else ""):
        yield f"images: the first picture is {first or 'missing'}, not the anchor's"
    for number, image in enumerate(images):
        problems = list(_find_name_problems(image, f"images: picture {number}"))
        yield from problems
        if number or picture is None or problems:
            continue
        probe = probe_picture(image.bytes)
        seen = (probe.extension, probe.width, probe.height, probe.phash)
        if seen != (picture.extension, picture.width, picture.height, picture.phash):
            yield f"images: the first picture is {seen}, the proof says otherwise"


def _find_name_problems(image: EmbeddedImage, where: str) -> Iterator[str]:
    """Hash and decode a picture, and hold its name to both."""
    digest = hashlib.sha256(image.bytes).hexdigest()
    try:
        extension = probe_picture(image.bytes).extension
    except RecordFailed as error:
        yield f"{where}: {error}"
        return
    if image.path != f"{digest}.{extension}":
        yield f"{where}: it is named {image.path}, has sha256 {digest} and is {extension}"


def _find_thumbnail_problems(row: RlRow) -> Iterator[str]:
    """Hold the thumbnails to their names, titles to what a prompt may hold; what a search finds takes it to know."""
    for number, found in enumerate(row.image_search):
        if strip_page_text(found.title) != found.title:
            yield f"image_search: title {number} holds a tag or token: {shorten(found.title)}"
    shown = [found.thumbnail for found in row.image_search if found.thumbnail is not None]
    for number, image in enumerate(shown):
        yield from _find_name_problems(image, f"image_search: thumbnail {number}")
