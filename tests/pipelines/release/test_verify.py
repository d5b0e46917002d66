"""Every released row verifies, and no tampered one does, even when the manifest was rewritten to match."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigError, CorruptInput
from pipelines.ids import digest_file
from pipelines.release.manifest import MANIFEST, read_release_manifest
from pipelines.release.verify import verify_release

DATASETS = ("sft", "rl", "bridgevqa")


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


@pytest.fixture(scope="module")
def small_releases(demo, tmp_path_factory):
    """Each release cut down to one row, with descriptor facts where there are any, and its proof; sealed honestly."""
    folder = tmp_path_factory.mktemp("releases")
    for dataset in DATASETS:
        shutil.copytree(demo.release(dataset), folder / dataset)
        proofs = [row for path in folder.glob(f"{dataset}/proofs/*") for row in pq.read_table(path).to_pylist()]
        wanted = max(proofs, key=lambda row: (len(row["proof"]["constraints"]), row["record_id"]))["record_id"]
        key = "question_id" if dataset == "sft" else "id"
        rewrite_rows(folder / dataset, "data/*.parquet", lambda rows: [r for r in rows if r[key] == wanted][:1])  # noqa: B023
        rewrite_rows(folder / dataset, "proofs/*.parquet", lambda rows: [r for r in rows if r["record_id"] == wanted])  # noqa: B023
        reseal(folder / dataset, rows=1)
    return folder


def on_evidence(field, value):
    """Tamper with the first hop's evidence."""

    def tamper(folder):
        def edit(row):
            evidence = row["proof"]["hops"][0]["evidence"]
            evidence[field] = value(evidence[field])

        edit_rows(folder, "proofs/*.parquet", edit)

    return tamper


def on_answer_evidence(field, value):
    def tamper(folder):
        def edit(row):
            row["proof"]["answer_evidence"][field] = value(row["proof"]["answer_evidence"][field])

        edit_rows(folder, "proofs/*.parquet", edit)

    return tamper


def on_answer(field, value):
    """Tamper with the answer in the proof and, for what a row shows, in the row alike."""

    def tamper(folder):
        edit_rows(folder, "proofs/*.parquet", lambda row: row["answer"].__setitem__(field, value(row["answer"][field])))
        shown = {"surface": "answer", "aliases": "answer_aliases"}.get(field)
        if shown:
            edit_rows(folder, "data/*.parquet", lambda row: row.__setitem__(shown, value(row[shown])))

    return tamper


def on_proof(edit):
    return lambda folder: edit_rows(folder, "proofs/*.parquet", lambda row: edit(row["proof"]))


def on_row(edit):
    return lambda folder: edit_rows(folder, "data/*.parquet", edit)


def on_count(name):
    def edit(proof):
        for count in proof["counts"]:
            if count["name"] == name:
                count["value"] += 1000

    return on_proof(edit)


def flip_picture(row):
    image = row["image"]
    image["bytes"] = image["bytes"][:-1] + bytes([image["bytes"][-1] ^ 1])


def swap_hops(proof):
    proof["hops"] = proof["hops"][::-1]


def add_constraint(proof):
    proof["constraints"].append({"node": 1, "relation": "type", "value": "submarine"})


def forget_counts(proof):
    proof["counts"] = [count for count in proof["counts"] if count["name"] != "alone"]


def leak_anchor(folder):
    """Name the anchor in the question, in the proof and in the row alike."""
    names = []

    def edit_proof(row):
        names.append(row["proof"]["nodes"][0]["title"])
        row["text"] = f"{names[-1]}: {row['text']}"

    edit_rows(folder, "proofs/*.parquet", edit_proof)
    edit_rows(folder, "data/*.parquet", lambda row: row.__setitem__("question", f"{names[0]}: {row['question']}"))


