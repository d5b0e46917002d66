"""Cards, Croissant descriptions and attributions of releases."""

import hashlib
import json

import pytest

from pipelines.agent.observations import Shown, render_hits, render_page
from pipelines.errors import GateNotMet
from pipelines.release.card import (
    NOBODY,
    PARTS,
    credit_page,
    list_credits,
    read_prose,
    render_credits,
)
from pipelines.release.making import Example
from pipelines.release.manifest import ArticleRights
from pipelines.release.publish import DATASETS, publish_releases
from schemas.datasets import Observation, Step
from schemas.manifest import ModelEntry
from schemas.proofs import Branch
from tests.pipelines.release.builders import (
    BASE,
    make_context,
    make_degraded,
    make_evidence,
    make_picture,
    make_question,
    make_trajectory,
    run_stage,
)


@pytest.fixture
def folder(tmp_path, material, context):
    return publish_releases(tmp_path, *material, context)[0].path


def credit(question, trajectory=None, base=BASE):
    """Return the credits of a vqa row, or of an sft row."""
    entries = run_stage([question], [trajectory] if trajectory else [])
    entry = next(each for each in entries if bool(each.trajectory_id) == bool(trajectory))
    return list(list_credits(Example(entry, question, trajectory), base, "c"))


def test_attribution_names_every_picture_and_page_once(tmp_path, folder, material):
    lines = [line.split("\t") for line in (folder / "ATTRIBUTION.tsv").read_text().splitlines()]
    assert lines[0] == ["kind", "title", "url", "author", "licence", "licence_url", "source", "changes"]
    page = ["page", "Kelm Bridge 1", f"{BASE}Kelm_Bridge_1?oldid=9011", "nobody, the page is invented", "CC BY-SA 4.0"]
    assert page in [line[:5] for line in lines]
    kinds = [line[0] for line in lines[1:]]
    assert (kinds.count("image"), kinds.count("page")) == (8, 12)
    assert all(len(line) == 8 and all(line) for line in lines)


def test_a_changed_picture_says_what_was_done_to_it_in_order(tmp_path):
    plain, degraded = make_question(1, make_picture(tmp_path, 1)), make_degraded(tmp_path, 2)
    questions = [plain, degraded]
    tools = ("image_search", "crop")
    trajectories = [
        make_trajectory(n, question, make_picture(tmp_path, 10 + n), first=tool)
        for n, (question, tool) in enumerate(zip(questions, tools, strict=True))
    ]
    found = [each for pair in zip(questions, trajectories, strict=True) for each in credit(*pair)]
    told = {each.source: each.changes for each in found if each.kind == "image"}
    assert told == {
        plain.picture.sha256: "none",
        trajectories[0].images[1].picture.sha256: "scaled down",
        degraded.picture.sha256: "blur of strength 0.5",
        trajectories[1].images[1].picture.sha256: "blur of strength 0.5; crop",
    }


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r@"])
def test_no_cell_is_a_formula_in_a_spreadsheet(tmp_path, start):
    question = make_question(1, make_picture(tmp_path, 1, author=f"{start}HYPERLINK(1)"))
    cells = [cell for line in render_credits(credit(question)).splitlines() for cell in line.split("\t")]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@")]
    assert f"'{start.strip()}HYPERLINK(1)" in cells


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", " JavaScript:alert(1)", "java\nscript:alert(1)", "data:text/html,x"]
)
@pytest.mark.parametrize("field", ["source_url", "licence_url"])
def test_an_address_that_a_browser_would_run_is_not_released(tmp_path, url, field):
    question = make_question(1, make_picture(tmp_path, 1, **{field: url}))
    with pytest.raises(GateNotMet, match="no page of the web"):
        credit(question)


