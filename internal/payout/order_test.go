package payout

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const packetID = "0123456789abcdefghij"

func TestR1_OrderNumberGolden(t *testing.T) {
	for _, tc := range []struct {
		kind    Kind
		number  int
		attempt int
		want    string
	}{
		{KindCharge, 0, 1, "c0123456789abcdefghij000001"},
		{KindPayout, 0, 1, "p0123456789abcdefghij000001"},
		{KindPayout, 31, 31, "p0123456789abcdefghij000v0v"},
		{KindPayout, 32, 32, "p0123456789abcdefghij001010"},
		{KindPayout, 999_999, MaxAttempts, "p0123456789abcdefghijughvvv"},
		{KindRefund, 0, 1, "r0123456789abcdefghij000001"},
		{KindRefund, 1_000_000, 2, "r0123456789abcdefghijugi002"},
		{KindHonour, 7, 3, "h0123456789abcdefghij000703"},
	} {
		id := ID(tc.kind, packetID, tc.number)
		if got := OrderNo(id, tc.attempt); got != tc.want {
			t.Errorf("%c share %d attempt %d: %s, want %s", tc.kind, tc.number, tc.attempt, got, tc.want)
		}
		if id != tc.want[:IDLen] {
			t.Errorf("payment id %s is not %s without its attempt", id, tc.want)
		}
	}
}

func TestR1_OrderNumberWidths(t *testing.T) {
	if IDLen != 25 || OrderNoLen != 27 {
		t.Errorf("widths %d and %d, want 25 and 27", IDLen, OrderNoLen)
	}
	if n := strings.Repeat("v", attemptLen); unbase32(n) != MaxAttempts {
		t.Errorf("MaxAttempts is %d, two digits reach %d", MaxAttempts, unbase32(n))
	}
}

// letters is what every known provider accepts: at most 32 letters and digits (WeChat, the
// sandbox).
var letters = regexp.MustCompile(`^[0-9a-z]{27}$`)

func TestR1_OrderNumberRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{KindCharge, KindPayout, KindRefund, KindHonour}).Draw(t, "kind")
		packet := rapid.StringMatching(`[0-9a-v]{20}`).Draw(t, "packet")
		number := rapid.IntRange(0, 1<<20-1).Draw(t, "number")
		attempt := rapid.IntRange(1, MaxAttempts).Draw(t, "attempt")
		id := ID(kind, packet, number)
		no := OrderNo(id, attempt)
		if !letters.MatchString(no) {
			t.Fatalf("%q is not 27 lower case letters and digits", no)
		}
		want := Parts{Kind: kind, PacketID: packet, Number: number, PaymentID: id, Attempt: attempt}
		if got, err := Parse(no); err != nil || got != want {
			t.Fatalf("%s: %+v, %v", no, got, err)
		}
		want.Attempt = 0
		if got, err := Parse(id); err != nil || got != want {
			t.Fatalf("%s: %+v, %v", id, got, err)
		}
	})
}

// TestR1_HonourNumberGolden: the number of a user's share conflict never changes, and the last number is
// followed by the first.
func TestR1_HonourNumberGolden(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{"u": "h0123456789abcdefghij40sf", "用户": "h0123456789abcdefghijanu8"} {
		if got := ID(KindHonour, "0123456789abcdefghij", HonourNumber("0123456789abcdefghij", user)); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
	if n := NextHonourNumber(1<<20 - 1); n != 0 {
		t.Errorf("%d follows the last number", n)
	}
}

// TestR1_OrderNumbersAreUnique: different parts give different numbers; a payment id is never an
// order number.
func TestR1_OrderNumbersAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []Kind{KindCharge, KindPayout, KindRefund, KindHonour} {
		for _, packet := range []string{packetID, strings.Repeat("v", packetIDLen)} {
			for number := range 40 {
				for attempt := 1; attempt <= 40; attempt++ {
					no := OrderNo(ID(kind, packet, number), attempt)
					if seen[no] {
						t.Fatalf("%s twice", no)
					}
					seen[no] = true
				}
			}
		}
	}
}

func TestR1_ParseRefuses(t *testing.T) {
	good := OrderNo(ID(KindPayout, packetID, 5), 1)
	for _, bad := range []string{
		"", "p", good[:24], good[:26], good + "0", strings.ToUpper(good), "x" + good[1:], "P" + good[1:],
		good[:10] + "w" + good[11:], good[:26] + " ", " " + good[:26], good[:20] + "\x00" + good[21:], good[:25] + "é",
		strings.Repeat("p", 26) + "w",
	} {
		if p, err := Parse(bad); !errors.Is(err, ErrBadOrderNo) {
			t.Errorf("%q: %+v, %v", bad, p, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(OrderNo(ID(KindPayout, packetID, 5), 1))
	f.Add(ID(KindCharge, packetID, 0))
	f.Add("p")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		back := ID(p.Kind, p.PacketID, p.Number)
		if len(s) == OrderNoLen {
			back = OrderNo(back, p.Attempt)
		}
		if back != s {
			t.Errorf("%q reads as %+v, which is %q", s, p, back)
		}
	})
}

func TestOpOf(t *testing.T) {
	for kind, want := range map[Kind]Op{KindCharge: OpCharge, KindPayout: OpTransfer, KindHonour: OpTransfer, KindRefund: OpRefund} {
		if got := OpOf(kind); got != want {
			t.Errorf("%c: %s, want %s", kind, got, want)
		}
	}
}
