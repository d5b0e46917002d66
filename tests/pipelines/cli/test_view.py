import hashlib
import json
import re
import shutil
import signal
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from pipelines.cli.naming import looking_at
from pipelines.cli.view.cards import compare_reading, explain_record, link_row, list_path, make_card, read_glossary
from pipelines.cli.view.queries import PAGE, Choice, Explorer, scan_release
from pipelines.cli.view.server import ViewServer
from pipelines.errors import ConfigError
from pipelines.graph.proofs import NO_PROOF
from pipelines.run.naming import CONFIG
from pipelines.run.workspace import Workspace
from schemas.base import Rejection
from schemas.datasets import Difficulty, Origin, Rewrite, Trajectory
from schemas.proofs import Branch
from schemas.reasons import STAGE_REASONS
from tests.chaos.driving import ROOT, call_here, make_command, make_environment
from tests.pipelines.cli.conftest import FakeStage, make_workspace, write_stage
from tests.pipelines.cli.injected import make_injected, make_rewrite
from tests.pipelines.cli.viewing import HOSTILE, ask, serving, write_hostile
from tests.pipelines.release.builders import make_evidence, make_question

QUESTION = "question-0000000000000001"
OURS = set(
    """
    a article body br button code details div figcaption figure form h1 h2 head header html img input label li link main
    meta nav ol option p pre section select span strong style summary table tbody td th thead title tr
    """.split()
)


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

    def list_values(self, attribute):
        return [value for name, value in self.attributes if name == attribute]


def find_part(card, title):
    (part,) = [part for part in card.parts if part.title.startswith(title)]
    return part


# The server


def test_only_its_own_host_is_answered(view):
    port = view.server_port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert ask(view, "/", host=host).status == 200
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", "127.0.0.1:1"):
        reply = ask(view, "/", host=host)
        assert (reply.status, b"question" in reply.body) == (421, False)


@pytest.mark.parametrize("method", ["POST", "DELETE", "HEAD"])
def test_only_get_is_answered(view, method):
    assert ask(view, "/", method).status == 501


def test_a_page_may_load_nothing_from_elsewhere_and_run_nothing(view):
    reply = ask(view, "/")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    read = Reader(reply.text)
    assert not {"style", "onclick", "onload"} & {name for name, _ in read.attributes}
    assert all(re.match(r"/(?!/)|#|data:", link) for link in read.list_values("href"))


@pytest.mark.parametrize(
    "target",
    [
        "/picture/..%2f..%2flatest.json",
        "/picture/" + "a" * 64,
        "/picture/" + "*" * 64,
        "/view.css/../server.py",
        "/base.html.j2",
        "/latest.json",
        "//etc/passwd",
        "/row/difficulty/none",
        "/row/..%2fimages/none",
        "/row/diff'%20OR%201=1--/none",
        "/?stage=nothing",
        "/?page=0",
        "/?kind=all",
        "/?unknown=1",
        "/?release=sft/none",
    ],
)
def test_what_is_not_there_is_not_found(view, target):
    assert ask(view, target).status == 404


@pytest.mark.parametrize("target", ["http://[/", "*", "latest.json"])
def test_an_address_without_a_path_is_refused(view, target):
    assert ask(view, target).status == 400


def test_a_damaged_file_is_named_and_a_release_whose_data_are_gone_holds_no_row(workspace):
    with serving(workspace) as server:
        (row, *_), _ = server.explorer.list_rows(Choice("trajectories"))
        held = make_card(server.explorer, "trajectories", row["record_id"]).releases
        for name in held:
            shutil.rmtree(workspace / "releases" / name / "data")
        assert held
        assert make_card(server.explorer, "trajectories", row["record_id"]).releases == ()
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
    for target in ("/", "/?kind=rejected", "/funnel", *Reader(ask(view, "/").text).list_values("href")):
        if target.startswith("/"):
            assert ask(view, target).status == 200
    assert sorted((path, path.stat().st_mtime_ns) for path in workspace.rglob("*")) == before


