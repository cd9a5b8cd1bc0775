package store

import (
	"testing"
	"time"

	"hongbao/internal/access"
)

// TestEndedSignIns: an ended sign-in is listed once until its cookie expires, and deleted
// afterwards.
func TestEndedSignIns(t *testing.T) {
	t.Parallel()
	s, c := newStore(t)
	ctx := t.Context()
	day := access.EndedSignIn{ID: []byte{0, 1, 0xff}, KeyID: "k1", Until: c.Now().Add(24 * time.Hour).Truncate(time.Millisecond).UTC()}
	hour := access.EndedSignIn{ID: []byte{0, 1, 0xfe}, KeyID: "k1", Until: c.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()}
	for range 2 {
		must(t, s.EndSignIn(ctx, day))
		must(t, s.EndSignIn(ctx, hour))
	}
	ended := func() (ids []string) {
		t.Helper()
		found, err := s.EndedSignIns(ctx)
		must(t, err)
		for _, e := range found {
			if e.KeyID != "k1" || !e.Until.Equal(map[string]time.Time{string(day.ID): day.Until, string(hour.ID): hour.Until}[string(e.ID)]) {
				t.Errorf("%+v", e)
			}
			ids = append(ids, string(e.ID))
		}
		return ids
	}
	if ids := ended(); len(ids) != 2 {
		t.Fatalf("%q", ids)
	}
	c.Pass(2 * time.Hour)
	if ids := ended(); len(ids) != 1 || ids[0] != string(day.ID) {
		t.Errorf("an hour after its end: %q", ids)
	}
	must(t, s.EndSignIn(ctx, access.EndedSignIn{ID: []byte{2}, KeyID: "k1", Until: c.Now()}))
	var kept int
	must(t, s.read(ctx).Raw("SELECT COUNT(*) FROM ended_sign_ins").Scan(&kept).Error)
	if kept != 2 {
		t.Errorf("%d rows: expired ones were not deleted", kept)
	}
}
