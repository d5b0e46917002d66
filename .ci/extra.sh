#!/usr/bin/env bash
# Makes a virtual environment with one more extra beside the tests' own, .venv: .ci/extra.sh EXTRA FOLDER MODULE...
# What .venv has is seen there and not installed again. Done once: the stamp holds the digest of all that decides it.
# It ends with an error if a module cannot be imported.
set -euo pipefail
extra=$1
venv=$2
shift 2
cd "$(dirname "$0")/.."
stamp="$venv/.installed"
recipe=$(cat .ci/extra.sh .ci/torchvision.sh .ci/constraints.txt pyproject.toml | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ]; then
    exit 0
fi
rm -rf "$venv"
.venv/bin/python -m venv "$venv"
where='import sysconfig; print(sysconfig.get_path("purelib"))'
.venv/bin/python -c "$where" >"$("$venv/bin/python" -c "$where")/tests.pth"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile -c .ci/constraints.txt -e ".[dev,$extra]"
[ "$extra" != clip ] || bash .ci/torchvision.sh "$venv"
for module in "$@"; do
    "$venv/bin/python" -c "import $module"
done
echo "$recipe" >"$stamp"
