"""A whole run with an encoder: a small CLIP that knows the toy world's pictures by heart ranks and searches."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.config.loading import make_config, read_recipe
from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.errors import Unavailable
from pipelines.run.assembly import Assembly
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from pipelines.services.clients.encoder import FILE
from pipelines.toy.publishing import write_world
from pipelines.toy.world import WorldConfig
from schemas.datasets import Grounding
from tests.chaos.driving import call_here, list_settings
from tests.clip.training import train_by_heart
from tests.conftest import SETTINGS


@dataclass(frozen=True)
class Run:
    """A finished run, and the settings that it was made with."""

    root: Path
    settings: tuple[str, ...]

    @property
    def groundings(self) -> list[Grounding]:
        space = Workspace(self.root)
        return list(read_parts(space.stage("groundings", space.read_latest()["groundings"]), Grounding))

    def count_kept(self) -> int:
        with closing(sqlite3.connect(Workspace(self.root).derived / "embeddings" / FILE)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM embeddings").fetchone()
        return int(count)

    def run(self, *more: str) -> None:
        run_recipe(make_config(read_recipe("demo"), [*self.settings, *more]), self.root, "", ())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    write_world(folder / "world", WorldConfig(entities=250))
    build_corpus(next((folder / "world").glob("*-multistream.xml.bz2")), folder / "corpus")
    with closing(Corpus.open(folder / "corpus")) as corpus:
        written = train_by_heart(folder / "model", corpus)
    made = Run(
        folder / "workspace",
        (
            f"corpus.world={folder / 'world'}",
            *SETTINGS,
            "tools.image_search=clip",
            f"encoder.model={written.config}",
            f"encoder.pretrained={written.weights}",
        ),
    )
    made.run()
    return made


@pytest.fixture
def assemblies(run: Run) -> Iterator[list[Assembly]]:
    space = Workspace(run.root)
    config = make_config(read_recipe("demo"), run.settings)
    opened = [Assembly(config, space, Corpus.open(space.corpora / space.read_latest()["corpus"])) for _ in range(2)]
    yield opened
    for each in opened:
        each.close()
        each.corpus.close()


def test_rows_are_grounded_by_a_margin_to_others_of_their_type(run: Run) -> None:
    assert len(run.groundings) >= 10
    for row in run.groundings:
        seen = row.depiction
        assert seen is not None
        assert seen.ranker == "heart/heart.pt"
        assert seen.distractors >= 20
        assert seen.margin is not None
        assert seen.margin > 0


def test_a_search_by_picture_finds_the_anchor_by_likeness(run: Run) -> None:
    rated = [row.depiction.ease for row in run.groundings if row.depiction]
    assert rated.count("easy") / len(rated) > 0.9


def test_cards_name_the_ranker(run: Run) -> None:
    cards = list((run.root / "releases").glob("vqa/*/README.md"))
    assert cards
    assert all("heart/heart.pt" in card.read_text("utf-8") for card in cards)


@pytest.mark.parametrize("command", [("plan", "--json"), ("doctor", "--json"), ("status", "--json")])
def test_looking_at_such_a_run_does_not_fail(
    run: Run, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = list_settings(run.settings) if command[0] != "status" else []
    outcome = call_here(capsys, *command, "--workspace", run.root, *settings)
    assert outcome.code == 0, outcome.err
    assert outcome.document


def test_a_closed_assembly_ends_its_own_encoder_and_no_other(assemblies: list[Assembly]) -> None:
    first, second = assemblies
    encoder = first.seeing.encoder
    assert encoder is first.seeing.encoder is not second.seeing.encoder
    first.close()
    with pytest.raises(Unavailable, match="closed"):
        asyncio.run(encoder.encode_texts(["a text of no other run"]))
    assert len(asyncio.run(second.seeing.encoder.encode_texts(["a text of no other run"]))) == 1
