import hashlib
import json
import re
import shutil
import signal
import subprocess
from html import unescape
from html.parser import HTMLParser
from urllib.parse import quote
from urllib.request import urlopen
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.cli.drawing import DrawnEdge, DrawnNode, draw_path, list_steps
from pipelines.cli.facets import read_glossary
from pipelines.cli.naming import looking_at
from pipelines.cli.view.pages import compare_cells, compare_reading, link_row, mark_spans
from pipelines.cli.view.queries import PAGE, Choice, Explorer, scan_release
from pipelines.cli.view.server import ViewServer
from pipelines.errors import ConfigError
from pipelines.run.naming import CONFIG
from pipelines.run.workspace import Workspace
from schemas.base import Rejection
from schemas.datasets import Difficulty, Trajectory
from schemas.datasets import Path as WalkedPath
from schemas.proofs import Branch
from schemas.reasons import STAGE_REASONS
from tests.chaos.driving import ROOT, make_command, make_environment
from tests.pipelines.cli.conftest import FakeStage, make_workspace, write_stage
from tests.pipelines.cli.viewing import HOSTILE, ask, serving, write_hostile
from tests.pipelines.release.builders import make_evidence, make_question

OURS = {
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "strong", "button", "kbd", "main",
    "dialog", "h1", "h2", "h3", "dl", "dt", "dd", "form", "p", "ul", "li", "ol", "span", "label", "input", "select",
    "option", "img", "code", "section", "div", "figure", "figcaption", "svg", "rect", "text", "path", "table", "thead",
    "tbody", "tr", "th", "td", "meter", "br", "pre", "details", "summary", "mark",
}  # fmt: skip


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    """A view of a workspace that no test changes."""
    with serving(make_workspace(tmp_path_factory.mktemp("view") / "it's a workspace")) as server:
        yield server