TAMPERINGS = {
    "span text": (on_evidence("text", lambda text: text + "x"), "hop 1: the span"),
    "start offset": (on_evidence("start", lambda start: start - 1), "hop 1: the span"),
    "end offset": (on_evidence("end", lambda end: end + 1), "hop 1: the span"),
    "link offset": (on_evidence("link_start", lambda start: start + 1), "hop 1: no link at offset"),
    "revision": (on_evidence("revision", lambda number: number + 1), "hop 1: revision"),
    "page of the evidence": (on_evidence("page_id", lambda number: number + 1), "hop 1: the evidence is from"),
    "infobox key": (on_evidence("key", lambda key: key + "2"), "hop 1: the infobox has no single"),
    "answer's span": (on_answer_evidence("text", lambda text: text[:-1]), "answer: the span"),
    "answer's revision": (on_answer_evidence("revision", lambda number: number - 1), "answer: revision"),
    "answer as shown": (on_answer("surface", lambda surface: surface + "0"), "answer: the evidence gives"),
    "answer's value": (on_answer("value", lambda value: value + "0"), "answer: the evidence gives"),
    "answer's alias": (on_answer("aliases", lambda names: [*names, "anything"]), "answer: the evidence gives"),
    "answer's key": (on_answer("key", lambda key: key + "0"), "answer: the evidence gives"),
    "answer of the row": (on_row(lambda row: row.__setitem__("answer", "1999")), "the row answers"),
    "alias of the row": (on_row(lambda row: row["answer_aliases"].append("1999")), "the row accepts"),
    "question of the row": (on_row(lambda row: row.__setitem__("question", "Who?")), "asks another question"),
    "question that names the anchor": (leak_anchor, "text: alias-leak"),
    "picture bytes": (on_row(flip_picture), "has sha256"),
    "no picture": (on_row(lambda row: row.__setitem__("image", None)), "the first picture is not the anchor's"),
    "count with the chain": (on_count("chain"), "counts: chain"),
    "count without the chain": (on_count("alone"), "counts: alone"),
    "count of anchors": (on_count("anchors"), "counts: anchors"),
    "missing count": (on_proof(forget_counts), "was not counted"),
    "constraint": (on_proof(add_constraint), "answer: the query gives"),
    "hop order": (on_proof(swap_hops), "does not join"),
    "missing hop": (on_proof(lambda proof: proof["hops"].pop()), "nodes: "),
    "attribute": (on_proof(lambda proof: proof.__setitem__("answer_relation", "height")), "answer: "),
    "node type": (on_proof(lambda proof: proof["nodes"][1].__setitem__("type", "submarine")), "incoming links"),
    "node title": (on_proof(lambda proof: proof["nodes"][1].__setitem__("title", "Nowhere")), "nodes: the corpus"),
    "corpus digest": (on_proof(lambda proof: proof.__setitem__("corpus", "0" * 64)), "corpus: the proof is about"),
    "names looked for": (on_proof(lambda proof: proof.__setitem__("alias_digest", "0" * 64)), "names: the corpus"),
    "missing proof": (lambda folder: rewrite_rows(folder, "proofs/*.parquet", lambda rows: []), "no proof for"),
    "dropped row": (lambda folder: rewrite_rows(folder, "data/*.parquet", lambda rows: []), "it says 1 rows"),
}


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_row_of_the_demo_verifies(demo, demo_corpus, demo_relations, dataset):
    report = verify_release(demo.release(dataset), demo_corpus, demo_relations)
    assert report.problems == ()
    assert report.passed
    assert report.verified == report.rows > 10


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_resealed_release_verifies_as_long_as_its_rows_do(small_releases, demo_corpus, demo_relations, dataset):
    assert verify_release(small_releases / dataset, demo_corpus, demo_relations).passed


@pytest.mark.parametrize(("tamper", "named"), TAMPERINGS.values(), ids=TAMPERINGS.keys())
def test_tampering_is_noticed_without_the_manifest_and_named(
    small_releases, demo_corpus, demo_relations, tmp_path, tamper, named
):
    folder = tmp_path / "bridgevqa"
    shutil.copytree(small_releases / "bridgevqa", folder)
    tamper(folder)
    reseal(folder)
    report = verify_release(folder, demo_corpus, demo_relations)
    assert not report.passed
    assert any(named in problem.what for problem in report.problems), report.problems
    assert all(problem.where != "files" for problem in report.problems)


def forget_need(proof):
    proof["counts"] = [count for count in proof["counts"] if count["name"] not in ("anchors", "answers")]


