"""A small CLIP that has learned something: open_clip's model and loss, trained on drawn buildings and captions.

Buildings that it is measured on are never shown to it: their words are, in other company. Imports torch, so that only
tests import it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import open_clip
import torch
from numpy.typing import NDArray
from open_clip.loss import ClipLoss
from PIL import Image

from tests.clip.buildings import KINDS, Look, draw_look, list_looks, make_name
from tests.clip.models import SIDE, Written, make_architecture, make_model, save_checkpoint, write_architecture

SEEN = 6_000
"""Pictures drawn for training."""
EPOCHS = 10
BATCH = 250


def train_clip(folder: Path, hidden: frozenset[Look], seed: int = 5) -> Written:
    """Train a model on drawn pictures and save it as any checkpoint is; about a minute of one core.

    Args:
        folder: where the architecture and the weights are written.
        hidden: looks that are not to be shown to it.
        seed: decides weights, pictures and their order.
    """
    config = write_architecture(folder / "drawn.json", make_architecture(side=SIDE))
    model = make_model(config, seed)
    tokenizer = open_clip.get_tokenizer("drawn")
    looks = _choose_lessons(Random(seed), hidden)
    pixels, tokens = _draw_lessons(Random(seed), looks, tokenizer)
    kinds = torch.tensor([KINDS.index(look.kind) for look in looks])
    model.train()
    rate = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    steps = EPOCHS * (len(pixels) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(rate, 2e-3, total_steps=steps, pct_start=0.1)
    loss_of = ClipLoss()
    with _one_thread():
        for chosen in _list_batches(kinds, seed):
            pictures, texts, scale = model(pixels[chosen], tokens[chosen])[:3]
            loss = loss_of(pictures, texts, scale)
            rate.zero_grad()
            loss.backward()
            rate.step()
            schedule.step()
    return Written(config, save_checkpoint(model, folder / "drawn.pt"))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread: batches as small as these spend more on waiting for one another's than on arithmetic."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _list_batches(kinds: torch.Tensor, seed: int) -> Iterator[torch.Tensor]:
    """Yield places of lessons: mixed in one epoch, each batch of one kind in the next, where words tell more."""
    order = torch.Generator().manual_seed(seed)
    for epoch in range(EPOCHS):
        places = torch.randperm(len(kinds), generator=order)
        if epoch % 2:
            places = places[torch.argsort(kinds[places], stable=True)]
        batches = places[: len(places) // BATCH * BATCH].split(BATCH)
        yield from (batches[number] for number in torch.randperm(len(batches), generator=order).tolist())


def _choose_lessons(rng: Random, hidden: frozenset[Look]) -> list[Look]:
    shown = [look for kind in KINDS for look in list_looks(kind) if look not in hidden]
    return rng.choices(shown, k=SEEN)


def _draw_lessons(
    rng: Random, looks: Sequence[Look], tokenizer: Callable[[Sequence[str]], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pictures and captions, prepared as open_clip prepares them: shorter side scaled, centre cut out."""
    mean, spread = np.array(open_clip.OPENAI_DATASET_MEAN), np.array(open_clip.OPENAI_DATASET_STD)
    drawn = np.stack([_prepare(draw_look(look, rng)) for look in looks])
    pixels = torch.from_numpy(((drawn / 255 - mean) / spread).astype(np.float32)).permute(0, 3, 1, 2).contiguous()
    return pixels, tokenizer([f"{make_name(rng, look.kind)}, {look.caption()}" for look in looks])


def _prepare(picture: Image.Image) -> NDArray[np.uint8]:
    scale = SIDE / min(picture.size)
    small = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.Resampling.BICUBIC)
    left = (small.width - SIDE) // 2
    return np.asarray(small.crop((left, 0, left + SIDE, SIDE)))
