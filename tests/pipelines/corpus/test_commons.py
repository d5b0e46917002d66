import bz2
import gzip
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse, serialize

from pipelines.corpus.commons import (
    Malformed,
    collect_media,
    hash_files,
    make_file_url,
    make_source_url,
    read_json,
    read_rdf,
)
from pipelines.errors import ConfigError, CorruptInput

PREFIXES = """@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix wikibase: <http://wikiba.se/ontology#> .
@prefix schema: <http://schema.org/> .
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix p: <http://www.wikidata.org/prop/> .
@prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix pq: <http://www.wikidata.org/prop/qualifier/> .
@prefix sdc: <https://commons.wikimedia.org/entity/> .
@prefix sdcdata: <https://commons.wikimedia.org/wiki/Special:EntityData/> .
@prefix sdcs: <https://commons.wikimedia.org/entity/statement/> .

wikibase:Dump a schema:Dataset .

"""
CC_BY_SA = "wdt:P275 wd:Q18199165 ;\n\twdt:P6216 wd:Q50423863 ;\n\twdt:P180 wd:Q12280, wd:Q537127"
CREATOR = """
sdc:M{0} p:P170 sdcs:M{0}-C .

sdcs:M{0}-C ps:P170 _:c{0} ;
\tpq:P2093 "A. Uthor" ;
\tpq:P4174 "AUser" .
"""


def write_entity(number, name="Kelm_Bridge.jpg", said=CC_BY_SA, more="", width="640") -> str:
    """Render one entity in the form of the dump's Turtle."""
    return f"""sdcdata:M{number} a schema:Dataset ;
\tschema:about sdc:M{number} ;
\tschema:version "5"^^xsd:integer .

sdc:M{number} a schema:MediaObject,
\t\tschema:ImageObject ;
\tschema:encodingFormat "image/jpeg" ;
\tschema:contentUrl <https://upload.wikimedia.org/wikipedia/commons/6/65/{name}> ;
\tschema:contentSize "1234"^^xsd:integer ;
\tschema:height "480"^^xsd:integer ;
\tschema:width "{width}"^^xsd:integer ;
\tschema:caption "A \\"bridge\\"\\nover the Kelm"@en ;
\t{said} .
{more}
"""


def write_claim(value, rank="normal", **qualifiers) -> dict:
    kinds = {name: [{"snaktype": "value", "datavalue": {"value": text}}] for name, text in qualifiers.items()}
    snak = {"snaktype": "somevalue"} if value is None else {"snaktype": "value", "datavalue": {"value": value}}
    return {"mainsnak": snak, "rank": rank, "type": "statement"} | ({"qualifiers": kinds} if kinds else {})


def write_line(title="File:Kelm Bridge.jpg", **statements) -> bytes:
    entity = {"type": "mediainfo", "id": "M1", "labels": [], "statements": statements or [], "pageid": 1, "ns": 6}
    return json.dumps(entity | ({"title": title} if title else {}), separators=(",", ":")).replace("/", "\\/").encode()


def write_json(*lines) -> bytes:
    return b"[\n" + b",\n".join(lines) + b"\n]\n"


