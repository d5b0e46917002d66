from pipelines.checks.knowledge import digest_checks

FILES = {"checks/data/volatile.toml": "a", "graph/kin.py": "b", "names.py": "c"}
OTHERS = ("stages/paths.py", "checks/notes.md")


def write_library(root, changes):
    """Write a library with these texts in place of its own, and return its digest."""
    for name, text in (FILES | dict.fromkeys(OTHERS, "d") | changes).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return digest_checks(root)


def test_a_changed_word_list_or_rule_is_another_digest(tmp_path):
    digests = [write_library(tmp_path / str(number), {name: "other"}) for number, name in enumerate(FILES)]
    assert len({write_library(tmp_path / "same", {}), *digests}) == 4


def test_what_judges_nothing_changes_no_digest(tmp_path):
    first = write_library(tmp_path / "first", {})
    assert all(write_library(tmp_path / name.replace("/", "-"), {name: "other"}) == first for name in OTHERS)


def test_the_library_itself_has_one():
    assert len(digest_checks()) == 64