def test_a_taken_port_and_a_missing_workspace_are_told(view, tmp_path):
    with pytest.raises(ConfigError, match="port"):
        ViewServer(view.explorer.root, view.server_port)
    with pytest.raises(ConfigError, match="no such folder"):
        ViewServer(tmp_path / "nowhere")


def test_the_command_says_where_it_serves_and_an_interrupt_ends_it(workspace):
    command = make_command("view", "--no-open", "--json", "--workspace", workspace)
    with subprocess.Popen(command, cwd=ROOT, env=make_environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            said = "".join(iter(process.stdout.readline, "}\n")) + "}"
            with urlopen(json.loads(said)["address"], timeout=60) as reply:
                assert "difficulty: 7 kept" in reply.read().decode()
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
            found += re.findall(r'class="row" href="/row/[^/"]+/([^"]+)"', page)
            after = re.search(r'rel="next" href="([^"]+)"', page)
            target = unescape(after[1]) if after else ""
    assert found == [f"question-{n:016x}" for n in range(120)]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 120),
        ({"domain": "Person", "split": "sft"}, 20),
        ({"hops": "2"}, 120),
        ({"hops": "3"}, 0),
        ({"difficulty": "rarely solved"}, 120),
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
    rows, total = Explorer(many).list_rows(Choice("difficulty", **changes))
    assert (total, len(rows)) == (count, min(count, PAGE))


def test_facets_count_what_a_filter_would_show(many):
    explorer = Explorer(many)
    for kind in ("kept", "rejected"):
        facets = explorer.count_facets("difficulty", kind)
        assert facets
        for facet, values in facets.items():
            for value, rows in values.items():
                assert explorer.list_rows(Choice("difficulty", kind=kind, **{facet: value}))[1] == rows


def test_a_list_of_a_release_shows_the_rows_that_it_holds(view):
    explorer = view.explorer
    sft, rl = (next(name for name in explorer.list_releases() if name.startswith(kind)) for kind in ("sft", "rl"))
    assert explorer.list_rows(Choice("trajectories", release=sft)) == explorer.list_rows(Choice("trajectories"))
    rows, _ = explorer.list_rows(Choice("difficulty", release=rl))
    assert {row["split"] for row in rows} == {"rl"}


def test_a_run_that_ends_meanwhile_is_seen(many):
    explorer = Explorer(many)
    assert explorer.list_rows(Choice("difficulty"))[1] == 120
    write_stage(many, FakeStage("difficulty", Difficulty), "e" * 16, [make_question(1, None)])
    Workspace(many).note_latest({"difficulty": "e" * 16})
    assert explorer.list_rows(Choice("difficulty"))[1] == 1


def test_another_run_than_the_last_is_looked_at(many):
    write_stage(many, FakeStage("difficulty", Difficulty), "e" * 16, [make_question(1, None)])
    for name, key in (("one", "d"), ("two", "e")):
        Workspace(many).note_latest({"difficulty": key * 16}, name)
        (many / "runs" / name / CONFIG).write_text("")
    with looking_at(many, "one"), serving(many) as server:
        assert "difficulty: 120 kept" in ask(server, "/").text


def test_a_folder_on_the_way_is_no_column(many, view):
    moved = many / "split=train" / "domain=none" / "id=1"
    moved.mkdir(parents=True)
    for path in [path for path in many.iterdir() if path.name != "split=train"]:
        path.rename(moved / path.name)
    facets = Explorer(moved).count_facets("difficulty", "kept")
    assert facets["split"] == {"rl": 80, "sft": 40}
    assert facets["domain"] == {"Building/Place": 60, "Person": 60}
    release = next(iter(view.explorer.list_releases()))
    shutil.copytree(view.explorer.find_release(release), moved / "releases" / release)
    held = view.explorer.ask(f"SELECT id FROM {scan_release(view.explorer.find_release(release))}")
    assert Explorer(moved).find_holding([row["id"] for row in held]) == [release]


