#!/usr/bin/env bash
# Lets torchvision's CUDA build be imported beside a torch for CPUs, where that is what was installed: .ci/torchvision.sh FOLDER
set -euo pipefail
venv=$1
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
