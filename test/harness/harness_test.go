package harness_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// TestShared checks that the tests of a binary share one stack, and that its API has read new keys
// when NewOwners returns.
func TestShared(t *testing.T) {
	s := harness.Shared(t)
	if s != harness.Shared(t) {
		t.Fatal("two stacks are shared")
	}
	owners := s.NewOwners(t, access.RoleApp, access.RoleOps)
	for url, token := range map[string]string{s.Public + "/v1/packets": owners[0].Token, s.Staff + "/v1/staff/packets": owners[1].Token} {
		if status := get(t, url, token); status != http.StatusOK {
			t.Errorf("%s: status %d", url, status)
		}
	}
}

// TestLife checks that a stack takes a packet through the steps of the workflows.
func TestLife(t *testing.T) {
	t.Parallel()
	s := harness.Open(t, harness.Options{Owners: []access.Role{access.RoleApp}})
	if status := get(t, s.Public+"/v1/packets", s.Owners[0].Token); status != http.StatusOK {
		t.Errorf("a key that was made first: status %d", status)
	}
	id := packet.NewID(s.Owners[0].App.Salt, "one")
	seed := packet.DeriveSeed(s.Config.SeedKey, id)
	stage := packet.Packet{ID: id, App: s.Owners[0].App.ID, SenderID: "sender", Currency: packet.CurrencyCNY,
		ChargeProvider: "sandbox", PayoutProvider: "sandbox",
		TotalAmount: 300, ShareCount: 3,
		Split: packet.SplitEqual, MinShare: 1,
		BodyHash: strings.Repeat("a", 64), Commitment: packet.Commitment(seed)}
	ctx := t.Context()
	if _, err := s.Pool.Create(ctx, stage, nil, nil, time.Hour, time.Second); err != nil {
		t.Fatal(err)
	}
	must(t, s.Fund(ctx, id))
	grabbed, err := s.Pool.Grab(ctx, id, "winner", packet.Profile{})
	must(t, err)
	if grabbed.Result != packet.GrabWon {
		t.Fatalf("%+v", grabbed)
	}
	must(t, s.Finish(ctx, id, packet.CloseRecalled))
	record, err := s.Store.Packet(ctx, id)
	must(t, err)
	if record.Stored != packet.StatusClosed {
		t.Errorf("%+v", record)
	}
	must(t, s.Stop())
	if status := get(t, s.Public+"/livez", ""); status != 0 {
		t.Errorf("a stopped API answers %d", status)
	}
	s.Start(t)
	if status := get(t, s.Public+"/livez", ""); status != http.StatusOK {
		t.Errorf("started again it answers %d", status)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// get returns the status of an answer, 0 when there is none.
func get(t *testing.T, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}
