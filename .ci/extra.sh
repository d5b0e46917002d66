#!/usr/bin/env bash
# Makes a virtual environment with one more extra beside the tests' own: .ci/extra.sh EXTRA FOLDER PYTHON MODULE...
# Done once: the stamp holds the digest of all that decides it. It ends with an error if a module cannot be imported.
set -euo pipefail
extra=$1
venv=$2
python=$3
shift 3
root=$(cd "$(dirname "$0")/.." && pwd)
stamp="$venv/.installed"
recipe=$(cat "$root/.ci/extra.sh" "$root/.ci/torchvision.sh" "$root/.ci/constraints.txt" "$root/pyproject.toml" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ]; then
    exit 0
fi
test -x "$venv/bin/python" || "$python" -m venv "$venv"
cd "$root"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile -c .ci/constraints.txt -e ".[dev,$extra]"
[ "$extra" != clip ] || bash .ci/torchvision.sh "$venv"
for module in "$@"; do
    "$venv/bin/python" -c "import $module"
done
echo "$recipe" >"$stamp"
