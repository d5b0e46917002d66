"""A few questions through every stage before the run."""

import shutil
from pathlib import Path

import pytest

from pipelines.cli.preview import make_preview_config, preview_run, read_preview
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.run.workspace import Workspace
from schemas.datasets import Enhancement
from schemas.manifest import Manifest
from tests.chaos.driving import call_here, list_settings
from tests.conftest import SETTINGS


def test_cards_are_those_of_selected_questions_and_of_rows_of_several_stages(demo):
    preview = read_preview(demo.config, demo.root, 4)
    rows = {row.record_id: row for row in demo.rows("selections", Enhancement)}
    assert len(preview.cards) == 4
    assert preview.missing == ()
    for card in preview.cards:
        row = rows[card.record_id]
        assert (card.question, card.answer, card.outcome) == (row.text, row.answer.surface, "kept")
        assert Path(card.pictures[-1].file).stem == row.picture.sha256
    assert len({card.stage for card in preview.refused}) == 4
    for card in preview.refused:
        (told,) = {r["detail"] for r in demo.rejections(card.stage) if r["record_id"] == card.record_id}
        assert card.detail == told
    counts = {stage["stage"]: stage["kept"] for stage in demo.document["stages"]}
    assert all(int(row[2].replace(",", "")) == counts[row[0]] for row in preview.funnel.rows[1:])


def test_pools_draw_no_seeds_so_there_is_nothing_to_preview(demo, tmp_path):
    config = demo.config.model_copy(update={"method": "pools"})
    with pytest.raises(ConfigError, match="draws no seeds"):
        preview_run(config, tmp_path, 2)


def test_a_preview_of_the_news_takes_a_few_articles_of_each_source():
    config = make_config(read_recipe("bridgevqa"), ["corpus.world=somewhere"], "corpus")
    assert make_preview_config(config, 3).news.per_source == 3
    fewer = config.model_copy(update={"news": config.news.model_copy(update={"per_source": 2})})
    assert make_preview_config(fewer, 3).news.per_source == 2


@pytest.mark.slow
def test_a_preview_disturbs_no_run_and_pays_for_nothing_again(demo, tmp_path, capsys):
    """In a copy of a workspace whose run is done: all that a preview asks is recorded there."""
    root = tmp_path / "workspace"
    shutil.copytree(demo.root, root, symlinks=True)
    before = {path: path.read_bytes() for path in root.glob("stages/*/*/manifest.json")}
    latest = Workspace(root).read_latest()
    given = list_settings((f"corpus.world={demo.world}", *SETTINGS))
    outcome = call_here(capsys, "run", *given, "--preview", 2, "--workspace", root, "--json")
    assert outcome.code == 0
    document = outcome.document
    assert len(document["cards"]) == 2
    assert all(Path(picture["file"]).is_file() for card in document["cards"] for picture in card["pictures"])
    assert Workspace(root).read_latest() == latest
    assert {path: path.read_bytes() for path in before} == before
    made = [path for path in root.glob("stages/*/*/manifest.json") if path not in before]
    used = [Manifest.model_validate_json(path.read_bytes()).usage for path in made]
    assert {usage.calls for usage in used} == {0}
    assert sum(usage.cached_calls for usage in used) > 0
