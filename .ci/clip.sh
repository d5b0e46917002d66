#!/usr/bin/env bash
# Makes a virtual environment with the extra clip, for tests/clip and its benchmark: .ci/clip.sh FOLDER [PYTHON]
# It is the tests' own environment with torch beside it. Done once: the stamp holds the digest of all that decides it.
set -euo pipefail
venv=$1
python=${2:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
stamp="$venv/.installed"
recipe=$(cat "$0" "$root/.ci/constraints.txt" "$root/pyproject.toml" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ]; then
    exit 0
fi
test -x "$venv/bin/python" || "$python" -m venv "$venv"
cd "$root"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[dev,clip]'
"$venv/bin/python" -c "import open_clip"
echo "$recipe" >"$stamp"
