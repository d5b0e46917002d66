"""``synth review``: a sample goes out with pictures, decisions come back, and the next release tells of them."""

import csv
import json
import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from pipelines.config.settings import NewsConfig
from pipelines.errors import ConfigError
from pipelines.release.publish import publish_releases
from pipelines.release.reviewed import Review
from pipelines.run.reviewing import draw_sample, import_decisions, write_forms
from pipelines.run.workspace import Workspace
from tests.chaos.driving import SMALL, call_here, copy_workspace, list_settings, share_small_run
from tests.pipelines.release.builders import make_context, make_material

DAY = "2026-11-20"
COLUMNS = ("id", "decision", "decided_by", "decided_on")
HOSTILE = ('=HYPERLINK("http://evil")', "+1", "-1", "@SUM(A1)", "\t=1", "\r\n=1")


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as source:
        return list(csv.DictReader(source))


def write_csv(path: Path, *rows):
    with path.open("w", newline="", encoding="utf-8") as target:
        csv.writer(target).writerows([COLUMNS, *rows])
    return path


@pytest.fixture
def sampled(tmp_path):
    """A workspace out of which two questions were given, by name."""
    folder = tmp_path / "review" / "questions"
    folder.mkdir(parents=True)
    strata = {"q-1": "2 hops, place, often solved", "q-2": "3 hops, place, never solved"}
    (folder / "sample.json").write_text(json.dumps(strata))
    return Workspace(tmp_path)


def test_a_sample_takes_of_every_stratum_its_share_and_the_same_ones_again():
    strata = {f"q-{number}": "abcd"[number % 8 // 2 if number % 8 < 6 else 0] for number in range(800)}
    drawn = draw_sample(strata, 80, 0)
    sizes, shares = Counter(strata.values()), Counter(drawn.values())
    assert len(drawn) == 80
    assert all(abs(shares[name] - sizes[name] / 10) <= 1 for name in sizes)
    assert draw_sample(dict(reversed(strata.items())), 80, 0) == drawn
    assert draw_sample(strata, 80, 1) != drawn
    assert draw_sample(strata, 900, 0) == strata


def test_no_cell_of_a_form_is_a_formula_to_a_spreadsheet(tmp_path):
    names = ("id", "picture", "question", "answer", "steps", "remark")
    write_forms(tmp_path, "questions", [dict.fromkeys(names, cell) for cell in HOSTILE])
    cells = [cell for row in read_csv(tmp_path / "questions.csv") for cell in row.values() if cell]
    assert len(cells) == len(names) * len(HOSTILE)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("q-1", "accept", "Ana", DAY), ("q-9", "accept", "Ana", DAY)], r"line 3: 'q-9' is no question"),
        ([("q-1", "accept", "Ana", DAY), ("q-1", "accept", "Ana ", DAY)], r"line 3: Ana decided on q-1"),
        ([("q-1", "fine", "Ana", DAY)], r"line 2: decision 'fine' on q-1; allowed: accept, refuse"),
        ([("q-1", "accept", "Ana", DAY), ("q-1", "accept", "ana", DAY)], r"Ana decided on q-1 before: .*, line 2;"),
        ([("q-1", "", "", ""), ("q-2", "accept", "", DAY)], r"line 3: the decision on q-2 must say who made it"),
        ([("q-1", "accept", "Ana", "11/22/2026")], r"line 2: the decision on q-1 must say who made it"),
        ([("q-1", "accept", "Ana", "2999-01-01")], r"line 2: the day 2999-01-01 of q-1 is still to come"),
    ],
)  # fmt: skip
def test_a_file_that_breaks_a_rule_is_refused_with_its_line_and_nothing_of_it_is_kept(sampled, tmp_path, rows, said):
    file = write_csv(tmp_path / "ana.csv", *rows)
    with pytest.raises(ConfigError, match=said) as refusal:
        import_decisions(sampled, [file])
    assert str(file) in str(refusal.value)
    assert not (sampled.reviews / "questions" / "decisions.json").exists()


def test_a_second_import_adds_what_is_new_and_refuses_what_was_said_otherwise_before(sampled, tmp_path):
    ana = write_csv(tmp_path / "ana.csv", ("q-1", "accept", "Ana", "2026-11-20"))
    ben = write_csv(
        tmp_path / "ben.csv", ("q-1", "REFUSE", "Ben", "2026-11-20"), ("q-2", "refuse", "Ben", "2026-11-20")
    )
    assert (import_decisions(sampled, [ana]).added, import_decisions(sampled, [ana]).known) == (1, 1)
    report = import_decisions(sampled, [ana, ben])
    assert (report.added, report.known) == (2, 1)
    assert report.result["found wrong by people"]["all"]["wrong"] == 2
    with pytest.raises(
        ConfigError, match=r"Ana decided on q-1 before: .*decisions\.json; .* for a changed mind remove"
    ):
        import_decisions(sampled, [write_csv(ana, ("q-1", "refuse", "Ana", "2026-11-22"))])
    (sampled.reviews / "questions" / "decisions.json").unlink()
    assert import_decisions(sampled, [ana, ben]).added == 3