class Reader(HTMLParser):
    """Counts what a browser would see of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.words.append(data)

    @property
    def links(self):
        return [value for name, value in self.attributes if name == "href"]


def list_ids(page):
    return re.findall(r'data-move href="/row/[^/"]+/([^"]+)"', page)


# The server


def test_only_its_own_host_is_answered(view):
    port = view.server_port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert ask(view, "/", host=host).status == 200
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", "127.0.0.1:1"):
        reply = ask(view, "/", host=host)
        assert (reply.status, b"question" in reply.body) == (421, False)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "PATCH"])
def test_only_get_is_answered(view, method):
    reply = ask(view, "/", method)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET")


def test_a_page_may_load_nothing_from_elsewhere_and_run_nothing_inline(view):
    reply = ask(view, "/")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    read = Reader(reply.text)
    assert not {"style", "onclick", "onload"} & {name for name, _ in read.attributes}
    assert all(link.startswith(("/", "#", "data:")) and not link.startswith("//") for link in read.links)


@pytest.mark.parametrize(
    "target",
    [
        "/picture/../latest.json",
        "/picture/..%2f..%2flatest.json",
        "/picture/" + "a" * 64,
        "/picture/" + "*" * 64,
        "/picture/" + "A" * 64,
        "/assets/../server.py",
        "/assets/..%2fserver.py",
        "/assets/base.html.j2",
        "/latest.json",
        "//etc/passwd",
        "/row/difficulty/none",
        "/row/..%2fimages/none",
        "/row/diff'%20OR%201=1--/none",
        "/?stage=nothing",
        "/?page=0",
        "/?page=1e9",
        "/?kind=all",
        "/?unknown=1",
        "/?release=sft/none",
        "/compare?of=stage:difficulty&a=..&b=..",
        "/compare?of=stage:../corpus&a=toy&b=toy",
        "/compare?of=anything&a=x&b=y",
        "/compare?of=release:sft&a=../x&b=y",
    ],
)
def test_what_is_not_there_is_not_found(view, target):
    reply = ask(view, target)
    assert reply.status == 404
    assert b"stages" not in reply.body


@pytest.mark.parametrize("target", ["http://[/", "*", "latest.json", "http://127.0.0.1/"])
def test_an_address_without_a_path_is_refused(view, target):
    assert ask(view, target).status == 400


def test_a_release_whose_data_are_gone_holds_no_row(workspace):
    with serving(workspace) as server:
        (row, *_) = server.explorer.list_rows(Choice("trajectories")).rows
        page = ask(server, link_row("trajectories", row["record_id"])).text
        (name, *_) = [name for name in server.explorer.list_releases() if f"{name}</a>" in page]
        shutil.rmtree(workspace / "releases" / name / "data")
        reply = ask(server, link_row("trajectories", row["record_id"]))
        assert (reply.status, f"{name}</a>" in reply.text) == (200, False)
        damaged = next((workspace / "stages" / "trajectories").rglob("part-*.parquet"))
        damaged.write_bytes(b"PAR1")
        reply = ask(server, link_row("trajectories", row["record_id"]))
        assert (reply.status, damaged.name in reply.text, "SELECT" in reply.text) == (500, True, False)


def test_a_picture_is_sent_by_its_sha256_and_a_changed_one_is_not(workspace):
    path = next((workspace / "images").rglob("*.png"))
    with serving(workspace) as server:
        reply = ask(server, f"/picture/{path.stem}")
        assert (reply.status, reply.headers["Content-Type"]) == (200, "image/png")
        assert hashlib.sha256(reply.body).hexdigest() == path.stem
        assert ask(server, f"/picture/{path.stem}?small").headers["Content-Type"] == "image/webp"
        path.write_bytes(b"<svg onload=alert(1)>")
        assert ask(server, f"/picture/{path.stem}").status == 404


def test_looking_writes_nothing(view):
    workspace = view.explorer.root
    before = sorted((path, path.stat().st_mtime_ns) for path in workspace.rglob("*"))
    for target in ("/", "/?kind=rejected", "/funnel", "/compare", *Reader(ask(view, "/").text).links):
        if target.startswith("/"):
            assert ask(view, target).status == 200
    assert sorted((path, path.stat().st_mtime_ns) for path in workspace.rglob("*")) == before


def test_a_taken_port_and_a_missing_workspace_are_told(view, tmp_path):
    with pytest.raises(ConfigError, match="port"):
        ViewServer(view.explorer.root, view.server_port)
    with pytest.raises(ConfigError, match="no such folder"):
        ViewServer(tmp_path / "nowhere")


def test_the_command_says_where_it_serves_and_an_interrupt_ends_it(workspace):
    release = Explorer(workspace).list_releases()[0]
    command = make_command("view", "--no-open", "--json", "--workspace", workspace, "--release", release)
    with subprocess.Popen(command, cwd=ROOT, env=make_environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            said = "".join(iter(process.stdout.readline, "}\n")) + "}"
            address = json.loads(said)["address"]
            with urlopen(address, timeout=60) as reply:
                page = reply.read().decode()
            assert f"<option selected>{release}</option>" in page
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


# Lists


@pytest.fixture
def many(tmp_path):
    """120 kept rows of two domains and splits, and 70 refused ones of two reasons."""
    rows = [
        make_question(n, None, split="rl" if n % 3 else "sft", domain="Person" if n % 2 else "Building/Place")
        for n in range(120)
    ]
    refused = [
        Rejection(record_id=f"q-refused{n:04d}", reason="unscored" if n % 7 else "not-rare", detail=f"seen {n}")
        for n in range(70)
    ]
    write_stage(tmp_path, FakeStage("difficulty", Difficulty), "d" * 16, rows, refused)
    Workspace(tmp_path).note_latest({"difficulty": "d" * 16})
    return tmp_path


def test_pages_hold_each_row_once_and_links_lead_from_one_to_the_next(many):
    with serving(many) as server:
        found, target = [], "/"
        while target:
            page = ask(server, target).text
            found += list_ids(page)
            after = re.search(r'rel="next" href="([^"]+)"', page)
            target = unescape(after[1]) if after else ""
    assert found == [f"question-{n:016x}" for n in range(120)]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 120),
        ({"domain": "Person"}, 60),
        ({"domain": "Person", "split": "sft"}, 20),
        ({"hops": "2"}, 120),
        ({"hops": "3"}, 0),
        ({"difficulty": "rarely solved"}, 120),
        ({"difficulty": "never solved"}, 0),
        ({"text": "BIRTHPLACE of the architect"}, 120),
        ({"text": "1217"}, 1),
        ({"text": "question-0000000000000011"}, 1),
        ({"text": "100%_"}, 0),
        ({"domain": "Person' OR '1'='1"}, 0),
        ({"kind": "rejected"}, 70),
        ({"kind": "rejected", "reason": "not-rare"}, 10),
        ({"kind": "rejected", "text": "seen 69"}, 1),
        ({"kind": "failed"}, 0),
    ],
)
def test_filters_choose_rows(many, changes, count):
    listing = Explorer(many).list_rows(Choice("difficulty", **changes))
    assert (listing.total, len(listing.rows)) == (count, min(count, PAGE))


def test_facets_count_what_a_filter_would_show(many):
    explorer = Explorer(many)
    for kind in ("kept", "rejected"):
        for facet, values in explorer.read_facets("difficulty", kind).items():
            for value, rows in values:
                assert explorer.list_rows(Choice("difficulty", kind=kind, **{facet: value})).total == rows


def test_a_list_of_a_release_shows_the_rows_that_it_holds(view):
    explorer = view.explorer
    sft, rl = (next(name for name in explorer.list_releases() if name.startswith(kind)) for kind in ("sft", "rl"))
    trajectories = explorer.list_rows(Choice("trajectories", release=sft))
    assert trajectories.total == explorer.list_rows(Choice("trajectories")).total
    splits = {row["split"] for row in explorer.list_rows(Choice("difficulty", release=rl)).rows}
    assert splits == {"rl"}


def test_a_run_that_ends_meanwhile_is_seen(many):
    explorer = Explorer(many)
    assert explorer.list_rows(Choice("difficulty")).total == 120
    write_stage(many, FakeStage("difficulty", Difficulty), "e" * 16, [make_question(1, None)])
    Workspace(many).note_latest({"difficulty": "e" * 16})
    assert explorer.list_rows(Choice("difficulty")).total == 1


def test_a_folder_on_the_way_is_no_column(many, view):
    moved = many / "split=train" / "domain=none" / "id=1"
    moved.mkdir(parents=True)
    for path in [path for path in many.iterdir() if path.name != "split=train"]:
        path.rename(moved / path.name)
    facets = Explorer(moved).read_facets("difficulty", "kept")
    assert facets["split"] == [("rl", 80), ("sft", 40)]
    assert facets["domain"] == [("Building/Place", 60), ("Person", 60)]
    release = next(iter(view.explorer.list_releases()))
    shutil.copytree(view.explorer.find_release(release), moved / "releases" / release)
    held = view.explorer.ask(f"SELECT id FROM {scan_release(view.explorer.find_release(release))}")
    assert Explorer(moved).find_holding([row["id"] for row in held]) == [release]


def test_a_workspace_behind_a_link_is_the_same(many, tmp_path_factory):
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(many)
    assert Explorer(link).list_rows(Choice("difficulty")).total == 120


# One row


def test_a_row_shows_its_path_its_counts_and_what_was_read(view):
    (row, *_) = view.explorer.list_rows(Choice("difficulty")).rows
    page = ask(view, link_row("difficulty", row["record_id"])).text
    read = Reader(page)
    said = " ".join(read.words)
    for text in ("Proof and reading", "R_alone", "different answers (N_img) ≥8", "architect", "AD ", "Everything that"):
        assert text in said
    (diagram,) = re.findall(r'<svg[^>]*class="drawing wide".*?</svg>', page)
    assert diagram.count('class="node bridge hidden"') == 1
    assert diagram.count('class="node anchor hidden"') == 1
    assert "[[Mira Tolland]]" in diagram


def test_a_trajectory_shows_each_step_and_marks_where_a_name_was_seen(view):
    (row, *_) = view.explorer.list_rows(Choice("trajectories")).rows
    record = view.explorer.find_record("trajectories", row["record_id"])
    assert isinstance(record, Trajectory)
    page = ask(view, link_row("trajectories", record.record_id)).text
    assert page.count("data-move") > len(record.steps)
    for step in record.steps:
        assert step.thought in unescape(page)
    seen = {support.step for support in record.supports}
    assert seen
    for number in seen:
        assert f'id="seen-{number + 1}-' in page
        assert f'href="#step-{number + 1}"' in page


def test_every_kept_and_refused_row_of_a_run_opens(demo):
    with serving(demo.root) as server:
        explorer = server.explorer
        for found in explorer.list_stages():
            for kind in ("kept", "rejected"):
                for row in explorer.list_rows(Choice(found.stage, kind=kind)).rows[:1]:
                    reply = ask(server, link_row(found.stage, row["record_id"]))
                    assert reply.status == 200, (found.stage, kind, reply.text)
                    assert row["record_id"] in unescape(reply.text)


def test_a_refused_row_shows_its_reason_in_words_what_was_seen_and_the_row_that_came_in(demo):
    with serving(demo.root) as server:
        (refused, *_) = server.explorer.list_rows(Choice("groundings", kind="rejected")).rows
        assert refused["label"]
        same = Choice("groundings", kind="rejected", hops=refused["hops"], domain=refused["domain"])
        assert refused["record_id"] in [row["record_id"] for row in server.explorer.list_rows(same).rows]
        said = unescape(ask(server, link_row("groundings", refused["record_id"])).text)
    assert read_glossary()[refused["reason"]] in said
    assert refused["detail"] in said
    assert refused["label"] in said
    assert '<svg xmlns="http://www.w3.org/2000/svg"' in said


def test_the_line_of_a_question_leads_from_its_seed_to_its_releases(demo):
    explorer = Explorer(demo.root)
    (row, *_) = explorer.list_rows(Choice("trajectories")).rows
    record = explorer.find_record("trajectories", row["record_id"])
    family = explorer.trace_line(record.parent_id, "")
    stages = [relative.stage for relative in family]
    assert stages == sorted(stages, key=[found.stage for found in explorer.list_stages()].index)
    assert {"seeds", "paths", "questions", "rewrites", "groundings", "trajectories"} <= set(stages)
    parents = {relative.record_id: relative.parent_id for relative in family if not relative.reason}
    place, climbed = row["record_id"], []
    while place in parents:
        climbed.append(place)
        place = parents[place]
    assert [name.split("-")[0] for name in climbed] == ["rollout", "q", "rewrite", "question", "path", "seed"]
    assert len({relative.record_id for relative in family if relative.stage == "seeds"}) == 1


def test_a_line_holds_its_own_beginning_and_no_siblings(tmp_path):
    seeds = [make_question(n, None) for n in range(3)]
    made = [make_question(n, None).model_copy(update={"parent_id": seeds[1].record_id}) for n in range(10, 500)]
    for key, (name, rows) in zip("ab", (("seeds", seeds), ("difficulty", made)), strict=True):
        write_stage(tmp_path, FakeStage(name, Difficulty), key * 16, rows)
    Workspace(tmp_path).note_latest({"seeds": "a" * 16, "difficulty": "b" * 16})
    line = Explorer(tmp_path).trace_line(seeds[1].record_id, "")
    assert [relative.record_id for relative in line] == [row.record_id for row in (seeds[1], *made)]
    for parent in (seeds[1].record_id, ""):
        last = Explorer(tmp_path).trace_line(made[-1].record_id, parent)
        assert [relative.record_id for relative in last] == [seeds[1].record_id, made[-1].record_id]


def test_hostile_text_stays_text(tmp_path):
    write_hostile(tmp_path)
    with serving(tmp_path) as server:
        rows = [("difficulty", f"q/{HOSTILE}"), ("difficulty", f"r/{HOSTILE}")]
        rows += [("rollouts", server.explorer.list_rows(Choice("rollouts")).rows[0]["record_id"])]
        lists = ["/?stage=difficulty", "/?stage=difficulty&kind=rejected", f"/?text={quote(HOSTILE)}", "/funnel"]
        for target in [*lists, *(link_row(*row) for row in rows), f"/row/difficulty/{quote(HOSTILE, safe='')}"]:
            read = Reader(ask(server, target).text)
            assert set(read.tags) <= OURS
            assert read.tags.count("script") == 1
            assert "onerror" not in [name for name, _ in read.attributes]
        assert HOSTILE in "".join(Reader(ask(server, link_row(*rows[0])).text).words)


# Diagrams


@given(*[st.text(max_size=60)] * 3, st.booleans())
def test_a_diagram_is_well_formed_whatever_it_is_drawn_of(title, note, relation, backward):
    steps = [
        (None, DrawnNode(title, note, "anchor")),
        (DrawnEdge(relation, note, backward), DrawnNode(title, note, "branch", True, 1)),
        (DrawnEdge(relation, note, backward), DrawnNode(note, title, "answer", True)),
    ]
    for part in re.findall(r"<svg.*?</svg>", draw_path(steps), re.DOTALL):
        root = ElementTree.fromstring(part)
        assert len(root.findall("{*}rect")) == 3
        assert {child.tag.partition("}")[2] for child in root} <= {"rect", "text", "path"}


def test_a_tree_is_drawn_beside_its_chain_and_a_path_without_a_question():
    question = make_question(1, None)
    node = question.proof.nodes[-1].model_copy(update={"title": "Lund Hall", "role": "branch"})
    branch = Branch(host=1, relation="owner", node=node, named=True, evidence=make_evidence(7001, "Lund Street"))
    proof = question.proof.model_copy(update={"branches": (branch,)})
    drawn = list_steps(question.model_copy(update={"proof": proof}))
    assert [(node.title, node.depth) for _, node in drawn] == [
        ("Kelm Bridge 1", 0), ("Mira Tolland 1", 0), ("Lund Hall", 1), ("Ostrava 1", 0), ("1201", 0),
    ]  # fmt: skip
    assert [edge.relation for edge, _ in drawn if edge] == ["architect", "owner", "birth place", "founded"]
    assert [node.hidden for _, node in drawn][2:] == [False, True, True]
    walked = WalkedPath(
        record_id="path-1", parent_id="seed-1", split="sft", domain="x", image="", nodes=proof.nodes, hops=proof.hops,
        answer_relation="founded", answer_text="1201", answer_iso="", answer_evidence=proof.answer_evidence, walks=1,
    )  # fmt: skip
    assert [node.title for _, node in list_steps(walked)] == ["Kelm Bridge 1", "Mira Tolland 1", "Ostrava 1", "1201"]


def test_what_was_read_stands_beside_what_the_proof_says():
    question = make_question(1, None)
    lines = list(compare_reading(question.proof, question.reading))
    assert [part for part, _, _ in lines if part != "fact"] == ["hop 1", "hop 2", "asked for"]
    assert lines[0][1] == "Kelm Bridge 1 -architect-> Mira Tolland 1"
    assert lines[0][2].startswith("architect")
    short = question.reading.model_copy(update={"hops": question.reading.hops[:1]})
    assert list(compare_reading(question.proof, short))[1][2] == "—"


@given(st.text(), st.lists(st.tuples(st.integers(-3, 30), st.integers(-3, 30), st.text(min_size=1))))
def test_marked_text_is_the_text(text, spans):
    pieces = list(mark_spans(text, spans))
    assert "".join(piece for piece, _ in pieces) == text
    assert {what for _, what in pieces} - {""} <= {what for _, _, what in spans}


# Comparisons


def test_two_outputs_of_a_stage_are_compared_row_by_row(many):
    kept = [make_question(n, None, split="rl" if n % 3 else "sft", domain="Person" if n % 2 else "Building/Place")
            for n in range(118)]  # fmt: skip
    changed = kept[5].model_copy(update={"text": "Another text?"})
    rows = [*kept[:5], changed, *kept[6:], make_question(500, None)]
    write_stage(many, FakeStage("difficulty", Difficulty), "e" * 16, rows)
    with serving(many) as server:
        explorer = server.explorer
        outputs = (explorer.find_output("difficulty", key * 16) for key in "de")
        found = explorer.compare_outputs(*outputs, page=1)
        assert found.counts == {"same": 117, "added": 1, "removed": 2, "changed": 1}
        assert found.shown["changed"] == [changed.record_id]
        page = ask(server, f"/compare?of=stage:difficulty&a={'d' * 16}&b={'e' * 16}").text
        assert "Another text?" in page
        assert kept[5].text in page
        assert "changed 1" in page


def test_two_runs_are_compared_by_their_funnels_and_lead_to_their_rows(many):
    write_stage(many, FakeStage("difficulty", Difficulty), "e" * 16, [make_question(1, None)])
    for name, key in (("one", "d"), ("two", "e")):
        Workspace(many).note_latest({"difficulty": key * 16}, name)
        (many / "runs" / name / CONFIG).write_text("")
    with serving(many) as server:
        assert "<strong>runs</strong>" in ask(server, "/compare").text
        page = ask(server, "/compare?of=runs&a=one&b=two").text
        assert "<td>rejected: not-rare</td>" in page
        link = re.search(r'href="([^"]+)">rows of difficulty', page)[1]
        assert "removed 119" in ask(server, unescape(link)).text
        assert ask(server, "/compare?of=runs&a=one&b=../two").status == 404
        assert server.explorer.list_rows(Choice("difficulty")).total == 1
    with looking_at(many, "one"), serving(many) as server:
        assert "difficulty: 120 kept" in ask(server, "/").text


def test_two_releases_are_compared_row_by_row(tmp_path, workspace):
    other = make_workspace(tmp_path / "other")
    (release,) = (other / "releases" / "vqa").iterdir() if (other / "releases" / "vqa").is_dir() else [None]
    source = release or next((other / "releases" / "rl").iterdir())
    dataset = source.parent.name
    target = workspace / "releases" / dataset / "9.0.0-00000000"
    source.rename(target)
    with serving(workspace) as server:
        assert f"release:{dataset}" in ask(server, "/compare").text
        versions = [path.name for path in sorted((workspace / "releases" / dataset).iterdir())]
        page = ask(server, f"/compare?of=release:{dataset}&a={versions[0]}&b={versions[1]}").text
    assert "added 0" in page
    assert "changed 0" in page


def test_only_columns_that_differ_are_shown_around_the_difference():
    same = "x" * 900
    (cell,) = compare_cells({"a": "1", "b": same + "old"}, {"a": "1", "b": same + "new"})
    assert cell.column == "b"
    assert cell.before.startswith("…")
    assert cell.before.endswith("old")
    assert cell.after.endswith("new")
    assert len(cell.before) < 300


def test_every_reason_has_its_sentence():
    known = {reason for reasons in STAGE_REASONS.values() for reason in reasons}
    assert sorted(known - read_glossary().keys()) == []
