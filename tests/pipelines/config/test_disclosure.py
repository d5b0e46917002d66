"""What a release tells of its run's settings: nothing that could be a path, an address or a name of somebody's own."""

import json

from pipelines.config.disclosure import digest_settings, disclose_settings, read_sections
from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import ToolsConfig

PRIVATE = (
    'tools.edsr="/home/ann/EDSR_x2.pb"',
    'releases.apart_from=["/home/ann/exam"]',
    'prompts="/home/ann/prompts"',
    "models.writer.timeout=77",
)


def make_demo(*settings):
    return make_config(read_recipe("demo"), settings)


def test_paths_addresses_and_names_are_told_by_digest_alone():
    told, untold = disclose_settings(make_demo(*PRIVATE))
    assert "/home" not in json.dumps([told, untold])
    assert "home.example" not in json.dumps([told, untold])
    plain, others = disclose_settings(make_demo())
    assert told == plain
    changed = {name for name in untold if untold[name] != others[name]}
    assert changed == {name.partition("=")[0] for name in PRIVATE[:-1]} | {"models"}


def test_the_digest_follows_from_what_is_told_and_changes_with_every_setting():
    digest = digest_settings(*disclose_settings(make_demo()), "corpus")
    assert digest == digest_settings(*disclose_settings(make_demo()), "corpus")
    others = [disclose_settings(make_demo(setting)) for setting in ("seed=8", *PRIVATE)]
    digests = {digest_settings(told, untold, "corpus") for told, untold in others}
    assert len(digests | {digest, digest_settings(*disclose_settings(make_demo()), "another")}) == len(others) + 2


def test_how_the_work_is_cut_changes_nothing():
    assert disclose_settings(make_demo("runtime.concurrency=3")) == disclose_settings(make_demo())


def test_told_values_are_tables_again():
    config = make_demo()
    tables = read_sections(disclose_settings(config)[0])
    assert tables["splits"] == config.splits
    # The path of weights are not told.
    assert ToolsConfig.model_validate(tables["tools"], strict=False) == config.tools


def test_whose_requests_they_are_is_told_by_no_digest_either():
    assert disclose_settings(make_demo('contact="ann@home.example"')) == disclose_settings(make_demo())