@pytest.fixture
def collect(tmp_path):
    """Collect from a dump's bytes under a name, and return rows by file with the counts."""

    def run(content, *names, name="commonswiki-20250131-mediainfo.ttl"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        counts = collect_media([path], hash_files(names), tmp_path / "media.parquet")
        rows = pq.read_table(tmp_path / "media.parquet").to_pylist()
        ends = counts.kept + counts.not_wanted + counts.unnamed + counts.repeated + sum(counts.malformed.values())
        assert (counts.entities, counts.kept) == (ends, len(rows))
        return {row["file"]: row for row in rows}, counts

    return run


KELM = {
    "file": "Kelm Bridge.jpg",
    "url": "https://upload.wikimedia.org/wikipedia/commons/6/65/Kelm_Bridge.jpg",
    "width": 640,
    "height": 480,
    "mime": "image/jpeg",
    "bytes": 1234,
    "licence": "CC BY-SA 4.0",
    "licence_url": "https://creativecommons.org/licenses/by-sa/4.0/",
    "copyright_status": "Q50423863",
    "author": "A. Uthor",
    "source_url": "https://commons.wikimedia.org/wiki/File:Kelm_Bridge.jpg",
    "depicts": ["Q12280", "Q537127"],
}


def to_ntriples(turtle: str) -> bytes:
    triples = sorted(
        (quad.triple for quad in parse(turtle.encode(), format=RdfFormat.TURTLE)),
        key=lambda triple: ("EntityData" not in str(triple.subject), str(triple.subject)),
    )
    return serialize(triples, format=RdfFormat.N_TRIPLES)


@pytest.mark.parametrize(
    ("ending", "pack"), [("ttl", bytes), ("ttl.gz", gzip.compress), ("ttl.bz2", bz2.compress), ("nt", None)]
)
def test_a_wanted_file_gets_a_row_in_every_form_of_the_rdf_dump(collect, ending, pack):
    dump = PREFIXES + write_entity(7, more=CREATOR.format(7))
    source = to_ntriples(dump.replace("wikibase:Dump a schema:Dataset .", "")) if pack is None else pack(dump.encode())
    if pack is None:
        source = b'<http://wikiba.se/ontology#Dump> <http://schema.org/version> "1" .\n' + source
    rows, counts = collect(source, "File:kelm_Bridge.jpg", name=f"c-mediainfo.{ending}")
    assert rows == {"Kelm Bridge.jpg": KELM}
    assert (counts.kept, counts.without_licence, counts.malformed) == (1, 0, {})


def test_only_wanted_files_are_kept_and_the_rest_is_counted(collect):
    dump = PREFIXES + "".join(write_entity(n, f"F%C3%A9_{n}.jpg") for n in range(5))
    rows, counts = collect(dump, "Fé 3.jpg", "Absent.jpg")
    assert list(rows) == ["Fé 3.jpg"]
    assert (counts.entities, counts.kept, counts.not_wanted) == (5, 1, 4)


def test_nothing_wanted_keeps_nothing(collect):
    assert collect(PREFIXES + write_entity(1))[1].not_wanted == 1


def test_files_without_a_licence_are_kept_and_counted(collect):
    rows, counts = collect(PREFIXES + write_entity(1, said="wdt:P6216 wd:Q50423863"), "Kelm Bridge.jpg")
    assert (rows["Kelm Bridge.jpg"]["licence"], counts.without_licence) == ("", 1)


def test_one_broken_entity_costs_no_other(collect):
    dump = PREFIXES + write_entity(1, "A.jpg", said="wdt:P275 ;;; wd: :") + write_entity(2, "B.jpg")
    rows, counts = collect(dump + write_entity(3, "C.jpg", width="-4"), "A.jpg", "B.jpg", "C.jpg")
    assert list(rows) == ["B.jpg"]
    assert counts.malformed == {"number": 1, "syntax": 1}


def test_a_file_described_twice_is_kept_once(collect):
    rows, counts = collect(PREFIXES + write_entity(1) + write_entity(2, width="9"), "Kelm Bridge.jpg")
    assert (rows["Kelm Bridge.jpg"]["width"], counts.repeated) == (640, 1)


def test_shards_with_prefixes_of_their_own_are_read_under_their_own(collect):
    other = PREFIXES.replace("@prefix wdt: <http://www.wikidata.org/prop/direct/>", "@prefix wdt: <http://elsewhere/>")
    dump = PREFIXES + write_entity(1, "A.jpg") + other + write_entity(2, "B.jpg") + write_entity(3, "C.jpg")
    rows, counts = collect(dump, "A.jpg", "B.jpg", "C.jpg")
    assert [row["licence"] for row in rows.values()] == ["CC BY-SA 4.0", "", ""]
    assert counts.without_licence == 2


@pytest.mark.parametrize("size", [101, 1021, 1 << 20])
def test_entities_are_whole_however_the_file_is_cut_into_chunks(tmp_path, size):
    dump = PREFIXES + "".join(write_entity(n, f"F{n}.jpg", more=CREATOR.format(n)) for n in range(8))
    path = tmp_path / "c-mediainfo.ttl"
    path.write_text(dump)
    wanted = hash_files(f"F{n}.jpg" for n in range(8))
    counts = collect_media([path], wanted, tmp_path / "m.parquet", size)
    assert (counts.entities, counts.kept) == (8, 8)
    rows = pq.read_table(tmp_path / "m.parquet").to_pylist()
    assert [(row["file"], row["author"]) for row in rows] == [(f"F{n}.jpg", "A. Uthor") for n in range(8)]


def test_what_an_earlier_dump_says_stands(tmp_path):
    for name, width in (("a.ttl", "640"), ("b.ttl", "7")):
        (tmp_path / name).write_text(PREFIXES + write_entity(1, width=width))
    wanted = hash_files(["Kelm Bridge.jpg"])
    counts = collect_media([tmp_path / "a.ttl", tmp_path / "b.ttl"], wanted, tmp_path / "m.parquet")
    assert (counts.kept, counts.repeated) == (1, 1)
    assert pq.read_table(tmp_path / "m.parquet").to_pylist()[0]["width"] == 640


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (PREFIXES + write_entity(1)[:200], "c.ttl", "cut short"),
        (bz2.compress((PREFIXES + write_entity(1)).encode())[:-9], "c.ttl.bz2", "cut short"),
        (b"no gzip", "c.ttl.gz", "not compressed"),
        (PREFIXES, "c.ttl", "names no file"),
        ("<html>\n.\n", "c.nt", "names no file"),
        (b"", "c.ttl", "cut short"),
        (b"[\n" + write_line() + b",\n", "c.json", "cut short"),
        (write_json(write_line(title=None)), "c.json", "from 2022 on"),
        (b"[\n]\n", "c.json", "names no file"),
    ],
)
def test_a_dump_that_is_none_is_refused(collect, content, name, message):
    with pytest.raises(CorruptInput, match=message):
        collect(content, "Kelm Bridge.jpg", name=name)