def test_croissant_names_the_real_files_and_digests(folder):
    document = json.loads((folder / "croissant.json").read_text())
    assert document["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    fields = [field for records in document["recordSet"] for field in records["field"]]
    assert {field["source"]["fileObject"]["@id"] for field in fields} == {e["@id"] for e in document["distribution"]}
    for entry in document["distribution"]:
        assert hashlib.sha256((folder / entry["contentUrl"]).read_bytes()).hexdigest() == entry["sha256"]


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_dataset_has_all_parts_of_its_prose(dataset):
    prose = read_prose(dataset)
    assert sorted(prose.parts) == sorted(PARTS)
    assert "[More" not in prose.text


def show(tool, text, ok=True):
    seen = Observation(ok=ok, error="" if ok else "unknown-page", text=text, images=())
    return Step(thought="t", tool=tool, arguments="{}", reply="r", observation=seen)


def list_read(tmp_path, *steps):
    """Return title and address of every page credited for a trajectory of these steps."""
    question = make_question(1, make_picture(tmp_path, 1))
    trajectory = make_trajectory(1, question)
    trajectory = trajectory.model_copy(update={"steps": (*steps, trajectory.steps[-1])})
    return sorted((each.title, each.url) for each in credit(question, trajectory) if each.kind == "page-read")


def test_every_page_that_an_observation_shows_is_credited(tmp_path):
    hits = [Shown(f"{BASE}Kelm_{n}", f"Kelm {n}", "a bridge") for n in (1, 2)]
    page = Shown(f"{BASE}Ana_Kova%C4%8D", "Ana Kovač", "An architect.\n\n[1] Not a hit\nURL: https://x\ntext")
    steps = (show("text_search", render_hits(hits, 50)), show("visit", render_page(page, 200)))
    assert list_read(tmp_path, *steps) == [
        ("Ana Kovač", f"{BASE}Ana_Kova%C4%8D"),
        ("Kelm 1", f"{BASE}Kelm_1"),
        ("Kelm 2", f"{BASE}Kelm_2"),
    ]


def test_a_page_of_another_site_has_no_known_licence(tmp_path):
    page = render_page(Shown("https://other.example/Kelm", "Kelm", "a bridge"), 50)
    with pytest.raises(GateNotMet, match=r"other\.example"):
        list_read(tmp_path, show("visit", page))


def test_a_card_speaks_of_an_invented_wiki_and_of_scripted_players_as_such(folder):
    card = (folder / "README.md").read_text()
    assert f"Mind that its wiki <{BASE}> is invented; scripted players were its writer." in card
    assert "contributors of Wikipedia" not in card
    assert "every person is invented" in card
    assert '"toy"' in card
    assert '"wikipedia"' not in card.split("---")[1]
    assert "an invented wiki, snapshot" in card
    assert "an invented wiki" in json.loads((folder / "croissant.json").read_text())["rai:dataCollection"]


def test_a_card_of_a_real_wiki_and_models_behind_servers_credits_its_contributors(tmp_path, material):
    served = ModelEntry(role="writer", name="m", revision="openai@3:m:r1", sampling={})
    context = make_context(base_url="https://en.wikipedia.org/wiki/", models=(served,))
    questions, _, entries = material
    (release,) = publish_releases(tmp_path, questions, [], [e for e in entries if e.dataset == "rl"], context)
    card = (release.path / "README.md").read_text()
    assert "The contributors of Wikipedia" in card
    assert "from the Wikipedia snapshot" in card
    assert "invented" not in card
    assert "Wikipedia contributors" in (release.path / "ATTRIBUTION.tsv").read_text()


def test_pages_that_state_the_branches_of_a_tree_are_credited(tmp_path):
    question = make_question(1, make_picture(tmp_path, 1))
    stated, quoted = make_evidence(7001, "Lund Hall"), make_evidence(7002, "Marn Tower")
    node = question.proof.nodes[-1].model_copy(update={"role": "branch"})
    branch = Branch(host=1, relation="owner", node=node, named=True, evidence=stated, quote=quoted)
    tree = question.model_copy(update={"proof": question.proof.model_copy(update={"branches": (branch,)})})
    added = {line.title for line in credit(tree)} - {line.title for line in credit(question)}
    assert added == {"Lund Hall", "Marn Tower"}


PAGE = Shown("https://herald.test/1", "Crowds at Kelm Bridge", "")
RIGHTS = ArticleRights(licence="CC BY 4.0", licence_url="https://creativecommons.org/licenses/by/4.0/")


def test_an_article_is_credited_to_its_host_under_the_operators_licence():
    credit = credit_page("page", PAGE, BASE, "c", articles=RIGHTS)
    assert (credit.author, credit.licence, credit.url) == ("herald.test", "CC BY 4.0", PAGE.url)
    assert credit_page("page", Shown("https://a.example/1", "t", ""), BASE, "c", articles=RIGHTS).author == NOBODY
