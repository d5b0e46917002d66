#!/usr/bin/env bash
# Installs PostgreSQL where no program of it is found; the tests start servers of their own (tests/postgres.py).
set -euo pipefail
if command -v initdb >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null; then
    exit 0
fi
run=""
[ "$(id -u)" = 0 ] || run=sudo
$run apt-get update -qq
# No cluster of the system's own is made and started.
$run mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" | $run tee /etc/postgresql-common/createcluster.conf >/dev/null
DEBIAN_FRONTEND=noninteractive $run apt-get install -y -qq --no-install-recommends postgresql
