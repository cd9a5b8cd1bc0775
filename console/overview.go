package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"hongbao/client"
)

// overviewPage is what the first page shows: the parts that are kept up to date,
// and the switches of the providers.
type overviewPage struct {
	Parts     map[string]livePart
	Providers []client.Provider
}

// snapshot is everything that the overview says at a moment. What could not be read
// is nil: in an incident the rest is wanted most.
type snapshot struct {
	At        time.Time
	Overview  *client.Overview
	Activity  *client.Activity
	Health    *client.Health
	Providers []client.Provider
}

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

// readSnapshot asks the staff API. An error says that who asks may not, or has none
// to ask as any more; what cannot be answered now is left out.
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
			slog.WarnContext(ctx, "overview is not whole", slog.Any("error", err))
		}
	}
	return out, nil
}

// decideHold stops a provider or lets it go.
func (v *visit) decideHold() error {
	name, action := v.r.PathValue("name"), v.r.PathValue("action")
	req := client.HoldRequest{IdempotencyKey: v.key(), Reason: v.reason()}
	var err error
	switch action {
	case "hold":
		_, err = v.staff.HoldProvider(v.r.Context(), name, req)
	case "release":
		_, err = v.staff.ReleaseProvider(v.r.Context(), name, req)
	default:
		return &client.Problem{Status: http.StatusNotFound, Code: client.CodeNotFound}
	}
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone("/", action)
}

// came is the page that the form stands on.
func (v *visit) returnPath() string { return localPath(v.r.PostFormValue("back")) }

// key is the Idempotency-Key that the form came with.
func (v *visit) key() string { return v.r.PostFormValue("key") }
