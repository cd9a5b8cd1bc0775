package api

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
)

// missPause is the shortest time between two reads of the keys that unknown keys cause. A
// flood of wrong keys must not reach MySQL.
const missPause = time.Second

// loadTimeout bounds one read of the keys.
const loadTimeout = 2 * time.Second

// caller is the owner of the key of a request.
type caller struct {
	key  access.Key
	app  access.App // of role app
	used *keyUse
}

// keyUse is the last use of a key, in minutes of Unix time. The grab path only compares it
// with the clock.
type keyUse struct{ seen, noted atomic.Int64 }

func (u *keyUse) note(now time.Time) {
	if minute := now.Unix() / 60; u.seen.Load() != minute {
		u.seen.Store(minute)
	}
}

// pending reports whether the last use is not in MySQL yet.
func (u *keyUse) pending() bool { return u.seen.Load() > u.noted.Load() }

// accessList is the content of the directory.
type accessList struct {
	Apps  []access.App
	Keys  []access.Key
	Ended []access.EndedSignIn
	// TicketKeys are the keys that are not revoked.
	TicketKeys []access.TicketKey
}

// directory holds apps, keys and ended sign-ins in memory, read from MySQL. Until MySQL
// answers for the first time it has the apps from the copy in Redis, and no staff keys.
type directory struct {
	keys   Keys
	mirror appMirror // under mu
	now    func() time.Time
	public map[string]bool // hashes of public tokens

	list    atomic.Pointer[map[string]*caller]          // nil until loaded
	appIDs  atomic.Pointer[[]string]                    // ascending
	ended   atomic.Pointer[map[string]bool]             // sign-ins, by their ids
	tickets atomic.Pointer[map[string]access.TicketKey] // by their ids
	mu      sync.Mutex                                  // one load at a time
	last    time.Time                                   // of the last load, whether or not it succeeded
	fresh   atomic.Bool                                 // loaded from MySQL at least once
	gone    map[string]*keyUse                          // ended keys whose last use is not in MySQL yet; under mu

	reached atomic.Bool // MySQL answered the last load
}

func newDirectory(keys Keys, redis KeyMirror, mirrorKey [32]byte, now func() time.Time) *directory {
	return &directory{keys: keys, mirror: appMirror{redis: redis, key: mirrorKey, now: now}, now: now, gone: map[string]*keyUse{}}
}

// refuse makes the directory reject the tokens with these hashes.
func (d *directory) refuse(hashes [][]byte) {
	d.public = make(map[string]bool, len(hashes))
	for _, h := range hashes {
		d.public[string(h)] = true
	}
}

// ready reports whether keys are loaded.
func (d *directory) ready() bool { return d.list.Load() != nil }

// run keeps the directory fresh until ctx ends.
func (d *directory) run(ctx context.Context, every time.Duration) {
	for {
		pause := every
		if err := d.load(ctx, 0); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "apps and keys were not read", slog.Any("error", err))
			if !d.ready() {
				pause = min(every, 250*time.Millisecond)
			}
		}
		if err := d.noteUse(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "last use of keys was not written", slog.Any("error", err))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// find returns the owner of a token. For an unknown token the keys are read again first, at
// most once per missPause.
func (d *directory) find(ctx context.Context, token []byte) (*caller, error) {
	id, ok := access.ParseToken(token)
	if !ok {
		if !d.ready() {
			return nil, unavailable(errors.New("keys are not loaded yet"))
		}
		return nil, refuse(CodeUnauthenticated)
	}
	if who, ok := d.match(id, token); ok {
		return who, nil
	}
	if err := d.load(ctx, missPause); err != nil {
		slog.WarnContext(ctx, "apps and keys were not read", slog.Any("error", err))
	}
	if who, ok := d.match(id, token); ok {
		return who, nil
	}
	if role, _ := access.RoleOf(string(token)); !d.ready() || role.Staff() && !d.staffKnown() {
		return nil, unavailable(errors.New("keys are not loaded yet"))
	}
	return nil, refuse(CodeUnauthenticated)
}

// staffKnown reports whether staff keys are loaded: they come from MySQL only.
func (d *directory) staffKnown() bool { return d.fresh.Load() }

// apps lists the ids of all apps.
func (d *directory) apps() []string {
	if ids := d.appIDs.Load(); ids != nil {
		return *ids
	}
	return nil
}

func (d *directory) match(id, token []byte) (*caller, bool) {
	list := d.list.Load()
	if list == nil {
		return nil, false
	}
	who, ok := (*list)[string(id)]
	if !ok || !who.key.Matches(token) {
		return nil, false
	}
	now := d.now()
	if who.key.Expired(now) {
		return nil, false
	}
	who.used.note(now)
	return who, true
}

// byID returns the owner of a key by the key's id, for callers whose token was verified
// before.
func (d *directory) byID(id string, now time.Time) (*caller, bool) {
	list := d.list.Load()
	if list == nil {
		return nil, false
	}
	who, ok := (*list)[id]
	if !ok || who.key.Expired(now) {
		return nil, false
	}
	who.used.note(now)
	return who, true
}

