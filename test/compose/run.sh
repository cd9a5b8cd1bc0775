#!/usr/bin/env bash
# Runs docker-compose.yml on a real engine, breaks it and reads every payout back.
#
# With a Docker engine that answers, and a registry, that engine and the images named in the
# file are used. Else, as root on Debian: Debian's engine, in a network and mount namespace
# of its own, so that its firewall rules, bridges and mounts end with it; and stand-ins for
# the images, made from Debian sid and from the source of Temporal and its UI. What was
# downloaded and built stays in .cache/compose.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
run=(go test -C test/compose -count=1 -timeout 60m -v -run '^TestCompose$' -args -compose)

if docker compose version >/dev/null 2>&1 && timeout 60 docker pull -q redis:8.2 >/dev/null 2>&1; then
	exec "${run[@]}"
fi
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || {
	echo "make compose: no Docker engine with a registry answers; without one it needs root on Debian" >&2
	exit 1
}
"$root/test/compose/prepare.sh"
exec unshare --net --mount "$root/test/compose/engine.sh" "${run[@]}"
