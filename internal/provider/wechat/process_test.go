package wechat

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/utils"
	"go.uber.org/goleak"

	"hongbao/internal/payout"
	"hongbao/internal/provider/wechat/simulator"
)

// simulatorEnv makes the test binary a simulator of its own; its value has the keys.
const simulatorEnv = "HONGBAO_TEST_WECHAT_SIMULATOR"

func TestMain(m *testing.M) {
	if keys := os.Getenv(simulatorEnv); keys != "" {
		if err := serveSimulator(keys); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// processKeys are the keys of a simulator in another process.
type processKeys struct{ Merchant, Platform string }

// serveSimulator serves until its standard input ends, and prints its address.
func serveSimulator(text string) error {
	var keys processKeys
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return err
	}
	merchant, err := utils.LoadPublicKey(keys.Merchant)
	if err != nil {
		return err
	}
	platform, err := utils.LoadPrivateKey(keys.Platform)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sim := simulator.New(ctx, simulator.Config{MerchantID: testMerchant, AppIDs: []string{testApp}, APIv3Key: testAPIKey,
		MerchantKey: merchant, MerchantSerial: testSerial, Keys: []simulator.Key{{ID: testKeyID, Private: platform}}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: sim, ReadHeaderTimeout: time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if _, err := fmt.Fprintln(os.Stdout, "http://"+listener.Addr().String()); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// TestOwnProcess: the simulator in a process of its own is controlled over HTTP, and a payout survives
// the death of that process as an unknown outcome.
func TestOwnProcess(t *testing.T) {
	t.Parallel()
	raw, err := x509.MarshalPKIXPublicKey(&testKeys().merchant.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(processKeys{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: raw})),
		simulator.PrivatePEM(testKeys().public.Private)})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), simulatorEnv+"="+string(keys)), os.Stderr
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
	wantKind(t, "sent", a.Send(t.Context(), order), payout.ObsNeedsRecipient, "")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/_confirm/"+order.OrderNo, nil)
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
