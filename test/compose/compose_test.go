// Package compose runs docker-compose.yml on a real engine and breaks it, from outside.
// `make compose` starts it; run.sh says on what.
package compose

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/devstack"
	"hongbao/internal/money"
	"hongbao/test/wait"
	"hongbao/wire"
)

var inEarnest = flag.Bool("compose", false, "run docker-compose.yml on the engine that the environment names")

const (
	shares = 20
	users  = shares + 5
	// slow bounds what starts containers on a busy machine.
	slow = 10 * time.Minute
)

// project is one run of docker-compose.yml with ports, a name and variables of its own.
type project struct {
	t    *testing.T
	vars map[string]string // of .env.example
	won  map[string]wire.Claim
}

func (p *project) compose(args ...string) (string, error) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(p.t.Context()), 3*slow) // also after the test, to clean up
	defer stop()
	cmd := exec.CommandContext(ctx, "docker", append([]string{"compose", "--ansi", "never", "--project-name", "hongbaotest"}, args...)...)
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), os.Environ()
	for name, value := range p.vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	p.t.Logf("docker compose %s: %v", strings.Join(args, " "), time.Since(began).Round(time.Second))
	return string(out), err
}

func (p *project) must(args ...string) string {
	p.t.Helper()
	out, err := p.compose(args...)
	if err != nil {
		p.t.Fatalf("docker compose %s: %v\n%s", strings.Join(args, " "), err, last(out, 40))
	}
	return out
}

// up starts everything and waits until it is healthy.
func (p *project) up(args ...string) string {
	p.t.Helper()
	return p.must(append([]string{"up", "--detach", "--wait", "--wait-timeout", strconv.Itoa(int(slow.Seconds()))}, args...)...)
}

func (p *project) address(port string) string { return "http://127.0.0.1:" + p.vars[port] }

// app is the client of the app "demo".
func (p *project) app() *client.Client {
	p.t.Helper()
	c, err := client.New(p.address("HB_API_PORT"), p.vars["HB_APP_KEY"],
		client.WithRetry(client.Retry{Tries: 10_000, MinPause: 100 * time.Millisecond, MaxPause: time.Second, TryTimeout: 20 * time.Second}))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(c.Close)
	return c
}

// crowd lets more users than there are shares grab a packet while during changes
// something about the services. Every share has to be won once and paid.
func (p *project) crowd(name string, during func()) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), slow)
	defer stop()
	app := p.app()
	pk, err := app.Create(ctx, wire.CreatePacket{SenderID: "sender",
		TotalAmount: shares * 100, ShareCount: shares}, client.Key(strings.ReplaceAll(name, " ", "-")))
	if err == nil {
		pk, err = app.AwaitPacket(ctx, pk.ID, func(pk *wire.Packet) bool { return pk.Status == wire.PacketOpen })
	}
	if err != nil {
		p.t.Fatal(err)
	}
	var group sync.WaitGroup
	won := make([]*wire.Claim, users)
	lost := make([]error, users)
	for i := range users {
		group.Go(func() {
			won[i], lost[i] = app.Grab(ctx, pk.ID, wire.Grab{UserID: fmt.Sprintf("user-%d", i)})
		})
	}
	during()
	group.Wait()
	var sum money.Fen
	n := 0
	for i, c := range won {
		var problem *client.Problem
		switch {
		case c != nil:
			n, sum = n+1, sum+c.Amount
			p.won[pk.ID+"/"+c.UserID] = *c
		case !errors.As(lost[i], &problem) || problem.Code != wire.CodeSoldOut:
			p.t.Fatalf("%s, user-%d: %v", name, i, lost[i])
		}
	}
	if n != shares || sum != shares*100 {
		p.t.Fatalf("%s: %d claims of %d fen", name, n, sum)
	}
	p.readBack()
}

// readBack fails unless every claim that was ever answered is there with its amount, and
// waits until each is paid.
func (p *project) readBack() {
	p.t.Helper()
	app := p.app()
	for _, key := range slices.Sorted(maps.Keys(p.won)) {
		was := p.won[key]
		wait.Within(p.t, slow, func() string { return "paid: " + key }, func() bool {
			ctx, stop := context.WithTimeout(p.t.Context(), time.Minute)
			defer stop()
			c, err := app.Claim(ctx, was.PacketID, was.UserID)
			if err != nil {
				return false
			}
			if c.Amount != was.Amount || c.ShareIndex != was.ShareIndex {
				p.t.Fatalf("%s was answered %d fen of share %d, now %d of %d", key, was.Amount, was.ShareIndex, c.Amount, c.ShareIndex)
			}
			return c.Payout.Status == wire.PayoutPaid
		})
	}
}

