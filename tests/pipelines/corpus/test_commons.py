import bz2
import gzip

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse, serialize

from pipelines.checks.pictures import is_free_licence
from pipelines.corpus.commons import (
    PUBLIC_DOMAIN,
    Malformed,
    choose_licence,
    collect_media,
    find_licence_url,
    hash_files,
    name_licence,
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


@pytest.fixture
def collect(tmp_path):
    """Collect from a dump's bytes under a name, and return rows by file with the counts."""

    def run(content, *names, name="commonswiki-20250131-mediainfo.ttl"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        counts = collect_media(path, hash_files(names), tmp_path)
        rows = pq.read_table(tmp_path / "media.parquet").to_pylist()
        ends = sum(count for name, count in counts.items() if name not in ("entities", "without_licence"))
        assert (counts["entities"], counts["kept"]) == (ends, len(rows))
        return {row["file"]: row for row in rows}, counts

    return run


def list_malformed(counts):
    return {name[11:]: count for name, count in counts.items() if name.startswith("malformed: ")}


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
    assert (counts["kept"], counts["without_licence"], list_malformed(counts)) == (1, 0, {})


def test_only_wanted_files_are_kept_once_and_the_rest_is_counted(collect):
    dump = (
        PREFIXES
        + "".join(write_entity(n, f"F%C3%A9_{n}.jpg", width=str(n + 1)) for n in range(4))
        + write_entity(8, "F%C3%A9_3.jpg")
    )
    rows, counts = collect(
        dump + write_entity(9, "B.jpg", said="wdt:P6216 wd:Q50423863"), "Fé 3.jpg", "Absent.jpg", "B.jpg"
    )
    assert {file: (row["width"], row["licence"]) for file, row in rows.items()} == {
        "Fé 3.jpg": (4, "CC BY-SA 4.0"),
        "B.jpg": (640, ""),
    }
    expected = {"entities": 6, "kept": 2, "not_wanted": 3, "repeated": 1, "without_licence": 1, "unnamed": 0}
    assert counts == expected


def test_one_broken_entity_costs_no_other(collect):
    dump = PREFIXES + write_entity(1, "A.jpg", said="wdt:P275 ;;; wd: :") + write_entity(2, "B.jpg")
    rows, counts = collect(dump + write_entity(3, "C.jpg", width="-4"), "A.jpg", "B.jpg", "C.jpg")
    assert list(rows) == ["B.jpg"]
    assert list_malformed(counts) == {"number": 1, "syntax": 1}


def test_shards_with_prefixes_of_their_own_are_read_under_their_own(collect):
    other = PREFIXES.replace("@prefix wdt: <http://www.wikidata.org/prop/direct/>", "@prefix wdt: <http://elsewhere/>")
    dump = PREFIXES + write_entity(1, "A.jpg") + other + write_entity(2, "B.jpg") + write_entity(3, "C.jpg")
    rows, counts = collect(dump, "A.jpg", "B.jpg", "C.jpg")
    assert [row["licence"] for row in rows.values()] == ["CC BY-SA 4.0", "", ""]
    assert counts["without_licence"] == 2


@pytest.mark.parametrize("size", [101, 1021, 1 << 20])
def test_entities_are_whole_however_the_file_is_cut_into_chunks(tmp_path, size):
    dump = PREFIXES + "".join(write_entity(n, f"F{n}.jpg", more=CREATOR.format(n)) for n in range(8))
    path = tmp_path / "c-mediainfo.ttl"
    path.write_text(dump)
    wanted = hash_files(f"F{n}.jpg" for n in range(8))
    counts = collect_media(path, wanted, tmp_path, size)
    assert (counts["entities"], counts["kept"]) == (8, 8)
    rows = pq.read_table(tmp_path / "media.parquet").to_pylist()
    assert [(row["file"], row["author"]) for row in rows] == [(f"F{n}.jpg", "A. Uthor") for n in range(8)]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (PREFIXES + write_entity(1)[:200], "c.ttl", "truncated"),
        (bz2.compress((PREFIXES + write_entity(1)).encode())[:-9], "c.ttl.bz2", "truncated"),
        (b"no gzip", "c.ttl.gz", "not compressed"),
        (PREFIXES, "c.ttl", "names no file"),
        ("<html>\n.\n", "c.nt", "names no file"),
        (b"", "c.ttl", "truncated"),
    ],
)
def test_a_dump_that_is_none_is_refused(collect, content, name, message):
    with pytest.raises(CorruptInput, match=message):
        collect(content, "Kelm Bridge.jpg", name=name)


def test_other_files_and_endless_entities_are_refused(tmp_path):
    (tmp_path / "a.xml").write_text("<a/>")
    for name in ("a.xml", "a.json", "absent.ttl"):
        with pytest.raises(ConfigError, match=r"expected (a )?\.ttl"):
            collect_media(tmp_path / name, hash_files([]), tmp_path)
    (tmp_path / "a.ttl").write_text(PREFIXES + write_entity(1, more='sdc:M1 schema:caption "x" .\n' * 1000))
    with pytest.raises(CorruptInput, match="16000 bytes"):
        collect_media(tmp_path / "a.ttl", hash_files(["A.jpg"]), tmp_path, chunk=1_000)


def read(**entity):
    return read_rdf((PREFIXES + write_entity(1, **entity)).encode())


