"""Verifying scenes of high resolution: what a proof says of the box and of the other pictures, and what the bytes say.

The part that the box cuts out must be the anchor's picture, whose bytes the corpus has, and the whole at training size
must not look like it: both by perceptual hash, which is what a search by picture goes by. Each other picture that is
listed must be found in its own box.

Two things cannot be derived. A picture that is of high resolution by itself has nothing to be held against: that a
search finds its part and not its whole is taken from the row. And a picture that a scene shows and the row does not
list is not seen, as long as enough are listed.
"""

from collections.abc import Iterator

from pipelines.agent.scenes import LEAST_PARTS, NEAR, find_missing_parts, view_scene
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.pictures import compute_phash, measure_distance
from pipelines.release.rows import ProofRow
from schemas.datasets import ScenePart

MOST_SHARE = 0.05
"""Of the area (SenseNova-MARS, 3.4)."""
LEAST_SIDE = 3840
"""Pixels of the longer side of a picture of 4K."""
_SAID = ("sha256", "width", "height", "phash", "author", "licence", "licence_url", "source_url")


def find_scene_problems(corpus: Corpus, proof: ProofRow) -> Iterator[str]:
    """Yield what a proof says of a scene that the corpus or the scene's own numbers speak against."""
    scene, picture = proof.scene, proof.picture
    if scene is None or picture is None:
        return
    if scene.whole or not scene.cropped:
        yield "scene: its measure does not show that the part tells what the whole does not"
    if not 0 < scene.share < MOST_SHARE:
        yield f"scene: the part covers {scene.share:.2%} of the area, it must be under {MOST_SHARE:.0%}"
    if max(picture.width, picture.height) < LEAST_SIDE:
        yield f"scene: it is {picture.width} x {picture.height} pixels, its longer side needs {LEAST_SIDE}"
    if proof.original is not None and len({part.title for part in scene.parts}) < max(LEAST_PARTS, len(scene.parts)):
        yield f"scene: it names {len(scene.parts)} other pictures, there must be {LEAST_PARTS} and each once"
    titles = {node.title for node in proof.proof.entities}
    for part in scene.parts:
        if part.title in titles:
            yield f"scene: it shows {part.title}, which the question is about"
        if part.picture.licence != picture.licence:
            yield f"scene: {part.picture.file} is under {part.picture.licence}, the scene under {picture.licence}"
        yield from _find_part_problems(corpus, part, proof.domain)


def _find_part_problems(corpus: Corpus, part: ScenePart, domain: str) -> Iterator[str]:
    node = corpus.find(part.title)
    page = None if node is None else corpus.page(node)
    image = corpus.image(part.picture.file)
    if page is None or image is None or page.image != part.picture.file:
        yield f"scene: {part.picture.file} is not the picture of {part.title}"
        return
    if page.domain == domain:
        yield f"scene: {part.title} is of the anchor's domain {domain}, and the question may mean either"
    for name in _SAID:
        if getattr(image, name) != getattr(part.picture, name):
            yield f"scene: {name} of {image.file} is {getattr(image, name)!r}, the proof says otherwise"


def find_view_problems(proof: ProofRow, data: bytes) -> Iterator[str]:
    """Yield what a scene's bytes say otherwise than the proof: share, part, and what whole and part look like."""
    scene, original = proof.scene, proof.original
    if scene is None:
        return
    try:
        view = view_scene(data, scene.box, scene.training_pixels)
        cropped, whole = compute_phash(view.crop), compute_phash(view.whole)
    except RecordFailed as error:
        yield f"scene: the box cannot be cut out: {error}"
        return
    if view.share != scene.share:
        yield f"scene: the box covers {view.share:.4f} of the area, the proof says {scene.share:.4f}"
    if cropped != scene.crop_phash:
        yield f"scene: the box cuts out {cropped}, the proof says {scene.crop_phash}"
    # A picture that was of high resolution by itself is its own original: there is nothing to hold its part against.
    if original is None:
        return
    for part in find_missing_parts(scene.parts, data):
        yield f"scene: it does not show {part.title} at {list(part.box)}"
    if measure_distance(cropped, original.phash) > NEAR:
        yield "scene: what the box cuts out is not the anchor's picture"
    if measure_distance(whole, original.phash) <= NEAR:
        yield "scene: the whole at training size looks like the anchor's picture"
