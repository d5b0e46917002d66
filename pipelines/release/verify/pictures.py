"""What a release may say of pictures, held against the corpus: source, choice, degradation, scene, licence, text."""

from collections.abc import Iterator

from pipelines.agent.depicting import gather_evidence, weigh_evidence
from pipelines.agent.pictures import MIN_WORDS, REPAIRS, fits_strength, list_words, measure_degraded
from pipelines.checks.examination import check_picture_names
from pipelines.checks.leakage import list_type_words
from pipelines.checks.legibility import check_readable
from pipelines.checks.pictures import check_licence
from pipelines.corpus.images import find_page_images
from pipelines.corpus.store import Corpus
from pipelines.graph.proofs import list_names
from pipelines.graph.query import Indexes
from pipelines.release.rows import (
    ProofRow,
)
from pipelines.release.scenes import find_scene_problems
from schemas.corpus import CorpusImage
from schemas.datasets import CandidateSource, Picture, Trial

SAID = ("author", "licence", "licence_url", "source_url")
"""What a picture keeps of its source, however it was scaled."""
MEASURED = ("sha256", "width", "height", "phash")


def find_picture_problems(ground: Indexes, anchor: int, proof: ProofRow) -> Iterator[str]:
    """Yield the problems of a question's picture: its source, choice, degradation, licence and text.

    Of a picture that a search on Commons found, only licence and text can be checked: it is in no article.
    """
    picture = proof.original or proof.picture
    if picture is None:
        lead = _find_lead(ground.corpus, anchor)
        if lead is not None and lead.path:
            yield "picture: the proof has none, the anchor's page has one"
        if proof.depiction is not None or proof.trial is not None:
            yield "picture: the proof says how a picture was chosen, and has none"
        return
    yield from _find_source_problems(ground.corpus, anchor, proof, picture)
    yield from _find_choice_problems(ground.corpus, anchor, proof, picture)
    yield from find_degradation_problems(proof)
    yield from find_scene_problems(ground.corpus, proof)
    licence = check_licence(picture.licence)
    if licence.outcome != "PASS":
        yield f"picture: {licence.code}: {licence.detail}"
    yield from _find_told_problems(ground, proof, picture)


def _find_source_problems(corpus: Corpus, anchor: int, proof: ProofRow, picture: Picture) -> Iterator[str]:
    source = proof.depiction.source if proof.depiction else "infobox"
    right = _find_source(corpus, anchor, picture)
    if source == "infobox" != right:
        lead = _find_lead(corpus, anchor)
        named = lead.file if lead else "none"
        yield f"picture: file of the anchor's lead picture is {named!r}, the proof says {picture.file!r}"
        return
    if source != right:
        yield f"picture: {picture.file} is from {right} of the anchor's article, the proof says {source}"
    image = corpus.image(picture.file)
    if image is None:
        return
    # A picture is fetched where the corpus lacks its metadata: then only the source has them.
    said = SAID if image.path or (image.url and image.width and image.height and image.licence) else ()
    for name in ("file", *said, *(MEASURED if image.path else ())):
        given, wanted = getattr(picture, name), getattr(image, name)
        if given != wanted:
            yield f"picture: {name} of the anchor's picture is {wanted!r}, the proof says {given!r}"
    if proof.depiction and proof.depiction.articles != len(image.title):
        yield f"picture: {len(image.title)} articles lead with {image.file}, the proof says {proof.depiction.articles}"


def _find_source(corpus: Corpus, anchor: int, picture: Picture) -> CandidateSource:
    """Return where a file comes from; one that is not in the article was found by a search."""
    lead = _find_lead(corpus, anchor)
    if lead is not None and lead.file == picture.file:
        return "infobox"
    shown = find_page_images(corpus.text(anchor), corpus.manifest.language)
    return "page" if picture.file in shown else "search"


def _find_lead(corpus: Corpus, anchor: int) -> CorpusImage | None:
    page = corpus.page(anchor)
    return corpus.image(page.image) if page.image and page.image_free else None


