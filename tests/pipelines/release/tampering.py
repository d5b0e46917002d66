"""Ways to change a release so that nothing but a look at its rows can tell: rows rewritten, the manifest resealed."""

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.graph.proofs import make_question_id
from pipelines.ids import digest_file
from pipelines.release.making import make_vqa_row
from pipelines.release.manifest import MANIFEST, read_release_manifest
from pipelines.release.rows import EmbeddedImage, ProofRow


def reseal(folder, rows=None):
    """Rewrite the manifest so that every file, and if given the number of rows, is as it says."""
    manifest = read_release_manifest(folder)
    files = [
        entry.model_copy(
            update={"sha256": digest_file(folder / entry.name), "bytes": (folder / entry.name).stat().st_size}
        )
        for entry in manifest.files
        if (folder / entry.name).exists()
    ]
    splits = manifest.splits
    if rows is not None:
        splits = (splits[0].model_copy(update={"rows": rows, "questions": rows}),)
    sealed = manifest.model_copy(update={"files": tuple(files), "splits": splits})
    (folder / MANIFEST).write_text(sealed.model_dump_json(indent=1))


def rewrite_rows(folder, pattern, change):
    """Replace the rows of every matching Parquet file by what ``change`` returns for them."""
    for path in sorted(folder.glob(pattern)):
        table = pq.read_table(path)
        rows = change(table.to_pylist())
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def edit_rows(folder, pattern, edit):
    def change(rows):
        for row in rows:
            edit(row)
        return rows

    rewrite_rows(folder, pattern, change)


def read_rows(folder, kind):
    return [row for path in sorted(folder.glob(f"{kind}/*.parquet")) for row in pq.read_table(path).to_pylist()]


def cut_release(folder, dataset, wanted):
    """Leave one row of each wanted question and its proof, and seal what is left honestly."""
    key = "question_id" if dataset == "sft" else "id"
    seen = set()

    def take(row):
        chosen = row[key] in wanted and row[key] not in seen
        seen.update([row[key]] if chosen else [])
        return chosen

    rewrite_rows(folder, "data/*.parquet", lambda rows: [row for row in rows if take(row)])
    rewrite_rows(folder, "proofs/*.parquet", lambda rows: [row for row in rows if row["record_id"] in wanted])
    if dataset == "rl":
        rewrite_rows(folder, "data/*.parquet", number_rows)
    reseal(folder, rows=len(wanted))


def number_rows(rows):
    for index, row in enumerate(rows):
        row["extra_info"]["index"] = index
    return rows


def on_proof(edit):
    return lambda folder: edit_rows(folder, "proofs/*.parquet", lambda row: edit(row["proof"]))


def on_proof_row(edit):
    return lambda folder: edit_rows(folder, "proofs/*.parquet", edit)


def on_row(edit):
    return lambda folder: edit_rows(folder, "data/*.parquet", edit)


def set_in(*path, value):
    """Return an edit that sets one value deep inside a row; a function changes what is there."""

    def edit(row):
        for step in path[:-1]:
            row = row[step]
        row[path[-1]] = value(row[path[-1]]) if callable(value) else value

    return edit


def forge(edit):
    """Edit each proof row and its picture's bytes, then make id and row again as publishing would."""

    def tamper(folder):
        images = {row["id"]: row["image"] for row in read_rows(folder, "data")}
        made = {}

        def edit_proof(row):
            old = row["record_id"]
            image = edit(row, images[old]) or images[old]
            proof = ProofRow.model_validate(row, strict=False)
            sha256 = proof.picture.sha256 if proof.picture else ""
            row["record_id"] = make_question_id(proof.text, sha256, proof.answer, proof.proof)
            proof = ProofRow.model_validate(row, strict=False)
            shown = (EmbeddedImage(**image),) if proof.picture else ()
            made[old] = make_vqa_row(proof, shown).model_dump()

        edit_rows(folder, "proofs/*.parquet", edit_proof)
        rewrite_rows(folder, "data/*.parquet", lambda rows: [made[row["id"]] for row in rows])

    return tamper
