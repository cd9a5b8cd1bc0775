package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"hongbao/client"
	"hongbao/wire"
)

// overviewPage is the data of the overview: the live parts, and the hold of each provider.
type overviewPage struct {
	Parts     map[string]livePart
	Providers []wire.PaymentProvider
}

// snapshot is one read of the overview. Unavailable parts are nil, so that the rest is shown
// during an incident.
type snapshot struct {
	At        time.Time
	Overview  *wire.Overview
	Activity  *wire.Activity
	Health    *wire.Health
	Providers []wire.PaymentProvider
	Holds     []holdsDue // of packets and payments
}

// Decisions are the reasons for which decisions are due.
func (s snapshot) Decisions() []wire.DecisionDue {
	if s.Overview == nil {
		return nil
	}
	return s.Overview.Decisions
}

// AllRead reports whether everything that needs a decision was read.
func (s snapshot) AllRead() bool { return s.Overview != nil && s.Holds != nil }

func (v *visit) overview() error {
	snap, err := readSnapshot(v.r.Context(), v.staff)
	if err != nil {
		return err
	}
	parts, err := v.console.liveParts(v.lang, snap)
	if err != nil {
		return err
	}
	body := overviewPage{Parts: map[string]livePart{}, Providers: snap.Providers}
	for _, p := range parts {
		body.Parts[p.ID] = p
	}
	v.show("overview", http.StatusOK, body)
	return nil
}

// readSnapshot reads the staff API. Errors: a refusal (4xx), such as a revoked key. Parts that
// are unavailable are left out.
func readSnapshot(ctx context.Context, staff *client.Staff) (snapshot, error) {
	out := snapshot{At: time.Now()}
	reads := []func() error{
		func() (err error) { out.Overview, err = staff.Overview(ctx); return err },
		func() (err error) { out.Activity, err = staff.Activity(ctx); return err },
		func() (err error) { out.Health, err = staff.Health(ctx); return err },
		func() error {
			found, err := staff.ListProviders(ctx)
			if err == nil {
				out.Providers = found.Items
			}
			return err
		},
		func() (err error) { out.Holds, err = readHoldsDue(ctx, staff); return err },
	}
	errs := make([]error, len(reads))
	var all sync.WaitGroup
	for i, read := range reads {
		all.Go(func() { errs[i] = read() })
	}
	all.Wait()
	for _, err := range errs {
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Status < http.StatusInternalServerError {
			return out, err
		}
		if err != nil {
			slog.WarnContext(ctx, "overview is incomplete", slog.Any("error", err))
		}
	}
	return out, nil
}

// decideProvider holds or releases a provider.
func (v *visit) decideProvider() error {
	name, action := v.r.PathValue("name"), v.r.PathValue("action")
	key, req := v.key(), wire.Reason{Reason: v.reason()}
	var err error
	switch action {
	case "hold":
		_, err = v.staff.HoldProvider(v.r.Context(), name, req, key)
	case "release":
		_, err = v.staff.ReleaseProvider(v.r.Context(), name, req, key)
	default:
		return &client.Problem{Problem: wire.Problem{Status: http.StatusNotFound, Code: wire.CodeNotFound}}
	}
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone("/", action)
}

// returnPath is the address of the form's page.
func (v *visit) returnPath() string { return localPath(v.r.PostFormValue("back")) }

// key is the Idempotency-Key of the submitted form.
func (v *visit) key() client.Key { return client.Key(v.r.PostFormValue("key")) }