def _find_choice_problems(corpus: Corpus, anchor: int, proof: ProofRow, picture: Picture) -> Iterator[str]:
    """Yield the problems of how a picture was chosen, as far as the corpus can show them."""
    depiction = proof.depiction
    if depiction is None:
        yield "picture: the proof does not say how it was chosen"
        return
    judged = depiction.margin is not None and depiction.over_threshold is not None and depiction.distractors > 0
    told = depiction.margin is not None or depiction.over_threshold is not None or depiction.distractors != 0
    if (depiction.ranker == "metadata") == judged or judged != told:
        yield f"picture: {depiction.ranker} does not rank by such a margin, threshold and number of distractors"
    if depiction.candidates < 1:
        yield f"picture: it was chosen among {depiction.candidates} candidates"
    if not depiction.engines and (depiction.text or depiction.text_at_training):
        yield "picture: it has text and names no OCR engine"
    image = corpus.image(picture.file)
    if image is None:
        return
    evidence = gather_evidence(corpus, anchor, image, depiction.source)
    if depiction.depicts != evidence.depicts:
        yield f"picture: of what it depicts Commons says {evidence.depicts}, the proof {depiction.depicts}"
    if depiction.ranker == "metadata" and depiction.score != weigh_evidence(evidence):
        yield f"picture: the metadata give {weigh_evidence(evidence)} points, the proof says {depiction.score}"


def find_degradation_problems(proof: ProofRow) -> Iterator[str]:
    """Another picture keeps author and licence; its trial or scene must have shown that a tool undoes what was done."""
    composed = proof.scene is not None and bool(proof.scene.parts)
    if (proof.original is not None) != (proof.trial is not None or composed):
        yield "picture: a degraded picture needs its original and its trial, the proof has one of the two"
    if proof.trial is not None and proof.scene is not None:
        yield "picture: it is said to be degraded and to be a scene"
    if proof.original is None or (proof.trial is None and proof.scene is None):
        return
    if proof.picture is None or proof.picture.sha256 == proof.original.sha256:
        yield "picture: it is said to be degraded and is the original"
        return
    if any(getattr(proof.picture, name) != getattr(proof.original, name) for name in ("file", *SAID)):
        yield "picture: the degraded picture is credited otherwise than its original"
    if proof.trial is None:
        return
    yield from _find_trial_problems(proof.trial, proof.original, proof.picture)
    words = list_words(proof.depiction.text) if proof.depiction else frozenset()
    if proof.trial.test == "text" and len(words) < MIN_WORDS:
        yield "picture: its trial was to read words, and none were read in the original"


def _find_trial_problems(trial: Trial, original: Picture, picture: Picture) -> Iterator[str]:
    if not (trial.before and trial.repaired) or trial.degraded:
        yield "picture: its trial does not show that the repair restores what the degradation broke"
    if REPAIRS[trial.degradation] != trial.repair:
        yield f"picture: {trial.degradation} is repaired by {REPAIRS[trial.degradation]}, the proof says {trial.repair}"
    size = (original.width, original.height)
    if not fits_strength(trial.degradation, trial.strength, trial.parameters, size):
        yield f"picture: {trial.degradation} of strength {trial.strength:g} has other parameters"
    elif (picture.width, picture.height) != measure_degraded(trial.degradation, trial.parameters, size):
        yield f"picture: {trial.degradation} with these parameters makes another size"


def _find_told_problems(ground: Indexes, proof: ProofRow, picture: Picture) -> Iterator[str]:
    """Yield names that a picture's file, address or text gives away."""
    told = (picture.file, picture.source_url)
    names, words = list_names(ground.corpus, proof.proof.hidden), list_type_words(proof.proof.entities)
    results = [check_picture_names(told, names, proof.answer, words)]
    if proof.depiction and proof.depiction.text:
        results.append(check_readable(proof.depiction.text, names, proof.answer, words))
    if proof.depiction and proof.depiction.text_at_training:
        results.append(check_readable(proof.depiction.text_at_training, names, proof.answer, words))
    for result in results:
        if not result.passed:
            yield f"picture: {result.code}: {result.detail}"
