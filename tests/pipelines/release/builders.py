"""Small questions, trajectories and pictures, built by hand."""

import hashlib
import io
from pathlib import Path

from PIL import Image

from pipelines.agent.transcript import Turn, render_turn
from pipelines.checks.limits import Limits
from pipelines.config.settings import ReleasesConfig
from pipelines.release.manifest import FunnelRow, ReleaseContext
from pipelines.stages.releases import Releases
from schemas.datasets import (
    Cell,
    Enhancement,
    Observation,
    Parameter,
    Picture,
    ReleaseEntry,
    RolloutImage,
    Step,
    Support,
    Trajectory,
    Trial,
)
from schemas.manifest import InputEntry, ModelEntry
from schemas.proofs import Answer, Constraint, Count, Evidence, Hop, PathNode, Proof
from tests.pipelines.stages.players import read_rightly, screen_rightly

BASE = "https://toy.example/wiki/"


def make_picture(root: Path, number: int, **changes) -> Picture:
    """Write a picture into the image store and return it."""
    buffer = io.BytesIO()
    image = Image.new("RGB", (64, 48), ((number * 37) % 256, (number * 91) % 256, 120))
    image.putpixel((number % 64, 0), (255, 255, 255))
    image.save(buffer, "PNG")
    content = buffer.getvalue()
    sha256 = hashlib.sha256(content).hexdigest()
    path = root / "images" / sha256[:2] / f"{sha256}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    values = {
        "sha256": sha256, "extension": "png", "file": f"Kelm Bridge {number}.png", "width": 64, "height": 48,
        "phash": f"{number:016x}", "author": "Ada Example", "licence": "CC BY 4.0",
        "licence_url": "https://creativecommons.org/licenses/by/4.0/",
        "source_url": f"https://commons.example/wiki/File:Kelm_{number}.png",
    }  # fmt: skip
    return Picture(**(values | changes))


def make_evidence(page: int, title: str) -> Evidence:
    text = "architect = [[Mira Tolland]]"
    return Evidence(
        page_id=page, title=title, revision=9000 + page, kind="infobox", key="architect", start=10, end=10 + len(text),
        text=text, link_start=22,
    )  # fmt: skip


def make_question(number: int, picture: Picture | None, split: str = "sft", **changes) -> Enhancement:
    """Return a two-hop question; every entity and the answer key are the number's own."""
    anchor, bridge, last = number * 10 + 1, number * 10 + 2, number * 10 + 3
    nodes = (
        PathNode(page_id=anchor, title=f"Kelm Bridge {number}", role="anchor", type="bridge", in_degree=9),
        PathNode(page_id=bridge, title=f"Mira Tolland {number}", role="bridge", type="architect", in_degree=7),
        PathNode(page_id=last, title=f"Ostrava {number}", role="answer", type="town", in_degree=30),
    )
    hops = tuple(
        Hop(
            index=i + 1,
            relation=relation,
            subject_id=nodes[i].page_id,
            object_id=nodes[i + 1].page_id,
            clause="",
            evidence=make_evidence(nodes[i].page_id, nodes[i].title),
        )
        for i, relation in enumerate(("architect", "birth place"))
    )
    proof = Proof(
        corpus="c" * 64,
        snapshot="2026-09-01",
        nodes=nodes,
        hops=hops,
        answer_relation="founded",
        answer_evidence=make_evidence(last, nodes[2].title),
        constraints=(Constraint(node=1, relation="type", value="architect"),),
        counts=(
            Count(name="chain", node=1, value=1, capped=False),
            Count(name="chain", node=2, value=1, capped=False),
            Count(name="alone", node=1, value=6, capped=False),
            Count(name="anchors", node=0, value=12, capped=True),
            Count(name="answers", node=0, value=8, capped=True),
        ),
        alias_digest="a" * 64,
    )
    year = str(1200 + number)
    values = {
        "record_id": f"question-{number:016x}",
        "parent_id": f"rewrite-{number:016x}",
        "split": split,
        "domain": "Building/Place",
        "text": "When was the birthplace of the architect of the bridge in the image founded?",
        "fuzzy": "When was the birthplace of the architect of Kelm Bridge founded?",
        "canonical": f"When was Ostrava {number} founded?",
        "picture": picture,
        "answer": Answer(
            type="date",
            value=year,
            precision="year",
            unit="",
            surface=year,
            aliases=(f"AD {year}",),
            key=f"date:{year}",
        ),
        "proof": proof,
        "cells": (
            Cell(
                condition="text",
                solver="knower",
                prompt="p/v1",
                planned=8,
                attempts=8,
                correct=1,
                unscored=0,
                low=0.02,
                high=0.47,
            ),
        ),
        "standing": "solved",
    }
    asked = Enhancement(**(values | changes))
    if not asked.proof.nodes:
        return asked
    read = {
        "reading": read_rightly(asked.text, asked.proof, asked.answer),
        "screening": screen_rightly(asked.text, asked.proof, asked.answer),
    }
    return asked.model_copy(update=read | changes)


