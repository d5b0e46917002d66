from pathlib import Path

import pytest

from pipelines.agent.agreement import wilson_interval
from pipelines.cli.plan import Measurements, measure_stage, price_tokens
from pipelines.ids import digest_value, make_stage_key
from pipelines.run.runner import PlannedStage
from pipelines.run.workspace import StageFolder
from schemas.manifest import InputEntry, Manifest, ModelEntry, ShardSidecar, Usage

CORPUS = "c" * 64
TEACHER = ModelEntry(role="teacher", name="m", revision="r", sampling={})


class FakeStage:
    """A stage as a plan sees it: what decides its rows is one word."""

    version = 1

    def __init__(self, decides="these settings", models=(TEACHER,), name="rollouts"):
        self.name, self.decides, self.asked = name, decides, models

    def fingerprint(self):
        return digest_value(self.decides)

    def prompts(self):
        return {"act/v1": "d" * 64}

    def models(self):
        return self.asked


def make_key(stage, sources=(), corpus=CORPUS):
    return make_stage_key(stage.name, stage.version, digest_value([stage.fingerprint()]), [corpus, *sources])


def make_plan(root, stage):
    key = make_key(stage, ["whole"])
    return PlannedStage(stage, key, StageFolder(Path(root) / "stages" / stage.name / key), (), "")


def seal(root, stage, source, usage=None, rows=100, kept=60, shards=1, **more):
    """Seal a run of a stage over rows of a source; each row kept makes one."""
    made = {"rows_in": rows, "kept": kept, "rejected": {}, "failed": 0, "rows_out": kept, **more}
    used = usage or Usage()
    sidecar = ShardSidecar(shard=0, source="", files=(), usage=used, seconds=rows / 2, **made)
    key = make_key(stage, [source])
    manifest = Manifest(
        stage=stage.name,
        stage_version=stage.version,
        key=key,
        inputs=(InputEntry(name="corpus", key="c", digest=CORPUS), InputEntry(name="paths", key=source, digest="")),
        prompts=stage.prompts(),
        models=stage.models(),
        config_digest="",
        git_commit="",
        usage=Usage(**{name: value * shards for name, value in used.model_dump().items()}),
        seconds=rows / 2 * shards,
        shards=(sidecar,) * shards,
        digest="",
        **{name: value * shards if isinstance(value, int) else value for name, value in made.items()},
    )
    folder = StageFolder(Path(root) / "stages" / stage.name / key)
    folder.path.mkdir(parents=True)
    folder.manifest.write_text(manifest.model_dump_json())


def find(root, stage, grown=()):
    return Measurements(CORPUS, {"paths": set(grown)}).find(make_plan(root, stage))


def measure(root, stage, grown=(), most_rows=1.0, most_requests=20.0):
    return measure_stage(make_plan(root, stage), find(root, stage, grown), most_rows, most_requests)


def test_an_empty_workspace_says_nothing(tmp_path):
    assert find(tmp_path, FakeStage()) is None


def test_a_run_of_the_very_same_stage_is_known_by_its_key(tmp_path):
    seal(tmp_path, FakeStage(), "sample")
    seal(tmp_path, FakeStage("other settings"), "sample", rows=5000)
    found = find(tmp_path, FakeStage())
    assert (found.basis, found.largest.rows_in) == ("measured", 100)


def test_without_one_a_run_with_the_same_models_and_prompts_speaks_and_says_so(tmp_path):
    seal(tmp_path, FakeStage("other settings"), "sample")
    rates = measure(tmp_path, FakeStage(), grown=["sample"])
    assert (rates.basis, rates.recorded) == ("other settings", None)


def test_a_run_with_another_model_says_nothing(tmp_path):
    seal(tmp_path, FakeStage("other", (TEACHER.model_copy(update={"name": "n"}),)), "sample")
    assert find(tmp_path, FakeStage()) is None


