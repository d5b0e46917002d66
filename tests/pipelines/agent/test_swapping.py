from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from pipelines.agent.attempts import PictureSwaps
from pipelines.errors import Unavailable
from pipelines.graph.proofs import make_query
from pipelines.graph.query import Indexes, answer_query
from pipelines.pictures import PictureStore
from schemas.datasets import FetchedPicture, Grounding


class OtherPictures:
    """A corpus whose pictures are changed, or lie elsewhere."""

    def __init__(self, corpus, place=None, **changes):
        self.corpus, self.place, self.changes = corpus, place, changes

    def __getattr__(self, name):
        return getattr(self.corpus, name)

    def table(self, name):
        return self.folder / f"{name}.parquet"

    def image(self, file):
        return replace(self.corpus.image(file), **self.changes)

    def image_path(self, file):
        return self.place or self.corpus.image_path(file)


@pytest.fixture
def swaps(demo_ground, tmp_path) -> PictureSwaps:
    return PictureSwaps(demo_ground, PictureStore(tmp_path))


@pytest.fixture(scope="module")
def rows(demo) -> list[Grounding]:
    return demo.rows("groundings", Grounding)


@pytest.fixture(scope="module")
def row(rows, demo_ground, tmp_path_factory) -> Grounding:
    """A question for which there is another picture."""
    swaps = PictureSwaps(demo_ground, PictureStore(tmp_path_factory.mktemp("swaps")))
    return next(row for row in rows if swaps.choose(row))


def test_a_swapped_picture_is_of_the_anchors_type_and_of_no_node_of_the_path(swaps, rows, demo_corpus):
    chosen = [(row, swap) for row in rows if (swap := swaps.choose(row))]
    assert len(chosen) > len(rows) / 2
    for row, swap in chosen:
        assert demo_corpus.page(demo_corpus.find(swap.title)).type == row.proof.nodes[0].type
        assert swap.title not in {node.title for node in row.proof.nodes}
        assert swap.picture.sha256 != row.picture.sha256
        assert swaps.pictures.read(swap.picture)


def test_the_path_from_a_swapped_entity_does_not_lead_to_the_answer(swaps, rows, demo_ground, demo_corpus):
    for row in rows:
        swap = swaps.choose(row)
        if swap is not None:
            query = replace(make_query(demo_corpus, row.proof), anchor=demo_corpus.find(swap.title))
            assert row.answer.key not in answer_query(demo_ground, query)


def test_the_choice_is_the_same_in_any_order_and_in_another_process_folder(swaps, rows, demo_ground, tmp_path):
    other = PictureSwaps(demo_ground, PictureStore(tmp_path / "other"))
    backwards = {row.record_id: other.choose(row) for row in reversed(rows)}
    assert {row.record_id: swaps.choose(row) for row in rows} == backwards


def test_questions_are_swapped_with_different_entities(swaps, rows):
    titles = {swap.title for row in rows if (swap := swaps.choose(row))}
    assert len(titles) > 2


def test_a_question_without_a_picture_or_of_a_lone_type_has_none(swaps, row):
    assert swaps.choose(row.model_copy(update={"picture": None})) is None
    nodes = (row.proof.nodes[0].model_copy(update={"type": "zeppelin"}), *row.proof.nodes[1:])
    lone = row.model_copy(update={"proof": row.proof.model_copy(update={"nodes": nodes})})
    assert swaps.choose(lone) is None


def test_a_question_from_outside_that_has_no_path_has_none(swaps, row):
    assert swaps.choose(row.model_copy(update={"proof": row.proof.model_copy(update={"nodes": ()})})) is None


def test_where_no_picture_is_at_hand_one_that_was_fetched_for_the_question_is_taken(swaps, row, demo_corpus, tmp_path):
    (tmp_path / "pages.parquet").symlink_to(demo_corpus.folder / "pages.parquet")
    images = pq.read_table(demo_corpus.folder / "images.parquet")
    pq.write_table(images.slice(0, 0), tmp_path / "images.parquet")
    bare = OtherPictures(demo_corpus)
    bare.folder = tmp_path
    far, swap = PictureSwaps(Indexes(bare), PictureStore(tmp_path)), swaps.choose(row)
    assert far.choose(row) is None
    own = FetchedPicture(title=row.proof.nodes[0].title, picture=swap.picture)
    alike = FetchedPicture(title=swap.title, picture=row.picture)
    other = FetchedPicture(title=swap.title, picture=swap.picture)
    assert far.choose(row.model_copy(update={"fetched": (own, alike)})) is None
    assert far.choose(row.model_copy(update={"fetched": (own, other)})) == swap


def test_the_same_picture_under_another_name_is_no_other_picture(row, demo_corpus, tmp_path):
    same = Indexes(OtherPictures(demo_corpus, phash=row.picture.phash))
    assert PictureSwaps(same, PictureStore(tmp_path)).choose(row) is None


@pytest.mark.parametrize(("bits", "other"), [(10, False), (11, True)])
def test_a_near_copy_that_a_search_would_take_for_the_picture_is_no_other_one(row, demo_corpus, tmp_path, bits, other):
    near = f"{int(row.picture.phash, 16) ^ ((1 << bits) - 1):016x}"
    swaps = PictureSwaps(Indexes(OtherPictures(demo_corpus, phash=near)), PictureStore(tmp_path))
    assert (swaps.choose(row) is not None) is other


def test_a_picture_that_does_not_decode_or_was_changed_is_passed_over(row, demo_corpus, tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"\xff\xd8\xff broken")
    assert PictureSwaps(Indexes(OtherPictures(demo_corpus, broken)), PictureStore(tmp_path)).choose(row) is None
    changed = Indexes(OtherPictures(demo_corpus, sha256="0" * 64))
    assert PictureSwaps(changed, PictureStore(tmp_path)).choose(row) is None


def test_pictures_that_are_gone_are_no_property_of_the_question(row, demo_corpus, tmp_path):
    gone = Indexes(OtherPictures(demo_corpus, tmp_path / "gone.png"))
    with pytest.raises(Unavailable, match="restore it"):
        PictureSwaps(gone, PictureStore(tmp_path)).choose(row)


def test_the_identity_names_the_corpus(swaps, demo_corpus):
    assert demo_corpus.digest in swaps.identity