UNNOTICED = {
    "count of answers gone": on_proof(forget_need),
    "descriptor fact gone": on_proof(lambda proof: proof.__setitem__("constraints", [])),
    "role of a node": on_proof(lambda proof: proof["nodes"][0].__setitem__("role", "answer")),
    "hops of the row": on_row(lambda row: row.__setitem__("hops", 9)),
    "chain of the row": on_row(lambda row: row.__setitem__("chain", [])),
    "need for the picture of the row": on_row(lambda row: row.__setitem__("n_img", 900)),
    "descriptor counts of the row": on_row(lambda row: row.__setitem__("r_alone", [900, 900])),
}


@pytest.mark.xfail(strict=True, reason="verify does not compare these with the proof and the corpus yet")
@pytest.mark.parametrize("tamper", UNNOTICED.values(), ids=UNNOTICED.keys())
def test_every_claim_of_a_row_is_compared(small_releases, demo_corpus, demo_relations, tmp_path, tamper):
    folder = tmp_path / "bridgevqa"
    shutil.copytree(small_releases / "bridgevqa", folder)
    tamper(folder)
    reseal(folder)
    assert not verify_release(folder, demo_corpus, demo_relations).passed


def ask_otherwise(row):
    row["messages"][1]["content"] = "<image>Who?"


def pay_otherwise(row):
    row["reward_model"]["ground_truth"] = "1999"


def reward_more(row):
    row["reward_model"]["candidate_answers"].append("1999")


def swap_pictures(row):
    row["images"][0]["bytes"] = b"another"


@pytest.mark.parametrize(
    ("dataset", "edit", "named"),
    [
        ("sft", ask_otherwise, "asks another question"),
        ("sft", lambda row: row.__setitem__("answer", "1999"), "the row answers"),
        ("sft", lambda row: row.__setitem__("question_id", "q-0"), "no proof for question q-0"),
        ("sft", swap_pictures, "has sha256"),
        ("rl", pay_otherwise, "the row answers"),
        ("rl", reward_more, "the row accepts"),
        ("rl", lambda row: row["prompt"][-1].__setitem__("content", "<image>Who?"), "asks another question"),
        ("rl", swap_pictures, "has sha256"),
    ],
)
def test_tampered_training_rows_are_noticed_and_named(
    small_releases, demo_corpus, demo_relations, tmp_path, dataset, edit, named
):
    folder = tmp_path / dataset
    shutil.copytree(small_releases / dataset, folder)
    on_row(edit)(folder)
    reseal(folder)
    report = verify_release(folder, demo_corpus, demo_relations)
    assert not report.passed
    assert any(named in problem.what for problem in report.problems), report.problems


def test_a_changed_file_is_named_although_every_row_still_verifies(
    small_releases, demo_corpus, demo_relations, tmp_path
):
    folder = tmp_path / "rl"
    shutil.copytree(small_releases / "rl", folder)
    (folder / "README.md").write_text("# another card")
    report = verify_release(folder, demo_corpus, demo_relations)
    assert (report.rows, report.verified, report.passed) == (1, 1, False)
    assert report.problems[0].where == "files"
    assert "README.md has changed" in report.problems[0].what


def test_a_release_without_rows_does_not_pass(small_releases, demo_corpus, demo_relations, tmp_path):
    folder = tmp_path / "rl"
    shutil.copytree(small_releases / "rl", folder)
    rewrite_rows(folder, "data/*.parquet", lambda rows: [])
    reseal(folder, rows=0)
    assert not verify_release(folder, demo_corpus, demo_relations).passed


def test_a_folder_that_is_no_release_is_refused(demo_corpus, demo_relations, tmp_path):
    with pytest.raises(ConfigError, match=r"no manifest\.json"):
        verify_release(tmp_path, demo_corpus, demo_relations)


def test_a_file_that_is_no_parquet_is_corrupt_input(small_releases, demo_corpus, demo_relations, tmp_path):
    folder = tmp_path / "rl"
    shutil.copytree(small_releases / "rl", folder)
    next(folder.glob("proofs/*.parquet")).write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(CorruptInput, match="a Parquet file cannot be read"):
        verify_release(folder, demo_corpus, demo_relations)
