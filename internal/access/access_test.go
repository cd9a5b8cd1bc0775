package access

import (
	"bytes"
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var roles = []Role{RoleApp, RoleFinance, RoleOps, RoleAuditor}

func TestTokenRoundTrip(t *testing.T) {
	form := regexp.MustCompile(`^hb_(app|finance|ops|auditor)_[a-z2-7]{12}_[A-Z2-7]{59}$`)
	seen := map[string]bool{}
	for _, role := range roles {
		for range 200 {
			tok, id := NewToken(role)
			if !form.MatchString(tok) || !strings.HasPrefix(tok, "hb_"+string(role)+"_"+id+"_") {
				t.Fatalf("token of %s: %s", role, tok)
			}
			if got, ok := ParseToken(tok); !ok || got != id {
				t.Fatalf("%s reads as %q, %t", tok, got, ok)
			}
			if seen[id] || seen[tok] {
				t.Fatal("made twice")
			}
			seen[id], seen[tok] = true, true
		}
	}
}

// TestTokenGolden: issued tokens stay valid.
func TestTokenGolden(t *testing.T) {
	const tok = "hb_app_abcdefghijkl_ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZDAQQJZG"
	if id, ok := ParseToken(tok); !ok || id != "abcdefghijkl" {
		t.Errorf("%q %t; its checksum would be %s", id, ok, checksum(tok[:len(tok)-checksumLen]))
	}
	if h := hex.EncodeToString(HashToken("x")); h != "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" {
		t.Errorf("hash %s", h)
	}
}

// TestChecksumRefusesTypos: one character wrong, two neighbours swapped, one missing or doubled,
// another case: refused without a lookup.
func TestChecksumRefusesTypos(t *testing.T) {
	tok, _ := NewToken(RoleFinance)
	bad := []string{"", " " + tok, tok + " ", tok + "\n", strings.ToLower(tok), strings.ToUpper(tok), tok[1:], tok[:len(tok)-1], tok + tok}
	for i := range len(tok) {
		for _, c := range []byte("A2z_0 ") {
			if tok[i] != c {
				bad = append(bad, tok[:i]+string(c)+tok[i+1:])
			}
		}
		bad = append(bad, tok[:i]+tok[i+1:], tok[:i]+tok[i:i+1]+tok[i:])
		if i > 0 && tok[i] != tok[i-1] {
			bad = append(bad, tok[:i-1]+tok[i:i+1]+tok[i-1:i]+tok[i+1:])
		}
	}
	for _, b := range bad {
		if id, ok := ParseToken(b); ok {
			t.Errorf("%q passes as %s", b, id)
		}
	}
}

func TestChecksumIsCRC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := uint32(0)
		for _, c := range checksum(s) {
			n = n<<5 | uint32(strings.IndexRune(alphabet, c))
		}
		if n != crc32.ChecksumIEEE([]byte(s)) {
			t.Fatalf("%q: %08x", s, n)
		}
	})
}

func TestMatches(t *testing.T) {
	tok, id := NewToken(RoleApp)
	k := Key{ID: id, SecretHash: HashToken(tok)}
	if !k.Matches([]byte(tok)) {
		t.Error("its own token does not match")
	}
	other, _ := NewToken(RoleApp)
	for _, wrong := range []string{"", other, tok + " ", tok[:len(tok)-1], string(k.SecretHash), hex.EncodeToString(k.SecretHash)} {
		if k.Matches([]byte(wrong)) {
			t.Errorf("%q matches", wrong)
		}
	}
	if (Key{}).Matches(nil) || (Key{}).Matches([]byte(tok)) || (Key{SecretHash: k.SecretHash[:31]}).Matches([]byte(tok)) {
		t.Error("a key without its whole hash matches")
	}
	if bytes.Contains(k.SecretHash, []byte(tok)) || len(k.SecretHash) != 32 {
		t.Error("the secret is stored")
	}
}

// TestComparesInConstantTime reads the source: hashes are compared only by crypto/subtle.
func TestComparesInConstantTime(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "access.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "Matches" {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				calls = append(calls, sel.Sel.Name)
			}
			return true
		})
	}
	if !slices.Contains(calls, "ConstantTimeCompare") || slices.Contains(calls, "Equal") {
		t.Errorf("Matches uses %v", calls)
	}
}

func TestStaff(t *testing.T) {
	for role, want := range map[Role]bool{RoleApp: false, RoleFinance: true, RoleOps: true, RoleAuditor: true, "": false, "Finance": false} {
		if role.Staff() != want {
			t.Errorf("%q: %t", role, !want)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	tok, _ := NewToken(RoleApp)
	f.Add(tok)
	f.Add("hb_app__")
	f.Add("___")
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := ParseToken(s)
		if !ok {
			if id != "" {
				t.Errorf("refused, and yet %q", id)
			}
			return
		}
		if len(id) != idLen || !strings.HasPrefix(s, prefix+"_") || checksum(s[:len(s)-checksumLen]) != s[len(s)-checksumLen:] {
			t.Errorf("%q passes as %q", s, id)
		}
	})
}
