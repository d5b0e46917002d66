"""Measures the encoder of pictures beside the bare model: ``python -m tests.benchmarks.run encoding``.

Needs the extra ``clip`` (``make test-clip`` makes a Python that has it). The model is a real architecture with random
weights, since speed does not depend on what it has learned; bare is ``encode_image`` on tensors that are ready on the
device. Where there is a GPU, that is measured, else the processor. Rounds alternate, and medians are compared.
"""

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.agent.picture_search import ClipIndex
from pipelines.corpus.tables import map_array
from pipelines.services.clients.encoder import CachedEncoder, OpenClipEncoder, open_for_model
from pipelines.services.protocols import PictureFile
from tests.benchmarks.measured import Measured, read_peak

SIDE = 512
BYTES = 50_000
PICTURES = 64
"""Different files; more pictures are these again."""
ROUNDS = 5
BATCHES = (1, 8, 32, 64)
MAIN = 64
SHARE = 0.9
COUNTS = (1_000, 10_000, 100_000)
"""Pictures by which peak memory is held to be flat."""
CHUNK = 512
SEARCHED = 100_000
"""Embeddings that a search compares."""
WIDTH = 512


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured on a device."""

    device: str
    models: tuple[str, ...]
    batches: tuple[int, ...]
    rounds: int

    def count(self, batch: int) -> int:
        """Return the pictures of one round: a second's worth at least, and three batches."""
        return max(3 * batch, 24) if self.device == "cpu" else max(16 * batch, 2_048)


def make_plan() -> Plan:
    """Return what this machine is for."""
    import torch

    if torch.cuda.is_available():
        return Plan("cuda", ("ViT-B-32", "ViT-L-14"), (*BATCHES, 256, 512), ROUNDS)
    return Plan("cpu", ("ViT-B-32",), BATCHES, ROUNDS)


def draw_picture(seed: int) -> bytes:
    """Return a JPEG of 512 pixels and some 50 KB: blots of several sizes, as photographs have."""
    generator = np.random.default_rng(seed)
    total = np.zeros((SIDE, SIDE, 3))
    for side in (4, 16, 64, 256):
        noise = generator.integers(0, 255, (side, side, 3), dtype=np.uint8)
        drawn = Image.fromarray(noise).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        total += np.asarray(drawn, dtype=float) * (1.0 if side < 100 else 0.35)
    picture = Image.fromarray((total / total.max() * 255).astype(np.uint8))
    sizes: list[bytes] = []
    for quality in (95, 90, 85, 80, 75, 70, 60, 50):
        target = BytesIO()
        picture.save(target, "JPEG", quality=quality)
        sizes.append(target.getvalue())
    return min(sizes, key=lambda data: abs(len(data) - BYTES))


def write_pictures(folder: Path) -> list[PictureFile]:
    """Write the pictures."""
    folder.mkdir(parents=True)
    written = []
    for seed in range(PICTURES):
        data = draw_picture(seed)
        sha256 = hashlib.sha256(data).hexdigest()
        path = folder / f"{sha256}.jpg"
        path.write_bytes(data)
        written.append(PictureFile(sha256, path))
    return written


def repeat(pictures: Sequence[PictureFile], start: int, stop: int) -> list[PictureFile]:
    """Return pictures of a long row in which the files come again."""
    return [pictures[n % len(pictures)] for n in range(start, stop)]


