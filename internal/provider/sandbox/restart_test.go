package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hongbao/test/wait"
)

// childDBEnv makes the test binary a sandbox on that database instead.
const childDBEnv = "SANDBOX_TEST_CHILD_DB"

func runChild(path string) {
	server, err := Open(Config{Listen: "127.0.0.1:0", DBPath: path, APIKey: testKey})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(server.Addr())
	fmt.Println("ended", server.Serve(context.Background()))
}

// TestKill9 sends orders from many callers, kills the process and checks that
// every acknowledged order and its movement are there, once.
func TestKill9(t *testing.T) {
	st := newStand(t)
	st.stop()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDBEnv+"="+st.cfg.DBPath)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	st.base = "http://" + strings.TrimSpace(line)

	var mu sync.Mutex
	acked := map[string]bool{}
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := 0; ; i++ {
				no := "k" + strconv.Itoa(c) + "x" + strconv.Itoa(i)
				r := st.do("POST", "/v1/transfers", sendJSON(params{OrderNo: no, Account: "u", Amount: 3, Currency: "CNY"}))
				if r.err != nil {
					return
				}
				mu.Lock()
				acked[no] = true
				mu.Unlock()
			}
		})
	}
	wait.Until(t, "200 orders", func() bool { mu.Lock(); defer mu.Unlock(); return len(acked) >= 200 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	callers.Wait()

	st.start()
	moves := map[string]int{}
	for _, m := range st.movements() {
		moves[m.OrderNo]++
		if moves[m.OrderNo] > 1 {
			t.Errorf("%s moved twice", m.OrderNo)
		}
	}
	for no := range acked {
		if moves[no] != 1 {
			t.Errorf("acknowledged %s has %d movements", no, moves[no])
		}
	}
}

// TestRestart checks that scheduled events and counters survive.
func TestRestart(t *testing.T) {
	st := newStand(t, func(c *Config) { c.PendingAfter, c.ReturnAfter = 300*time.Millisecond, 300*time.Millisecond })
	three := int64(3)
	st.send("transfer", "done1", "alice", 5).order(t)
	st.send("transfer", "wait1", "bob~pending", 6).order(t)
	st.send("transfer", "back1", "eve~returned", 7).order(t)
	st.send("transfer", "conf1", "kim~confirm", 8).order(t)
	if r := st.send("transfer", "flak1", "x~flaky", 9); r.status != 500 {
		t.Fatal(r)
	}
	st.unfreeze("ice~frozen")
	st.faults(Rule{Op: "charge", Kind: "rate_limit", Rate: 1, Times: &three})
	if r := st.send("charge", "rate1", "s", 1); r.code() != "rate_limited" {
		t.Fatal(r)
	}
	st.restart()

	if got := st.query("done1").order(t); got.Status != StatusSucceeded || st.moved("done1") != "transfer 5;" {
		t.Errorf("done1: %+v", got)
	}
	if got := st.send("transfer", "done1", "alice", 5).order(t); got.Status != StatusSucceeded {
		t.Errorf("done1 again: %+v", got)
	}
	wait.Until(t, "pending completes", func() bool { return st.moved("wait1") == "transfer 6;" && len(st.hooks.of("wait1")) == 1 })
	wait.Until(t, "the payment is returned", func() bool {
		return st.moved("back1") == "transfer 7;return 7;" && len(st.hooks.of("back1")) == 1
	})
	if r := st.confirm("conf1"); r.status != 204 || st.moved("conf1") != "transfer 8;" {
		t.Errorf("confirm: %s", r)
	}
	if r := st.send("transfer", "flak1", "x~flaky", 9); r.status != 500 {
		t.Errorf("second flaky send: %s", r)
	}
	st.send("transfer", "flak1", "x~flaky", 9).order(t)
	if got := st.send("transfer", "ice1", "ice~frozen", 2).order(t); got.Status != StatusSucceeded {
		t.Errorf("unfrozen: %+v", got)
	}
	for range 2 {
		if r := st.send("charge", "rate1", "s", 1); r.code() != "rate_limited" {
			t.Errorf("rule lost its count: %s", r)
		}
	}
	st.send("charge", "rate1", "s", 1).order(t)
}

// TestNotificationSurvivesRestart: the receiver is down until after a restart; the event id stays
// the same.
func TestNotificationSurvivesRestart(t *testing.T) {
	st := newStand(t)
	st.hooks.refuse(true)
	st.send("transfer", "n1", "u~pending", 4).order(t)
	wait.Until(t, "a first try", func() bool { return st.hooks.triesSoFar() >= 1 })
	st.restart()
	st.hooks.refuse(false)
	wait.Until(t, "delivered", func() bool { return len(st.hooks.of("n1")) == 1 })
	if n := st.hooks.of("n1")[0]; n.Type != "order.succeeded" || n.Status != StatusSucceeded {
		t.Errorf("notification %+v", n)
	}
	wait.Holds(t, 100*time.Millisecond, "delivered once", func() bool { return len(st.hooks.of("n1")) == 1 })
}

// TestStopDoesNotWait: a held caller does not delay the stop.
func TestStopDoesNotWait(t *testing.T) {
	st := newStand(t, func(c *Config) { c.HoldTimeout = time.Hour })
	st.faults(Rule{Op: "transfer", Kind: "timeout_before", Rate: 1})
	held := make(chan result, 1)
	go func() {
		held <- st.do("POST", "/v1/transfers", sendJSON(params{OrderNo: "h1", Account: "u", Amount: 1, Currency: "CNY"}))
	}()
	wait.Holds(t, 100*time.Millisecond, "held", func() bool { return len(held) == 0 })
	started := time.Now()
	st.stop()
	if took := time.Since(started); took > wait.Bound(2*time.Second) {
		t.Errorf("stopping took %v", took)
	}
	if r := <-held; r.err == nil {
		t.Errorf("held call was answered: %s", r)
	}
}
