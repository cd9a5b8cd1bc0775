package main

import (
	"log/slog"
	"net/url"
	"regexp"
	"testing"

	"go.temporal.io/api/workflowservice/v1"

	"hongbao/internal/devstack"
	"hongbao/internal/devstack/stacktest"
	"hongbao/worker"
)

// TestRunbookQueries: a real server understands every saved query, and each link
// asks what stands before it.
func TestRunbookQueries(t *testing.T) {
	addr, namespace := stacktest.Temporal(t)
	temporal, err := worker.Dial(addr, namespace, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	count := func(query string) error {
		_, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: query})
		return err
	}
	if count(`PaymentStatus = "unknown"`) == nil || count(`PacketID = "`) == nil {
		t.Fatal("the server understands anything")
	}
	rows := regexp.MustCompile("(?m)^\\| ([^|`]+) \\| `([^`]+)` \\| \\[open\\]\\(([^)]+)\\) \\|$").FindAllStringSubmatch(
		readRepo(t, "docs/runbook.md"), -1)
	if len(rows) < 10 {
		t.Fatalf("%d queries were found", len(rows))
	}
	used := map[string]bool{}
	for _, row := range rows {
		if err := count(row[2]); err != nil {
			t.Errorf("%s: %v", row[1], err)
		}
		link, err := url.Parse(row[3])
		if err != nil || link.Query().Get("query") != row[2] || link.Path != "/namespaces/hongbao/workflows" {
			t.Errorf("%s: the link asks %q: %v", row[1], link.Query().Get("query"), err)
		}
		for _, name := range devstack.SearchAttributes {
			used[name] = used[name] || regexp.MustCompile(`\b`+name+`\b`).MatchString(row[2])
		}
	}
	for _, name := range devstack.SearchAttributes {
		if !used[name] {
			t.Errorf("no query shows how %s is asked for", name)
		}
	}
}
