#!/usr/bin/env bash
# Downloads and builds what the stand-in images consist of, into .cache/compose.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=$PWD/.cache/compose
mkdir -p "$cache/bin" "$cache/plugins"

# The versions of docker-compose.yml.
server=go.temporal.io/server@v1.32.0
ui=github.com/temporalio/ui-server/v2@v2.54.1

step() { echo "[compose] $*" >&2; }

source_of() { go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }

build() { # build <module> <package> <name>
	[ -x "$cache/bin/$3" ] && return
	step "building $3 of $1"
	(cd "$(source_of "$1")" && go build -trimpath -ldflags '-s -w' -o "$cache/bin/$3" "./$2")
}

for program in dockerd docker debootstrap iptables unshare ip; do
	command -v "$program" >/dev/null && continue
	step "installing Debian's engine"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables debootstrap iproute2 util-linux >/dev/null
	break
done

# One root file system for all stand-ins. Debian has MySQL in sid alone, and the release file
# of a mirror may be older than its end.
if [ ! -s "$cache/base.tar" ]; then
	step "making the root file system of the stand-ins from Debian sid"
	base=$(mktemp -d)
	trap 'rm -rf "$base"' EXIT
	debootstrap --variant=minbase --include=ca-certificates sid "$base" http://deb.debian.org/debian >"$cache/debootstrap.log" 2>&1
	inside() { DEBIAN_FRONTEND=noninteractive chroot "$base" "$@" >>"$cache/debootstrap.log" 2>&1; }
	inside apt-get -o Acquire::Check-Valid-Until=false update
	inside apt-get install -y --no-install-recommends mysql-server-core mysql-client-core redis-server busybox netcat-openbsd gosu
	inside sh -c 'cd /tmp && apt-get download docker-compose docker-buildx'
	for package in "$base"/tmp/*.deb; do
		dpkg -x "$package" "$base/tmp/plugins"
	done
	find "$base/tmp/plugins" -type f \( -name docker-compose -o -name docker-buildx \) -path '*cli-plugins*' -exec cp {} "$cache/plugins/" \;
	rm -rf "$base"/tmp/* "$base"/var/cache/apt/archives/*.deb
	tar -C "$base" -cf "$cache/base.tar.new" .
	mv "$cache/base.tar.new" "$cache/base.tar"
fi

build "$server" cmd/server temporal-server
build "$server" cmd/tools/sql temporal-sql-tool
build "$ui" cmd/server ui-server
cp .cache/bin/temporal .cache/bin/prometheus "$cache/bin/"
rm -rf "$cache/schema" "$cache/ui-config"
cp -r --no-preserve=mode "$(source_of "$server")/schema" "$cache/schema"
cp -r --no-preserve=mode "$(source_of "$ui")/config" "$cache/ui-config"
cp --no-preserve=mode "$(source_of "$server")/docker/scripts/sh/entrypoint.sh" "$cache/temporal-entrypoint.sh"

# The image of hongbao is built without a network: Go's proxy is this folder.
step "downloading the modules of hongbao"
GOMODCACHE=$cache/modules GOFLAGS=-modcacherw go mod download
