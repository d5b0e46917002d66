from types import SimpleNamespace

import pytest

from pipelines.errors import ConfigError
from pipelines.run.models import open_later


def make_corpus(corpus, snapshot, base_url=None):
    """Return what the run's corpus is compared by."""
    manifest = SimpleNamespace(base_url=base_url or corpus.manifest.base_url)
    return SimpleNamespace(snapshot=snapshot, manifest=manifest)


def test_another_dump_is_at_least_a_year_away(demo_corpus):
    year = int(demo_corpus.snapshot[:4])
    for snapshot in (f"{year - 1}{demo_corpus.snapshot[4:]}", f"{year + 2}{demo_corpus.snapshot[4:]}"):
        assert open_later(demo_corpus.folder, make_corpus(demo_corpus, snapshot)).digest == demo_corpus.digest
    for snapshot in (demo_corpus.snapshot, f"{year}-06-01"):
        with pytest.raises(ConfigError, match="365 days"):
            open_later(demo_corpus.folder, make_corpus(demo_corpus, snapshot))


def test_another_dump_is_of_the_same_wiki(demo_corpus):
    other = make_corpus(demo_corpus, "2001-01-01", "https://xx.wikipedia.org/wiki/")
    with pytest.raises(ConfigError, match=r"xx\.wikipedia\.org"):
        open_later(demo_corpus.folder, other)
