package main

import (
	"strconv"
	"strings"
	"testing"
)

// FuzzSettings: whatever a setting is set to, its check does not panic, never
// shows a secret, and lets through only what those who use it can read.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"", "127.0.0.1:80", "[::1]:0", ":+80", "http://h", "http://u:p@h",
		"hongbao:password@tcp(127.0.0.1:3306)/hongbao?parseTime=true", "hongbao:password@/", "true", "0", "007", "+5",
		"23:59", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", strings.Repeat("0f", 32),
		"shop=hb_app_abcdefghijkl_ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZDAQQJZG", "api-redis=127.0.0.1:1", "single", "\x00",
		"\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, s := range settings {
			err := s.kind.check(value)
			if err != nil && s.secret && len(value) > 7 && strings.Contains(err.Error(), value) {
				t.Fatalf("%s: the refusal shows %q: %v", s.env, value, err)
			}
			if err != nil {
				continue
			}
			switch s.kind.name {
			case kindClock.name:
				clock(value)
			case kindKey32.name:
				key32(Secret{value})
			case kindKeys32.name:
				keys32(Secret{value})
			case kindPort.name, kindLanes.name, kindAmount.name, kindRate.name:
				if n, err := strconv.Atoi(value); err != nil || strconv.Itoa(n) != value {
					t.Fatalf("%s takes %q", s.env, value)
				}
			}
		}
		if tokens, err := parseTokens(value); err == nil {
			for _, one := range tokens {
				if token := one.token.Reveal(); !strings.Contains(value, one.key.Owner+"="+token) || !one.key.Matches([]byte(token)) {
					t.Fatalf("%q holds %+v", value, one.key)
				}
			}
		}
	})
}
