"""What the keys of FVQA exclude, before anything is written."""

import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError


def make(*settings):
    return make_config(read_recipe("fvqa"), ["corpus.dump=dump.xml", *settings])


def test_the_recipe_has_the_papers_numbers():
    config = make()
    assert (config.method, config.concepts.draws, config.difficulty.attempts) == ("concepts", 10_000, 8)
    assert config.difficulty.max_searches == config.rollouts.max_calls == 2
    assert config.rollouts.dialect == "mmsearch-r1"
    low, high = config.releases.search_free
    assert low < 1600 / 5000 < high


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("releases.search_free=[0.5, 0.4]", r"releases\.search_free \[0\.5, 0\.4\]"),
        ("releases.search_free=[0.5, 1.4]", r"releases\.search_free"),
        ("concepts.head=0.7", r"concepts\.head 0\.7 and concepts\.tail 0\.5 overlap"),
        ('difficulty.solvers=["solver", "large"]', "labels by one solver"),
        ("concepts.spread=0.5", r"concepts\.spread"),
    ],
)
def test_keys_that_exclude_each_other_are_refused(setting, said):
    with pytest.raises(ConfigError, match=said):
        make(setting)


def test_the_labels_rollouts_need_what_the_teachers_need():
    with pytest.raises(ConfigError, match=r"live\.contact"):
        make_config(read_recipe("fvqa"), ["corpus.dump=dump.xml", "tools.family=live"], "difficulty")
