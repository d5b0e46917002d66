"""Difficulty by vLLM inside the run: batches of ``LLM.chat`` in a child of it."""

import asyncio
import json
from dataclasses import replace

import pytest

from pipelines.errors import ConfigError, RecordFailed
from pipelines.services.clients.vllm_batch import VllmBatch
from pipelines.services.protocols import ChatReply
from tests.vllm.conftest import CONTEXT, ENGINE, PICTURES, PYTHON
from tests.vllm.test_served import CHOICE, REQUEST, show, shown

__all__ = ["shown"]


@pytest.fixture(scope="module")
def batch(models, pictures, tmp_path_factory):
    made = VllmBatch(
        "tiny-vision",
        log=tmp_path_factory.mktemp("logs") / "vllm-solver.log",
        model=str(models / "tiny-vision"),
        python=str(PYTHON),
        max_context=CONTEXT,
        arguments=(*ENGINE, *PICTURES),
        gpus=1.0,
        read_picture=pictures.load,
    )
    yield made
    made.close()


def ask(model: VllmBatch, *requests) -> list:
    async def ask_all():
        return await asyncio.gather(*map(model.chat, requests), return_exceptions=True)

    return asyncio.run(ask_all())


def test_a_batch_of_texts_and_pictures_obeys_its_schemas_and_fails_alone(batch, shown, tmp_path):
    asked = [replace(REQUEST, schema_json=CHOICE, sample=sample) for sample in range(12)]
    *replies, plain, pictured, long = ask(batch, *asked, REQUEST, show(shown[0]), show(text="x" * (CONTEXT + 1)))
    for reply in replies:
        assert json.loads(reply.text)["verdict"] in ("correct", "incorrect")
        assert reply.ended == "whole"
        assert reply.gpu_seconds > 0
    assert plain.tokens_in < pictured.tokens_in
    assert isinstance(long, RecordFailed), long
    assert long.error == "prompt-too-long"


def test_too_many_pictures_are_refused(batch, shown):
    error, whole = ask(batch, show(*shown), REQUEST)
    assert isinstance(error, ConfigError | RecordFailed)
    assert isinstance(whole, ChatReply)
