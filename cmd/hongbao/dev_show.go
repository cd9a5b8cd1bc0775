package main

import (
	"context"
	"errors"
	"io"
	"strconv"

	"hongbao/internal/devstack"
)

// showStatus prints a line for each child.
func showStatus(ctx context.Context, home devstack.Home, out io.Writer) error {
	status, err := devstack.ReadStatus(ctx, home)
	if errors.Is(err, devstack.ErrNotRunning) {
		return errors.Join(printf(out, "no stack is running in %s; `make run` starts one\n", home.Dir()), errReported)
	}
	if err != nil {
		return err
	}
	t := newGrid(out, "part", "pid", "address", "health", "restarts")
	for _, c := range status.Children {
		pid, health := "-", "healthy"
		if c.PID != 0 {
			pid = strconv.Itoa(c.PID)
		}
		if c.Problem != nil {
			health = c.Problem.Error()
		}
		t.row(c.Name, pid, c.Addr, health, c.Restarts)
	}
	t.render()
	if err := printf(out, "supervisor: process %d, state and logs in %s\n", status.Supervisor, home.Dir()); err != nil {
		return err
	}
	if !status.Healthy() {
		return errReported
	}
	return nil
}

// welcome prints the addresses of the stack and commands to try.
func welcome(out io.Writer, env devstack.Env, home devstack.Home) {
	t := newGrid(out)
	for _, row := range [][]any{
		{"API", env.URL, "documentation at /docs"},
		{"Staff API", env.StaffURL, "console at /, decisions, /metrics"},
		{"Temporal UI", env.TemporalUIURL + "/namespaces/" + env.TemporalNamespace + "/workflows", "every packet, payout and refund"},
		{"Sandbox provider", env.ProviderURL, "every movement of money at /_movements"},
		{"Redis", env.RedisAddr, ""},
		{"MariaDB", "127.0.0.1, see HONGBAO_MYSQL_DSN", ""},
		{"Keys and addresses", home.EnvFile(), ""},
	} {
		t.row(row...)
	}
	_ = printf(out, "\n")
	t.render()
	_ = printf(out, nextCommands, devstack.ShellQuote(home.EnvFile()))
}

// nextCommands can be copied into another terminal.
const nextCommands = `
Try in another terminal:

  . %s
  curl -s "$HONGBAO_URL/v1/packets" -H "Authorization: Bearer $HONGBAO_APP_KEY" -H 'Content-Type: application/json' \
    -H "Idempotency-Key: try-$(date +%%s)" -d '{"sender_id":"alice","total_amount":888,"share_count":3}'
  packet=<the id of the answer>
  curl -s "$HONGBAO_URL/v1/packets/$packet/grabs" -H "Authorization: Bearer $HONGBAO_APP_KEY" -H 'Content-Type: application/json' \
    -d '{"user_id":"bob"}'
  curl -s "$HONGBAO_STAFF_URL/v1/staff/payouts?packet_id=$packet" -H "Authorization: Bearer $HONGBAO_FINANCE_KEY"
  make status

Ctrl-C stops the stack; its state stays for the next start.
`
