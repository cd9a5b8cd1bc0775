package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hongbao/internal/payout"
	"hongbao/wire"
)

// typed returns the hongbao lines of the blocks of a document, block by block.
func typed(t *testing.T, doc string) (blocks [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		var lines []string
		for line := range strings.Lines(block[1]) {
			if after, ok := strings.CutPrefix(line, "hongbao "); ok {
				lines = append(lines, strings.TrimSpace(after))
			}
		}
		blocks = append(blocks, lines)
	}
	return blocks
}

// words splits a line as a shell does: quoted words, and a comment at the end.
func words(line string) (args []string, code int) {
	for _, m := range regexp.MustCompile(`#.*|'([^']*)'|\S+`).FindAllStringSubmatch(line, -1) {
		switch {
		case strings.HasPrefix(m[0], "#"):
			_, _ = fmt.Sscanf(m[0], "# exit code %d", &code)
		case strings.HasPrefix(m[0], "'"):
			args = append(args, m[1])
		default:
			args = append(args, m[0])
		}
	}
	return args, code
}

// TestFinanceChinese: docs/finance.zh-CN.md has the commands of docs/finance.md; reasons and comments are translated.
func TestFinanceChinese(t *testing.T) {
	said := regexp.MustCompile(`\s*#.*|'[^']*'`)
	commands := func(doc string) (out []string) {
		for _, block := range typed(t, doc) {
			for _, line := range append(block, "") {
				out = append(out, said.ReplaceAllString(line, ""))
			}
		}
		return out
	}
	if en, zh := commands("finance.md"), commands("finance.zh-CN.md"); !slices.Equal(en, zh) {
		t.Errorf("commands differ:\nen %q\nzh %q", en, zh)
	}
}

// TestFinanceWalk types docs/finance.md, line by line, and sees a payout that
// failed end as paid, one end as cancelled, and many go out again.
func TestFinanceWalk(t *testing.T) {
	t.Parallel()
	d := newStaffStack(t)
	blocks := typed(t, "finance.md")
	text, err := os.ReadFile("../../docs/finance.md")
	d.check(err)
	_, said, _ := strings.Cut(string(text), "The exit code says what became of it:")
	for _, e := range exitCodes {
		if documented := regexp.MustCompile(fmt.Sprintf(`(^|,) %d [a-z]`, e.code)).MatchString(said); documented != (e.code != exitLeft) {
			t.Errorf("exit code %d: documented %v", e.code, documented)
		}
	}
	if len(blocks) != 3 || len(blocks[0]) != 5 || len(blocks[1]) != 3 || len(blocks[2]) != 3 {
		t.Fatalf("blocks %q", blocks)
	}
	_, paid := d.grabbedPacket(100, "one~frozen", "two~frozen", "many~frozen", "more~frozen")
	d.unfreeze("one~frozen")
	walk := func(env []string, id string, lines []string) (out string) {
		t.Helper()
		for _, line := range lines {
			args, code := words(strings.ReplaceAll(line, "p3q5k9v0c1m7e2u8h4r6t0003", id))
			if i := len(args) - 3; args[0] == "approvals" && args[1] == "approve" {
				args[i] = d.waiting(id)
				env = d.as("HONGBAO_FINANCE_KEY", d.second)
			}
			out, _ = d.shAs(env, code, args...)
			d.drive(id)
			t.Logf("$ hongbao %s\n%s", strings.Join(args, " "), out)
		}
		return out
	}
	out := walk(d.env(), paid["one~frozen"], blocks[0])
	contains(t, out, "paid", payout.OrderNo(paid["one~frozen"], 2))
	out = walk(d.env(), paid["two~frozen"], blocks[1])
	contains(t, out, "Cancelling, requested by li-na")
	if got := d.status(paid["two~frozen"]); got != payout.StatusCancelled {
		t.Errorf("%s", got)
	}
	walk(d.env(), paid["one~frozen"], blocks[2])
	for _, user := range []string{"many~frozen", "more~frozen"} {
		d.unfreeze(user)
		if st := d.drive(paid[user]); st.Status != payout.StatusPaid {
			t.Errorf("%s is %s", user, st.Status)
		}
	}
}

// waiting returns the approval that waits for a second person about a payout.
func (d *staffStack) waiting(id string) string {
	d.t.Helper()
	out, _ := d.sh(exitOK, "approvals", "list", "--status", "waiting", "--all", "--json")
	var page struct{ Items []wire.ApprovalItem }
	d.check(json.Unmarshal([]byte(out), &page))
	for _, item := range page.Items {
		if item.Payout != nil && item.Payout.ID == id {
			return item.ID
		}
	}
	d.t.Fatalf("no approval waits for %s: %s", id, out)
	return ""
}
