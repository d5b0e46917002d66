import asyncio
import sqlite3
import time
from contextlib import closing

import pytest

from pipelines.cli.doctor import examine_run
from pipelines.cli.status import prune_replies, render_pruned, render_replies, summarise_replies
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError, CorruptInput, Unavailable
from pipelines.run.shards import Origin, ShardInput, ShardRows, seal_stage, write_shard
from pipelines.run.workspace import Workspace
from pipelines.services.clients.replies import open_replies
from pipelines.services.clients.sqlite import FILE
from schemas.datasets import Difficulty
from schemas.manifest import Usage
from tests.chaos.driving import call_here
from tests.pipelines.cli.conftest import FakeStage, show

DAY = 86400
OLD = 1_700_000_000
"""2023-11-14."""


@pytest.fixture
def root(tmp_path):
    """A workspace with replies of two models, old and new, requests that failed and one that was cut off."""
    root = tmp_path / "it's [bold]a workspace"
    with closing(open_replies(Workspace(root).replies)) as store:
        asyncio.run(fill(store))
    with closing(sqlite3.connect(Workspace(root).replies / FILE)) as edit:
        edit.execute("UPDATE replies SET recorded = ? WHERE key LIKE 'old%'", (OLD,))
        edit.execute("UPDATE asks SET asked = ? WHERE key LIKE 'old%'", (OLD,))
        edit.commit()
    return root


async def fill(store):
    async def answer():
        return "é" * 500

    async def fail():
        raise Unavailable("away")

    for key in ("old-1", "old-2", "new-1"):
        await store.recall(key, "model [a]@1", answer)
    await asyncio.gather(*(store.recall(f"many-{number}", "model b@1#2", answer) for number in range(300)))
    await asyncio.gather(store.recall("failed", "model [a]@1", fail), return_exceptions=True)
    await store.note_asks(["old-lost"], "model [a]@1")


def list_keys(root):
    with closing(sqlite3.connect(Workspace(root).replies / FILE)) as store:
        return {
            table: {key for (key,) in store.execute(f"SELECT key FROM {table}")}
            for table in ("asks", "failures", "replies")
        }


def list_rest(root):
    """Keys that are not of the 300."""
    return {table: {key for key in keys if "many" not in key} for table, keys in list_keys(root).items()}


# Summary


def test_a_summary_counts_by_backend(root):
    large, small = summarise_replies(root).backends
    assert (large.backend, large.replies, large.bytes, large.never_ended) == ("model b@1#2", 300, 300_000, 0)
    assert (small.backend, small.replies, small.bytes) == ("model [a]@1", 3, 3000)
    assert (small.failures, small.never_ended) == (1, 1)
    assert small.first_day == "2023-11-14"
    assert small.last_day == large.first_day == large.last_day


def test_a_reply_of_unknown_size_is_measured_and_one_of_unknown_day_has_none(root):
    with closing(sqlite3.connect(Workspace(root).replies / FILE)) as edit:
        edit.execute("UPDATE replies SET recorded = 0, bytes = 0 WHERE backend = 'model [a]@1'")
        edit.commit()
    small = summarise_replies(root).backends[1]
    assert (small.bytes, small.first_day, small.last_day) == (3000, "", "")


def test_the_size_on_disk_has_the_log_of_a_run_under_way_in_it(tmp_path):
    folder = Workspace(tmp_path).replies
    with closing(open_replies(folder)) as store:
        asyncio.run(fill(store))
        size = summarise_replies(tmp_path).file_bytes
        file, log = (folder / f"{FILE}{ending}" for ending in ("", "-wal"))
        assert log.stat().st_size > 100_000 > file.stat().st_size
        assert size >= log.stat().st_size + file.stat().st_size
    assert summarise_replies(tmp_path).file_bytes == file.stat().st_size


def write_usage(root, key, usages, seal):
    stage, folder = FakeStage("difficulty", Difficulty), Workspace(root).stage("difficulty", key * 16)
    folder.path.mkdir(parents=True)
    for shard, usage in enumerate(usages):
        write_shard(stage, folder, shard, ShardInput((), (), usage=usage), ShardRows())
    if seal:
        seal_stage(stage, folder, len(usages), Origin((), "", ""))


def test_a_hit_rate_is_of_all_finished_shards_of_a_stage(root):
    write_usage(root, "a", [Usage(calls=6, cached_calls=1), Usage(calls=2)], seal=True)
    write_usage(root, "b", [Usage(cached_calls=7)], seal=False)
    (found,) = summarise_replies(root).stages
    assert (found.stage, found.calls, found.cached_calls, found.hit_rate) == ("difficulty", 8, 8, 0.5)


def test_a_stage_that_asked_nothing_has_a_hit_rate_of_0(root):
    write_usage(root, "a", [Usage()], seal=False)
    assert summarise_replies(root).stages[0].hit_rate == 0.0


def test_a_damaged_sidecar_is_named(root):
    write_usage(root, "a", [Usage()], seal=False)
    sidecar = Workspace(root).stage("difficulty", "a" * 16).sidecar(0)
    sidecar.write_text("{")
    with pytest.raises(CorruptInput, match=r"part-00000\.json"):
        summarise_replies(root)


def test_a_workspace_without_replies_has_an_empty_summary(tmp_path):
    summary = summarise_replies(tmp_path)
    assert (summary.file_bytes, summary.backends, summary.stages) == (0, (), ())
    assert list(tmp_path.iterdir()) == []


def test_a_summary_shows_names_as_they_are(root):
    write_usage(root, "a", [Usage(calls=1, cached_calls=3)], seal=False)
    shown = show(render_replies(summarise_replies(root)))
    assert "[bold]a workspace" in " ".join(shown.split())
    assert "model [a]@1" in shown
    assert "75.0%" in shown


