package chaos

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/devstack"
	"hongbao/internal/money"
	"hongbao/internal/provider/wechat/simulator"
)

var payer = flag.String("provider", "sandbox", "what pays the recipients: sandbox, or wechat (the simulator of WeChat Pay)")

// TestMain makes this binary a simulator of WeChat Pay where the environment has its settings.
func TestMain(m *testing.M) {
	if text := os.Getenv(simulator.ProcessEnv); text != "" {
		if err := simulator.ServeProcess(context.Background(), text, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(m.Run())
}

// wechat is the simulator of WeChat Pay, which pays the recipients in place of the sandbox. Its state is
// in memory, so it is stopped and cut off, but never killed.
type wechat struct {
	stack *stack
	url   string
	proc  *devstack.Process
	in    io.Closer // its end ends the process
}

// wechatLeast is the smallest payout of WeChat Pay.
const wechatLeast money.Fen = 10

// startWechat starts the simulator and returns the variables with which the stack pays through it.
func (s *stack) startWechat(port int) (env []string, err error) {
	m, err := simulator.NewMerchant()
	if err != nil {
		return nil, err
	}
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	entry, err := simulator.Process{Listen: listen, Merchant: m, PendingAfter: 2 * time.Second}.Env()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = []string{entry}, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w := &wechat{stack: s, in: in}
	if w.proc, err = devstack.Launch(cmd); err != nil {
		return nil, err
	}
	s.wechat = w
	if w.url, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the simulator did not start: %w", err)
	}
	w.url = strings.TrimSpace(w.url)
	return s.wechatSettings(m)
}

// wechatSettings writes the file of providers. Both providers are reached through the proxies of the
// worker: the API calls none.
func (s *stack) wechatSettings(m simulator.Merchant) ([]string, error) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	key, signs := "sandbox_"+rand.Text(), "whsec_"+base64.StdEncoding.EncodeToString(secret[:])
	at := func(link string) string { return "http://" + s.network.proxies[link].listen }
	info := func(kind, text string) map[string]string {
		return map[string]string{"info_type": kind, "info_content": text}
	}
	file := func(name string) string { return filepath.Join(s.home, name) }
	providers := map[string]any{"providers": []map[string]any{
		{"name": "sandbox", "kind": "sandbox", "url": at("worker-provider"), "account": "sandbox", "key": key, "webhook_secret": signs},
		{"name": "wechat", "kind": "wechat", "url": at("worker-wechat"), "mchid": m.ID, "payout_app_id": m.AppID, "api_v3_key": m.APIv3Key,
			"merchant_key_file": file("merchant.pem"), "merchant_serial": m.Serial, "public_key_id": m.Public.ID,
			"public_key_file": file("wechat.pem"), "scene": "1000",
			"report_infos": []map[string]string{info("活动名称", "新年"), info("奖励说明", "红包")}, "notify_base": at("wechat-api")},
	}}
	text, err := json.Marshal(providers)
	if err != nil {
		return nil, err
	}
	// The stack keeps the secrets that it finds.
	secrets, err := json.Marshal(map[string]string{"provider_key": key, "sandbox_webhook_secret": signs})
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{"providers.json": string(text), "secrets.json": string(secrets),
		"merchant.pem": simulator.PrivatePEM(m.Private), "wechat.pem": m.Public.PublicPEM()} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"HONGBAO_PROVIDERS_FILE=" + file("providers.json"), "HONGBAO_CHARGE_PROVIDER=sandbox", "HONGBAO_PAYOUT_PROVIDER=wechat"}, nil
}

func (w *wechat) stop() {
	_ = w.in.Close()
	w.proc.Kill()
}

// tap confirms a payout as its recipient: with what the API gives to the recipient's app, and nothing
// else. It returns false while there is none.
func (w *wechat) tap(ctx context.Context, app *client.Client, packet, user string) (bool, error) {
	c, err := app.Claim(ctx, packet, user)
	if err != nil || c.Confirm == nil {
		return false, err
	}
	status, err := w.stack.call(ctx, http.MethodPost, w.url+"/_tap/"+c.Confirm.Parameters["package"], "", nil, nil)
	return err == nil && status == http.StatusNoContent, err
}

// expire lets the time for the recipient's tap pass.
func (w *wechat) expire(ctx context.Context, orderNo string) error {
	_, err := w.stack.call(ctx, http.MethodPost, w.url+"/_expire/"+orderNo, "", nil, nil)
	return err
}

// transfers reads every transfer by its number.
func (w *wechat) transfers(ctx context.Context) (map[string]simulator.TransferState, error) {
	var all []simulator.TransferState
	status, err := w.stack.call(ctx, http.MethodGet, w.url+"/_transfers", "", nil, &all)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("transfers: status %d, %w", status, err)
	}
	of := map[string]simulator.TransferState{}
	for _, t := range all {
		of[t.OutBillNo] = t
	}
	return of, nil
}

// wechatWords translates the states of a transfer to the sandbox's.
var wechatWords = map[string]string{"SUCCESS": "succeeded", "FAIL": "declined", "WAIT_USER_CONFIRM": "awaiting_confirmation",
	"PROCESSING": "processing"}

// wechatVerdict is the simulator's own answer about an order.
func wechatVerdict(all map[string]simulator.TransferState, orderNo string) verdict {
	t, ok := all[orderNo]
	if !ok {
		return verdict{Status: "unknown to WeChat Pay"}
	}
	return verdict{wechatWords[t.State], t.Reason}
}

// tapPauses are when a recipient looks for something to confirm, since the claim and since the last
// look. What is not confirmed by then is confirmed after the load.
var tapPauses = []time.Duration{500 * time.Millisecond, 2 * time.Second, 6 * time.Second}

// confirm is a recipient with a claim, while faults last.
func (l *load) confirm(ctx context.Context, packet, user string) {
	for _, pause := range tapPauses {
		if !wait(ctx, pause) {
			return
		}
		done := false
		l.call(ctx, grabPatience, func(ctx context.Context) { done, _ = l.wechat.tap(ctx, l.app, packet, user) })
		if done {
			return
		}
	}
}
