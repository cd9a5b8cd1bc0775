package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"hongbao/test/harness"
	"hongbao/wire"
)

// serve runs the API on the office's database and returns its staff listener.
func (o keysRig) serve() (staff string) {
	o.t.Helper()
	return harness.Open(o.t, harness.Options{DSN: o.dsn.Reveal(), Migrated: true}).Staff
}

// TestKeysHTTP lives keys through as an administrator does: the first one
// directly, all others through the API.
func TestKeysHTTP(t *testing.T) {
	o := newKeysRig(t)
	o.mustRun("apps", "create", "mall")
	admin := strings.TrimSpace(o.mustRun("keys", "direct", "create", "--role", "admin", "--owner", "li-na"))
	second := strings.TrimSpace(o.mustRun("keys", "direct", "create", "--role", "admin", "--owner", "zhou"))
	env := []string{"HONGBAO_STAFF_URL=" + o.serve(), "HONGBAO_ADMIN_KEY=" + admin}
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, out, errs := o.run(env, append([]string{"keys"}, args...)...)
		if code != want || strings.Contains(out+errs, admin) {
			t.Fatalf("%q: exit code %d, want %d: %s%s", args, code, want, out, errs)
		}
		return out, errs
	}
	out, notes := run(exitOK, "create", "--role", "app", "--app", "mall", "--name", "checkout", "--reason", "r", "--idempotency-key", "k1")
	token := strings.TrimSpace(out)
	id := idOfKey(token)
	if id == token || !strings.Contains(notes, id) || strings.Contains(notes, token) {
		t.Fatalf("%q, %q", out, notes)
	}
	if out, errs := run(exitFailed, "create", "--role", "app", "--app", "mall", "--name", "checkout", "--reason", "r", "--idempotency-key",
		"k1"); out != "" ||
		!strings.Contains(errs, "hongbao keys rotate "+id+" --grace 0s --reason <text>") {
		t.Errorf("a repeat: %q, %q", out, errs)
	}
	out, _ = run(exitOK, "rotate", token, "--grace", "90s", "--reason", "leaked", "--json")
	var made wire.RotatedKey
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Token == nil || made.Replaced.ID != id || *made.Key.Name != "checkout" {
		t.Fatalf("%v: %s", err, out)
	}
	if out, notes = run(exitOK, "rotate", made.Key.ID, "--grace", "0s", "--reason", "r"); idOfKey(strings.TrimSpace(out)) == strings.TrimSpace(
		out) ||
		!strings.Contains(notes, "The old key "+made.Key.ID) {
		t.Errorf("%q, %q", out, notes)
	}
	last := idOfKey(strings.TrimSpace(out))
	if out, _ = run(exitOK, "revoke", last, "--reason", "closed"); !strings.Contains(out, last+" of role app for mall is revoked") {
		t.Errorf("%q", out)
	}
	out, _ = run(exitOK, "list", "--role", "app", "--json")
	seen := map[string]wire.KeyStatus{}
	for line := range strings.Lines(out) {
		var k wire.APIKey
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			t.Fatal(err)
		}
		seen[k.ID] = k.Status
	}
	if len(seen) != 3 || seen[id] != "active" || seen[made.Key.ID] != "expired" || seen[last] != "revoked" {
		t.Errorf("%v", seen)
	}
	if out, _ = run(exitOK, "list"); strings.Contains(out, *made.Token) || !strings.Contains(out, "li-na") ||
		!strings.Contains(out, "checkout") {
		t.Errorf("%s", out)
	}
	out, notes = run(exitOK, "create", "--role", "finance", "--owner", "wang-wei", "--reason", "r")
	finance := strings.TrimSpace(out)
	if !strings.Contains(notes, "hongbao keys approve "+idOfKey(finance)+" --reason <text>") {
		t.Errorf("%q", notes)
	}
	run(exitFailed, "list", "--admin-key", finance)
	out, _ = run(exitOK, "approve", finance, "--reason", "r", "--admin-key", second)
	if !strings.Contains(out, idOfKey(finance)+" of role finance for wang-wei, made by li-na, is active") {
		t.Errorf("%q", out)
	}
	run(exitOK, "list", "--admin-key", finance)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"approve " + idOfKey(finance) + " --reason r", exitRefused, "forbidden"},
		{"approve " + idOfKey(finance), exitUsage, "--reason is required"},
		{"approve " + last + " --reason r --admin-key " + second, exitRefused, "key_ended"},
		{"revoke " + idOfKey(admin) + " --reason r", exitRefused, "own_key"},
		{"rotate " + last + " --reason r", exitRefused, "key_ended"},
		{"revoke aaaabbbbcccc --reason r --json", exitFailed, "not_found"},
		{"create --role app --app nobody --reason r", exitUsage, "app_id"},
		{"create --role ops --owner x", exitUsage, "--reason is required"},
		{"create --reason r", exitUsage, "--role is required"},
		{"rotate aaaabbbbcccc --reason r --grace 1ms", exitUsage, "whole seconds"},
		{"rotate --reason r", exitUsage, "takes one argument"},
		{"list --timeout -1s", exitUsage, "write 0s or more"},
		{"list --admin-key " + token, exitRefused, "forbidden"},
	} {
		if _, errs := run(c.code, strings.Fields(c.args)...); !strings.Contains(errs, c.says) {
			t.Errorf("%s: %s", c.args, errs)
		}
	}
	if out, _ := run(exitFailed, "revoke", "aaaabbbbcccc", "--reason", "r", "--json"); !json.Valid(bytes.TrimSpace([]byte(out))) {
		t.Errorf("%s", out)
	}
	var errs bytes.Buffer
	unreached := []string{"HONGBAO_STAFF_URL=http://127.0.0.1:1", "HONGBAO_ADMIN_KEY=k"}
	if code := execute(t.Context(), []string{"keys", "create", "--role", "ops", "--owner", "x", "--reason", "r", "--timeout", "100ms"},
		unreached, new(bytes.Buffer), &errs); code != exitFailed ||
		!strings.Contains(errs.String(), "--idempotency-key") {
		t.Errorf("nobody there: exit code %d, %s", code, &errs)
	}
}
