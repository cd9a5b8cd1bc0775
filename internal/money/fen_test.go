package money_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"hongbao/internal/money"
)

const maxText = "90071992547409.91"

func TestArithmetic(t *testing.T) {
	add := func(f, g money.Fen) func() (money.Fen, error) {
		return func() (money.Fen, error) { return f.Add(g) }
	}
	sub := func(f, g money.Fen) func() (money.Fen, error) {
		return func() (money.Fen, error) { return f.Sub(g) }
	}
	sum := func(amounts ...money.Fen) func() (money.Fen, error) {
		return func() (money.Fen, error) { return money.Sum(amounts...) }
	}
	cases := []struct {
		name string
		call func() (money.Fen, error)
		want money.Fen
		err  error
	}{
		{"add", add(1, 2), 3, nil},
		{"add nothing", add(0, 0), 0, nil},
		{"add up to Max", add(money.Max-1, 1), money.Max, nil},
		{"add above Max", add(money.Max, 1), 0, money.ErrOverflow},
		{"add Max to Max", add(money.Max, money.Max), 0, money.ErrOverflow},
		{"add would wrap int64", add(math.MaxInt64, 1), 0, money.ErrOverflow},
		{"add negative left", add(-1, 5), 0, money.ErrNegative},
		{"add negative right", add(5, -1), 0, money.ErrNegative},
		{"add most negative", add(math.MinInt64, math.MinInt64), 0, money.ErrNegative},
		{"sub", sub(5, 3), 2, nil},
		{"sub to nothing", sub(5, 5), 0, nil},
		{"sub too much", sub(5, 6), 0, money.ErrNegative},
		{"sub negative operand", sub(5, -1), 0, money.ErrNegative},
		{"sub negative from negative", sub(-1, -2), 0, money.ErrNegative},
		{"sub from above Max", sub(money.Max+1, 2), 0, money.ErrOverflow},
		{"sum of none", sum(), 0, nil},
		{"sum", sum(1, 2, 3), 6, nil},
		{"sum up to Max", sum(money.Max-3, 1, 2), money.Max, nil},
		{"sum above Max", sum(money.Max-3, 1, 3), 0, money.ErrOverflow},
		{"sum with a negative", sum(10, -1), 0, money.ErrNegative},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.call()
			if got != c.want || !errors.Is(err, c.err) {
				t.Fatalf("got %d, %v; want %d, %v", int64(got), err, int64(c.want), c.err)
			}
		})
	}
}

func TestParse(t *testing.T) {
	cases := []struct {
		text string
		want money.Fen
		err  error
	}{
		{"0.00", 0, nil},
		{"0.01", 1, nil},
		{"0.10", 10, nil},
		{"1.00", 100, nil},
		{"12.34", 1234, nil},
		{"100.00", 10000, nil},
		{maxText, money.Max, nil},
		{"90071992547409.92", 0, money.ErrOverflow},
		{"92233720368547758.07", 0, money.ErrOverflow},
		{"92233720368547758.08", 0, money.ErrOverflow},
		{"1" + strings.Repeat("0", 400) + ".00", 0, money.ErrOverflow},
		{"", 0, money.ErrSyntax},
		{".00", 0, money.ErrSyntax},
		{"1", 0, money.ErrSyntax},
		{"100", 0, money.ErrSyntax},
		{"1.0", 0, money.ErrSyntax},
		{"1.000", 0, money.ErrSyntax},
		{"1.", 0, money.ErrSyntax},
		{"01.00", 0, money.ErrSyntax},
		{"00.00", 0, money.ErrSyntax},
		{"+1.00", 0, money.ErrSyntax},
		{"-1.00", 0, money.ErrSyntax},
		{"-0.00", 0, money.ErrSyntax},
		{" 1.00", 0, money.ErrSyntax},
		{"1.00 ", 0, money.ErrSyntax},
		{"1,000.00", 0, money.ErrSyntax},
		{"1_0.00", 0, money.ErrSyntax},
		{"1.-1", 0, money.ErrSyntax},
		{"1e2.00", 0, money.ErrSyntax},
		{"0x1.00", 0, money.ErrSyntax},
		{"1.2.00", 0, money.ErrSyntax},
		{"1,00", 0, money.ErrSyntax},
		{"１.00", 0, money.ErrSyntax},
		{"NaN", 0, money.ErrSyntax},
	}
	for _, c := range cases {
		t.Run(c.text, func(t *testing.T) {
			got, err := money.Parse(c.text)
			if got != c.want || !errors.Is(err, c.err) {
				t.Fatalf("got %d, %v; want %d, %v", int64(got), err, int64(c.want), c.err)
			}
			if err == nil && got.String() != c.text {
				t.Fatalf("String returns %q", got.String())
			}
		})
	}
}

func TestString(t *testing.T) {
	cases := map[money.Fen]string{
		0: "0.00", 9: "0.09", 10: "0.10", 99: "0.99", 100: "1.00", money.Max: maxText,
		-1: "-0.01", -100: "-1.00", math.MinInt64: "-92233720368547758.08+",
	}
	for f, want := range cases {
		if got := f.String(); got != want {
			t.Errorf("%d fen: got %q, want %q", int64(f), got, want)
		}
	}
}