def test_other_files_are_no_dumps(tmp_path):
    (tmp_path / "a.xml").write_text("<a/>")
    for name in ("a.xml", "absent.ttl"):
        with pytest.raises(ConfigError, match=r"expected (a )?\.ttl"):
            collect_media([tmp_path / name], hash_files([]), tmp_path / "m.parquet")


def test_an_endless_entity_is_refused(tmp_path):
    (tmp_path / "a.ttl").write_text(PREFIXES + write_entity(1, more='sdc:M1 schema:caption "x" .\n' * 1000))
    (tmp_path / "a.json").write_bytes(b"[" + b" " * 20_000)
    for name in ("a.ttl", "a.json"):
        with pytest.raises(CorruptInput, match="16000 bytes"):
            collect_media([tmp_path / name], hash_files(["A.jpg"]), tmp_path / "m.parquet", chunk=1_000)


PIXELS = {"unit": "http://www.wikidata.org/entity/Q355198"}
JSON_STATEMENTS = {
    "P275": [write_claim({"id": "Q18199165"})],
    "P6216": [write_claim({"id": "Q50423863"})],
    "P170": [write_claim(None, P2093="A. Uthor", P4174="AUser")],
    "P2049": [write_claim({"amount": "+640"} | PIXELS)],
    "P2048": [
        write_claim({"amount": "+90", "unit": "http://www.wikidata.org/entity/Q174728"}),
        write_claim({"amount": "+480"} | PIXELS),
    ],
    "P3575": [write_claim({"amount": "+1234", "unit": "http://www.wikidata.org/entity/Q8799"})],
    "P1163": [write_claim("image/jpeg")],
    "P180": [write_claim({"id": "Q12280"}), write_claim({"id": "Q537127"}), write_claim({"id": "Q12280"})],
}


