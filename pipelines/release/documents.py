"""The documents of a release, rendered from what was measured: for publishing, and again for verification."""

import json

from pipelines.config.disclosure import render_told
from pipelines.release.card import CardFacts, Prose, make_croissant, render_card
from pipelines.release.making import Example
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.quality import Quality, render_quality
from pipelines.release.rows import ROW_TYPES, ReleaseRow, make_release_schema

DOCUMENTS = ("quality.json", "quality.md", "croissant.json", "config.toml", "README.md")


def render_documents(
    manifest: ReleaseManifest, quality: Quality, prose: Prose, shown: Example, row: ReleaseRow
) -> dict[str, str]:
    """Return the text of each of :data:`DOCUMENTS` by its name.

    Args:
        manifest: with the data files.
        quality: what was measured.
        prose: the written part of the card.
        shown: the example in the card.
        row: that example as a row.

    Raises:
        GateNotMet: if the card is incomplete.
    """
    schema = make_release_schema(ROW_TYPES[manifest.dataset])
    croissant = make_croissant(manifest, schema, prose)
    return {
        "quality.json": json.dumps(quality, indent=1, ensure_ascii=False) + "\n",
        "quality.md": render_quality(quality, f"Quality of {manifest.dataset} {manifest.version}"),
        "croissant.json": json.dumps(croissant, indent=1, ensure_ascii=False) + "\n",
        "config.toml": render_told(manifest.told, manifest.untold, manifest.corpus),
        "README.md": render_card(prose, CardFacts(manifest, quality, schema, shown, row)),
    }
