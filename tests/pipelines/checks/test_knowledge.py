from pipelines.checks.knowledge import DECIDED, digest_checks

FILES = {"checks/data/volatile.toml": "a", "graph/kin.py": "b", "names.py": "c"}
OTHERS = ("stages/paths.py", "checks/notes.md", "scoring/rewards.py", "checks/rollouts/form.py")
OF_ROLLOUTS = {"checks/rollouts/form.py": "a", "scoring/dates.py": "b", "agent/rejecting.py": "c"}


def write_library(root, changes, stage="questions"):
    """Write a library with these texts in place of its own, and return a stage's digest."""
    for name, text in (FILES | OF_ROLLOUTS | dict.fromkeys(OTHERS, "d") | changes).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return digest_checks(stage, root)


def test_a_changed_word_list_or_rule_is_another_digest(tmp_path):
    digests = [write_library(tmp_path / str(number), {name: "other"}) for number, name in enumerate(FILES)]
    assert len({write_library(tmp_path / "same", {}), *digests}) == 4


def test_what_judges_nothing_changes_no_digest(tmp_path):
    first = write_library(tmp_path / "first", {})
    assert all(write_library(tmp_path / name.replace("/", "-"), {name: "other"}) == first for name in OTHERS)


def test_rollouts_are_judged_by_other_parts_than_questions(tmp_path):
    first = write_library(tmp_path / "first", {}, "trajectories")
    changed = [
        write_library(tmp_path / str(number), {name: "other"}, "trajectories")
        for number, name in enumerate(OF_ROLLOUTS)
    ]
    assert len({first, *changed}) == 4
    assert write_library(tmp_path / "graph", {"graph/kin.py": "other"}, "trajectories") == first


def test_the_library_has_one_for_every_stage_that_checks_decide_and_none_for_others():
    assert {len(digest_checks(stage)) for stage in DECIDED} == {64}
    assert digest_checks("rollouts") == ""
