"""What a released row claims of its picture, compared with the anchor's article and with what the corpus knows of it."""

from collections.abc import Iterator

from pipelines.checks.examination import check_picture_names
from pipelines.checks.images import check_licence
from pipelines.checks.leakage import list_type_words
from pipelines.checks.legibility import check_readable
from pipelines.corpus.pageimages import find_page_images
from pipelines.corpus.records import CorpusImage
from pipelines.corpus.store import Corpus
from pipelines.graph.ground import Ground
from pipelines.graph.proofs import list_names
from pipelines.release.rows import ProofRow
from schemas.groundings import Picture

_SAID = ("author", "licence", "licence_url", "source_url")
"""What a picture keeps of its source, however it was scaled."""
_MEASURED = ("sha256", "width", "height", "phash")


def find_picture_problems(ground: Ground, anchor: int, proof: ProofRow) -> Iterator[str]:
    """Yield what does not hold of a question's picture: whose it is, what may be done with it, what it tells.

    A picture that a search on Commons found is in no article: of it only its licence and its words can be checked.

    Args:
        ground: the corpus.
        anchor: the anchor's node.
        proof: of the question.
    """
    picture = proof.original or proof.picture
    if picture is None:
        lead = _find_lead(ground.corpus, anchor)
        if lead is not None and lead.path:
            yield "picture: the proof has none, the anchor's page has one"
        return
    yield from _find_source_problems(ground.corpus, anchor, proof, picture)
    yield from _find_degradation_problems(proof)
    licence = check_licence(picture.licence)
    if licence.outcome != "PASS":
        yield f"picture: {licence.code}: {licence.detail}"
    yield from _find_told_problems(ground, proof, picture)


def _find_source_problems(corpus: Corpus, anchor: int, proof: ProofRow, picture: Picture) -> Iterator[str]:
    source = proof.depiction.source if proof.depiction else "infobox"
    lead = _find_lead(corpus, anchor)
    if source == "infobox" and (lead is None or lead.file != picture.file):
        yield f"picture: the anchor's page leads with {lead.file if lead else 'none'}, the proof shows {picture.file}"
        return
    shown = find_page_images(corpus.text(anchor), corpus.manifest.language) if source == "page" else ()
    if source == "page" and picture.file not in shown:
        yield f"picture: {picture.file} is not in the anchor's article"
    image = corpus.image(picture.file)
    if image is None:
        return
    names = ("file", *_SAID, *(_MEASURED if image.path else ()))
    for name in names:
        given, right = getattr(picture, name), getattr(image, name)
        if given != right:
            yield f"picture: {name} of {image.file} is {right!r}, the proof says {given!r}"
    if proof.depiction and proof.depiction.articles != len(image.title):
        yield f"picture: {len(image.title)} articles lead with {image.file}, the proof says {proof.depiction.articles}"


def _find_lead(corpus: Corpus, anchor: int) -> CorpusImage | None:
    page = corpus.page(anchor)
    return corpus.image(page.image) if page.image and page.image_free else None


def _find_degradation_problems(proof: ProofRow) -> Iterator[str]:
    """A degraded picture keeps author and licence, and its trial must have shown that the repair restores it."""
    if (proof.original is None) != (proof.trial is None):
        yield "picture: a degraded picture needs its original and its trial, the proof has one of the two"
    if proof.original is None or proof.trial is None:
        return
    if proof.picture is None or proof.picture.sha256 == proof.original.sha256:
        yield "picture: it is said to be degraded and is the original"
        return
    if any(getattr(proof.picture, name) != getattr(proof.original, name) for name in ("file", *_SAID)):
        yield "picture: the degraded picture is credited otherwise than its original"
    if not (proof.trial.before and proof.trial.repaired) or proof.trial.degraded:
        yield "picture: its trial does not show that the repair restores what the degradation broke"


def _find_told_problems(ground: Ground, proof: ProofRow, picture: Picture) -> Iterator[str]:
    """Say whether what travels with a picture, or can be read in it, tells more than it may."""
    nodes, told = proof.proof.nodes, (picture.file, picture.source_url)
    names, words = list_names(ground.corpus, nodes), list_type_words(nodes)
    results = [check_picture_names(told, names, proof.answer, words)]
    if proof.depiction and proof.depiction.text:
        results.append(check_readable(proof.depiction.text, names, proof.answer, words))
    for result in results:
        if not result.passed:
            yield f"picture: {result.code}: {result.detail}"