def make_trial(**changes) -> Trial:
    """Return the trial of a blurred picture of 64 x 48 pixels."""
    values = {
        "degradation": "blur", "repair": "sharpen", "strength": 0.5,
        "parameters": (Parameter(name="sigma", value=0.48),), "test": "image-search", "before": True,
        "degraded": False, "repaired": True,
    }  # fmt: skip
    return Trial(**(values | changes))


def make_degraded(root: Path, number: int, **changes) -> Enhancement:
    """Return a question with a degraded picture; both pictures are in the image store."""
    original = make_picture(root, number)
    degraded = make_picture(root, number + 50, file=original.file, source_url=original.source_url)
    return make_question(number, degraded, **({"original": original, "trial": make_trial()} | changes))


def make_step(turn: Turn, observation: Observation | None = None) -> Step:
    """Return a turn as the step that a rollout keeps of it."""
    return Step(
        thought=turn.thought, tool=turn.tool, arguments=turn.arguments, reply=render_turn(turn), observation=observation
    )


def make_trajectory(
    number: int, question: Enhancement, extra: Picture | None = None, first: str = "image_search", **changes
) -> Trajectory:
    """Return an accepted trajectory of three turns; ``extra`` is a picture that the first one's tool produced."""
    images = [RolloutImage(id="img_1", picture=question.picture)] if question.picture else []
    images += [RolloutImage(id="img_2", picture=extra)] if extra else []
    seen = Observation(
        ok=True, error="", text="Kelm Bridge, designed by Mira Tolland.", images=("img_2",) if extra else ()
    )
    answer = question.answer.surface
    told = f"Born in Ostrava, founded in {answer}."
    page = Observation(ok=True, error="", text=told, images=())
    steps = (
        make_step(Turn("look", first, '{"image":"img_1"}'), seen),
        make_step(Turn("read", "visit", '{"url":"https://toy.example/wiki/Mira_Tolland"}'), page),
        make_step(Turn("done", answer=answer)),
    )
    values = {
        "record_id": f"rollout-{number:016x}", "parent_id": question.record_id, "split": question.split, "attempt": 0,
        "teacher": "scripted-teacher", "prompt": "act/v1", "system": "You answer questions with tools.",
        "question": question.text, "images": tuple(images), "steps": steps, "answer": answer,
        "stop_reason": "answered", "reference": question.answer, "bridges": (question.proof.nodes[1].title,),
        "verdict": "correct", "decided_by": "comparer",
        "supports": (Support(what="answer", step=1, start=told.index(answer), end=told.index(answer) + len(answer)),),
        "loss": (True, True, True), "tokens": 900, "snapshot": "2026-09-01",
    }  # fmt: skip
    return Trajectory(**(values | changes))


def make_context(**changes) -> ReleaseContext:
    values = {
        "corpus": "c" * 64,
        "snapshot": "2026-09-01",
        "base_url": BASE,
        "recipe": "demo",
        "seeds": {"run": 7},
        "config_digest": "d" * 64,
        "git_commit": "abc123",
        "lineage": (InputEntry(name="difficulty", key="k" * 16, digest="e" * 64),),
        "funnel": (
            FunnelRow(stage="seeds", rows_in=9, kept=7, rejected={"no-image": 2}, failed=0, rows_out=7),
            FunnelRow(stage="releases", rows_in=7, kept=7, rejected={}, failed=0, rows_out=12),
        ),
        "models": (ModelEntry(role="writer", name="templates", revision="1", sampling={"temperature": 0.0}),),
        "prompts": {"write_question/v1": "f" * 64},
        "tools": '[{"name": "visit"}]',
    }
    return ReleaseContext(**(values | changes))


def run_stage(questions, trajectories, **limits) -> list:
    """Run the stage; the questions made here all have one wording, so its share is no limit unless one is given."""
    settings = ReleasesConfig(**({"max_skeleton_share": 1.0} | limits))
    return list(Releases(Limits(settings))([questions, trajectories]))


def make_material(root: Path) -> tuple[list[Enhancement], list[Trajectory], list[ReleaseEntry]]:
    """Return four sft, two rl and one eval question, one trajectory each for sft, and the stage's entries."""
    splits = ["sft", "sft", "sft", "sft", "rl", "rl", "eval"]
    questions = [make_question(n, make_picture(root, n), split) for n, split in enumerate(splits, 1)]
    trajectories = [make_trajectory(n, questions[n - 1], make_picture(root, 100 + n)) for n in range(1, 5)]
    return questions, trajectories, run_stage(questions, trajectories)