def test_a_persons_name_is_one_however_it_is_spelt(sampled, tmp_path):
    import_decisions(sampled, [write_csv(tmp_path / "a.csv", ("q-1", "accept", "Ann Li", DAY))])
    report = import_decisions(sampled, [write_csv(tmp_path / "b.csv", ("q-2", "accept", " ann  LI ", DAY))])
    assert report.result["review by people"]["people"] == {"n": 1}


def test_a_table_of_excel_is_read_and_one_in_its_old_encoding_is_refused_with_the_line(sampled, tmp_path):
    rows = "id;decision;decided_by;decided_on\nq-1;accept;Zoë;2026-11-20\n"
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8-sig")
    assert import_decisions(sampled, [tmp_path / "a.csv"]).added == 1
    (tmp_path / "b.csv").write_text(rows, encoding="cp1252")
    with pytest.raises(ConfigError, match=r"b\.csv: not UTF-8; save it as"):
        import_decisions(sampled, [tmp_path / "b.csv"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[" * 200_000, r"a\.json: neither .*RecursionError"),
        ('[{"id": "q-1", "updated_at": "2026-11-20", "responses": {"decision": '
         '[{"status": "submitted", "value": "accept", "user_id": "\\ud800"}]}}]', r"record 1: the decision on q-1"),
    ],
)  # fmt: skip
def test_hostile_json_is_refused_by_its_name(sampled, tmp_path, content, said):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ConfigError, match=said):
        import_decisions(sampled, [tmp_path / "a.json"])


def test_nothing_is_read_back_before_a_sample_was_given_out(tmp_path):
    with pytest.raises(ConfigError, match="no sample was given out"):
        import_decisions(Workspace(tmp_path), [])
    assert not NewsConfig().decisions


def test_a_release_of_another_workspace_brings_its_own_pictures(tmp_path, capsys):
    made = {each.dataset: each.path for each in publish_releases(tmp_path, *make_material(tmp_path), make_context())}
    shutil.move(tmp_path / "images", tmp_path / "gone")
    for dataset, folder in made.items():
        work = tmp_path / dataset
        done = call_here(capsys, "review", "export", folder, "--workspace", work, "--json")
        assert done.code == 0, done.err
        rows = read_csv(work / "review" / "questions" / "questions.csv")
        assert len(rows) == json.loads(done.out)["questions"] > 0
        assert any(" → " in row["steps"] for row in rows)
        pictures = [Path(row["picture"]) for row in rows]
        assert all(sha256(path.read_bytes()).hexdigest() == path.stem for path in pictures)


def test_decisions_make_another_version_that_always_is_the_same_and_says_them(tmp_path):
    material = make_material(tmp_path)
    questions = sorted({entry.parent_id for entry in material[2]})
    said = tuple(
        Review(question=question, reviewer=name, accepted=name == "Ana", decided_on="2026-11-20")
        for question in questions
        for name in ("Ana", "Ben")
    )
    bare = publish_releases(tmp_path, *material, make_context())
    told = publish_releases(tmp_path, *material, make_context(reviews=said))
    again = publish_releases(tmp_path, *material, make_context(reviews=tuple(reversed(said))))
    assert not {each.version for each in bare} & {each.version for each in told}
    assert told == again
    for before, after in zip(bare, told, strict=True):
        card = (after.path / "README.md").read_text()
        assert "#### Review by people" in card
        assert "| Cohen's kappa | " in card
        assert "no person has examined" not in card
        assert "no person has examined" in (before.path / "README.md").read_text()
        assert not (before.path / "reviews.json").exists()


@pytest.mark.slow
def test_what_people_find_reaches_the_next_release_which_verifies(tmp_path, tmp_path_factory, capsys):
    own = copy_workspace(share_small_run(tmp_path_factory.getbasetemp())[0], tmp_path / "workspace")
    run = ("run", "--workspace", own, *list_settings(SMALL), "--limit", 60, "--json")
    given = json.loads(call_here(capsys, "review", "export", "--size", 6, "--workspace", own, "--json").out)
    rows = read_csv(own / "review" / "questions" / "questions.csv")
    assert len(rows) == given["questions"] == sum(given["strata"].values()) == 6
    files = [
        write_csv(tmp_path / f"{who}.csv", *((row["id"], word, who, "2026-11-20") for row in rows))
        for who, word in (("Ana", "accept"), ("Ben", "accept"), ("Cy", "refuse"))
    ]
    told = [call_here(capsys, "review", "import", file, "--workspace", own) for file in files]
    assert "Fleiss' kappa" in told[-1].out
    document = json.loads(call_here(capsys, *run).out)
    assert not any(stage["ran"] for stage in document["stages"])
    seen = [release for release in document["releases"] if (Path(release["path"]) / "reviews.json").exists()]
    assert seen
    for release in seen:
        quality = json.loads((Path(release["path"]) / "quality.json").read_text())
        assert quality["review by people"]["people"] == {"n": 3}
        assert quality["found wrong by people"]["all"]["wrong"] == 0
    assert call_here(capsys, "verify", "--workspace", own).code == 0
    again = json.loads(call_here(capsys, *run).out)["releases"]
    assert {each["path"] for each in again} == {each["path"] for each in document["releases"]}