def test_the_largest_run_speaks(tmp_path):
    seal(tmp_path, FakeStage(), "small", rows=10, kept=5)
    seal(tmp_path, FakeStage(), "large", rows=90, kept=45)
    assert find(tmp_path, FakeStage()).largest.rows_in == 90


def test_a_manifest_that_is_damaged_or_without_rows_says_nothing(tmp_path):
    seal(tmp_path, FakeStage(), "none", rows=0, kept=0)
    folder = tmp_path / "stages" / "rollouts" / "damaged"
    folder.mkdir()
    (folder / "manifest.json").write_text("{")
    assert find(tmp_path, FakeStage()) is None


def test_the_share_of_rows_kept_has_its_wilson_interval(tmp_path):
    seal(tmp_path, FakeStage(), "sample", rows=100, kept=60)
    rates, wilson = measure(tmp_path, FakeStage()), wilson_interval(60, 100)
    assert (rates.rows_out.low, rates.rows_out.middle, rates.rows_out.high) == pytest.approx(
        (wilson[0], 0.6, wilson[1])
    )
    assert rates.seconds == 0.5


def test_requests_of_few_shards_are_bounded_and_of_many_measured(tmp_path):
    seal(tmp_path / "few", FakeStage(), "sample", Usage(calls=400))
    seal(tmp_path / "many", FakeStage(), "sample", Usage(calls=400), shards=9)
    few, many = (measure(tmp_path / name, FakeStage()).requests for name in ("few", "many"))
    assert few.low < few.middle == 4 < few.high < 20
    assert many.exact


def test_replies_to_rows_grown_from_the_same_seeds_are_recorded(tmp_path):
    seal(tmp_path, FakeStage(), "sample", Usage(calls=300, cached_calls=20))
    assert measure(tmp_path, FakeStage(), grown=["sample"]).recorded == 320
    assert measure(tmp_path, FakeStage(), grown=["another"]).recorded is None


def test_what_an_earlier_sample_paid_is_counted_with_the_later_one(tmp_path):
    seal(tmp_path, FakeStage(), "first", Usage(calls=90, tokens_in=900, cost=9.0), rows=90)
    seal(tmp_path, FakeStage(), "second", Usage(calls=10, cached_calls=90, tokens_in=100, cost=1.0), rows=100)
    rates = measure(tmp_path, FakeStage(), grown=["first", "second"])
    assert (rates.tokens.middle, rates.tokens.high) == (10, 10)
    assert rates.money.middle == pytest.approx(0.1)


def test_a_request_may_have_cost_more_where_somebody_else_paid_for_most(tmp_path):
    seal(tmp_path, FakeStage(), "sample", Usage(calls=10, cached_calls=90, tokens_in=100))
    tokens = measure(tmp_path, FakeStage()).tokens
    assert (tokens.middle, tokens.high) == (1, 10)


def test_what_only_recordings_answered_has_no_known_price(tmp_path):
    seal(tmp_path, FakeStage(), "sample", Usage(cached_calls=90))
    rates = measure(tmp_path, FakeStage())
    assert (rates.tokens, rates.money, rates.gpu_seconds) == (None, None, None)
    assert rates.requests.middle == 0.9


def test_tokens_counted_before_there_was_a_price_are_priced_now(tmp_path):
    seal(tmp_path, FakeStage(), "sample", Usage(calls=100, tokens_in=50_000, tokens_out=50_000))
    rates = price_tokens(measure(tmp_path, FakeStage()), {"teacher": (1.0, 3.0)}, FakeStage())
    assert (rates.money.low, rates.money.middle, rates.money.high) == pytest.approx((0.001, 0.002, 0.003))


def test_money_that_was_counted_is_taken_as_it_was(tmp_path):
    seal(tmp_path, FakeStage(), "sample", Usage(calls=100, tokens_in=50_000, cost=7.0))
    rates = measure(tmp_path, FakeStage())
    assert price_tokens(rates, {"teacher": (1.0, 3.0)}, FakeStage()) == rates
