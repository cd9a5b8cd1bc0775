package staff

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"hongbao/internal/payout"
	"hongbao/internal/staff"
)

// TestCloseFileNotListed: a file in which differences are missing says how many, and has
// all of them in its sums.
func TestCloseFileNotListed(t *testing.T) {
	t.Parallel()
	write := func(differences int) (lines []string) {
		tie := staff.NewStatementMatch("sandbox", "2026-02-17")
		tie.Count = 3
		sum := staff.Sum{Count: 3, Amount: 30}
		tie.Sums = []staff.DifferenceSum{{Kind: staff.DifferTheirs, Op: payout.OpRefund, Theirs: sum}}
		for range differences {
			tie.Differences = append(tie.Differences, staff.Difference{Kind: staff.DifferTheirs, Op: payout.OpRefund, OrderNo: "other",
				Theirs: 10})
		}
		var text bytes.Buffer
		f := &closeFile{c: staff.DayClose{Day: "2026-02-17",
			Match: &staff.DayMatch{Statements: []*staff.StatementMatch{tie}}}, out: csv.NewWriter(&text)}
		f.statement(tie)
		if f.out.Flush(); f.err != nil || f.out.Error() != nil {
			t.Fatal(f.err, f.out.Error())
		}
		lines = strings.Split(strings.TrimSpace(text.String()), "\n")
		if want := "2026-02-17,provisional,differences,,refund,,,3,30,0.30,,theirs_only,0,0,0.00,3,30,0.30,,,,,,sandbox"; lines[4] != want {
			t.Errorf("%q, want %q", lines[4], want)
		}
		return lines[5:]
	}
	if all := write(3); len(all) != 3 || strings.Contains(all[2], "not_listed") {
		t.Errorf("all: %q", all)
	}
	some := write(1)
	if want := "2026-02-17,provisional,not_listed,,,,,2,,,,,,,,,,,,,,,,sandbox"; len(some) != 2 || some[1] != want {
		t.Errorf("%q, want %q", some, want)
	}
}
