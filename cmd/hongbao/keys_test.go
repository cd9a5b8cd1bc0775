package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/store"
)

// office is a migrated database and the commands on it.
type keysRig struct {
	t   *testing.T
	dsn Secret
}

func newKeysRig(t *testing.T) keysRig {
	t.Helper()
	dsn := stacktest.MariaDB(t)
	stacktest.Migrate(t, dsn)
	return keysRig{t, Secret{dsn}}
}

// run runs a command line and returns what it said.
func (o keysRig) run(env []string, args ...string) (code int, stdout, stderr string) {
	o.t.Helper()
	var out, err bytes.Buffer
	code = execute(o.t.Context(), args, append(env, "HONGBAO_MYSQL_DSN="+o.dsn.Reveal()), &out, &err)
	if strings.Contains(out.String()+err.String(), "only-for-tests") {
		o.t.Errorf("%q shows the password of MySQL:\n%s%s", args, &out, &err)
	}
	return code, out.String(), err.String()
}

func (o keysRig) mustRun(args ...string) (stdout string) {
	o.t.Helper()
	code, out, stderr := o.run(nil, args...)
	if code != exitOK {
		o.t.Fatalf("%q: exit code %d: %s", args, code, stderr)
	}
	return out
}

func (o keysRig) storedAccess() (apps []access.App, keys []access.Key) {
	o.t.Helper()
	err := withStore(o.t.Context(), o.dsn, func(db *store.Store) (err error) {
		apps, keys, err = db.AppsAndKeys(o.t.Context())
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return apps, keys
}

func TestKeys(t *testing.T) {
	o := newKeysRig(t)
	o.mustRun("apps", "create", "mall", "--name", "Mall 商城")
	apps, _ := o.storedAccess()
	if len(apps) != 1 || apps[0].ID != "mall" || apps[0].Name != "Mall 商城" || len(apps[0].Salt) != 32 {
		t.Fatalf("apps %+v", apps)
	}
	if code, _, stderr := o.run(nil, "apps", "create", "mall"); code != exitFailed || !strings.Contains(stderr, "exists already") {
		t.Errorf("a second time: exit code %d, %q", code, stderr)
	}
	if after, _ := o.storedAccess(); !bytes.Equal(after[0].Salt, apps[0].Salt) {
		t.Error("the salt has changed (R1)")
	}

	appToken := strings.TrimSpace(o.mustRun("keys", "direct", "create", "--role", "app", "--app", "mall"))
	staffToken := strings.TrimSpace(o.mustRun("keys", "direct", "create", "--role=finance", "--owner=li-na"))
	_, keys := o.storedAccess()
	for _, want := range []struct {
		token string
		key   access.Key
	}{
		{appToken, access.Key{Role: access.RoleApp, AppID: "mall", Owner: "mall"}},
		{staffToken, access.Key{Role: access.RoleFinance, Owner: "li-na"}},
	} {
		id, ok := access.ParseToken(want.token)
		i := slices.IndexFunc(keys, func(k access.Key) bool { return k.ID == id })
		if !ok || i < 0 || !keys[i].Matches([]byte(want.token)) {
			t.Fatalf("%q opens nothing of %+v", want.token, keys)
		}
		if k := keys[i]; k.Role != want.key.Role || k.AppID != want.key.AppID || k.Owner != want.key.Owner {
			t.Errorf("key %+v, want %+v", k, want.key)
		}
	}

	id, _ := access.ParseToken(appToken)
	o.mustRun("keys", "direct", "revoke", id)
	again := o.mustRun("keys", "direct", "revoke", appToken)
	staffID, _ := access.ParseToken(staffToken)
	if _, keys := o.storedAccess(); len(keys) != 1 || keys[0].ID != staffID {
		t.Errorf("in use after one was revoked: %+v", keys)
	}
	list := o.mustRun("keys", "direct", "list")
	for _, token := range []string{appToken, staffToken} {
		if secret := token[strings.LastIndexByte(token, '_')+1:]; strings.Contains(list+again, secret) {
			t.Errorf("a secret is shown:\n%s%s", list, again)
		}
	}
	if !strings.Contains(list, id) || !strings.Contains(list, "li-na") {
		t.Errorf("list:\n%s", list)
	}
	if list := o.mustRun("apps", "list"); !strings.Contains(list, "Mall 商城") {
		t.Errorf("list:\n%s", list)
	}

	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"keys direct create --role app", exitUsage, "--app is required with role app"},
		{"keys direct create --role finance", exitUsage, "--owner is required with role finance"},
		{"keys direct create --role ops --owner x --app mall", exitUsage, "--app goes with role app"},
		{"keys direct create --role app --app nobody", exitFailed, "hongbao apps create nobody"},
		{"keys direct create --role root --owner x", exitUsage, "HONGBAO_KEY_ROLE"},
		{"keys direct revoke aaaabbbbcccc", exitFailed, "aaaabbbbcccc"},
		{"keys direct revoke", exitUsage, "takes one argument"},
		{"apps create Mall", exitUsage, "a-z"},
	} {
		if code, stdout, stderr := o.run(nil, strings.Fields(c.args)...); code != c.code || !strings.Contains(stderr, c.stderr) || stdout != "" {
			t.Errorf("%s: exit code %d, want %d; stdout %q, stderr %q, want %q", c.args, code, c.code, stdout, stderr, c.stderr)
		}
	}
}

