#!/usr/bin/env bash
# Makes a virtual environment with the extra ray, for tests/ray: .ci/ray.sh FOLDER [PYTHON]
# Done once: the stamp holds the digest of all that decides it.
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
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[dev,ray]'
"$venv/bin/python" -c "import prefect_ray, ray"
echo "$recipe" >"$stamp"
