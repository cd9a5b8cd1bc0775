package store

import (
	"errors"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// issued gives a person a finance key that an administrator has issued now.
func issued(t *testing.T, s *testStore, owner, by string) {
	t.Helper()
	w := storetest.StaffWrite(t, s, owner)
	now, err := s.Clock(t.Context())
	must(t, err)
	must(t, s.db.Gorm.Exec("UPDATE api_keys SET made_by = ?, approved_by = 'approver', created_at = ? WHERE id = ?", by, now, w.KeyID).Error)
}

// TestOneIssuer: two keys of one administrator make no decision of two persons, whatever it is about; the second one
// rejects it, which moves nothing. A
// key of another administrator does, and so do the same keys when they are old.
func TestOneIssuer(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	issued(t, s, "finance", "li-na")
	issued(t, s, "finance2", "Li-Na")
	issued(t, s, "finance3", "wang-wei")
	answer := func(approval, owner string, agree bool) error {
		return storetest.ErrOnly(s.AnswerApproval(ctx, storetest.StaffWrite(t, s, owner), approval, agree, render))
	}
	slip := func(reference string) string {
		a := askMovement(t, s, staff.BalanceMovement{App: "app", Kind: payout.PostCredit, Amount: 500, Reference: reference})
		return strings.Fields(string(a.Body))[2]
	}

	p := funded(t, s, 100, 1)
	claim(t, s, p, 0, "u")
	fail(t, s, payoutID(p, 0))
	for what, ask := range map[string]func() string{
		"a cancel": func() string { return proposed(t, s, payoutID(p, 0), cancelCommand) },
		"a credit": func() string { return slip("slip 1") }} {
		approval := ask()
		if err := answer(approval, "finance2", true); !errors.Is(err, payout.ErrOneIssuer) {
			t.Errorf("%s: %v", what, err)
		}
		if err := answer(approval, "finance", false); !errors.Is(err, payout.ErrSelfApproval) {
			t.Errorf("%s is rejected by its author: %v", what, err)
		}
		must(t, answer(approval, "finance2", false))
		if by := storetest.Query[string](t, s, "SELECT CONCAT(status, ' ', approved_by) FROM decisions WHERE approval_id = ?",
			approval); by != "rejected finance2" {
			t.Errorf("%s: %s", what, by)
		}
		must(t, answer(ask(), "finance3", true))
	}
	balanceIs(t, s, 500, 0)

	_, conflict := newShareConflict(t, s)
	decide := func(owner, want string) {
		t.Helper()
		got := ""
		_, err := s.DecideConflict(ctx, storetest.StaffWrite(t, s, owner), conflict, payout.DecisionCancel,
			func(plan staff.ConflictPlan, refused error) (int, []byte) {
				if got = plan.AskedBy; refused != nil {
					got = refused.Error()
				}
				return 200, []byte("{}")
			})
		if must(t, err); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("a share conflict by %s: %q, want %q", owner, got, want)
		}
	}
	decide("finance", "")
	decide("finance2", payout.ErrDecisionPending.Error())
	decide("finance3", "finance")

	held := funded(t, s, 100, 1)
	must(t, storetest.ErrOnly(s.PlaceHold(ctx, storetest.StaffWrite(t, s, "finance"), payout.HoldPacket, held.ID, renderHold)))
	id := storetest.Query[int64](t, s, "SELECT id FROM holds WHERE name = ?", held.ID)
	release := func(owner string) error {
		return storetest.ErrOnly(s.ReleaseHold(ctx, storetest.StaffWrite(t, s, owner), id, renderHold))
	}
	must(t, release("finance"))
	wantErr(t, release("finance2"), payout.ErrOneIssuer)
	_, err := s.PreviewRelease(ctx, storetest.StaffWrite(t, s, "finance2"), id)
	wantErr(t, err, payout.ErrOneIssuer)
	must(t, release("finance")) // requests it again
	c.Pass(access.OneIssuerLife)
	must(t, release("finance")) // the first wish has expired
	must(t, release("finance2"))
	if n := storetest.Query[int](t, s, "SELECT COUNT(*) FROM holds WHERE id = ? AND released_at IS NOT NULL", id); n != 1 {
		t.Error("old keys release nothing")
	}
	must(t, answer(slip("slip 2"), "finance2", true))
	balanceIs(t, s, 1000, 0)
}
