package rest

import (
	"strings"
	"testing"
)

// TestCell: what a spreadsheet would change gets an apostrophe, and only what begins with
// one or might be changed.
func TestCell(t *testing.T) {
	t.Parallel()
	marked := []string{
		"=1", "+1", "-1", "@a", "\ta", "\na", "\ra", "'a", "＝1",
		"0", "7", "007", "10086", "12345678901234567890", "9007199254740993",
		"1.5", ".5", "1,234", "1 234", "1e5", "1E5", "1e+30", "１２３", "１ｅ５",
		"٣",
		"(5)", "50%", "$5", "¥5", "5 CNY", "1/2", "1-2", "2026-02-17", "17.02.2026", "2026-02-17T20:00:00Z", "12:30", "12:30 PM", "3月4日",
		"2026年2月17日", "MARCH1", "sept2", "1 Jan", "Jan-26", "4. July 2026", "true", "FALSE", "Ｔｒｕｅ", "Tuesday 3",
	}
	for _, text := range marked {
		if got := Cell(text); !strings.HasPrefix(got, "'") || len(got) < len(text) {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	for _, text := range []string{"", "alice", "u2", "4d", "user 7", "p00000000000000000000001",
		"0b1c2d3e4f5g6h7i8j9k", "may", "e", "sun", "true story",
		"3 tries", "用户1", "{}", "?", "/", "a-1", "marchy1"} {
		if got := Cell(text); got != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}
