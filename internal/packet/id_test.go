package packet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestR1_PacketIDGolden: derived ids never change.
func TestR1_PacketIDGolden(t *testing.T) {
	for _, tc := range []struct {
		salt, key, want string
	}{
		{"salt", "key", "imi7p6qfrdscklds5ri4"},
		{"", "", "mo9mf6g82jcuotpfinbn"},
		{"\x00\xff", strings.Repeat("~", 128), "8fjqavonjattkv3joum3"},
	} {
		if got := NewID([]byte(tc.salt), tc.key); got != tc.want {
			t.Errorf("%q %q: %s, want %s", tc.salt, tc.key, got, tc.want)
		}
	}
}

// TestR1_PacketID compares with the standard library's base32hex of the whole HMAC.
func TestR1_PacketID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		salt := rapid.SliceOf(rapid.Byte()).Draw(t, "salt")
		key := rapid.String().Draw(t, "key")
		id := NewID(salt, key)
		mac := hmac.New(sha256.New, salt)
		mac.Write([]byte(key))
		want := strings.ToLower(base32.HexEncoding.EncodeToString(mac.Sum(nil)))[:IDLen]
		if id != want || !ValidID(id) || id != NewID(salt, key) {
			t.Fatalf("%s, want %s", id, want)
		}
		if other := NewID(append(salt, 1), key); other == id {
			t.Fatal("another app, the same id")
		}
		if other := NewID(salt, key+" "); other == id {
			t.Fatal("another key, the same id")
		}
	})
}

func TestValidID(t *testing.T) {
	good := NewID([]byte("salt"), "key")
	for _, bad := range []string{"", good[:19], good + "0", strings.ToUpper(good), good[:19] + "w", good[:19] + "\x00", " " + good[:19],
		good[:18] + "é"} {
		if ValidID(bad) {
			t.Errorf("%q is valid", bad)
		}
	}
	if !ValidID(good) || !ValidID(strings.Repeat("0", IDLen)) || !ValidID(strings.Repeat("v", IDLen)) {
		t.Error("a good id is not valid")
	}
}

func TestR1_Lane(t *testing.T) {
	rest := strings.Repeat("0", IDLen-2)
	for id, want := range map[string]int{"00": 0, "01": 1, "0v": 31, "10": 32, "1v": 63, "20": 0, "vv": 63, "v0": 32} {
		if got := Lane(id+rest, 64); got != want {
			t.Errorf("%s: lane %d, want %d", id, got, want)
		}
	}
	// Every lane gets its part, for every number of lanes that is a power of two.
	for lanes := 1; lanes <= 1024; lanes *= 2 {
		count := make([]int, lanes)
		for _, hi := range Digits {
			for _, lo := range Digits {
				count[Lane(string(hi)+string(lo)+rest, lanes)]++
			}
		}
		for lane, n := range count {
			if n != 1024/lanes {
				t.Fatalf("%d lanes: lane %d has %d of %d prefixes", lanes, lane, n, 1024/lanes)
			}
		}
	}
}

func TestGrabResultNames(t *testing.T) {
	seen := map[string]bool{}
	for r := GrabUnavailable; r <= GrabWon; r++ {
		if name := r.String(); name == "" || name == "invalid" || seen[name] {
			t.Errorf("%d is called %q", r, name)
		} else {
			seen[name] = true
		}
	}
	if len(seen) != len(grabNames) || GrabResult(-1).String() != "invalid" || (GrabWon+1).String() != "invalid" {
		t.Errorf("%d names of %d", len(seen), len(grabNames))
	}
	// The order of precedence of outcomes.
	if !(GrabUnavailable < GrabNotFound && GrabNotFound < GrabReplayed && GrabReplayed < GrabNotOpenYet && GrabNotOpenYet < GrabNotEligible &&
		GrabNotEligible < GrabSoldOut && GrabSoldOut < GrabExpired && GrabExpired < GrabWon) {
		t.Error("the outcomes are not in their order of precedence")
	}
}
