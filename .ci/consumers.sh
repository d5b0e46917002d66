#!/usr/bin/env bash
# Makes a virtual environment for each trainer whose loaders are tested: .ci/consumers.sh NAME...
# They exclude one another and us, so each has its own, .venv-consumers/NAME, from the whole list of versions in
# .ci/consumers/NAME.txt. Done once: the stamp holds the digest of all that decides it.
set -euo pipefail
cd "$(dirname "$0")/.."
for name in "$@"; do
    pins=.ci/consumers/$name.txt
    venv=.venv-consumers/$name
    stamp=$venv/.installed
    recipe=$(cat .ci/consumers.sh "$pins" | sha256sum | cut -d' ' -f1)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ]; then
        continue
    fi
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv"
    install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile)
    # With what it needs, which is not the same for every build of it; the rest as listed, asking for nothing more:
    # trainers want whole frameworks of which their loaders import a part.
    if torch=$(grep '^torch==' "$pins"); then
        "${install[@]}" "$torch"
    fi
    "${install[@]}" --no-deps --requirement "$pins"
    echo "$recipe" >"$stamp"
done