# One row


def test_a_row_shows_its_path_its_counts_its_reading_and_its_attempts(view):
    card = explain_record(view.explorer.root, QUESTION)
    page = " ".join(Reader(ask(view, link_row("difficulty", QUESTION)).text).words)
    for part in card.parts:
        assert all(cell in page for cell in (part.title, *part.head, *(cell for row in part.rows for cell in row)))
    path = find_part(card, "Path").rows
    assert [row[:2] for row in path] == [
        ("begins at", "Kelm Bridge 1"),
        ("architect →", "Mira Tolland 1"),
        ("birth place →", "Ostrava 1"),
        ("founded →", "1201"),
    ]
    assert path[1][3].startswith("“architect = [[Mira Tolland]]” (Kelm Bridge 1, revision 9011, ")
    assert ("N_img: answers over the anchors", "Kelm Bridge 1", "≥8") in {
        row[:3] for row in find_part(card, "Counts").rows
    }
    assert find_part(card, "Attempts").rows[0][:3] == ("text", "knower", "1 of 8")
    assert card.pictures[0].credit.endswith("CC BY 4.0")
    assert [row[1] for row in find_part(card, "Lineage").rows] == ["difficulty", "trajectories", "releases", "releases"]
    assert {name.split("/")[0] for name in card.releases} == {"vqa", "sft"}


def test_a_trajectory_shows_each_step_and_where_a_name_was_seen(view):
    (row, *_), _ = view.explorer.list_rows(Choice("trajectories"))
    record = view.explorer.find_record("trajectories", row["record_id"])
    assert isinstance(record, Trajectory)
    card = make_card(view.explorer, "trajectories", record.record_id)
    assert [step.thought for step in record.steps] == [row[1] for row in find_part(card, "Trajectory").rows[:-1]]
    seen = find_part(card, "Where each name").rows
    assert [(name, step) for name, step, _ in seen] == [(each.what, str(each.step + 1)) for each in record.supports]
    assert all("[" in words for _, _, words in seen)
    assert find_part(card, "Path").rows
    assert card.question


def test_every_kept_and_refused_row_of_a_run_opens(demo):
    with serving(demo.root) as server:
        explorer = server.explorer
        for found in explorer.list_stages():
            for kind in ("kept", "rejected"):
                for row in explorer.list_rows(Choice(found.stage, kind=kind))[0][:1]:
                    reply = ask(server, link_row(found.stage, row["record_id"]))
                    assert reply.status == 200, (found.stage, kind, reply.text)
                    assert row["record_id"] in unescape(reply.text)


def test_a_refused_row_shows_its_reason_in_words_what_was_seen_and_the_row_that_came_in(demo):
    with serving(demo.root) as server:
        (refused, *_), _ = server.explorer.list_rows(Choice("groundings", kind="rejected"))
        same = Choice("groundings", kind="rejected", hops=refused["hops"], domain=refused["domain"])
        assert refused["record_id"] in [row["record_id"] for row in server.explorer.list_rows(same)[0]]
        said = " ".join(Reader(ask(server, link_row("groundings", refused["record_id"])).text).words)
    for text in (read_glossary()[refused["reason"]][0], refused["detail"], refused["label"], "begins at"):
        assert text in said


def test_the_line_of_a_question_leads_from_its_seed_to_its_releases(demo):
    explorer = Explorer(demo.root)
    (row, *_), _ = explorer.list_rows(Choice("trajectories"))
    record = explorer.find_record("trajectories", row["record_id"])
    line = explorer.trace_line(record.parent_id)
    stages = [relative.stage for relative in line]
    assert stages == sorted(stages, key=[found.stage for found in explorer.list_stages()].index)
    assert {"seeds", "paths", "questions", "rewrites", "groundings", "trajectories"} <= set(stages)
    parents = {relative.record_id: relative.parent_id for relative in line if relative.outcome == "kept"}
    place, climbed = row["record_id"], []
    while place in parents:
        climbed.append(place)
        place = parents[place]
    assert [name.split("-")[0] for name in climbed] == ["rollout", "q", "rewrite", "question", "path", "seed"]
    assert stages.count("seeds") == 1