def test_the_json_dump_gives_the_same_row(collect):
    lines = [write_line("File:Other.jpg"), write_line(**JSON_STATEMENTS), write_line(title=None)]
    rows, counts = collect(write_json(*lines), "Kelm Bridge.jpg", name="c-mediainfo.json")
    assert rows["Kelm Bridge.jpg"] == KELM | {"url": make_file_url("Kelm Bridge.jpg")}
    assert (counts.entities, counts.unnamed, counts.not_wanted) == (3, 1, 1)


def test_a_json_file_without_statements_has_neither_size_nor_licence(collect):
    rows, counts = collect(write_json(write_line('File:A "b" é.jpg')), 'A "b" é.jpg', name="c.json.bz2x.json")
    row = rows['A "b" é.jpg']
    assert (row["width"], row["licence"], row["author"], counts.without_licence) == (0, "", "", 1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "syntax"),
        (b"[]", "syntax"),
        (write_line(title=None), "syntax"),
        (write_line("Category:A"), "title"),
        (write_line("File: "), "title"),
        (write_line(P275=[{"rank": "normal"}]), "statement"),
        (write_line(P275="x"), "statement"),
        (write_line(P2049=[write_claim({"amount": "-3"} | PIXELS)]), "number"),
        (write_line(P2049=[write_claim({"amount": "9" * 30} | PIXELS)]), "number"),
    ],
)
def test_a_malformed_line_says_why(line, reason):
    with pytest.raises(Malformed, match=f"^{reason}$"):
        read_json(line)


def test_malformed_lines_are_counted(collect):
    bad = write_line("File:Bad.jpg", P275="x")
    rows, counts = collect(write_json(bad, write_line("File:B.jpg")), "Bad.jpg", "B.jpg", name="c.json")
    assert (list(rows), counts.malformed) == (["B.jpg"], {"statement": 1})


def test_ranks_decide_which_statements_count():
    licences = [
        write_claim({"id": "Q6938433"}, "deprecated"),
        write_claim({"id": "Q20007257"}),
        write_claim({"id": "Q18199165"}, "preferred"),
    ]
    assert read_json(write_line(P275=licences)).licence == "CC BY-SA 4.0"
    assert read_json(write_line(P275=licences[:2])).licence == "CC BY 4.0"
    assert read_json(write_line(P275=licences[:1])).licence == ""


def test_what_is_depicted_is_what_the_best_statements_name():
    claims = [
        write_claim({"id": "Q1"}, "deprecated"),
        write_claim({"id": "Q2"}),
        write_claim(None),
        write_claim({"id": "L7"}),
        write_claim({"id": "Q3"}, "preferred"),
    ]
    assert read_json(write_line(P180=claims)).depicts == ("Q3",)
    assert read_json(write_line(P180=claims[:4])).depicts == ("Q2",)
    assert read_json(write_line(P180=claims[:1])).depicts == ()


def test_rdf_that_depicts_something_without_a_qid_depicts_nothing():
    said = "wdt:P180 _:b0, <http://elsewhere/Q5>, wd:L7, wd:Q8"
    assert read_rdf((PREFIXES + write_entity(1, said=said)).encode()).depicts == ("Q8",)
    assert read_rdf((PREFIXES + write_entity(1, said="wdt:P275 wd:Q18199165")).encode()).depicts == ()


def test_a_licence_of_a_part_is_not_the_files():
    part = write_claim({"id": "Q18199165"}, P518={"id": "Q860861"})
    assert read_json(write_line(P275=[part])).licence == "CC BY-SA 4.0; in parts"
    more = "sdc:M1 p:P275 sdcs:M1-L .\n\nsdcs:M1-L ps:P275 wd:Q18199165 ;\n\tpq:P518 wd:Q860861 .\n"
    assert read_rdf((PREFIXES + write_entity(1, more=more)).encode()).licence == "CC BY-SA 4.0; in parts"