func TestKeysEnsure(t *testing.T) {
	o := newKeysRig(t)
	mall := strings.TrimSpace(o.mustRun("keys", "token", "--role", "app"))
	lina := strings.TrimSpace(o.mustRun("keys", "token", "--role", "finance"))
	if _, keys := o.storedAccess(); len(keys) != 0 {
		t.Fatalf("printing tokens stored %+v", keys)
	}
	ensure := func(pairs ...string) (int, string, string) {
		return o.run([]string{"HONGBAO_ENSURE_KEYS=" + strings.Join(pairs, "\n ")}, "keys", "ensure")
	}
	var salt []byte
	for range 2 {
		code, stdout, stderr := ensure("mall="+mall, "li-na="+lina)
		apps, keys := o.storedAccess()
		if code != exitOK || len(apps) != 1 || apps[0].ID != "mall" || len(keys) != 2 {
			t.Fatalf("exit code %d, %s; apps %+v, keys %+v", code, stderr, apps, keys)
		}
		if salt == nil {
			salt = apps[0].Salt
		}
		if !bytes.Equal(salt, apps[0].Salt) {
			t.Error("the salt has changed (R1)")
		}
		if strings.Contains(stdout+stderr, mall) || strings.Contains(stdout+stderr, lina) {
			t.Errorf("a token is shown: %s%s", stdout, stderr)
		}
	}

	if code, _, stderr := ensure("zhou="+lina, "mall="+mall); code != exitFailed || !strings.Contains(stderr, "another owner or token") {
		t.Errorf("the key of another person: exit code %d, %s", code, stderr)
	}
	id, _ := access.ParseToken(lina)
	o.mustRun("keys", "direct", "revoke", id)
	if code, stdout, _ := ensure("li-na=" + lina); code != exitOK || !strings.Contains(stdout, "was revoked and stays revoked") {
		t.Errorf("a revoked key: exit code %d, %s", code, stdout)
	}
	if _, keys := o.storedAccess(); len(keys) != 1 {
		t.Errorf("a revoked key is in use again: %+v", keys)
	}

	other := "2"
	if strings.HasSuffix(mall, other) {
		other = "3"
	}
	for name, pairs := range map[string][]string{
		"no owner":        {mall},
		"a typing error":  {"mall=" + mall[:len(mall)-1] + other},
		"no app id":       {"Mall=" + mall},
		"a key twice":     {"mall=" + mall, "mall=" + mall},
		"something after": {"mall=" + mall, "li-na"},
	} {
		code, _, stderr := ensure(pairs...)
		if code != exitUsage || !strings.Contains(stderr, "HONGBAO_ENSURE_KEYS") || strings.Contains(stderr, mall[:30]) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
	}
}