func TestCompose(t *testing.T) {
	if !*inEarnest {
		t.Skip("needs a Docker engine, and minutes: make compose")
	}
	p := &project{t: t, vars: variables(t), won: map[string]wire.Claim{}}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := p.compose("logs", "--no-color", "--tail", "30")
			t.Log(out)
		}
		_, _ = p.compose("--profile", "observability", "down", "--volumes", "--timeout", "5")
	})
	t.Log(command(t, "docker", "version"))
	t.Log(p.must("version"))
	p.must("build")
	p.up()
	t.Log(p.must("images"))
	p.crowd("first", func() {})

	p.must("build")
	if out := p.must("up", "--detach"); strings.Contains(out, "Recreate") {
		t.Errorf("a second build of the same source makes other containers:\n%s", out)
	}

	p.up("--scale", "worker=4", "--no-recreate")
	p.crowd("four workers", func() {})

	for _, service := range []string{"api", "worker", "provider", "redis", "mysql", "temporal"} {
		p.crowd("kill "+service, func() {
			p.must("kill", service)
			p.up()
		})
	}

	p.must("down")
	p.up()
	if logs := p.must("logs", "--no-color", "temporal"); strings.Contains(logs, "Not enough hosts") {
		t.Error("after down and up Temporal looks for the server that was removed")
	}
	p.readBack()
	p.crowd("after down and up", func() {})

	p.prometheus()
	p.secrets()
	p.changedPassword()
}

// prometheus starts Prometheus alone of its profile and waits until it reads metrics of API and worker.
func (p *project) prometheus() {
	p.must("--profile", "observability", "up", "--detach", "prometheus")
	wait.Within(p.t, slow, func() string { return "Prometheus reads API and worker" }, func() bool {
		resp, err := http.Get(p.address("HB_PROMETHEUS_PORT") + "/api/v1/query?query=" + url.QueryEscape("count(up == 1)"))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var answer struct {
			Data struct {
				Result []struct {
					Value [2]any `json:"value"`
				} `json:"result"`
			} `json:"data"`
		}
		if json.NewDecoder(resp.Body).Decode(&answer) != nil || len(answer.Data.Result) != 1 {
			return false
		}
		n, _ := strconv.Atoi(fmt.Sprint(answer.Data.Result[0].Value[1]))
		return n >= 2
	})
}

// secrets starts again with public secrets that are no longer accepted, which names one and
// ends, and with secrets of its own, which serves and refuses the public keys.
func (p *project) secrets() {
	p.must("--profile", "observability", "down", "--volumes")
	p.vars["HB_TRY_OUT"] = "false"
	out, err := p.compose("up", "--detach", "--wait")
	if err == nil {
		p.t.Errorf("public secrets are taken:\n%s", last(out, 20))
	}
	if logs := p.must("logs", "--no-color", "migrate"); !strings.Contains(logs, "public") {
		p.t.Errorf("no word about a public secret:\n%s", last(logs, 20))
	}
	p.must("down", "--volumes")

	public := p.vars["HB_APP_KEY"]
	for name, role := range map[string]string{"HB_APP_KEY": "app", "HB_FINANCE_KEY": "finance", "HB_FINANCE2_KEY": "finance", "HB_OPS_KEY": "ops",
		"HB_AUDITOR_KEY": "auditor"} {
		p.vars[name] = strings.TrimSpace(command(p.t, "docker", "run", "--rm", "hongbao:local", "keys", "token", "--role", role))
	}
	for _, name := range []string{"HB_MYSQL_ROOT_PASSWORD", "HB_MYSQL_PASSWORD", "HB_TEMPORAL_MYSQL_PASSWORD", "HB_PROVIDER_KEY",
		"HB_GRAFANA_PASSWORD"} {
		p.vars[name] = strings.ToLower(strings.ReplaceAll(name, "_", "")) + "0123456789abcdef"
	}
	p.vars["HB_SEED_KEY"] = strings.Repeat("5e", 32)
	p.vars["HB_SESSION_KEY"] = strings.Repeat("5f", 32)
	p.vars["HB_WEBHOOK_SECRET"] = "whsec_NTRzZWNyZXQgb2YgYSB0ZXN0LCBtYWRlIGZvciB0aGlzIHJ1bg=="
	p.won = map[string]wire.Claim{}
	p.up()
	p.crowd("own secrets", func() {})

	mine := p.vars["HB_APP_KEY"]
	p.vars["HB_APP_KEY"] = public
	_, err = p.app().Packet(p.t.Context(), "00000000000000000000")
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
		p.t.Errorf("the public key: %v", err)
	}
	p.vars["HB_APP_KEY"] = mine
}

// changedPassword starts with another password than the data in MySQL has: it ends with the reason.
// With the old one everything is there again.
func (p *project) changedPassword() {
	p.must("down")
	was := p.vars["HB_MYSQL_PASSWORD"]
	p.vars["HB_MYSQL_PASSWORD"] = "another0123456789abcdef"
	if out, err := p.compose("up", "--detach", "--wait"); err == nil {
		p.t.Errorf("MySQL has another password:\n%s", last(out, 20))
	}
	if logs := p.must("logs", "--no-color", "migrate"); !strings.Contains(logs, "Access denied") {
		p.t.Errorf("no word about the password:\n%s", last(logs, 20))
	}
	p.must("down")
	p.vars["HB_MYSQL_PASSWORD"] = was
	p.up()
	p.readBack()
}

// variables are those of .env.example, with ports that are free and public secrets taken.
func variables(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", ".env.example"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), "="); ok && strings.HasPrefix(name, "HB_") {
			out[name] = value
		}
	}
	for name := range out {
		if strings.HasSuffix(name, "_PORT") {
			port, err := devstack.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			out[name] = strconv.Itoa(port)
		}
	}
	out["HB_TRY_OUT"] = "true"
	return out
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, io.Discard
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// last returns the last lines of a text.
func last(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