@pytest.mark.parametrize(
    ("claims", "author"),
    [
        ([write_claim(None, P2093="Ann\tLee"), write_claim({"id": "Q5"}, P2093="Bo")], "Ann Lee; Bo"),
        ([write_claim(None, P4174="Bo")], "User:Bo"),
        ([write_claim({"id": "Q5"})], "Q5"),
        ([write_claim(None)], ""),
        ([write_claim({"id": "Q5"}), write_claim({"id": "Q6"}, "preferred")], "Q6"),
    ],
)
def test_the_author_is_whom_the_best_statements_name(claims, author):
    assert read_json(write_line(P170=claims)).author == author


def test_the_rdf_author_is_whom_the_truthy_statements_name():
    said = f"{CC_BY_SA} ;\n\twdt:P170 wd:Q6"
    more = """sdc:M1 p:P170 sdcs:M1-A, sdcs:M1-B .

sdcs:M1-A ps:P170 wd:Q5 ;
\tpq:P2093 "Out Ranked" .

sdcs:M1-B ps:P170 wd:Q6 .
"""
    assert read_rdf((PREFIXES + write_entity(1, said=said, more=more)).encode()).author == "Q6"
    assert read_rdf((PREFIXES + write_entity(1, said=said)).encode()).author == "Q6"


def test_unlike_addresses_of_one_file_are_malformed():
    other = f"{CC_BY_SA} ;\n\tschema:contentUrl <https://elsewhere/A.jpg>"
    for source in (write_entity(1, said=other), write_entity(1).replace("https://upload", "http://upload")):
        with pytest.raises(Malformed, match="url"):
            read_rdf((PREFIXES + source).encode())


def test_addresses_are_those_of_commons():
    # MD5 of the name, as every address on upload.wikimedia.org shows.
    url = "https://upload.wikimedia.org/wikipedia/commons/6/65/Torre_Bel%C3%A9m_April_2009-4a.jpg"
    assert make_file_url("Torre Belém April 2009-4a.jpg") == url
    assert make_source_url("A & b (c)!.jpg") == "https://commons.wikimedia.org/wiki/File:A_%26_b_(c)!.jpg"


@given(st.binary(max_size=200))
def test_any_bytes_are_media_or_malformed(source):
    reasons = []
    for read in (read_json, read_rdf):
        try:
            read(source)
        except Malformed as error:
            reasons.append(str(error))
    assert set(reasons) <= {"syntax", "title", "url", "number", "statement"}


def test_hashes_are_sorted_and_of_any_form_of_a_name():
    hashes = hash_files(["File:a_b.jpg", "A b.jpg", "", "c.jpg"])
    assert len(hashes) == 2
    assert hashes.dtype == np.uint64
    assert (np.diff(hashes) > 0).all()


def test_the_real_dump_is_read(shared_data, tmp_path):
    names = ["Torre Belém April 2009-4a.jpg", "RUS-2016-Aerial-SPB-Krestovsky Stadium 01.jpg"]
    counts = collect_media([shared_data / "wikidata-rdf/commons_dump.ttl"], hash_files(names), tmp_path / "m.parquet")
    rows = pq.read_table(tmp_path / "m.parquet").to_pylist()
    assert (counts.kept, counts.malformed) == (2, {})
    assert [(row["file"], row["width"], row["height"], row["licence"]) for row in rows] == [
        (names[0], 5035, 4805, "CC BY-SA 3.0"),
        (names[1], 7188, 4792, "CC BY-SA 4.0"),
    ]
    assert [row["bytes"] for row in rows] == [18475279, 14597087]
    assert [make_file_url(row["file"]) for row in rows] == [row["url"] for row in rows]