// endSignIn ends a sign-in: in this process on return, in every other process at its next read
// of the keys.
func (d *directory) endSignIn(ctx context.Context, e access.EndedSignIn) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	if err := d.keys.EndSignIn(ctx, e); err != nil {
		return err
	}
	d.mu.Lock() // a concurrent load may have read before the write
	defer d.mu.Unlock()
	ended := map[string]bool{string(e.ID): true}
	if before := d.ended.Load(); before != nil {
		maps.Copy(ended, *before)
	}
	d.ended.Store(&ended)
	return nil
}

// signInEnded reports whether a sign-in was ended.
func (d *directory) signInEnded(id []byte) bool {
	ended := d.ended.Load()
	return ended != nil && (*ended)[string(id)]
}

// ticketKey returns a ticket key of an app. An unknown key causes no read of MySQL: a grab
// with an invented key must not delay other grabs.
func (d *directory) ticketKey(app, kid string) (ed25519.PublicKey, bool) {
	keys := d.tickets.Load()
	if keys == nil {
		return nil, false
	}
	k, ok := (*keys)[kid]
	return k.Public, ok && k.AppID == app
}

// noteUse writes to MySQL when keys were last used.
func (d *directory) noteUse(ctx context.Context) error {
	list := d.list.Load()
	if list == nil || !d.reached.Load() {
		return nil
	}
	d.mu.Lock()
	uses := maps.Clone(d.gone)
	d.mu.Unlock()
	for id, who := range *list {
		uses[id] = who.used
	}
	used, minutes := map[string]time.Time{}, map[*keyUse]int64{}
	for id, use := range uses {
		if minute := use.seen.Load(); minute > use.noted.Load() {
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
		use.noted.Store(minute)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.gone, func(_ string, use *keyUse) bool { return !use.pending() })
	return nil
}

// load reads the keys, unless a load was tried less than pause ago.
func (d *directory) load(ctx context.Context, pause time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pause > 0 && time.Since(d.last) < pause {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	defer func() { d.last = time.Now() }()
	apps, keys, err := d.keys.AppsAndKeys(ctx)
	d.reached.Store(err == nil)
	if err != nil {
		return errors.Join(fmt.Errorf("read from mysql: %w", err), d.loadMirror(ctx))
	}
	ended, err := d.keys.EndedSignIns(ctx)
	if err != nil {
		d.reached.Store(false)
		return errors.Join(fmt.Errorf("read ended sign-ins from mysql: %w", err), d.loadMirror(ctx))
	}
	tickets, err := d.keys.TicketKeysInUse(ctx)
	if err != nil {
		d.reached.Store(false)
		return errors.Join(fmt.Errorf("read keys of tickets from mysql: %w", err), d.loadMirror(ctx))
	}
	found := accessList{Apps: apps, Keys: keys, Ended: ended, TicketKeys: tickets}
	d.use(found)
	d.fresh.Store(true)
	return d.mirror.save(ctx, appsOf(found))
}

// loadMirror uses the copy in Redis as long as MySQL has never answered.
func (d *directory) loadMirror(ctx context.Context) error {
	if d.staffKnown() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
	defer cancel()
	list, err := d.mirror.load(ctx)
	if errors.Is(err, packet.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read from redis: %w", err)
	}
	var found appList
	if err := json.Unmarshal(list, &found); err != nil {
		return fmt.Errorf("decode the copy in redis: %w", err)
	}
	found = appsOf(accessList{Apps: found.Apps, Keys: found.Keys, TicketKeys: found.TicketKeys})
	d.use(accessList{Apps: found.Apps, Keys: found.Keys, TicketKeys: found.TicketKeys})
	return nil
}

func (d *directory) use(found accessList) {
	ids := make([]string, len(found.Apps))
	for i, a := range found.Apps {
		ids[i] = a.ID
	}
	slices.Sort(ids)
	d.appIDs.Store(&ids)
	ended := make(map[string]bool, len(found.Ended))
	for _, e := range found.Ended {
		ended[string(e.ID)] = true
	}
	d.ended.Store(&ended)
	tickets := make(map[string]access.TicketKey, len(found.TicketKeys))
	for _, k := range found.TicketKeys {
		tickets[k.ID] = k
	}
	d.tickets.Store(&tickets)
	apps := make(map[string]access.App, len(found.Apps))
	for _, a := range found.Apps {
		apps[a.ID] = a
	}
	list := make(map[string]*caller, len(found.Keys))
	before := d.list.Load()
	for _, k := range found.Keys {
		if d.public[string(k.SecretHash)] {
			if before == nil {
				slog.Warn("a key with a public token is rejected; revoke it", slog.String("key", k.ID))
			}
			continue
		}
		who := &caller{key: k, used: new(keyUse)}
		if before != nil && (*before)[k.ID] != nil {
			who.used = (*before)[k.ID].used
		} else if used := d.gone[k.ID]; used != nil {
			who.used = used
		}
		if k.Role == access.RoleApp {
			app, ok := apps[k.AppID]
			if !ok {
				continue // a key without its app is rejected
			}
			who.app = app
		}
		list[k.ID] = who
	}
	d.keepUses(before, list)
	d.list.Store(&list)
}

// keepUses keeps the last uses of keys that left the list: after a revocation they matter
// most.
func (d *directory) keepUses(before *map[string]*caller, list map[string]*caller) {
	if before == nil {
		return
	}
	for id, who := range *before {
		if list[id] == nil && who.used.pending() {
			d.gone[id] = who.used
		}
	}
}
