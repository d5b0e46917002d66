"""A release's files as they are, and a row made again from its proof, its pictures hashed and decoded again."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipelines.errors import CorruptInput, RecordFailed
from pipelines.pictures import probe_picture
from pipelines.release.making import TRANSCRIPT, make_bridgevqa_row, make_rl_row, make_sft_row, make_vqa_row
from pipelines.release.rows import (
    ROW_TYPES,
    BridgeVqaRow,
    EmbeddedImage,
    ProofRow,
    ReleaseRow,
    RlRow,
    SftRow,
    VqaRow,
    explain_misfit,
    make_release_schema,
    read_values,
    shorten,
    strip_page_text,
)
from pipelines.release.scenes import find_view_problems
from pipelines.release.verify.reports import Problem
from pipelines.release.verify.transcripts import ACCEPTED, find_transcript_problems
from schemas.base import derive_schema
from schemas.datasets import Dataset, Picture


def find_row_problems(proof: ProofRow, row: ReleaseRow, index: int) -> list[str]:
    """Return the problems of a row at a place in its split, given a proof that verifies."""
    images = list_images(row)
    problems = list(_find_image_problems(proof.picture, images))
    if not problems and proof.scene is not None:
        problems += find_view_problems(proof, images[0].bytes)
    match row:
        case SftRow():
            told = {name: getattr(row, name) for name in TRANSCRIPT}
            made: ReleaseRow = make_sft_row(proof, told | ACCEPTED)
            problems += find_transcript_problems(proof, row)
        case RlRow():
            made = make_rl_row(proof, images, index, row.image_search)
            problems += _find_thumbnail_problems(row)
        case VqaRow():
            made = make_vqa_row(proof, images)
        case BridgeVqaRow():
            if proof.trace is None or len(images) != 1:
                return [*problems, "trace: the question has none, or not one picture"]
            made = make_bridgevqa_row(proof, images)
    for name in type(row).model_fields:
        given, right = getattr(row, name), getattr(made, name)
        if given != right:
            problems.append(f"{name}: the row says {shorten(given)}, its proof {shorten(right)}")
    return problems


def list_images(row: ReleaseRow) -> tuple[EmbeddedImage, ...]:
    """Return the pictures of a row in reading order."""
    if isinstance(row, VqaRow | BridgeVqaRow):
        return () if row.image is None else (row.image,)
    return row.images


def _find_image_problems(picture: Picture | None, images: Sequence[EmbeddedImage]) -> Iterator[str]:
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
    digest = hashlib.sha256(image.bytes).hexdigest()
    try:
        extension = probe_picture(image.bytes).extension
    except RecordFailed as error:
        yield f"{where}: {error}"
        return
    if image.path != f"{digest}.{extension}":
        yield f"{where}: it is named {image.path}, has sha256 {digest} and is {extension}"


def _find_thumbnail_problems(row: RlRow) -> Iterator[str]:
    for number, found in enumerate(row.image_search):
        if strip_page_text(found.title) != found.title:
            yield f"image_search: title {number} holds a tag or token: {shorten(found.title)}"
    shown = [found.thumbnail for found in row.image_search if found.thumbnail is not None]
    for number, image in enumerate(shown):
        yield from _find_name_problems(image, f"image_search: thumbnail {number}")


RawRow = tuple[str, int, Mapping[str, Any]]
"""A row as its file has it: split by the file's name, place in the split, values."""


def check_columns(folder: Path, dataset: Dataset) -> Iterator[Problem]:
    """Compare every file's columns and types with those of the dataset; rows are read leniently afterwards."""
    wanted = {"data": make_release_schema(ROW_TYPES[dataset]), "proofs": derive_schema(ProofRow)}
    for kind, schema in wanted.items():
        for path in _list_tables(folder / kind):
            try:
                found = pq.read_schema(path)
            except (OSError, pa.ArrowException) as error:
                raise CorruptInput(f"{path}: a Parquet file cannot be read as {dataset}: {error}") from error
            if not found.equals(schema):
                yield Problem(f"{kind}/{path.name}", f"columns: they are not those of {dataset}")
            elif (found.metadata or {}) != (schema.metadata or {}):
                yield Problem(f"{kind}/{path.name}", f"columns: their description is not that of {dataset}")


def _list_tables(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.parquet") if path.is_file() and not path.is_symlink())


def read_rows(folder: Path) -> Iterator[RawRow]:
    """Yield the rows of a folder of Parquet files, leniently."""
    places: Counter[str] = Counter()
    for path in _list_tables(folder):
        split = path.name.partition("-")[0]
        for values in read_values(path):
            yield split, places[split], values
            places[split] += 1


def read_proof_rows(folder: Path) -> tuple[dict[str, ProofRow], list[Problem]]:
    """Return the proof rows by id, and what keeps others from being one."""
    proofs: dict[str, ProofRow] = {}
    problems = []
    for split, _, values in read_rows(folder / "proofs"):
        where = str(values.get("record_id"))
        try:
            proof = ProofRow.model_validate(values, strict=False)
        except ValidationError as error:
            problems.append(Problem(where, f"proof: {explain_misfit(error)}"))
            continue
        if where in proofs:
            problems.append(Problem(where, "proof: the question has two"))
        if proof.split != split:
            problems.append(Problem(where, f"proof: it is of split {proof.split}, its file of {split}"))
        proofs[where] = proof
    return proofs, problems
