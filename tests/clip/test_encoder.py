"""The encoder on real, if tiny, models of open_clip's, beside open_clip itself."""

import asyncio
import json
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, RecordFailed, Unavailable
from pipelines.services.clients.encoder import open_for_model
from pipelines.services.protocols import PictureFile
from tests.clip.models import (
    WIDTH,
    make_architecture,
    make_encoder,
    make_model,
    name_picture,
    save_checkpoint,
    write_architecture,
    write_tiny_model,
)

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "size": (224, 224),
    "mean": (0.48145466, 0.4578275, 0.40821073),
    "std": (0.26862954, 0.26130258, 0.27577711),
    "interpolation": "bicubic",
    "resize_mode": "shortest",
    "fill_color": 0,
}
SHAPES = [(640, 480), (480, 641), (224, 224), (100, 73), (1000, 130), (31, 900), (1, 6000), (6000, 1), (1, 1)]


@pytest.fixture
def encoder(tiny):
    encoder = make_encoder(tiny.config, tiny.weights, device="cpu", batch=8)
    yield encoder
    encoder.close()


@pytest.fixture
def bare(tiny):
    """open_clip's own model and preprocessing, as its users load them."""
    open_clip.add_model_config(tiny.config)
    model, _, preprocess = open_clip.create_model_and_transforms(tiny.config.stem, pretrained=str(tiny.weights))
    return model.eval(), preprocess


def draw(shape, seed=1):
    """A picture with blots of several sizes."""
    generator = np.random.default_rng(seed)
    total = np.zeros((shape[1], shape[0], 3))
    for side in (4, 16, 64):
        noise = Image.fromarray(generator.integers(0, 255, (side, side, 3), dtype=np.uint8))
        total += np.asarray(noise.resize(shape, Image.Resampling.BICUBIC), dtype=float) * (1.0 if side < 64 else 0.4)
    return Image.fromarray((total / total.max() * 255).astype(np.uint8))


def save(picture, path, **options):
    picture.save(path, **options)
    return name_picture(path)


@pytest.fixture
def pictures(tmp_path):
    return [save(draw((96 + 8 * n, 80), n), tmp_path / f"{n}.png") for n in range(20)]


def encode(encoder, pictures):
    return asyncio.run(encoder.encode_pictures(pictures))


def test_rows_are_those_of_open_clip_itself(encoder, bare, pictures):
    model, preprocess = bare
    with torch.no_grad():
        batch = torch.stack([preprocess(Image.open(picture.path)) for picture in pictures])
        expected = model.encode_image(batch, normalize=True).numpy()
    rows = encode(encoder, pictures)
    assert rows.shape == (20, WIDTH)
    assert rows.dtype == np.float32
    np.testing.assert_allclose((rows * expected).sum(axis=1), 1.0, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


def test_texts_are_those_of_open_clip_itself(encoder, bare, tiny):
    texts = ["a bridge", "the very long name of a town by a river " * 20, "", "Brücke"]
    with torch.no_grad():
        words = open_clip.get_tokenizer(tiny.config.stem)(texts)
        expected = bare[0].encode_text(words, normalize=True).numpy()
    np.testing.assert_allclose(asyncio.run(encoder.encode_texts(texts)), expected, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("change", [{}, {"resize_mode": "squash"}, {"resize_mode": "longest"}, {"size": (96, 160)}])
def test_a_picture_of_any_shape_becomes_pixels_of_the_models_size(shape, change):
    settings = PreprocessCfg(**{**SETTINGS, **change})
    target = BytesIO()
    draw(shape).save(target, "PNG")
    pixels = image_transform_v2(settings, is_train=False)(open_for_model(target.getvalue(), 224))
    assert tuple(pixels.shape) == (3, *settings.size)


@pytest.mark.parametrize("shape", [(1280, 853), (1024, 1024), (512, 512), (3000, 500)])
def test_a_jpeg_decoded_reduced_is_hardly_another_picture(encoder, bare, shape, tmp_path):
    picture = save(draw(shape), tmp_path / "large.jpg", quality=85)
    model, preprocess = bare
    with torch.no_grad():
        whole = model.encode_image(preprocess(Image.open(picture.path))[None], normalize=True).numpy()
    assert float((encode(encoder, [picture]) @ whole.T)[0, 0]) > 0.995


def test_pictures_are_seen_as_they_are_displayed(encoder, tmp_path):
    upright = draw((120, 90))
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = save(upright.transpose(Image.Transpose.ROTATE_90), tmp_path / "turned.png", exif=exif)
    palette = save(upright.quantize(256), tmp_path / "palette.png")
    cmyk = save(upright.convert("CMYK"), tmp_path / "cmyk.jpg", quality=95)
    rows = encode(encoder, [save(upright, tmp_path / "plain.png"), turned, palette, cmyk])
    assert float(rows[0] @ rows[1]) == pytest.approx(1.0, abs=1e-5)
    assert min(rows[0] @ rows[2], rows[0] @ rows[3]) > 0.98


def test_a_picture_that_cannot_be_decoded_is_named_and_fails_its_own_caller_alone(encoder, pictures, tmp_path):
    (tmp_path / "broken.png").write_bytes(pictures[0].path.read_bytes()[:200])
    broken, missing = name_picture(tmp_path / "broken.png"), PictureFile("", tmp_path / "missing.png")

    async def ask():
        asked = [pictures[:5], [pictures[5], broken], [missing], pictures[6:9]]
        return await asyncio.gather(*(encoder.encode_pictures(each) for each in asked), return_exceptions=True)

    first, second, third, fourth = asyncio.run(ask())
    assert (first.shape, fourth.shape) == ((5, WIDTH), (3, WIDTH))
    assert isinstance(second, RecordFailed)
    assert "broken.png" in str(second)
    assert isinstance(third, Unavailable)
    assert "missing.png" in str(third)


def test_a_file_with_other_bytes_than_its_name_says_is_not_encoded_under_that_name(encoder, pictures):
    wrong = PictureFile(pictures[0].sha256, pictures[1].path)
    with pytest.raises(RecordFailed, match="picture-changed"):
        encode(encoder, [wrong])


def test_identity_is_of_what_decides_an_embedding_and_of_nothing_else(tiny, encoder, tmp_path):
    same = make_encoder(tiny.config, tiny.weights, batch=3)
    assert same.identity == encoder.identity
    moved = tmp_path / "moved.pt"
    moved.write_bytes(tiny.weights.read_bytes())
    assert make_encoder(tiny.config, moved).identity == encoder.identity
    other = write_tiny_model(tmp_path, seed=8)
    assert make_encoder(tiny.config, other.weights).identity != encoder.identity
    wide = write_architecture(tmp_path / "wide.json", make_architecture(width=96))
    assert make_encoder(wide, tiny.weights).identity != encoder.identity
    assert encoder.name == "tiny-7/tiny-7.pt"
    first, second = (make_encoder("ViT-B-32", tag).identity for tag in ("laion2b-s34b-b79k", "laion2b_s34b_b79k"))
    assert first == second != make_encoder("ViT-B-16", "laion2b_s34b_b88k").identity


def test_the_file_beside_weights_on_the_hub_brings_its_preprocessing(tiny, encoder, pictures, tmp_path):
    content = {
        "model_cfg": json.loads(tiny.config.read_text()),
        "preprocess_cfg": {"mean": [0, 0, 0], "std": [1, 1, 1]},
    }
    path = write_architecture(tmp_path / "open_clip_config.json", content)
    other = make_encoder(path, tiny.weights)
    rows = encode(other, pictures[:1])
    other.close()
    assert other.identity != encoder.identity
    assert float((rows @ encode(encoder, pictures[:1]).T)[0, 0]) < 0.9999


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "ViT-B-33"}, "no such architecture"),
        ({"model": "nowhere.json"}, "No such file"),
        ({"pretrained": "laion2b_s34b_b79"}, "no file, and open_clip has of ViT-B-32"),
        ({"model": "ViT-L-14"}, "differ from it in -quickgelu"),
    ],
)
def test_settings_of_no_model_are_refused_by_name(pictures, settings, said):
    with pytest.raises(ConfigError, match=said):
        encode(make_encoder(**{"model": "ViT-B-32", "pretrained": "openai", **settings}), pictures[:1])


