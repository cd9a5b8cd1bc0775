#!/usr/bin/env bash
# Starts Debian's Docker engine in the namespaces that run.sh has made, builds the stand-in
# images, and runs the command that is given. The engine and all containers end with it.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cache=$root/.cache/compose
work=$(mktemp -d)
export DOCKER_HOST=unix://$work/docker.sock DOCKER_CONFIG=$work/config DOCKER_BUILDKIT=1
mkdir -p "$DOCKER_CONFIG"
ln -s "$cache/plugins" "$DOCKER_CONFIG/cli-plugins"
echo '{}' >"$DOCKER_CONFIG/config.json"

ip link set lo up
# Nothing answers outside: names that are not of a container fail after a second.
dockerd --dns-opt timeout:1 --dns-opt attempts:1 --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" -H "$DOCKER_HOST" >"$work/dockerd.log" 2>&1 &
engine=$!
stop() {
	docker ps -aq | xargs -r docker rm -f -v >/dev/null 2>&1 || true
	kill "$engine" 2>/dev/null || true
	wait "$engine" 2>/dev/null || true
	umount -R "$work/data" "$work/exec" 2>/dev/null || true
	rm -rf "$work"
}
trap stop EXIT
for _ in $(seq 300); do
	docker version >/dev/null 2>&1 && break
	kill -0 "$engine" || { tail -20 "$work/dockerd.log" >&2; exit 1; }
	sleep 0.2
done

# The build context holds what prepare.sh has made.
context=$work/context
mkdir "$context"
cp "$root"/test/compose/images/* "$context/"
cp -r "$cache/bin" "$cache/schema" "$cache/ui-config" "$cache/temporal-entrypoint.sh" "$cache/base.tar" "$context/"
cp -r "$(go env GOROOT)" "$context/go"
cp -r "$cache/modules/cache/download" "$context/modules"
stand_in() { # stand_in <target> <image>
	docker build -q --target "$1" -t "$2" "$context" >/dev/null
	echo "[compose] $2 is a stand-in" >&2
}
stand_in mysql mysql:8.4
stand_in redis redis:8.2
stand_in temporal temporalio/server:1.32.0
stand_in admin-tools temporalio/admin-tools:1.32.0
stand_in ui temporalio/ui:2.54.1
stand_in prometheus prom/prometheus:v3.5.0
stand_in golang golang:1.26.5-alpine3.23
"$@"