@dataclass(frozen=True)
class Unlike:
    """An encoder to which the same file under another name is another picture, so that none is kept already."""

    encoder: OpenClipEncoder

    @property
    def name(self) -> str:
        """The encoder's."""
        return self.encoder.name

    @property
    def identity(self) -> str:
        """The encoder's."""
        return self.encoder.identity

    async def encode_pictures(self, pictures: Sequence[PictureFile]) -> NDArray[np.float32]:
        """Encode files that are named after their content."""
        return await self.encoder.encode_pictures([PictureFile(each.path.stem, each.path) for each in pictures])

    async def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts."""
        return await self.encoder.encode_texts(texts)


def write_weights(folder: Path, name: str) -> Path:
    """Save random weights of an architecture."""
    import open_clip
    import torch

    torch.manual_seed(1)
    path = folder / f"{name}.pt"
    torch.save(open_clip.create_model(name, load_weights=False).state_dict(), path)
    return path


def time_bare(model: Any, batch: int, count: int, plan: Plan) -> float:
    """Return the bare model's pictures a second on tensors that are ready."""
    import torch

    side = model.visual.image_size
    ready = torch.randn(batch, 3, *((side, side) if isinstance(side, int) else side)).to(plan.device)
    with torch.inference_mode():
        model.encode_image(ready)
        _wait(plan)
        started = time.perf_counter()
        for _ in range(-(-count // batch)):
            model.encode_image(ready)
        _wait(plan)
    return -(-count // batch) * batch / (time.perf_counter() - started)


def _wait(plan: Plan) -> None:
    import torch

    if plan.device == "cuda":
        torch.cuda.synchronize()


def time_ours(encoder: OpenClipEncoder, pictures: Sequence[PictureFile]) -> float:
    """Return our pictures a second, files in and embeddings out."""
    started = time.perf_counter()
    asyncio.run(encoder.encode_pictures(pictures))
    return len(pictures) / (time.perf_counter() - started)


def compare(weights: Path, name: str, batch: int, plan: Plan, pictures: Sequence[PictureFile]) -> tuple[float, float]:
    """Return the bare model's and our pictures a second: medians of alternating rounds."""
    import open_clip

    count = plan.count(batch)
    bare = open_clip.create_model(name, pretrained=str(weights), device=plan.device).eval()
    encoder = OpenClipEncoder(name, str(weights), device=plan.device, batch=batch)
    asked = repeat(pictures, 0, count)
    asyncio.run(encoder.encode_pictures(asked[:batch]))
    rates: dict[str, list[float]] = {"bare": [], "ours": []}
    for _ in range(plan.rounds):
        rates["bare"].append(time_bare(bare, batch, count, plan))
        rates["ours"].append(time_ours(encoder, asked))
    encoder.close()
    return median(rates["bare"]), median(rates["ours"])


def measure_rates(scratch: Path, plan: Plan, pictures: Sequence[PictureFile]) -> Iterator[Measured]:
    """Lay the pipeline beside the bare model, by model and batch."""
    for name in plan.models:
        weights = write_weights(scratch, name)
        for batch in plan.batches:
            bare, ours = compare(weights, name, batch, plan, pictures)
            what = f"{name} on {plan.device}, batch {batch}"
            yield Measured(f"{what}: bare", f"{bare:,.1f} pictures/s")
            yield Measured(f"{what}: ours, from files", f"{ours:,.1f} pictures/s")
            budget = f"{SHARE}" if batch == MAIN else ""
            yield Measured(f"{what}: ours as a share of bare", f"{ours / bare:.2f}", budget)
        weights.unlink()


def measure_decoding(pictures: Sequence[PictureFile]) -> Measured:
    """Time what the decoding threads do, on one core."""
    from open_clip.transform import PreprocessCfg, image_transform_v2

    preprocess = image_transform_v2(PreprocessCfg(224), is_train=False)
    files = [picture.path.read_bytes() for picture in pictures]
    started = time.process_time()
    for data in files:
        preprocess(open_for_model(data, 224))
    spent = (time.process_time() - started) / len(files)
    size = sum(map(len, files)) / len(files) / 1000
    return Measured(f"decode and shrink a JPEG of {SIDE} px and {size:.0f} KB, one core", f"{spent * 1e3:.1f} ms")


def encode_many(scratch: Path, count: int) -> dict[str, float]:
    """Encode so many pictures in this process, chunk by chunk as an index does; return seconds and peak megabytes."""
    paths = sorted((scratch / "pictures").iterdir())
    encoder = OpenClipEncoder(str(scratch / "tiny-7.json"), str(scratch / "tiny-7.pt"))
    kept = CachedEncoder(Unlike(encoder), scratch / f"embeddings-{count}")

    async def encode() -> None:
        for start in range(0, count, CHUNK):
            numbers = range(start, min(start + CHUNK, count))
            await kept.encode_pictures([PictureFile(f"{n:064x}", paths[n % len(paths)]) for n in numbers])

    started = time.perf_counter()
    asyncio.run(encode())
    seconds = time.perf_counter() - started
    kept.close()
    encoder.close()
    return {"seconds": seconds, "megabytes": read_peak()}


def measure_memory(scratch: Path) -> Iterator[Measured]:
    """Hold peak memory against the count of pictures, each in a process of its own."""
    from tests.clip.models import write_tiny_model

    write_tiny_model(scratch)
    peaks = {}
    for count in COUNTS:
        command = [sys.executable, "-m", "tests.benchmarks.encoding", str(scratch), str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.strip().splitlines()[-1])
        peaks[count] = found["megabytes"]
        value = f"{peaks[count]:,.0f} MB, {count / found['seconds']:,.0f} pictures/s"
        yield Measured(f"peak memory, {count:,} pictures of {SIDE} px through a tiny model and the cache", value)
    growth = peaks[COUNTS[-1]] / peaks[COUNTS[0]]
    yield Measured(f"peak memory, {COUNTS[-1]:,} pictures over {COUNTS[0]:,}", f"{growth:.2f}", "1.2")


def measure_search(scratch: Path) -> Measured:
    """Time a search over many embeddings that lie in a mapped file."""
    generator = np.random.default_rng(3)
    rows = generator.standard_normal((SEARCHED, WIDTH), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.save(scratch / "embeddings.npy", rows)
    index = ClipIndex(map_array(scratch / "embeddings.npy"), _Unnamed())  # type: ignore[arg-type]
    search: Callable[[int], object] = lambda place: index.rank(rows[place], 20)  # noqa: E731
    search(0)
    times = []
    for place in range(0, SEARCHED, SEARCHED // 20):
        started = time.perf_counter()
        search(place)
        times.append(time.perf_counter() - started)
    what = f"search by picture over {SEARCHED:,} embeddings of {WIDTH} numbers"
    return Measured(what, f"{median(times) * 1e3:.0f} ms")


class _Unnamed:
    def row(self, number: int) -> list[object]:
        """Return a name."""
        return [str(number), []]


def measure(scratch: Path) -> list[Measured]:
    """Measure everything."""
    plan = make_plan()
    pictures = write_pictures(scratch / "pictures")
    return [
        *measure_rates(scratch, plan, pictures),
        measure_decoding(pictures),
        measure_search(scratch),
        *measure_memory(scratch),
    ]


def main() -> None:
    """Encode what the command line says and print what came of it."""
    folder, count = sys.argv[1:]
    sys.stdout.write(json.dumps(encode_many(Path(folder), int(count))) + "\n")


if __name__ == "__main__":
    main()