def test_what_a_file_depicts_has_a_qid_and_a_licence_of_a_part_is_not_the_files():
    assert read(said="wdt:P180 _:b0, <http://elsewhere/Q5>, wd:L7, wd:Q8")["depicts"] == ["Q8"]
    assert read(said="wdt:P275 wd:Q18199165")["depicts"] == []
    more = "sdc:M1 p:P275 sdcs:M1-L .\n\nsdcs:M1-L ps:P275 wd:Q18199165 ;\n\tpq:P518 wd:Q860861 .\n"
    assert read(more=more)["licence"] == "CC BY-SA 4.0; in parts"


AUTHORS = [
    ("", ['ps:P170 _:a ; pq:P2093 "Ann\\tLee"', 'ps:P170 wd:Q5 ; pq:P2093 "Bo"'], "Ann Lee; Bo"),
    ("", ['ps:P170 _:a ; pq:P4174 "Bo"'], "User:Bo"),
    ("", ["ps:P170 wd:Q5"], "Q5"),
    ("", ["ps:P170 _:a"], ""),
    ("wd:Q6", ['ps:P170 wd:Q5 ; pq:P2093 "Out Ranked"', "ps:P170 wd:Q6"], "Q6"),
    ("wd:Q6", [], "Q6"),
]


def test_the_author_is_the_creator_of_the_truthy_statements():
    for truthy, statements, author in AUTHORS:
        said = CC_BY_SA + (f" ;\n\twdt:P170 {truthy}" if truthy else "")
        more = "".join(f"sdc:M1 p:P170 sdcs:M1-{n} .\n\nsdcs:M1-{n} {each} .\n" for n, each in enumerate(statements))
        assert read(said=said, more=more)["author"] == author


def test_unlike_addresses_of_one_file_are_malformed():
    other = f"{CC_BY_SA} ;\n\tschema:contentUrl <https://elsewhere/A.jpg>"
    for source in (write_entity(1, said=other), write_entity(1).replace("https://upload", "http://upload")):
        with pytest.raises(Malformed, match="url"):
            read_rdf((PREFIXES + source).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_media_or_malformed(source):
    with pytest.raises(Malformed, match=r"^(syntax|url|number)$"):
        read_rdf(source)


def test_the_real_dump_is_read(shared_data, tmp_path):
    names = ["Torre Belém April 2009-4a.jpg", "RUS-2016-Aerial-SPB-Krestovsky Stadium 01.jpg"]
    counts = collect_media(shared_data / "wikidata-rdf/commons_dump.ttl", hash_files(names), tmp_path)
    rows = pq.read_table(tmp_path / "media.parquet").to_pylist()
    assert (counts["kept"], list_malformed(counts)) == (2, {})
    assert [(row["file"], row["width"], row["height"], row["licence"]) for row in rows] == [
        (names[0], 5035, 4805, "CC BY-SA 3.0"),
        (names[1], 7188, 4792, "CC BY-SA 4.0"),
    ]
    assert [row["bytes"] for row in rows] == [18475279, 14597087]


NAMES = {
    "Q6938433": "CC0",
    "Q20007257": "CC BY 4.0",
    "Q18199165": "CC BY-SA 4.0",
    "Q42716613": "CC BY-SA 3.0 de",
    "Q75765287": "CC BY 2.5 scotland",
    "Q56292840": "CC BY-SA 3.0 igo",
    "Q7257361": "Public domain",
    "Q50829104": "GFDL",
    "Q152332": "FAL",
    "Q99891702": "OGL 3",
}
URLS = {
    "CC0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC BY-SA 3.0 de": "https://creativecommons.org/licenses/by-sa/3.0/de/",
    "Public domain": "https://creativecommons.org/publicdomain/mark/1.0/",
    "GFDL 1.2": "https://www.gnu.org/licenses/old-licenses/fdl-1.2.html",
    "CC BY": "",
    "Q98923445": "",
    "": "",
}


def test_a_licence_gets_the_short_name_that_commons_shows_and_the_address_of_its_text():
    assert {qid: name_licence(qid) for qid in NAMES} == NAMES
    assert all(map(is_free_licence, NAMES.values()))
    assert name_licence("Q24082749") == "Q24082749"
    assert not is_free_licence("Q24082749")
    assert {name: find_licence_url(name) for name in URLS} == URLS


CHOICES = {
    "Q50829104 Q14946043": "CC BY-SA 3.0",
    "Q14946043 Q19113751 Q18199165": "CC BY-SA 4.0",
    "Q18199165 Q20007257": "CC BY 4.0",
    "Q42716613 Q14946043": "CC BY-SA 3.0",
    "Q98923445 Q18199165": "CC BY-SA 4.0",
    "Q98923445": "Q98923445",
}


def test_of_several_licences_the_one_with_the_fewest_conditions_counts():
    for qids, name in CHOICES.items():
        for order in (1, -1):
            assert choose_licence(qids.split()[::order], [], in_parts=False) == name
    joined = choose_licence(["Q18199165", "Q20007257"], [], in_parts=True)
    assert joined == "CC BY 4.0; CC BY-SA 4.0; in parts"
    assert not is_free_licence(joined)


def test_without_a_licence_only_the_public_domain_everywhere_counts():
    statuses = {"Q19652": PUBLIC_DOMAIN, "Q19652 Q50423863": "", "Q50423863": "", "": ""}
    assert {qids: choose_licence([], qids.split(), in_parts=False) for qids in statuses} == statuses
