package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/money"
)

// The files of a packet that was closed by its sender, as the API returned it.
const (
	goodPacket = "testdata/verify/packet.json"
	goodClaims = "testdata/verify/claims.json"
)

type object = map[string]any

func readObject(t *testing.T, name string) object {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var o object
	if err := dec.Decode(&o); err != nil {
		t.Fatal(err)
	}
	return o
}

func writeJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "input.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// verify runs the command and reads its verdict.
func verify(t *testing.T, args ...string) (code int, v verdict, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), append([]string{"verify", "--json"}, args...), nil, &out, &errs)
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
	}
	return code, v, errs.String()
}

// faults are the names of the checks that failed.
func (v verdict) faults() (names []string) {
	for _, c := range v.Checks {
		if !c.OK {
			names = append(names, c.Name)
		}
	}
	return names
}

func items(o object) []any        { return o["items"].([]any) }
func item(o object, i int) object { return items(o)[i].(object) }

func TestVerify(t *testing.T) {
	t.Run("OK", func(t *testing.T) {
		commitment := readObject(t, goodPacket)["fairness"].(object)["commitment"].(string)
		code, v, stderr := verify(t, goodPacket, "--claims", goodClaims, "--commitment", strings.ToUpper(commitment))
		if code != exitOK || !v.Valid || stderr != "" || v.Algorithm != "hongbao-split-v1" || len(v.Shares) != 6 || len(v.Claims) != 4 {
			t.Fatalf("exit code %d, %+v, %s", code, v, stderr)
		}
		var names []string
		for _, c := range v.Checks {
			names = append(names, c.Name)
		}
		if want := []string{"commitment", "noted", "sum", "counts", "amounts", "refunded", "reach", "claims", "complete", "cancelled",
			"best_luck"}; !slices.Equal(names, want) {
			t.Errorf("checks %q, want %q", names, want)
		}
	})
	t.Run("WithoutClaims", func(t *testing.T) {
		if code, v, _ := verify(t, goodPacket); code != exitOK || !v.Valid || v.Claims != nil {
			t.Errorf("exit code %d, %+v", code, v)
		}
	})
	t.Run("StandardInput", func(t *testing.T) {
		text, err := os.ReadFile(goodPacket)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := (verifyFlags{rows: 2}).verify(bytes.NewReader(text), &out, "-"); err != nil {
			t.Error(err)
		}
		contains(t, out.String(), "4 more shares without a fault: add --rows 6", "is valid")
	})
	t.Run("FormsOfClaims", func(t *testing.T) {
		page := readObject(t, goodClaims)
		list := items(page)
		pages := filepath.Join(t.TempDir(), "pages.json")
		for i, text := range []any{object{"items": list[:1], "next_cursor": "x"}, object{"items": list[1:], "next_cursor": nil}} {
			b, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(pages, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(append(b, "\n"[i:]...)); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{writeJSON(t, list), pages} {
			if code, v, stderr := verify(t, goodPacket, "--claims", file); code != exitOK || len(v.Claims) != 4 {
				t.Errorf("exit code %d, %+v, %s", code, v, stderr)
			}
		}
	})
}

// TestVerifyNotFully: what the documents are not enough for is said, and is no success.
func TestVerifyNotFully(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, says string }{
		"one claim":   {writeJSON(t, items(readObject(t, goodClaims))[1:2]), "3 of the packet's 4 claims are not in the file"},
		"no claim":    {writeJSON(t, []any{}), "4 of the packet's 4 claims are not in the file"},
		"empty page":  {writeJSON(t, object{"items": []any{}, "next_cursor": nil}), "4 of the packet's 4 claims"},
		"nothing":     {empty, "4 of the packet's 4 claims"},
		"null device": {os.DevNull, "4 of the packet's 4 claims"},
	} {
		t.Run(name, func(t *testing.T) {
			code, v, stderr := verify(t, goodPacket, "--claims", c.file)
			last := v.Checks[len(v.Checks)-1]
			if code != exitFailed || v.Valid || stderr != "" || last.Checked || last.OK || !strings.Contains(last.Says, c.says) {
				t.Errorf("exit code %d, %+v; %s", code, v, stderr)
			}
			var out bytes.Buffer
			if code := execute(t.Context(), []string{"verify", goodPacket, "--claims", c.file}, nil, &out, io.Discard); code != exitFailed {
				t.Errorf("exit code %d of the table", code)
			}
			contains(t, out.String(), "UNCHECKED", c.says, "is NOT FULLY CHECKED")
		})
	}
}

// TestVerifyTampered: one line a forgery, and the checks that must find it.
func TestVerifyTampered(t *testing.T) {
	for _, c := range []struct {
		name   string
		forge  func(packet, claims object)
		faults []string
	}{
		{"another seed", func(p, _ object) { p["fairness"].(object)["seed"] = strings.Repeat("ab", 32) }, []string{"commitment", "claims"}},
		{"another commitment", func(p, _ object) { p["fairness"].(object)["commitment"] = strings.Repeat("ab", 32) }, []string{"commitment"}},
		{"another packet id", func(p, _ object) { p["id"] = "0123456789abcdefghij" }, []string{"claims"}},
		{"another total", func(p, _ object) { p["total_amount"] = 9999 }, []string{"amounts", "claims"}},
		{"another split", func(p, _ object) { p["split"] = "normal" }, []string{"reach", "claims"}},
		{"another number of shares", func(p, _ object) { p["share_count"] = 7 }, []string{"counts", "claims"}},
		{"another minimum", func(p, _ object) { p["min_share"] = 50 }, []string{"claims"}},
		{"a cap", func(p, _ object) { p["max_share"] = 4000 }, []string{"claims"}},
		{"a winner got more", func(_, c object) { item(c, 0)["amount"] = 111 }, []string{"claims", "complete"}},
		{"two winners exchanged", func(_, c object) {
			item(c, 2)["amount"], item(c, 3)["amount"] = item(c, 3)["amount"], item(c, 2)["amount"]
		}, []string{"claims", "best_luck"}},
		{"a share claimed twice", func(_, c object) { item(c, 0)["share_index"] = item(c, 1)["share_index"] }, []string{"claims"}},
		{"no such share", func(_, c object) { item(c, 0)["share_index"] = 6 }, []string{"claims"}},
		{"no index", func(_, c object) { delete(item(c, 0), "share_index") }, []string{"claims"}},
		{"a user with two claims", func(_, c object) { item(c, 0)["user_id"] = item(c, 1)["user_id"] }, []string{"claims"}},
		{"a claim of another packet", func(_, c object) { item(c, 0)["packet_id"] = "0123456789abcdefghij" }, []string{"claims"}},
		{"a claim too many", func(_, c object) { c["items"] = append(items(c), items(c)[0]) }, []string{"claims", "complete"}},
		{"another number of claims", func(p, _ object) { p["claimed_count"] = 3 }, []string{"counts", "complete"}},
		{"another sum of claims", func(p, _ object) { p["claimed_amount"] = 4862 }, []string{"amounts", "complete"}},
		{"one fen less in all", func(p, _ object) { p["total_amount"] = 8887 }, []string{"amounts", "claims"}},
		{"another number of remaining shares", func(p, _ object) { p["remaining_count"] = 1 }, []string{"counts"}},
		{"another sum of remaining shares", func(p, _ object) { p["remaining_amount"] = 4024 }, []string{"amounts", "cancelled"}},
		{"less went back", func(p, _ object) { p["refunded_amount"] = 4024 }, []string{"refunded"}},
		{"more went back", func(p, _ object) { p["refunded_amount"] = 4026 }, []string{"cancelled"}},
		{"more went back than there was", func(p, _ object) { p["refunded_amount"] = 8889 }, []string{"refunded", "cancelled"}},
		{"a negative count", func(p, _ object) { p["claimed_count"], p["remaining_count"] = -1, 7 }, []string{"counts", "reach", "complete"}},
		{"a user without a name", func(_, c object) { item(c, 0)["user_id"] = "" }, []string{"claims"}},
		{"another currency", func(_, c object) { item(c, 0)["currency"] = "USD" }, []string{"claims"}},
		{"nobody has best luck", func(_, c object) {
			for i := range items(c) {
				item(c, i)["best_luck"] = false
			}
		}, []string{"best_luck"}},
		{"everybody has best luck", func(_, c object) {
			for i := range items(c) {
				item(c, i)["best_luck"] = true
			}
		}, []string{"best_luck"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, claims := readObject(t, goodPacket), readObject(t, goodClaims)
			c.forge(p, claims)
			packetFile, claimsFile := writeJSON(t, p), writeJSON(t, claims)
			code, v, stderr := verify(t, packetFile, "--claims", claimsFile)
			if code != exitFailed || v.Valid || stderr != "" || !slices.Equal(v.faults(), c.faults) {
				t.Errorf("exit code %d, faults %q, want %q; %s", code, v.faults(), c.faults, stderr)
			}
			var out bytes.Buffer
			if code := execute(t.Context(), []string{"verify", packetFile, "--claims", claimsFile, "--rows", "0"}, nil, &out,
				io.Discard); code != exitFailed {
				t.Errorf("exit code %d of the table", code)
			}
			contains(t, out.String(), "FAULT", "is NOT VALID")
		})
	}
	t.Run("without claims", func(t *testing.T) {
		for name, c := range map[string]struct {
			forge  func(object)
			faults []string
		}{
			"total":         {func(p object) { p["total_amount"] = 8889 }, []string{"amounts"}},
			"claimed":       {func(p object) { p["claimed_amount"] = 4864 }, []string{"amounts"}},
			"nothing taken": {func(p object) { p["claimed_amount"], p["remaining_amount"] = 0, 8888 }, []string{"refunded", "reach"}},
		} {
			p := readObject(t, goodPacket)
			c.forge(p)
			if code, v, _ := verify(t, writeJSON(t, p)); code != exitFailed || !slices.Equal(v.faults(), c.faults) {
				t.Errorf("%s: exit code %d, faults %q, want %q", name, code, v.faults(), c.faults)
			}
		}
	})
	t.Run("files", func(t *testing.T) {
		if code, v, _ := verify(t, "testdata/verify/packet_tampered.json"); code != exitFailed ||
			!slices.Equal(v.faults(), []string{"commitment"}) {
			t.Errorf("exit code %d, %+v", code, v)
		}
		if code, v, _ := verify(t, goodPacket, "--claims", "testdata/verify/claims_tampered.json"); code != exitFailed ||
			!slices.Equal(v.faults(), []string{"claims", "complete"}) {
			t.Errorf("exit code %d, %+v", code, v)
		}
		code, v, _ := verify(t, goodPacket, "--commitment", strings.Repeat("ab", 32))
		if code != exitFailed || !slices.Equal(v.faults(), []string{"noted"}) {
			t.Errorf("exit code %d, %+v", code, v)
		}
	})
}

func TestVerifyUnusable(t *testing.T) {
	for name, forge := range map[string]func(object){
		"not published yet":           func(p object) { p["fairness"].(object)["seed"] = nil },
		"unknown algorithm":           func(p object) { p["fairness"].(object)["algorithm"] = "hongbao-split-v2" },
		"members are missing":         func(p object) { delete(p, "total_amount") },
		"62 characters instead of 64": func(p object) { p["fairness"].(object)["seed"] = strings.Repeat("ab", 31) },
		"not hex":                     func(p object) { p["fairness"].(object)["seed"] = strings.Repeat("xy", 32) },
		"cannot be split":             func(p object) { p["total_amount"] = 5 },
		"is not a packet":             func(p object) { p["share_count"] = "six" },
		"claimed_":                    func(p object) { delete(p, "claimed_count") },
		"remaining_":                  func(p object) { delete(p, "remaining_amount") },
		"refunded_":                   func(p object) { delete(p, "refunded_amount") },
		"is not published yet":        func(p object) { p["status"] = "open" },
		"another case":                func(p object) { delete(p, "max_share"); p["MAX_SHARE"] = 4000 },
		"duplicate":                   func(p object) { p["Total_Amount"] = 8887 },
	} {
		t.Run(name, func(t *testing.T) {
			p := readObject(t, goodPacket)
			forge(p)
			code, _, stderr := verify(t, writeJSON(t, p), "--claims", goodClaims)
			if code != exitUsage || !strings.Contains(stderr, name) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
	good, err := os.ReadFile(goodPacket)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := os.ReadFile(goodClaims)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) string {
		name := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	with := func(text []byte, old, member string) string {
		return write(bytes.Replace(text, []byte(old), []byte(member+", "+old), 1))
	}
	for _, args := range [][]string{
		{with(good, `"total_amount"`, `"total_amount": 8888`)},
		{with(good, `"seed"`, `"seed": "x"`)},
		{with(good, `"seed"`, `"SEED": "x"`)},
		{with(good, `"a"`, `"a": "b"`)},
		{write(append(good, "{}"...))},
		{goodPacket, "--claims", with(claims, `"items"`, `"items": []`)},
		{goodPacket, "--claims", with(claims, `"items"`, `"Items": []`)},
		{goodPacket, "--claims", with(claims, `"amount"`, `"amount": 110`)},
		{goodPacket, "--claims", with(claims, `"amount"`, `"Amount": 110`)},
		{goodPacket, "--claims", ""}, {goodPacket, "--commitment", ""},
	} {
		if code, v, stderr := verify(t, args...); code != exitUsage || v.Valid || stderr == "" {
			t.Errorf("%q: exit code %d, %+v, %s", args, code, v, stderr)
		}
	}
	notJSON := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(notJSON, []byte("<html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {goodPacket, goodClaims}, {"testdata/verify/none.json"}, {notJSON}, {writeJSON(t, []int{})}, {goodPacket, "--claims", notJSON},
		{goodPacket, "--claims", "none"}, {goodPacket, "--claims", goodPacket}, {goodPacket, "--claims", writeJSON(t, []string{"x"})},
		{goodPacket, "--nonsense"},
	} {
		if code, _, stderr := verify(t, args...); code != exitUsage || stderr == "" {
			t.Errorf("%q: exit code %d, %s", args, code, stderr)
		}
	}
}

// TestVerifyVectors: every published test vector is valid, with the shares it promises.
func TestVerifyVectors(t *testing.T) {
	text, err := os.ReadFile("../../internal/packet/testdata/split_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Packets []struct {
			Name   string
			Packet object
			Shares []money.Fen
		}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Packets) < 40 {
		t.Fatalf("%d vectors only", len(vectors.Packets))
	}
	for _, vector := range vectors.Packets {
		if vector.Shares == nil {
			continue // long ones are listed by their digest
		}
		maps.Copy(vector.Packet, object{"status": "closed", "claimed_count": 0, "claimed_amount": 0, // nobody claimed
			"remaining_count": vector.Packet["share_count"], "remaining_amount": vector.Packet["total_amount"],
			"refunded_amount": vector.Packet["total_amount"]})
		code, v, stderr := verify(t, writeJSON(t, vector.Packet))
		if code != exitOK || !slices.Equal(v.Shares, vector.Shares) {
			t.Errorf("%s: exit code %d, %v, want %v; %s", vector.Name, code, v.Shares, vector.Shares, stderr)
		}
	}
}

// TestVerifyInDoc runs the example of docs/fairness.md on the files it names.
func TestVerifyInDoc(t *testing.T) {
	doc, err := os.ReadFile("../../docs/fairness.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```\n\\$ (hongbao verify [^\n]*)\n(.*?)```\n").FindSubmatch(doc)
	if example == nil {
		t.Fatal("docs/fairness.md has no example of hongbao verify")
	}
	t.Chdir("testdata/verify")
	var out, errs bytes.Buffer
	if code := execute(t.Context(), strings.Fields(string(example[1]))[1:], nil, &out, &errs); code != exitOK || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	if out.String() != string(example[2]) {
		t.Errorf("%s prints\n%s, the document says\n%s", example[1], &out, example[2])
	}
}
