package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"hongbao/internal/staff"
	"hongbao/internal/store/storetest"
)

// TestPlanRecall: one entry a key, before the recall; a repeat under the key continues, and its
// first answer stays.
func TestPlanRecall(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ctx := t.Context()
	p := funded(t, s, 100, 1)
	looks := 0
	look := func(context.Context) (staff.Recall, error) {
		looks++
		return staff.Recall{Before: "open", After: "closing"}, nil
	}
	entries := func() int64 { return storetest.Query[int64](t, s, "SELECT COUNT(*) FROM audit") }
	w := financeWrite(t, s, "recall", "h")
	for range 2 { // as after a crash
		if a, err := s.PlanRecall(ctx, w, p.ID, look); err != nil || a.Status != 0 || a.Body != nil || a.Replayed {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if entries() != 1 || looks != 1 {
		t.Errorf("%d entries after %d looks", entries(), looks)
	}
	for _, body := range []string{"first", "second"} {
		if a, err := s.EndRecall(ctx, w, staff.Answer{Status: 202, Body: []byte(body)}); err != nil || string(a.Body) != "first" ||
			a.Replayed != (body == "second") {
			t.Errorf("%s: %+v, %v", body, a, err)
		}
	}
	if a, err := s.PlanRecall(ctx, w, p.ID, look); err != nil || a.Status != 202 || string(a.Body) != "first" || !a.Replayed {
		t.Errorf("%+v, %v", a, err)
	}
	_, err := s.PlanRecall(ctx, financeWrite(t, s, "recall", "other"), p.ID, look)
	wantErr(t, err, staff.ErrKeyReused)
	failed := errors.New("redis is away")
	_, err = s.PlanRecall(ctx, financeWrite(t, s, "away", "h"), p.ID,
		func(context.Context) (staff.Recall, error) { return staff.Recall{}, failed })
	wantErr(t, err, failed)
	refused := staff.Answer{Status: 409, Body: []byte("too early")}
	for i := range 2 {
		a, err := s.PlanRecall(ctx, financeWrite(t, s, "early", "h"), p.ID, func(context.Context) (staff.Recall, error) {
			return staff.Recall{Before: "funding", After: "funding", Refused: refused}, nil
		})
		if err != nil || a.Status != 409 || string(a.Body) != "too early" || a.Replayed != (i == 1) {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if entries() != 1 || looks != 1 {
		t.Errorf("%d entries after %d looks", entries(), looks)
	}
	verifyAudit(t, s, 1)
	answers := make([]staff.Answer, 8)
	for _, err := range together(len(answers), func(i int) (err error) {
		w := financeWrite(t, s, "together", "h")
		if answers[i], err = s.PlanRecall(ctx, w, p.ID, func(context.Context) (staff.Recall, error) {
			return staff.Recall{Before: "open", After: "closing"}, nil
		}); err == nil && answers[i].Status == 0 {
			answers[i], err = s.EndRecall(ctx, w, staff.Answer{Status: 202, Body: fmt.Append(nil, i)})
		}
		return err
	}) {
		must(t, err)
	}
	for _, a := range answers {
		if a.Status != 202 || string(a.Body) != string(answers[0].Body) {
			t.Errorf("%+v, another got %+v", a, answers[0])
		}
	}
	verifyAudit(t, s, 2)
}