// TestJSON pins the wire form: an integer without a point or an exponent, and above Max its digits;
// anything else is refused.
func TestJSON(t *testing.T) {
	type body struct {
		Amount money.Fen `json:"amount"`
	}
	text, err := json.Marshal(body{money.Max})
	if err != nil || string(text) != `{"amount":9007199254740991}` {
		t.Fatalf("got %s, %v", text, err)
	}
	var back body
	if err := json.Unmarshal(text, &back); err != nil || back.Amount != money.Max {
		t.Fatalf("got %d, %v", int64(back.Amount), err)
	}
	for _, bad := range []string{`{"amount":1.5}`, `{"amount":"1"}`, `{"amount":1e2}`, `{"amount":9007199254740992}`,
		`{"amount":"9007199254740991"}`,
		`{"amount":"9007199254740992+"}`, `{"amount":"09007199254740992"}`, `{"amount":"9223372036854775807"}`,
		`{"amount":"9223372036854775808"}`, `{"amount":true}`, `{"amount":""}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// TestSumsAboveMax: different sums have different texts, and a saturated sum is marked and stays
// saturated.
func TestSumsAboveMax(t *testing.T) {
	for f, want := range map[money.Fen][2]string{
		money.Max + 1:       {`"9007199254740992"`, "90071992547409.92"},
		2 * money.Max:       {`"18014398509481982"`, "180143985094819.82"},
		-2 * money.Max:      {`"-18014398509481982"`, "-180143985094819.82"},
		money.Saturated - 1: {`"9223372036854775806"`, "92233720368547758.06"},
		money.Saturated:     {`"9223372036854775807+"`, "92233720368547758.07+"},
		-money.Saturated:    {`"-9223372036854775807+"`, "-92233720368547758.07+"},
		-money.Max:          {"-9007199254740991", "-90071992547409.91"},
		money.Max.Plus(-1):  {"9007199254740990", "90071992547409.90"},
	} {
		text, err := json.Marshal(f)
		var back money.Fen
		if err != nil || string(text) != want[0] || f.String() != want[1] {
			t.Errorf("%d: %s %s, want %s; %v", int64(f), text, f, want, err)
		}
		if err := json.Unmarshal(text, &back); err != nil || back != f {
			t.Errorf("%s was read as %d, %v", text, int64(back), err)
		}
	}
	for _, c := range [][3]money.Fen{
		{1, 2, 3}, {money.Max, money.Max, 2 * money.Max}, {money.Saturated - 1, 0, money.Saturated - 1}, {money.Saturated - 1, 1,
			money.Saturated},
		{money.Saturated - 1, money.Saturated - 1, money.Saturated}, {money.Saturated, -1, money.Saturated}, {money.Saturated,
			-money.Saturated, money.Saturated},
		{-money.Saturated, 5, -money.Saturated}, {1 - money.Saturated, -1, -money.Saturated}, {5, money.Saturated, money.Saturated},
		{math.MinInt64, 1, math.MinInt64},
	} {
		if got := c[0].Plus(c[1]); got != c[2] {
			t.Errorf("%d and %d are %d, want %d", int64(c[0]), int64(c[1]), int64(got), int64(c[2]))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0.00", "12.34", maxText, "90071992547409.92", "-1.00", "01.00", "1.0", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := money.Parse(text)
		if err != nil {
			if !errors.Is(err, money.ErrSyntax) && !errors.Is(err, money.ErrOverflow) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := got.Check(); err != nil {
			t.Fatalf("Parse accepted %q: %v", text, err)
		}
		if got.String() != text {
			t.Fatalf("%q is read back as %q", text, got.String())
		}
	})
}

// FuzzArithmetic compares every operation with unbounded integers.
func FuzzArithmetic(f *testing.F) {
	f.Add(int64(1), int64(2))
	f.Add(int64(money.Max), int64(1))
	f.Add(int64(1<<52), int64(1<<12))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(int64(math.MinInt64), int64(-1))
	f.Fuzz(func(t *testing.T, left, right int64) {
		l, r := money.Fen(left), money.Fen(right)
		bigL, bigR := big.NewInt(left), big.NewInt(right)
		operandsOK := l.Check() == nil && r.Check() == nil

		check := func(name string, got money.Fen, err error, ok bool, want *big.Int) {
			inRange := ok && want.Sign() >= 0 && want.Cmp(big.NewInt(int64(money.Max))) <= 0
			if inRange != (err == nil) {
				t.Fatalf("%s(%d, %d): error %v", name, left, right, err)
			}
			if err == nil && want.Cmp(big.NewInt(int64(got))) != 0 {
				t.Fatalf("%s(%d, %d) = %d, want %s", name, left, right, int64(got), want)
			}
			if err != nil && (got != 0 || !errors.Is(err, money.ErrOverflow) && !errors.Is(err, money.ErrNegative)) {
				t.Fatalf("%s(%d, %d) = %d, %v", name, left, right, int64(got), err)
			}
		}
		got, err := l.Add(r)
		check("Add", got, err, operandsOK, new(big.Int).Add(bigL, bigR))
		got, err = money.Sum(l, r)
		check("Sum", got, err, operandsOK, new(big.Int).Add(bigL, bigR))
		got, err = l.Sub(r)
		check("Sub", got, err, operandsOK, new(big.Int).Sub(bigL, bigR))
	})
}
