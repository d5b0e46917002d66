"""Every released row verifies, and no tampered one does, even when the manifest was rewritten to match."""

import hashlib
import io
import shutil

import pytest
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput
from pipelines.pictures import probe_picture
from pipelines.release.rows import ProofRow
from pipelines.release.verify import describe_claim, verify_release
from tests.pipelines.release.tampering import (
    forge,
    on_proof,
    on_proof_row,
    on_row,
    read_rows,
    reseal,
    rewrite_rows,
    set_in,
)

DATASETS = ("sft", "rl", "vqa")


def on_evidence(field, value):
    """Tamper with the first hop's evidence."""
    return on_proof(set_in("hops", 0, "evidence", field, value=value))


def on_answer_evidence(field, value):
    return on_proof(set_in("answer_evidence", field, value=value))


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


def forget_need(proof):
    proof["counts"] = [count for count in proof["counts"] if count["name"] not in ("anchors", "answers")]


def leak_anchor(row, image):
    row["text"] = f"{row['proof']['nodes'][0]['title']}: {row['text']}"


def lose_descriptors(row, image):
    row["text"] = "What about the thing in the image?"


def shorten_descriptors(proof):
    """Say less in the proof than in the question, which would count a descriptor as weaker than it is."""
    proof["descriptors"] = [text and "of [subject]" for text in proof["descriptors"]]
    proof["constraints"] = []


def toggle(name, value):
    """Return an edit that gives a proof something it does not have, or takes away what it has."""

    def edit(proof):
        proof[name] = value(proof) if not proof[name] else type(proof[name])() if name != "corroboration" else None

    return on_proof(edit)


def make_miss(proof):
    return [{"node": 1, "page_id": 1, "title": "Nowhere", "unknown": ["type"], "resolution": "absent"}]


def on_picture(field, value):
    return forge(lambda row, image: row["picture"].__setitem__(field, value))


def forget_picture(row, image):
    row["picture"] = None


