package wechat

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(simulator.ProcessEnv); text != "" {
		if err := simulator.ServeProcess(context.Background(), text, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// TestOwnProcess: the simulator in a process of its own is controlled over HTTP, and a payout survives
// the death of that process as an unknown outcome.
func TestOwnProcess(t *testing.T) {
	t.Parallel()
	entry, err := simulator.Process{Listen: "127.0.0.1:0", Merchant: simulator.Merchant{ID: testMerchant, AppID: testApp,
		APIv3Key: testAPIKey, Serial: testSerial, Private: testKeys().merchant, Public: testKeys().public}}.Env()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), entry), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	r := newRig(t, nil, nil)
	a, o := r.adapter(t, func(c *Config) { c.BaseURL = address }), &orders{}
	order := o.order(t, a, paidOut(payer))
	sent := a.Send(t.Context(), order)
	wantKind(t, "sent", sent, payout.ObsNeedsRecipient, "")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/_tap/"+sent.Action.Parameters["package"], nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := r.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	wantKind(t, "confirmed", a.Query(t.Context(), payout.OpTransfer, order.OrderNo), payout.ObsSucceeded, "")
	_ = in.Close()
	_ = cmd.Wait()
	if seen := a.Query(t.Context(), payout.OpTransfer, order.OrderNo); seen.Kind != payout.ObsNotSent && seen.Kind != payout.ObsNoAnswer {
		t.Errorf("after its death: %s", seen.Kind)
	}
}
