#!/bin/sh
# One-shot in Temporal's admin-tools image: creates the namespace with its retention, and
# the search attributes of our workflows. It keeps what exists, so every start may run
# it. It ends when a query for each attribute succeeds: the server's caches take up to a
# minute to see a new attribute, and refuse workflows that name it before.
#
# TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE are the temporal program's own
# variables; RETENTION is a duration such as 168h.
set -eu

attributes='App PacketID UserID PayoutStatus FailureCode Provider'

# patiently runs a command every two seconds until it succeeds, for up to three minutes.
# After the last failure it prints the output.
patiently() {
	tries=90
	until output=$("$@" 2>&1); do
		tries=$((tries - 1))
		if [ "$tries" -eq 0 ]; then
			printf 'gave up: %s\n%s\n' "$*" "$output" >&2
			return 1
		fi
		sleep 2
	done
}

namespace() {
	temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" ||
		temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$RETENTION"
}

search_attributes() {
	set --
	for name in $attributes; do
		set -- "$@" --name "$name" --type Keyword
	done
	temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" "$@"
}

patiently temporal operator cluster health
patiently namespace
patiently search_attributes
for name in $attributes; do
	patiently temporal workflow count --namespace "$TEMPORAL_NAMESPACE" --query "$name = 'seen'"
done
echo "Namespace $TEMPORAL_NAMESPACE is ready: retention $RETENTION for a new one, attributes $attributes."