@pytest.mark.parametrize("content", ["", '{"embed_dim": 3}'])
def test_a_file_that_is_no_architecture_is_refused(content, tiny, tmp_path):
    path = tmp_path / "architecture.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"architecture\.json"):
        make_encoder(path, tiny.weights)


def test_weights_that_cannot_be_fetched_are_away(tmp_path):
    program = (
        "import asyncio, sys; from tests.clip.models import make_encoder\n"
        "from pipelines.errors import Unavailable\n"
        "try: asyncio.run(make_encoder('ViT-B-32', 'laion2b_s34b_b79k', device='cpu').encode_texts(['a']))\n"
        "except Unavailable as error: print(error)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert "cannot be fetched" in done.stdout


class Planted:
    """What a hostile checkpoint would run."""

    def __reduce__(self):
        return print, ("planted code ran",)


@pytest.mark.parametrize(
    "damage", ["empty", "cut", "text", "tensor", "nothing", "code", "safetensors", "pickle", "another"]
)
def test_a_checkpoint_that_is_none_is_refused(damage, tiny, tmp_path, pictures, capsys):
    path = tmp_path / ("weights.safetensors" if damage == "safetensors" else "weights.pt")
    path.write_bytes(
        {"empty": b"", "cut": tiny.weights.read_bytes()[:100_000], "pickle": b"\x80\x02}q\x00."}.get(
            damage, b"these are no weights of anything"
        )
    )
    if damage == "another":
        path = write_tiny_model(tmp_path, width=96).weights
    planted = {"tensor": torch.zeros(3), "nothing": {}, "code": {"state_dict": Planted()}}
    if damage in planted:
        torch.save(planted[damage], path)
    encoder = make_encoder(tiny.config, path)
    with pytest.raises(CorruptInput, match="no weights of this model"):
        encode(encoder, pictures[:1])
    encoder.close()
    assert "planted" not in capsys.readouterr().out


@pytest.mark.parametrize("part", ["preprocessing", "weights"])
def test_a_model_that_cannot_be_used_is_refused(part, tiny, pictures, tmp_path):
    config, weights, said = tiny.config, tiny.weights, "does not know the preprocessing"
    if part == "preprocessing":
        content = {"model_cfg": json.loads(tiny.config.read_text()), "preprocess_cfg": {"resize_mode": "middle"}}
        config = write_architecture(tmp_path / "odd.json", content)
    else:
        model = make_model(tiny.config)
        torch.nn.init.constant_(model.visual.proj, float("nan"))
        weights, said = save_checkpoint(model, tmp_path / "nan.pt"), "not finite in fp32"
    with pytest.raises(ConfigError, match=said):
        encode(make_encoder(config, weights), pictures[:1])
