package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hongbao/wire"
)

// TestTicketKeysCommand lives keys of tickets through as an administrator does: from a file and from
// standard input; what is not a public key never leaves the machine.
func TestTicketKeysCommand(t *testing.T) {
	o := newKeysRig(t)
	o.mustRun("apps", "create", "mall")
	admin := strings.TrimSpace(o.mustRun("keys", "direct", "create", "--role", "admin", "--owner", "li-na"))
	staff := o.serve()
	run := func(want int, stdin string, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		root := newRoot([]string{"HONGBAO_STAFF_URL=" + staff, "HONGBAO_ADMIN_KEY=" + admin})
		root.SetArgs(append([]string{"ticket-keys"}, args...))
		root.SetIn(strings.NewReader(stdin))
		root.SetOut(&out)
		root.SetErr(&errs)
		err := root.ExecuteContext(t.Context())
		if err != nil {
			errs.WriteString(err.Error())
		}
		if code := exitOf(err); code != want || strings.Contains(out.String()+errs.String(), admin) {
			t.Fatalf("%q: exit code %d, want %d: %s%s", args, code, want, &out, &errs)
		}
		return out.String(), errs.String()
	}
	public, private := ticketPair(t)
	out, notes := run(exitOK, public, "add", "--app", "mall", "--name", "campaigns", "--reason", "r")
	kid := strings.TrimSpace(out)
	if len(kid) != 12 || !strings.Contains(notes, "mall") {
		t.Fatalf("%q, %q", out, notes)
	}
	second, _ := ticketPair(t)
	file := filepath.Join(t.TempDir(), "ticket.pub")
	if err := os.WriteFile(file, []byte(second), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ = run(exitOK, "", "add", "--app=mall", "--file", file, "--reason", "r", "--json")
	var made wire.TicketKey
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Status != "active" || made.Name != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, _ = run(exitOK, "", "revoke", kid, "--reason", "leaked"); !strings.Contains(out, "Key "+kid+" of mall is revoked since") {
		t.Errorf("%q", out)
	}
	if out, _ = run(exitOK, "", "list"); strings.Count(out, "mall") != 2 || !strings.Contains(out, "campaigns") ||
		!strings.Contains(out, "revoked") || !strings.Contains(out, made.ID) {
		t.Errorf("%s", out)
	}
	if out, _ = run(exitOK, "", "list", "--app", "other", "--json"); out != "" {
		t.Errorf("%s", out)
	}
	third, _ := ticketPair(t)
	for what, c := range map[string]struct {
		code        int
		stdin, args string
		says        string
	}{
		"the private half":   {exitUsage, private, "add --app mall --reason r", "not one Ed25519 public key"},
		"nothing":            {exitUsage, "", "add --app mall --reason r", "openssl pkey"},
		"a file that is not": {exitFailed, "", "add --app mall --reason r --file /nowhere/x", "/nowhere/x"},
		"one that was added": {exitUsage, public, "add --app mall --reason r", "public_key"},
		"no such app":        {exitUsage, third, "add --app nobody --reason r", "app_id"},
		"no app":             {exitUsage, third, "add --reason r", "--app is required"},
		"no reason":          {exitUsage, third, "add --app mall", "--reason is required"},
		"no such key":        {exitFailed, "", "revoke aaaabbbbcccc --reason r", "not_found"},
		"none to revoke":     {exitUsage, "", "revoke --reason r", "takes one argument"},
	} {
		if out, errs := run(c.code, c.stdin, strings.Fields(c.args)...); !strings.Contains(errs, c.says) ||
			strings.Contains(out+errs, "PRIVATE") {
			t.Errorf("%s: %s%s", what, out, errs)
		}
	}
}

// ticketPair makes a key of tickets in PEM.
func ticketPair(t *testing.T) (public, private string) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}
