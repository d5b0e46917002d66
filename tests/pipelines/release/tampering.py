"""Ways to change a release so that nothing but a look at its rows can tell: rows rewritten, the manifest resealed."""

import json
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.config.disclosure import digest_settings
from pipelines.graph.proofs import make_question_id
from pipelines.pictures import PictureStore
from pipelines.release.card import DOCUMENTS, read_prose, render_credits, render_documents
from pipelines.release.making import make_vqa_row
from pipelines.release.manifest import MANIFEST, SplitEntry, digest_content, name_version, read_release_manifest
from pipelines.release.publish import ATTRIBUTION
from pipelines.release.rows import EmbeddedImage, ProofRow, describe_file, list_files
from pipelines.release.verify.documents import CLAIMED, read_credits, take_claims
from pipelines.release.verify.release import ReleaseCheck
from pipelines.release.verify.replaying import Replayer


def reseal(folder):
    """Write the manifest anew as its author would: files, digests, counts, content and version, here and in words."""
    manifest = read_release_manifest(folder)
    entries = [_describe(path, folder) for path in list_files(folder) if path.name not in (MANIFEST, *DOCUMENTS)]
    prose = read_prose(manifest.dataset).text
    content = digest_content(entries, prose)
    renames = {manifest.content: content, manifest.version: name_version(content)}
    for name in DOCUMENTS:
        if (folder / name).is_file() and not (folder / name).is_symlink():
            _replace_words(folder / name, renames)
    entries += [_describe(folder / name, folder) for name in DOCUMENTS if (folder / name).exists()]
    update = {
        "content": content,
        "version": name_version(content),
        "config_digest": digest_settings(manifest.told, manifest.untold, manifest.corpus),
        "files": tuple(sorted(entries, key=lambda entry: entry.name)),
        "splits": tuple(_count_splits(folder, manifest.dataset)),
    }
    write_manifest(folder, manifest.model_copy(update=update))


def write_manifest(folder, manifest):
    path = folder / MANIFEST
    path.chmod(0o644)
    path.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")


def edit_manifest(**update):
    """Return an edit of the manifest that is sealed in its turn."""

    def edit(folder):
        write_manifest(folder, read_release_manifest(folder).model_copy(update=update))

    return edit


def _describe(path, folder):
    rows = 0
    if path.suffix == ".parquet":
        rows = pq.read_metadata(path).num_rows
    elif path.name == ATTRIBUTION:
        rows = path.read_bytes().count(b"\n") - 1
    return describe_file(path, folder, rows)


def _replace_words(path, words):
    text = path.read_text("utf-8")
    for old, new in words.items():
        text = text.replace(old, new)
    path.chmod(0o644)
    path.write_text(text, "utf-8")


def _count_splits(folder, dataset):
    key = "question_id" if dataset == "sft" else "id"
    tables = {}
    for path in sorted((folder / "data").glob("*.parquet")):
        tables.setdefault(path.name.partition("-")[0], []).append(pq.read_table(path))
    for name, parts in sorted(tables.items()):
        rows = [row for part in parts for row in part.to_pylist()]
        yield SplitEntry(
            name=name,
            rows=len(rows),
            questions=len({row.get(key) for row in rows}),
            bytes=sum(part.nbytes for part in parts),
        )


def remake_documents(folder, ground):
    """Write attribution, report, card and Croissant anew from a release's rows, as publishing would, and seal it."""
    reseal(folder)
    manifest = read_release_manifest(folder)
    with (
        tempfile.TemporaryDirectory() as place,
        Replayer(ground.corpus, manifest, PictureStore(Path(place)), read_credits(folder)) as replayer,
    ):
        check = ReleaseCheck(folder, manifest, ground, replayer)
        check.run(lambda done: None)
    _write(folder / ATTRIBUTION, render_credits(sorted(check.survey.credits)))
    reseal(folder)
    claimed = json.loads((folder / "quality.json").read_text("utf-8"))
    _fit_claims(claimed, check.survey.facts)
    check.survey.manifest = read_release_manifest(folder)
    quality = take_claims(check.survey.measure(), claimed)
    prose = read_prose(manifest.dataset)
    documents = render_documents(check.survey.manifest, quality, prose, *check.survey.first)
    for name, text in documents.items():
        _write(folder / name, text)
    reseal(folder)


def _fit_claims(claimed, facts):
    """Say of what is left of a release that the comparer decided it, and nothing of what no row decides."""
    rows = facts.words["decided by"].total()
    if "decided by" in claimed:
        claimed["decided by"] = {"comparer": {"rows": rows, "share": 1.0}}
        claimed["trajectories"].pop("process mark", None)
    for name in [name for name in claimed["standing"] if name.startswith(CLAIMED["standing"])]:
        del claimed["standing"][name]


def _write(path, text):
    path.chmod(0o644)
    path.write_text(text, encoding="utf-8")


def rewrite_rows(folder, pattern, change):
    """Replace the rows of every matching Parquet file by what ``change`` returns for them."""
    for path in sorted(folder.glob(pattern)):
        table = pq.read_table(path)
        rows = change(table.to_pylist())
        path.chmod(0o644)
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def edit_rows(folder, pattern, edit):
    def change(rows):
        for row in rows:
            edit(row)
        return rows

    rewrite_rows(folder, pattern, change)


def read_rows(folder, kind):
    return [row for path in sorted(folder.glob(f"{kind}/*.parquet")) for row in pq.read_table(path).to_pylist()]


def cut_release(folder, dataset, wanted, ground, most=1):
    """Leave ``most`` rows of each wanted question and its proof, and publish what is left honestly."""
    key = "question_id" if dataset == "sft" else "id"
    seen = Counter()

    def take(row):
        seen[row[key]] += 1
        return row[key] in wanted and seen[row[key]] <= most

    rewrite_rows(folder, "data/*.parquet", lambda rows: [row for row in rows if take(row)])
    rewrite_rows(folder, "proofs/*.parquet", lambda rows: [row for row in rows if row["record_id"] in wanted])
    for path in [*folder.glob("data/*.parquet"), *folder.glob("proofs/*.parquet")]:
        if not pq.read_metadata(path).num_rows:
            path.unlink()
    if dataset == "rl":
        rewrite_rows(folder, "data/*.parquet", number_rows)
    remake_documents(folder, ground)


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
