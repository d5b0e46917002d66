"""A small CLIP that has learned something: open_clip's model and loss, trained on drawn buildings and captions.

Buildings that it is measured on are never shown to it: their words are, in other company. Imports torch, so that only
tests import it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import numpy as np
import open_clip
import torch
from numpy.typing import NDArray
from open_clip.loss import ClipLoss
from PIL import Image

from pipelines.agent.depicting import find_lead_picture
from pipelines.corpus.store import Corpus, describe_entity
from pipelines.pictures import open_pixels
from tests.clip.buildings import KINDS, Look, draw_look, list_looks, make_name
from tests.clip.models import SIDE, Written, make_architecture, make_model, save_checkpoint, write_architecture

SEEN = 12_000
"""Pictures drawn for training."""
EPOCHS = 7
BATCH = 250
EMBEDDING = 64
"""Numbers of one embedding: with half as many, looks that differ in one word are told apart less often."""
Lesson = tuple[torch.Tensor, torch.Tensor]
"""A batch of pictures and what is said of them."""
REPEATS = 60
"""Times that each picture is shown until it is known by heart."""
LESSON = 64


def train_clip(folder: Path, hidden: frozenset[Look], seed: int = 5) -> Written:
    """Train a model on drawn pictures and save it as any checkpoint is; some minute and a half of one core.

    Args:
        folder: where the architecture and the weights are written.
        hidden: looks that are not to be shown to it.
        seed: decides weights, pictures and their order.
    """
    config = write_architecture(folder / "drawn.json", make_architecture(side=SIDE, embedding=EMBEDDING))
    model = make_model(config, seed)
    looks = _choose_lessons(Random(seed), hidden)
    _fit(model, EPOCHS * (SEEN // BATCH), _give_lessons(looks, open_clip.get_tokenizer("drawn"), seed))
    return Written(config, save_checkpoint(model, folder / "drawn.pt"))


def train_by_heart(folder: Path, corpus: Corpus, seed: int = 5) -> Written:
    """Train a model on a corpus's own lead pictures and descriptions until it knows them; some ten seconds."""
    config = write_architecture(folder / "heart.json", make_architecture(side=SIDE))
    model = make_model(config, seed)
    shown = [(node, find_lead_picture(corpus, node)) for node in corpus.article_nodes()]
    pairs = [(describe_entity(corpus, node), picture.path) for node, picture in shown if picture]
    pixels = _scale([_prepare(open_pixels(path.read_bytes())) for _, path in pairs])
    tokens = open_clip.get_tokenizer("heart")([text for text, _ in pairs])
    order = torch.Generator().manual_seed(seed)
    batches = [batch for _ in range(REPEATS) for batch in torch.randperm(len(pairs), generator=order).split(LESSON)]
    _fit(model, len(batches), ((pixels[batch], tokens[batch]) for batch in batches))
    return Written(config, save_checkpoint(model, folder / "heart.pt"))


def _fit(model: torch.nn.Module, steps: int, lessons: Iterable[Lesson]) -> None:
    """Train on batches of pictures and texts, one step a batch."""
    model.train()
    matrices = [weights for weights in model.parameters() if weights.ndim > 1]
    others = [weights for weights in model.parameters() if weights.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    rate = torch.optim.AdamW(groups, lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(rate, 2e-3, total_steps=steps, pct_start=0.1)
    loss_of = ClipLoss()
    with _one_thread():
        for shown, said in lessons:
            pictures, texts, scale = model(shown, said)[:3]
            loss = loss_of(pictures, texts, scale)
            rate.zero_grad()
            loss.backward()
            rate.step()
            schedule.step()


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


def _give_lessons(
    looks: Sequence[Look], tokenizer: Callable[[Sequence[str]], torch.Tensor], seed: int
) -> Iterator[Lesson]:
    """Yield batches of pictures and captions: each time under another name, and half of them as in a mirror."""
    rng = Random(seed)
    pixels = _scale([_prepare(draw_look(look, rng)) for look in looks])
    kinds = torch.tensor([KINDS.index(look.kind) for look in looks])
    mirror = torch.Generator().manual_seed(seed)
    for chosen in _list_batches(kinds, seed):
        turned = torch.rand(len(chosen), generator=mirror) < 0.5
        shown = torch.where(turned[:, None, None, None], pixels[chosen].flip(3), pixels[chosen])
        said = [f"{make_name(rng, looks[n].kind)}, {looks[n].caption()}" for n in chosen.tolist()]
        yield shown, tokenizer(said)


def _scale(pictures: Sequence[NDArray[np.uint8]]) -> torch.Tensor:
    """Return pictures as open_clip normalises them, of shape (n, 3, height, width)."""
    mean, spread = np.array(open_clip.OPENAI_DATASET_MEAN), np.array(open_clip.OPENAI_DATASET_STD)
    scaled = (np.stack(pictures) / 255 - mean) / spread
    return torch.from_numpy(scaled.astype(np.float32)).permute(0, 3, 1, 2).contiguous()


def _prepare(picture: Image.Image) -> NDArray[np.uint8]:
    """Return a picture as open_clip cuts it: shorter side scaled, centre cut out."""
    scale = SIDE / min(picture.size)
    small = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.Resampling.BICUBIC)
    left = (small.width - SIDE) // 2
    return np.asarray(small.crop((left, 0, left + SIDE, SIDE)))
