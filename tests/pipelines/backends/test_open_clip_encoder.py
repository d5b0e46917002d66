import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.errors import ConfigError
from pipelines.services.clients.encoder import OpenClipEncoder

MISSING = importlib.util.find_spec("open_clip") is None


@pytest.mark.skipif(not MISSING, reason="the extra clip is installed here")
def test_without_the_extra_the_setting_is_refused_with_what_to_install():
    with pytest.raises(ConfigError, match=r"synth\[clip\]"):
        OpenClipEncoder("ViT-B-32", "openai")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cpu:0", ""])
def test_an_unknown_device_is_refused_with_those_allowed(device):
    with pytest.raises(ConfigError, match="auto, cpu, cuda and cuda:N"):
        OpenClipEncoder("ViT-B-32", "openai", device=device)


def test_an_unknown_precision_is_refused_with_those_allowed():
    with pytest.raises(ConfigError, match="fp32, bf16 and fp16"):
        OpenClipEncoder("ViT-B-32", "openai", precision="fp8")


def test_half_precision_is_refused_on_a_processor():
    with pytest.raises(ConfigError, match="not on a processor"):
        OpenClipEncoder("ViT-B-32", "openai", device="cpu", precision="fp16")


@pytest.mark.parametrize("pretrained", ["weights.pt", "folder/weights", "/nowhere/model.safetensors"])
def test_a_checkpoint_that_is_not_there_is_refused(pretrained):
    with pytest.raises(ConfigError, match="no such file"):
        OpenClipEncoder("ViT-B-32", pretrained)


def test_an_encoder_without_weights_is_refused():
    with pytest.raises(ConfigError, match="is empty"):
        OpenClipEncoder("ViT-B-32", "")


def test_torch_is_not_imported_with_the_adapter():
    program = "import sys, pipelines.services.clients.encoder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3]).returncode == 0
