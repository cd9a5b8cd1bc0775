package store

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"hongbao/internal/access"
	"hongbao/internal/campaign"
	"hongbao/internal/failpoint"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
	"hongbao/test/wait"
)

// TestEndedKeyWritesNothing: a key that is revoked, expired, unknown, or of another person or role
// changes nothing by any staff write, whatever an API process has cached. A stored first answer is
// not returned either.
func TestEndedKeyWritesNothing(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	id := owing(t, s)
	fail(t, s, id)
	must(t, s.EnsureApp(ctx, access.App{ID: "mall", Name: "Mall", Salt: []byte("salt")}))
	body := []byte("{}")
	ways := map[string]func(w staff.Write) error{
		"Decide":           func(w staff.Write) error { return storetest.ErrOnly(s.Decide(ctx, w, id, retryCommand, render)) },
		"AnswerApproval":   func(w staff.Write) error { return storetest.ErrOnly(s.AnswerApproval(ctx, w, "anone", true, render)) },
		"WithdrawApproval": func(w staff.Write) error { return storetest.ErrOnly(s.WithdrawApproval(ctx, w, "anone", render)) },
		"WithdrawCancel":   func(w staff.Write) error { return storetest.ErrOnly(s.WithdrawCancel(ctx, w, id, render)) },
		"DecideConflict": func(w staff.Write) error {
			return storetest.ErrOnly(s.DecideConflict(ctx, w, id, payout.DecisionRetry, func(staff.ConflictPlan, error) (int, []byte) {
				return 200,
					body
			}))
		},
		"MoveBalance": func(w staff.Write) error {
			return storetest.ErrOnly(s.MoveBalance(ctx, w, staff.BalanceMovement{App: "app", Kind: payout.PostCredit, Amount: 1, Reference: "r"},
				"e", render))
		},
		"PlanBulk": func(w staff.Write) error {
			_, _, err := s.PlanBulk(ctx, w, []string{id})
			return err
		},
		"PlanRecall": func(w staff.Write) error {
			return storetest.ErrOnly(s.PlanRecall(ctx, w, newID(), func(context.Context) (staff.Recall, error) {
				return staff.Recall{Refused: staff.Answer{Status: 409, Body: body}}, nil
			}))
		},
		"HoldProvider": func(w staff.Write) error {
			return storetest.ErrOnly(s.HoldProvider(ctx, w, provider, true, renderProvider))
		},
		"PlaceHold": func(w staff.Write) error {
			return storetest.ErrOnly(s.PlaceHold(ctx, w, payout.HoldProvider, provider, renderHold))
		},
		"ReleaseHold": func(w staff.Write) error { return storetest.ErrOnly(s.ReleaseHold(ctx, w, 1<<40, renderHold)) },
		"RequestReconciliation": func(w staff.Write) error {
			return storetest.ErrOnly(s.RequestReconciliation(ctx, w, provider, "2026-02-17", func(staff.Reconciliation) (int, []byte) {
				return 202,
					body
			}))
		},
		"ResolveBreak": func(w staff.Write) error {
			return storetest.ErrOnly(s.ResolveBreak(ctx, w, 1<<40, func(staff.BreakRow) (int, []byte) { return 200, body }))
		},
		"DecideBreak": func(w staff.Write) error {
			return storetest.ErrOnly(s.DecideBreak(ctx, w, 1<<40, payout.DecisionRequest{Kind: payout.DecisionMoved}, render))
		},
		"StopCampaign": func(w staff.Write) error {
			return storetest.ErrOnly(s.StopCampaign(ctx, w, "none", campaign.StatusPaused, func(campaign.Campaign, bool) (int,
				[]byte) {
				return 200, body
			}))
		},
		"IssueKey": func(w staff.Write) error {
			k := access.KeyRecord{Key: access.Key{ID: "new", Role: access.RoleFinance, Owner: "x", SecretHash: make([]byte, 32)}}
			return storetest.ErrOnly(s.IssueKey(ctx, w, k, 0, func(access.KeyRecord) (int, []byte) { return 201, body }))
		},
		"RotateKey": func(w staff.Write) error {
			return storetest.ErrOnly(s.RotateKey(ctx, w, "none", access.Key{}, 0, 0, func(_, _ access.KeyRecord, _ error) (int,
				[]byte) {
				return 201, body
			}))
		},
		"EndKey": func(w staff.Write) error {
			return storetest.ErrOnly(s.EndKey(ctx, w, "none", func(access.KeyRecord, error) (int, []byte) { return 200, body }))
		},
		"ApproveKey": func(w staff.Write) error {
			return storetest.ErrOnly(s.ApproveKey(ctx, w, "none", func(access.KeyRecord, error) (int, []byte) { return 200, body }))
		},
		"AddTicketKey": func(w staff.Write) error {
			k := access.TicketKeyRecord{TicketKey: access.TicketKey{ID: "kid", AppID: "mall", Public: make([]byte, 32)}}
			return storetest.ErrOnly(s.AddTicketKey(ctx, w, k, func(access.TicketKeyRecord) (int, []byte) { return 201, body }))
		},
		"EndTicketKey": func(w staff.Write) error {
			return storetest.ErrOnly(s.EndTicketKey(ctx, w, "kid", func(access.TicketKeyRecord) (int, []byte) { return 200, body }))
		},
	}
	// Each method of the store that takes a write is listed here, ends what a listed one began, or only shows what it would do.
	for m := range reflect.TypeFor[*testStore]().Methods() {
		takes := false
		for in := range m.Type.Ins() {
			takes = takes || in == reflect.TypeFor[staff.Write]()
		}
		ends := m.Name == "EndBulk" || m.Name == "EndRecall"
		byCommand := m.Name == "DeclareRestored" || m.Name == "EndRecovery" // by the machine's operator, without a key
		reads := strings.HasPrefix(m.Name, "Preview")
		if _, tested := ways[m.Name]; takes && !tested && !ends && !byCommand && !reads {
			t.Errorf("%s is not tested", m.Name)
		}
	}
	const books = "SELECT CONCAT((SELECT COUNT(*) FROM audit), '/', (SELECT COUNT(*) FROM decisions), '/', (SELECT COUNT(*) FROM " +
		"staff_idempotency), '/', (SELECT COUNT(*) FROM api_keys), '/', (SELECT COUNT(*) FROM reconciliations))"
	for name, way := range ways {
		for _, role := range []access.Role{access.RoleFinance, access.RoleAdmin} {
			if strings.Contains(name, "Key") && role != access.RoleAdmin {
				continue
			}
			ended := func(what string, end func(w *staff.Write)) {
				w := by(t, s, staff.Write{Owner: name + string(role) + what, Role: string(role), Route: name, Key: what, BodyHash: "h",
					Reason: "r"})
				if what == "replayed" {
					must(t, s.inTx(ctx, failpoint.Administration, func(tx tx) error {
						return tx.storeAnswer(w, staff.Answer{Status: 200, Body: body})
					}))
				}
				end(&w)
				before := storetest.Query[string](t, s, books)
				if err := way(w); !errors.Is(err, access.ErrActorKeyEnded) {
					t.Errorf("%s, %s, %s: %v", name, role, what, err)
				}
				if after := storetest.Query[string](t, s, books); after != before {
					t.Errorf("%s, %s, %s: %s is %s", name, role, what, before, after)
				}
			}
			revoke := func(w *staff.Write) { must(t, storetest.ErrOnly(s.RevokeKey(ctx, w.KeyID))) }
			ended("revoked", revoke)
			ended("replayed", revoke)
			ended("expired", func(w *staff.Write) {
				must(t, s.db.Gorm.Exec("UPDATE api_keys SET expires_at = ? WHERE id = ?", c.Now(), w.KeyID).Error)
			})
			ended("of nobody", func(w *staff.Write) { w.KeyID = "222222222222" })
			ended("none", func(w *staff.Write) { w.KeyID = "" })
			ended("of another", func(w *staff.Write) { w.Owner += " too" })
			ended("of another role", func(w *staff.Write) { w.Role = string(access.RoleOps) })
		}
	}
}

// TestRevocationWaitsForAWrite: a key is revoked before or after a decision, never during it: after
// the revocation nothing more is written.
func TestRevocationWaitsForAWrite(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	w := financeWrite(t, s, "k", "h")
	inside, revoked := make(chan struct{}), make(chan error, 1)
	go func() {
		<-inside
		_, err := s.RevokeKey(ctx, w.KeyID)
		revoked <- err
	}()
	answer, err := s.staffWrite(ctx, failpoint.Decide, w, func(tx) (staff.Answer, error) {
		close(inside)
		wait.Until(t, "the revocation waits for a lock", func() bool {
			return storetest.Query[int](t, s, "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'") > 0 ||
				len(revoked) > 0
		})
		if len(revoked) > 0 {
			t.Error("revoked while a write was under way")
		}
		return staff.Answer{Status: 200, Body: []byte("{}")}, nil
	})
	if err != nil || answer.Status != 200 {
		t.Errorf("%+v, %v", answer, err)
	}
	must(t, <-revoked)
	w.Key = "after"
	if _, err := s.Decide(ctx, w, "any", retryCommand, render); !errors.Is(err, access.ErrActorKeyEnded) {
		t.Errorf("after it was revoked: %v", err)
	}
}