def reverse_picture(row, image):
    """Another picture, honestly hashed, with the licence of the right one."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(image["bytes"])).rotate(180).save(buffer, "PNG")
    probe, sha256 = probe_picture(buffer.getvalue()), hashlib.sha256(buffer.getvalue()).hexdigest()
    row["picture"] |= {"sha256": sha256, "extension": "png", "phash": probe.phash}
    return {"bytes": buffer.getvalue(), "path": f"{sha256}.png"}


def on_standing(correct, standing):
    """Tell how many attempts were right and what follows from it."""

    def edit(row):
        row["standing"] = standing
        for cell in row["difficulty"]:
            cell["correct"] = correct

    return on_proof_row(edit)


def add_count(name, node):
    count = {"name": name, "node": node, "value": 1, "capped": False}
    return on_proof(lambda proof: proof["counts"].append(count))


TAMPERINGS = {
    "span text": (on_evidence("text", lambda text: text + "x"), "hop 1: the span"),
    "start offset": (on_evidence("start", lambda start: start - 1), "hop 1: the span"),
    "link offset": (on_evidence("link_start", lambda start: start + 1), "hop 1: no link at offset"),
    "revision": (on_evidence("revision", lambda number: number + 1), "hop 1: revision"),
    "page of the evidence": (on_evidence("page_id", lambda number: number + 1), "hop 1: the evidence is from"),
    "infobox key": (on_evidence("key", lambda key: key + "2"), "hop 1: the infobox has no single"),
    "answer's span": (on_answer_evidence("text", lambda text: text[:-1]), "answer: the span"),
    "answer's revision": (on_answer_evidence("revision", lambda number: number - 1), "answer: revision"),
    "answer as shown": (on_proof_row(set_in("answer", "surface", value="0")), "answer: the evidence gives"),
    "answer of the row": (on_row(set_in("answer", value="1999")), "answer: the row says '1999'"),
    "question that names the anchor": (forge(leak_anchor), "text: alias-leak"),
    "question without its descriptors": (forge(lose_descriptors), "text: descriptor-lost"),
    "question under another id": (on_proof_row(lambda row: row.__setitem__("text", row["text"] + " Say!")), "id: "),
    "picture bytes": (on_row(flip_picture), "images: the first picture is"),
    "no picture": (on_row(set_in("image", value=None)), "not the anchor's"),
    "no picture in the proof either": (forge(forget_picture), "picture: the proof has none"),
    "another picture in the proof too": (forge(reverse_picture), "picture: sha256 of the anchor's"),
    "author": (on_picture("author", "Forger"), "picture: author of"),
    "picture's file": (on_picture("file", "Other.jpg"), "picture: file of"),
    "picture's width": (on_picture("width", 9000), "picture: width of"),
    "domain in the proof too": (forge(lambda row, image: row.__setitem__("domain", "Other ")), "domain: "),
    "count of answers gone": (on_proof(forget_need), "counts: answers of node 0 was not counted"),
    "count at no node": (add_count("alone", 99), "counts: a count is about node 99"),
    "count of the anchor": (add_count("chain", 0), "counts: chain of node 0 is given 1 times, wanted is 0"),
    "count given twice": (add_count("alone", 1), "counts: alone of node 1 is given 2 times"),
    "threshold not reached": (on_proof(set_in("thresholds", "alone_first", value=10**6)), "the threshold is 1000000"),
    "no threshold": (on_proof(set_in("thresholds", "alone", value=0)), "thresholds: "),
    "descriptor fact gone": (on_proof(set_in("constraints", value=[])), "descriptor: node "),
    "constraint said twice": (
        on_proof(lambda proof: proof["constraints"].append(proof["constraints"][0])),
        "occurs twice",
    ),
    "another descriptor": (on_proof(set_in("descriptors", 0, value="the one of [subject]")), "text: descriptor-lost"),
    "shorter descriptors": (on_proof(shorten_descriptors), "text: fact-unproved"),
    "no descriptors": (on_proof(set_in("descriptors", value=[])), "descriptor: 0 for"),
    "role of a node": (on_proof(set_in("nodes", 0, "role", value="answer")), "nodes: the roles are"),
    "snapshot": (on_proof(set_in("snapshot", value="1999-01-01")), "corpus: the proof is of 1999-01-01"),
    "clause of an infobox hop": (on_proof(set_in("hops", 0, "clause", value="____ did it")), "hop 1: the infobox"),
    "kind of the answer's evidence": (on_answer_evidence("kind", lambda kind: "sentence"), "answer: the evidence is a"),
    "count with the chain": (on_count("chain"), "counts: chain"),
    "count without the chain": (on_count("alone"), "counts: alone"),
    "near miss made up": (toggle("near_misses", make_miss), "near misses: to be looked up are"),
    "redundant clause": (toggle("redundant", lambda proof: proof["constraints"][:1]), "redundant: "),
    "sentence that confirms": (toggle("corroboration", lambda proof: proof["answer_evidence"]), "answer: the sentence"),
    "part of the date": (toggle("derivation", lambda proof: "year"), "answer: the evidence gives"),
    "share of the answer": (on_proof(set_in("thresholds", "answer_share", value=2.0)), "thresholds: the largest share"),
    "direction of a hop": (on_proof(set_in("hops", 0, "backward", value=True)), "1"),
    "missing count": (on_proof(forget_counts), "was not counted"),
    "constraint": (on_proof(add_constraint), "answer: the query gives"),
    "hop order": (on_proof(swap_hops), "does not join"),
    "missing hop": (on_proof(lambda proof: proof["hops"].pop()), "nodes: "),
    "attribute": (on_proof(lambda proof: proof.__setitem__("answer_relation", "height")), "answer: "),
    "node type": (on_proof(lambda proof: proof["nodes"][1].__setitem__("type", "submarine")), "incoming links"),
    "node title": (on_proof(lambda proof: proof["nodes"][1].__setitem__("title", "Nowhere")), "nodes: the corpus"),
    "corpus digest": (on_proof(lambda proof: proof.__setitem__("corpus", "0" * 64)), "corpus: the proof is about"),
    "names looked for": (on_proof(lambda proof: proof.__setitem__("alias_digest", "0" * 64)), "names: the corpus"),
    "standing of a solved question": (on_standing(1, "proved"), "standing: it is said to be proved, wanted is solved"),
    "standing of a proved question": (on_standing(0, "unproved"), "standing: it is said to be unproved, wanted is"),
    "standing of another kind": (on_standing(0, "quoted"), "standing: it is said to be quoted, wanted is proved"),
    "missing proof": (lambda folder: rewrite_rows(folder, "proofs/*.parquet", lambda rows: []), "no proof for"),
    "dropped row": (
        lambda folder: rewrite_rows(folder, "data/*.parquet", lambda rows: []),
        "no row asks this question",
    ),
}


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_row_of_the_demo_verifies(demo, demo_ground, dataset):
    report = verify_release(demo.release(dataset), demo_ground)
    assert report.problems == ()
    assert report.passed
    assert report.verified == report.rows > (2 if dataset == "rl" else 10)


@pytest.mark.parametrize(("tamper", "named"), TAMPERINGS.values(), ids=TAMPERINGS.keys())
def test_tampering_is_noticed_without_the_manifest_and_named(small_releases, demo_ground, tmp_path, tamper, named):
    folder = tmp_path / "vqa"
    shutil.copytree(small_releases / "vqa", folder)
    tamper(folder)
    reseal(folder)
    report = verify_release(folder, demo_ground)
    assert not report.passed
    assert any(named in problem.what for problem in report.problems), report.problems
    assert all(problem.where != "files" for problem in report.problems)


@pytest.fixture
def copied(small_releases, tmp_path):
    return shutil.copytree(small_releases / "rl", tmp_path / "rl")


def test_a_changed_file_is_named_although_every_row_still_verifies(copied, demo_ground):
    (copied / "README.md").write_text("# another card")
    report = verify_release(copied, demo_ground)
    assert (report.rows, report.verified, report.passed) == (1, 1, False)
    assert report.problems[0].where == "files"
    assert "README.md has changed" in report.problems[0].what


def test_what_is_no_release_or_no_parquet_is_refused(copied, demo_ground, tmp_path):
    with pytest.raises(ConfigError, match=r"no manifest\.json"):
        verify_release(tmp_path, demo_ground)
    next(copied.glob("proofs/*.parquet")).write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(CorruptInput, match="a Parquet file cannot be read"):
        verify_release(copied, demo_ground)


BARE = {
    "answers": 0, "near_misses": 0, "answer_share": 1.0, "retrieval_rank": 0, "agreement": "off", "volatile": True,
    "read_pages": False,
}  # fmt: skip
STRICT = {
    "answers": 5, "near_misses": 50, "answer_share": 0.05, "retrieval_rank": 10, "agreement": "required",
    "volatile": False, "read_pages": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("thresholds", "others", "claims"),
    [
        (
            BARE,
            {"shortcuts_checked": False},
            "need for the picture not counted; shorter paths not searched; near misses not checked; prose not compared "
            "with the answer; frequency of the answer not checked; facts that change with time allowed; pages not read "
            "for other values; one search not tried; words read back by grammar; what they give away, and what "
            "else a search finds for a step, by grammar",
        ),
        (
            STRICT,
            {"shortcuts_checked": True},
            "at least 5 answers over other pictures; no shorter path; articles of up to 50 near misses read, none left "
            "open; a sentence says the answer too; no answer with more than 5% of its relation; no fact that changes "
            "with time; pages read for other values; not among the first 10 "
            "results of one search; words read back by grammar; what they give away, and what else a search finds for "
            "a step, by grammar",
        ),
    ],
)
def test_a_claim_says_in_words_what_was_demanded(small_releases, thresholds, others, claims):
    (row,) = [ProofRow.model_validate(row, strict=False) for row in read_rows(small_releases / "vqa", "proofs")]
    least = row.proof.thresholds.model_copy(update=thresholds)
    proof = row.proof.model_copy(update={"thresholds": least, **others})
    assert describe_claim(row.model_copy(update={"proof": proof})).split("; ", 2)[2] == claims
