"""What a run warns of, as a user sees it."""

import bz2
import shutil
from collections import Counter
from pathlib import Path

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import EnhancementsConfig
from pipelines.run.advice import GOVERNING, Warner, is_same_model
from pipelines.run.progress import SilentReporter
from schemas.reasons import STAGE_REASONS
from tests.chaos.driving import SMALL, call_here, copy_workspace, list_settings, share_small_run

Capture = pytest.CaptureFixture[str]
PICTURES = "no images/images.tsv lies beside otherwiki-20250131-pages-articles.xml.bz2 and commons.fetch is false"
FETCH = {
    "commons.fetch": "true",
    "commons.contact": "a@example.org",
    "commons.api": "http://127.0.0.1:1/api.php",
}
PLAYERS = "scripted players know the toy world alone and otherwiki-20250131-pages-articles.xml.bz2 is another wiki"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share_small_run(tmp_path_factory.getbasetemp())[0]


@pytest.fixture(scope="module")
def other_dump(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy world's pages under another wiki's address, with nothing beside them."""
    (world,) = (shared / "worlds").iterdir()
    (dump,) = (path for path in world.glob("*-pages-articles*.xml.bz2") if "-index" not in path.name)
    pages = bz2.decompress(dump.read_bytes())
    assert pages.count(b"https://toywiki.example/") == 1
    path = tmp_path_factory.mktemp("other") / "otherwiki-20250131-pages-articles.xml.bz2"
    path.write_bytes(bz2.compress(pages.replace(b"https://toywiki.example/", b"https://other.example/")))
    return path


@pytest.fixture(scope="module")
def other_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


def run_other(capsys: Capture, workspace: Path, dump: Path, *more: object, **settings: object):
    chosen = {
        "groundings.ocr": [],
        "groundings.min_answers": 0,
        "seeds.small_corpus.require_image": "false",
        "corpus.dump": dump,
    } | settings
    given = [f"{key}={value}" for key, value in chosen.items()]
    # By its recipe, or what an earlier call has set would be kept.
    return call_here(
        capsys, "run", "--recipe", "demo", "--workspace", workspace, "--json", *list_settings(given), *more
    )


def list_warned(err: str) -> list[str]:
    return [line.removeprefix("warning").strip() for line in err.splitlines() if line.startswith("warning ")]


def test_a_plain_run_of_the_demo_warns_of_nothing(shared: Path, tmp_path: Path, capsys: Capture) -> None:
    own = copy_workspace(shared, tmp_path / "workspace")
    outcome = call_here(capsys, "run", "--workspace", own, *list_settings(SMALL), "--limit", 60, "--json")
    assert outcome.document["warnings"] == []
    assert "warning" not in outcome.err
    world = next((own / "worlds").iterdir())
    again = call_here(
        capsys, "run", "--workspace", own, "--set", f"corpus.world={world}", "--until", "corpus", "--json"
    )
    assert again.document["warnings"] == []


def test_a_real_dump_without_pictures_and_models_is_warned_of_before_it_is_read(
    other_workspace: Path, other_dump: Path, capsys: Capture
) -> None:
    enough = {"paths.per_seed": 3, "rewrites.min_alone": 1, "rewrites.min_alone_first": 1,
              "releases.max_gold_share": 1, "releases.max_gold_share_trained": 1}  # fmt: skip
    outcome = run_other(capsys, other_workspace, other_dump, "--limit", 90, "--until", "groundings", **enough)
    assert outcome.code == 0, outcome.err
    warned = outcome.document["warnings"]
    assert list_warned(outcome.err) == warned
    said = [line for line in outcome.err.splitlines() if not line.startswith("run demo")]
    assert [line.startswith("warning") for line in said[:3]] == [True, True, False]
    pictures, players, refused = warned
    assert pictures.startswith(PICTURES)
    assert "set commons.fetch=true and commons.contact, or lay pictures" in pictures
    assert players.startswith(f"{PLAYERS}: models.writer, models.rewriter, models.evaluator; set adapter=openai")
    stage = outcome.document["stages"][-1]
    assert (stage["stage"], stage["kept"], list(stage["rejected"])) == ("groundings", 0, ["no-picture"])
    count = stage["rows_in"]
    assert count >= 20
    assert refused == (
        f"groundings refused all {count} rows for one reason, no-picture; see commons.fetch, groundings.require_image"
    )


@pytest.mark.parametrize(
    ("until", "settings", "expected"),
    [
        ("seeds", {}, []),
        ("questions", {}, [PLAYERS]),
        ("groundings", {"groundings.require_image": "false"}, [PLAYERS]),
        ("groundings", FETCH, [PLAYERS]),
        ("groundings", {}, [PICTURES, PLAYERS]),  # a few rows refused for one reason say nothing yet
    ],
)
def test_a_run_is_warned_of_what_its_own_stages_lack_and_no_more(
    other_workspace: Path,
    other_dump: Path,
    capsys: Capture,
    until: str,
    settings: dict[str, object],
    expected: list[str],
) -> None:
    outcome = run_other(capsys, other_workspace, other_dump, "--limit", 3, "--until", until, **settings)
    assert outcome.code == 0, outcome.err
    warned = outcome.document["warnings"]
    assert list_warned(outcome.err) == warned
    assert len(warned) == len(expected)
    assert all(text.startswith(start) for text, start in zip(warned, expected, strict=True))


def test_seeds_that_all_lack_a_picture_say_what_the_gate_needs(
    other_workspace: Path, other_dump: Path, capsys: Capture
) -> None:
    needed = {"seeds.small_corpus.require_image": "true"}
    outcome = run_other(capsys, other_workspace, other_dump, "--until", "seeds", **needed)
    (stage,) = (stage for stage in outcome.document["stages"] if stage["stage"] == "seeds")
    assert stage["kept"] == 0
    (said,) = outcome.document["warnings"]
    lost = stage["rejected"]["no-image"]
    assert said.startswith(f"seeds refused all {stage['rows_in']} articles, {lost} of them for want of a picture; ")
    assert "commons.api" in said
    assert "page_props" in said


def test_pictures_beside_the_dump_are_enough(other_dump: Path, shared: Path, tmp_path: Path, capsys: Capture) -> None:
    (world,) = (shared / "worlds").iterdir()
    shutil.copytree(world / "images", tmp_path / "images")
    dump = shutil.copy(other_dump, tmp_path)
    outcome = run_other(capsys, tmp_path / "workspace", dump, "--limit", 3, "--until", "groundings")
    assert [text.split(":")[0] for text in outcome.document["warnings"]] == [PLAYERS]


def test_every_setting_that_is_named_exists_and_governs_a_reason_of_its_stage() -> None:
    config = make_config(read_recipe("demo"))
    for stage, settings in GOVERNING.items():
        assert set(settings) <= set(STAGE_REASONS[stage])
        for key in ", ".join(settings.values()).split(", "):
            section, name = key.split(".")
            assert name in type(getattr(config, section)).model_fields


@pytest.mark.parametrize(
    ("substitute", "counts", "told"),
    [
        (False, {"blur": 2, "downsample": 2, "perspective": 1}, "blur 2, downsample 2, perspective 1; see"),
        (True, {"blur": 9}, "blur 9, downsample 0, perspective 0; see enhancements.tries"),
        (False, {"blur": 10, "downsample": 10, "perspective": 8}, ""),
    ],
)
def test_fewer_degraded_pictures_than_their_share_are_told(substitute, counts, told):
    warner = Warner(SilentReporter())
    warner.warn_of_degraded(300, Counter(counts), EnhancementsConfig(share=0.1, substitute=substitute))
    assert len(warner.said) == bool(told)
    assert all(told in said and "30 were to have a degraded picture" in said for said in warner.said)


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-5", "gpt-5-2026-08-07 fp_44709d6fcb", True),
        ("qwen/qwen3-32b", "Qwen3-32B", True),
        ("Qwen/Qwen3-32B", "Qwen/Qwen3-8B", False),
        ("teacher", "mock", False),
    ],
)
def test_another_model_than_was_asked_for_is_told_from_a_dated_or_shorter_name(asked, served, same):
    assert is_same_model(asked, served) is same
