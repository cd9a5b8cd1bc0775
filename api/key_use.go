package api

import (
	"context"
	"maps"
	"sync/atomic"
	"time"
)

// keyUse is the last use of a key, in minutes of Unix time: as seen here, and as stored in
// MySQL. A grab only compares it with the clock.
type keyUse struct{ seen, stored atomic.Int64 }

// touch records a use.
func (u *keyUse) touch(now time.Time) {
	if minute := now.Unix() / 60; u.seen.Load() != minute {
		u.seen.Store(minute)
	}
}

// pending reports whether the last use is not in MySQL yet.
func (u *keyUse) pending() bool { return u.seen.Load() > u.stored.Load() }

// recordUses writes to MySQL when keys were last used.
func (d *directory) recordUses(ctx context.Context) error {
	callers := d.callers.Load()
	if callers == nil || !d.mysqlAnswers.Load() {
		return nil
	}
	d.mu.Lock()
	uses := maps.Clone(d.endedUses)
	d.mu.Unlock()
	for id, who := range *callers {
		uses[id] = who.used
	}
	used, minutes := map[string]time.Time{}, map[*keyUse]int64{}
	for id, use := range uses {
		if minute := use.seen.Load(); minute > use.stored.Load() {
			used[id], minutes[use] = time.Unix(minute*60, 0), minute
		}
	}
	if len(used) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	if err := d.keys.RecordKeyUse(ctx, used); err != nil {
		return err
	}
	for use, minute := range minutes {
		use.stored.Store(minute)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.endedUses, func(_ string, use *keyUse) bool { return !use.pending() })
	return nil
}

// keepEndedUses keeps the last uses of keys that ended until MySQL has them: after a revocation
// they matter most.
func (d *directory) keepEndedUses(before *map[string]*caller, now map[string]*caller) {
	if before == nil {
		return
	}
	for id, who := range *before {
		if now[id] == nil && who.used.pending() {
			d.endedUses[id] = who.used
		}
	}
}
