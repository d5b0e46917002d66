"""The ranker and its check on a model that has learned something.

Which picture comes first, which sets are refused, and what an absolute threshold would have let through.
"""

from dataclasses import dataclass
from statistics import fmean

import open_clip
import pytest

from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import MAX_PIECES, Corpus, count_pieces, describe_entity
from pipelines.services.clients.encoder import CachedEncoder
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from tests.clip.models import make_encoder
from tests.clip.training import train_clip
from tests.clip.trials import Sets, Town, build_town, choose_looks, list_sets, rank_sets, share


@dataclass(frozen=True)
class Trained:
    """A town that the model never saw, its sets, and what the ranker made of them."""

    town: Town
    sets: Sets
    encoder: CachedEncoder

    def rank(self, sets):
        return rank_sets(self.town, self.encoder, sets)


@dataclass(frozen=True)
class Silent:
    """An encoder that may not be asked."""

    name: str
    identity: str

    async def encode_texts(self, texts):
        raise AssertionError(f"{len(texts)} texts were encoded again")

    async def encode_pictures(self, pictures):
        raise AssertionError(f"{len(pictures)} pictures were encoded again")


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    known, strangers = choose_looks()
    written = train_clip(folder / "model", frozenset([*known.values(), *strangers.values()]))
    town = build_town(folder / "wiki", known, strangers)
    encoder = make_encoder(written.config, written.weights, device="cpu")
    yield Trained(town, list_sets(town), CachedEncoder(encoder, folder / "embeddings"))
    encoder.close()
    town.corpus.close()


@pytest.fixture(scope="session")
def right(trained):
    return trained.rank(trained.sets.right)


@pytest.fixture(scope="session")
def wrong(trained):
    return trained.rank(trained.sets.wrong)


@pytest.fixture(scope="session")
def strange(trained):
    return trained.rank(trained.sets.strange)


def test_the_anchors_own_picture_comes_first_in_95_of_100_sets_that_hold_it(trained, right):
    assert len(right) >= 300
    anchors = [anchor for anchor, _ in trained.sets.right]
    assert share(outcome.shown[0] == anchor for outcome, anchor in zip(right, anchors, strict=True)) >= 0.95


def test_the_margin_takes_most_right_pictures_and_hardly_ever_a_wrong_one_beside_them(trained, right):
    anchors = [anchor for anchor, _ in trained.sets.right]
    taken = [outcome.find_taken() for outcome in right]
    assert share(who == anchor for who, anchor in zip(taken, anchors, strict=True)) >= 0.9
    assert share(who not in ("", anchor) for who, anchor in zip(taken, anchors, strict=True)) <= 0.02


def test_the_margin_refuses_95_of_100_sets_of_others_and_the_threshold_alone_lets_most_through(wrong):
    assert len(wrong) >= 300
    assert share(not outcome.find_taken() for outcome in wrong) >= 0.95


def test_pictures_of_what_no_article_is_about_are_mostly_refused_too(strange):
    assert share(not outcome.find_taken() for outcome in strange) >= 0.9


def test_ranking_again_encodes_nothing_and_says_the_same(trained, right):
    kept = CachedEncoder(Silent(trained.encoder.name, trained.encoder.identity), trained.encoder.folder)
    assert rank_sets(trained.town, kept, trained.sets.right) == right


def test_descriptions_fit_the_tokens_that_the_encoder_reads(trained, tmp_path):
    write_world(tmp_path / "world", WorldConfig(entities=250))
    build_corpus(next((tmp_path / "world").glob("*-multistream.xml.bz2")), tmp_path / "corpus")
    tokenizer = open_clip.get_tokenizer("ViT-B-32")
    for corpus in (trained.town.corpus, Corpus.open(tmp_path / "corpus")):
        lines = [describe_entity(corpus, node) for node in corpus.article_nodes()]
        counts = [len(tokenizer.encode(line)) for line in lines]
        assert max(counts) <= MAX_PIECES
        assert fmean(count <= count_pieces(line) for count, line in zip(counts, lines, strict=True)) > 0.95