# Pruning

PRUNINGS = {
    "backend": ({"backend": "[a]"}, {"old-1", "old-2", "new-1"}, {"failed", "old-lost"}),
    "age": ({"older_than_days": 30}, {"old-1", "old-2"}, {"old-lost"}),
    "both": ({"backend": "model b", "older_than_days": 30}, set(), set()),
    "no such backend": ({"backend": "model c"}, set(), set()),
}


@pytest.mark.parametrize(("rules", "replies", "others"), PRUNINGS.values(), ids=PRUNINGS.keys())
def test_pruning_takes_what_meets_every_rule_and_nothing_else(root, rules, replies, others):
    before = list_rest(root)
    assert sum(backend.replies for backend in prune_replies(root, **rules).backends) == len(replies)
    assert list_rest(root) == before
    pruned = prune_replies(root, **rules, apply=True)
    after, gone = list_rest(root), replies | others
    assert sum(backend.replies for backend in pruned.backends) == len(replies)
    assert after == {table: keys - gone for table, keys in before.items()}
    assert len(list_keys(root)["replies"]) == 300 + len(after["replies"])
    assert (f"{len(replies)} replies removed" if gone else "nothing to remove") in show(render_pruned(pruned))


def test_pruning_everything_gives_the_space_back(root):
    before = summarise_replies(root).file_bytes
    pruned = prune_replies(root, "model", apply=True)
    assert pruned.bytes_before == before
    assert pruned.bytes_after == summarise_replies(root).file_bytes < before / 5
    assert summarise_replies(root).backends == ()


def test_a_dry_run_says_what_it_would_free_and_changes_no_byte(root):
    file = Workspace(root).replies / FILE
    before = file.read_bytes()
    pruned = prune_replies(root, "model b")
    assert file.read_bytes() == before
    assert not pruned.applied
    assert "300 replies of 300.0 kB would be removed; nothing is changed yet" in show(render_pruned(pruned))


def test_a_pruned_store_goes_on(root):
    prune_replies(root, "[a]", apply=True)
    with closing(open_replies(Workspace(root).replies)) as store:
        asyncio.run(fill(store))
        assert store.count() == (305, 303)


def test_a_reply_of_unknown_day_is_not_old(root):
    with closing(sqlite3.connect(Workspace(root).replies / FILE)) as edit:
        edit.execute("UPDATE replies SET recorded = 0")
        edit.commit()
    pruned = prune_replies(root, older_than_days=1 / DAY, apply=True)
    assert sum(backend.replies for backend in pruned.backends) == 0
    assert len(list_keys(root)["replies"]) == 303


def test_what_is_younger_than_asked_for_stays(root):
    age = (time.time() - OLD) / DAY
    assert not prune_replies(root, older_than_days=age + 1).backends
    assert prune_replies(root, older_than_days=age - 1).backends[0].replies == 2


def test_pruning_waits_for_no_run_that_holds_the_workspace(root):
    with Workspace(root).claim():
        with pytest.raises(Unavailable, match="another run holds it"):
            prune_replies(root, "model", apply=True)
        assert prune_replies(root, "model").backends
    assert len(list_keys(root)["replies"]) == 303


@pytest.mark.parametrize(("rules", "says"), [(("",), "--backend.*--older-than"), (("a", -1.0), "-1 days")])
def test_pruning_without_a_sound_rule_is_refused(root, rules, says):
    with pytest.raises(ConfigError, match=says):
        prune_replies(root, *rules, apply=True)


def test_pruning_where_nothing_is_recorded_removes_nothing(tmp_path):
    pruned = prune_replies(tmp_path, "a", apply=True)
    assert (pruned.backends, pruned.bytes_before, pruned.bytes_after) == ((), 0, 0)
    with pytest.raises(ConfigError, match="no such folder"):
        prune_replies(tmp_path / "nowhere", "a")


def test_a_damaged_store_is_said_to_be_damaged(root):
    file = Workspace(root).replies / FILE
    whole = file.read_bytes()
    file.write_bytes(whole[: 6 * 4096] + b"\xff" * (len(whole) - 6 * 4096))
    with pytest.raises(CorruptInput, match="reply store"):
        summarise_replies(root)


def test_check_and_repair_tell_what_is_damaged_save_the_rest_and_doctor_looks(root, capsys):
    assert call_here(capsys, "replies", "check", "--workspace", root).out == "303 replies are whole\n"
    assert look(root).state == "ok"
    with closing(sqlite3.connect(Workspace(root).replies / FILE)) as edit:
        edit.execute("UPDATE replies SET reply = CAST(x'ff' AS TEXT) WHERE key = 'old-1'")
        edit.commit()
    found = call_here(capsys, "replies", "check", "--workspace", root)
    assert (found.code, found.out) == (1, "302 replies are whole, not: 1 of model [a]@1\n")
    assert "synth replies repair" in found.err
    assert look(root).state == "problem"
    repaired = call_here(capsys, "replies", "repair", "--workspace", root)
    assert repaired.code == 0
    assert "302 replies are saved" in repaired.out
    assert str(Workspace(root).replies / "damaged-1") in repaired.out
    assert call_here(capsys, "replies", "check", "--workspace", root).code == 0
    assert list_keys(root)["asks"] == {*list_keys(root)["replies"], "old-1", "old-lost", "failed"}
    assert look(root).state == "ok"


def test_where_nothing_is_recorded_nothing_is_damaged(tmp_path, capsys):
    for command in ("check", "repair"):
        assert call_here(capsys, "replies", command, "--workspace", tmp_path).code == 0
    assert not Workspace(tmp_path).replies.exists()


def look(root):
    examination = examine_run(make_config(read_recipe("demo")), root)
    return next(finding for finding in examination.findings if finding.what == "replies")