def test_a_line_holds_its_own_beginning_and_no_siblings(tmp_path):
    seeds = [make_question(n, None) for n in range(3)]
    made = [make_question(n, None).model_copy(update={"parent_id": seeds[1].record_id}) for n in range(10, 500)]
    for key, (name, rows) in zip("ab", (("seeds", seeds), ("difficulty", made)), strict=True):
        write_stage(tmp_path, FakeStage(name, Difficulty), key * 16, rows)
    Workspace(tmp_path).note_latest({"seeds": "a" * 16, "difficulty": "b" * 16})
    explorer = Explorer(tmp_path)
    line = explorer.trace_line(seeds[1].record_id)
    assert [relative.record_id for relative in line] == [row.record_id for row in (seeds[1], *made)]
    last = explorer.trace_line(made[-1].record_id)
    assert [relative.record_id for relative in last] == [seeds[1].record_id, made[-1].record_id]


def test_a_backward_hop_a_branch_and_a_sentence_that_confirms_the_answer_are_drawn():
    question = make_injected(None)
    node = question.proof.nodes[-1].model_copy(update={"title": "Lund Hall", "role": "branch"})
    branch = Branch(host=1, relation="owner", node=node, named=True, evidence=make_evidence(7001, "Lund Street"))
    proof = question.proof.model_copy(update={"branches": (branch,)})
    rows = list(list_path(question.model_copy(update={"proof": proof})))
    assert [row[:2] for row in rows] == [
        ("begins at", "Kelm Bridge 1"),
        ("architect →", "Mira Tolland 1"),
        ("← birth place", "Ostrava 1"),
        ("Mira Tolland 1: owner →", "Lund Hall"),
        ("founded →", "1201"),
        ("confirmed by", "1201"),
    ]
    assert rows[3][2] == "named"
    assert "The town was founded in 1201." in rows[5][3]


def test_what_was_read_stands_beside_what_the_proof_says():
    question = make_question(1, None)
    lines = list(compare_reading(question.proof, question.reading))
    assert [part for part, _, _ in lines if part != "fact"] == ["hop 1", "hop 2", "asked for"]
    assert lines[0][1] == "Kelm Bridge 1 -architect-> Mira Tolland 1"
    assert lines[0][2].startswith("architect")
    short = question.reading.model_copy(update={"hops": question.reading.hops[:1]})
    assert list(compare_reading(question.proof, short))[1][2] == "—"
    told = [proved for _, proved, _ in compare_reading(make_injected(None).proof, question.reading)]
    assert "Mira Tolland 1: birth date = 1870s (narrows nothing)" in told


def test_a_question_shows_how_its_names_were_hidden_or_where_it_comes_from(tmp_path):
    question = make_injected(None)
    origin = Origin(pool="elsewhere", row="17", entity="", licence="", source="https://pool.example/")
    outside = make_question(
        2, None, proof=NO_PROOF, origin=origin, reading=None, screening=None, standing="unproved", search_need="mixed"
    )
    for name, kind, rows in (
        ("rewrites", Rewrite, [make_rewrite(question, 0, 2)]),
        ("difficulty", Difficulty, [question, outside]),
    ):
        write_stage(tmp_path, FakeStage(name, kind), name[0] * 16, rows)
    Workspace(tmp_path).note_latest({"rewrites": "r" * 16, "difficulty": "d" * 16})
    hidden = find_part(explain_record(tmp_path, question.record_id), "How names were hidden").rows
    assert [row[:2] for row in hidden] == [("Mira Tolland 0", "the architect"), ("Mira Tolland 2", "the architect")]
    card = explain_record(tmp_path, outside.record_id)
    fields = dict(find_part(card, "Row").rows)
    assert [part.title for part in card.parts if part.title == "Path"] == []
    assert [fields[name] for name in ("pool", "row", "source", "search_need")] == [
        "elsewhere", "17", "https://pool.example/", "mixed",
    ]  # fmt: skip


