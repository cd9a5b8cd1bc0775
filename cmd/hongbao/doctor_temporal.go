package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"hongbao/internal/devstack"
	"hongbao/internal/health"
	"hongbao/internal/observe"
	"hongbao/worker"
)

// minRetention is the time for which Temporal has to keep ended runs.
const minRetention = devstack.Retention

// checkTemporal checks Temporal and that workers poll it.
func (d *doctor) checkTemporal(ctx context.Context) {
	if !d.configured("temporal", temporalFlags...) {
		return
	}
	if d.config.temporalContradictions() != nil {
		d.add("temporal", verdictSkipped, "Correct the settings reported above.", "Not checked: its settings contradict each other, or "+
			"name unusable files.")
		return
	}
	server := d.config.temporal().server()
	address, namespace := server.Address, server.Namespace
	d.checkClientCertificate(server)
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	seen, err := worker.Examine(ctx, server)
	if refusal, is := errors.AsType[*worker.Refusal](err); is {
		d.add("temporal", verdictWrong, temporalAdvice[refusal.Why]+" Until then grabs are acknowledged, and payouts wait.", "Temporal at %s: %v",
			address,
			err)
		return
	}
	if err != nil {
		d.add("temporal", verdictWrong, "Start it, or correct HONGBAO_TEMPORAL_ADDRESS. Until then grabs are acknowledged, and payouts wait.",
			"Temporal at %s does not answer: %v", address, err)
		return
	}
	d.ok("temporal", "%s at %s answers.", cmp.Or(seen.Version, "an unknown version"), address)
	if !seen.Namespace {
		d.add("temporal namespace", verdictWrong, "temporal operator namespace create --namespace "+namespace+
			" --retention 168h (Temporal Cloud: in its UI), or correct HONGBAO_TEMPORAL_NAMESPACE.", "There is no namespace %s.", namespace)
		return
	}
	if seen.Retention < minRetention {
		d.add("temporal namespace", verdictWarning, "temporal operator namespace update --namespace "+namespace+
			" --retention 168h (Temporal Cloud: in its UI)", "Ended runs of %s are deleted after %v, but the history of a payment is to be kept "+
			"for %v.", namespace, seen.Retention, minRetention)
	} else {
		d.ok("temporal namespace", "%s keeps ended runs for %v.", namespace, seen.Retention)
	}
	if len(seen.Missing) > 0 {
		d.add("search attributes", verdictWrong, "temporal operator search-attribute create --namespace "+namespace+" --type Keyword --name "+
			strings.Join(seen.Missing, " --name ")+" (Temporal Cloud: in its UI, or by tcld namespace search-attributes add); without them no "+
			"run starts.",
			"Missing, or not of type Keyword: %s.", strings.Join(seen.Missing, ", "))
	} else {
		d.ok("search attributes", "All exist.")
	}
	var idle []string
	for _, name := range slices.Sorted(maps.Keys(seen.Pollers)) {
		if seen.Pollers[name] == 0 {
			idle = append(idle, name)
		}
	}
	if len(idle) > 0 {
		d.add("workers", verdictWrong, "Start hongbao worker and read its log; until then claims are not paid.",
			"No worker polls: %s.", strings.Join(idle, ", "))
	} else {
		d.ok("workers", "%d workers poll Temporal.", seen.Pollers["hongbao workflow"])
	}
	d.judge(observe.HealthSnapshot{FromTemporal: true, Queues: []observe.QueueBacklog{{Backlog: seen.Waiting}}}, health.Temporal)
}

// certificateWarning is the remaining validity of a client certificate below which doctor warns.
const certificateWarning = 14 * 24 * time.Hour

// checkClientCertificate checks the remaining validity of the client certificate.
func (d *doctor) checkClientCertificate(server worker.Server) {
	if server.CertFile == "" {
		return
	}
	const check, do = "temporal certificate", "Put a new certificate and its key into HONGBAO_TEMPORAL_CERT_FILE and " +
		"HONGBAO_TEMPORAL_KEY_FILE; processes that run read them at their next connection."
	ends, err := server.CertificateEnds()
	if err != nil {
		d.add(check, verdictWrong, do, "The client certificate cannot be read: %v", err)
		return
	}
	switch left := ends.Sub(d.now()); {
	case left <= 0:
		d.add(check, verdictWrong, do, "The client certificate expired at %s.", formatTime(ends))
	case left < certificateWarning:
		d.add(check, verdictWarning, do, "The client certificate is valid until %s only.", formatTime(ends))
	default:
		d.ok(check, "The client certificate is valid until %s.", formatTime(ends))
	}
}
