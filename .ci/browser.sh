#!/usr/bin/env bash
# Installs Chromium where none is found; tests/browser drives it without a screen.
set -euo pipefail
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then
    exit 0
fi
run=""
[ "$(id -u)" = 0 ] || run=sudo
$run apt-get update -qq
DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends chromium