def test_hostile_text_stays_text(tmp_path, capsys):
    write_hostile(tmp_path)
    with serving(tmp_path) as server:
        rows = [("difficulty", f"q/{HOSTILE}"), ("difficulty", f"r/{HOSTILE}")]
        rows += [("rollouts", server.explorer.list_rows(Choice("rollouts"))[0][0]["record_id"])]
        lists = ["/?stage=difficulty", "/?stage=difficulty&kind=rejected", f"/?text={quote(HOSTILE)}", "/funnel"]
        targets = [*lists, *(link_row(*row) for row in rows), f"/row/difficulty/{quote(HOSTILE, safe='')}"]
        pages = [ask(server, target).text for target in targets]
    assert call_here(capsys, "view", "--html", tmp_path / "page.html", "--workspace", tmp_path).code == 0
    for page in (*pages, (tmp_path / "page.html").read_text()):
        read = Reader(page)
        assert set(read.tags) <= OURS
        assert "onerror" not in [name for name, _ in read.attributes]
    assert HOSTILE in "".join(Reader(pages[len(lists)]).words)


# The text form, and the page to send


def test_explain_prints_what_the_page_of_the_row_shows(workspace, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    card = explain_record(workspace, QUESTION)
    text = call_here(capsys, "explain", QUESTION, "--workspace", workspace).out
    assert max(map(len, text.splitlines())) <= 80
    said = re.sub(r"\s+", "", text)
    for part in card.parts:
        assert all(word in said for row in part.rows for word in row[0].split())
    document = call_here(capsys, "explain", QUESTION, "--workspace", workspace, "--json").document
    assert (document["stage"], document["record"]["text"]) == ("difficulty", card.question)


def test_a_refused_row_is_explained_by_its_reason(workspace, capsys):
    text = call_here(capsys, "explain", "question-refused0000001", "--workspace", workspace).out
    assert "refused by difficulty: solved-without-tools. " in text
    assert "3 of 8" in text


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("question-ref", "question-refused0000001, question-refused0000002"),
        ("nothing", "no record"),
        ("", "no record"),
    ],
)
def test_an_id_that_names_no_row_or_several_is_refused(workspace, capsys, prefix, said):
    outcome = call_here(capsys, "explain", prefix, "--workspace", workspace)
    assert outcome.code == 2
    assert said in outcome.err


def test_one_page_to_send_loads_nothing_and_shows_funnel_reasons_and_questions(workspace, tmp_path, capsys):
    for path in sorted((workspace / "images").rglob("*.png"))[:1]:
        path.write_bytes(b"no picture")
    outcome = call_here(capsys, "view", "--html", tmp_path / "out" / "page.html", "--workspace", workspace, "--json")
    page = Path(outcome.document["page"]).read_text()
    read = Reader(page)
    assert "script" not in read.tags
    assert all(link.startswith("data:") for link in (*read.list_values("src"), *read.list_values("href")))
    assert len([link for link in read.list_values("src") if link.startswith("data:image/webp;base64,")]) == 6
    said = " ".join(read.words)
    for text in ("solved-without-tools", read_glossary()["solved-without-tools"][0], "Mira Tolland 1", "CC BY 4.0"):
        assert text in said


def test_a_workspace_without_a_finished_stage_has_no_page(tmp_path, capsys):
    outcome = call_here(capsys, "view", "--html", tmp_path / "page.html", "--workspace", tmp_path)
    assert (outcome.code, "no finished stage" in outcome.err) == (2, True)


def test_every_reason_has_its_sentence():
    known = {reason for reasons in STAGE_REASONS.values() for reason in reasons}
    assert sorted(known - read_glossary().keys()) == []
