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

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/packet"
)

// missPause is the shortest time between two reads of the keys that unknown keys cause. A
// flood of wrong keys must not reach MySQL.
const missPause = time.Second

// loadTimeout bounds one read of the keys.
const loadTimeout = 2 * time.Second

// caller is the owner of a key, as a request has it.
type caller struct {
	rest.Caller
	used *keyUse
}

// accessData is what a directory is loaded from.
type accessData struct {
	Apps       []access.App
	Keys       []access.Key
	Ended      []access.EndedSignIn
	TicketKeys []access.TicketKey // those not revoked
}

// directory holds apps, keys and ended sign-ins in memory, read from MySQL. Until MySQL
// answers for the first time it has the apps from the copy in Redis, and no staff keys.
type directory struct {
	keys         Keys
	mirror       appMirror // under mu
	now          func() time.Time
	publicTokens map[string]bool // hashes of tokens that everybody knows, as those of the documents

	// What requests read, replaced as a whole; nil until loaded.
	callers atomic.Pointer[map[string]*caller]          // by the ids of keys
	appIDs  atomic.Pointer[[]string]                    // ascending
	ended   atomic.Pointer[map[string]bool]             // sign-ins, by their ids
	tickets atomic.Pointer[map[string]access.TicketKey] // by their ids

	mu        sync.Mutex         // one load at a time
	lastLoad  time.Time          // whether or not it succeeded
	endedUses map[string]*keyUse // of ended keys, until MySQL has them; under mu

	fromMySQL    atomic.Bool // MySQL was read at least once
	mysqlAnswers atomic.Bool // the last load read MySQL
}

func newDirectory(keys Keys, redis KeyMirror, mirrorKey [32]byte, now func() time.Time) *directory {
	return &directory{keys: keys, mirror: appMirror{redis: redis, key: mirrorKey, now: now}, now: now, endedUses: map[string]*keyUse{}}
}

// rejectPublic makes the directory reject the tokens with these hashes.
func (d *directory) rejectPublic(hashes [][]byte) {
	d.publicTokens = make(map[string]bool, len(hashes))
	for _, h := range hashes {
		d.publicTokens[string(h)] = true
	}
}

// ready reports whether keys are loaded, from MySQL or from Redis.
func (d *directory) ready() bool { return d.callers.Load() != nil }

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
		if err := d.recordUses(ctx); err != nil && ctx.Err() == nil {
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
			return nil, rest.Unavailable(errors.New("keys are not loaded yet"))
		}
		return nil, rest.RefuseKey(rest.KeyMalformed)
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
		return nil, rest.Unavailable(errors.New("keys are not loaded yet"))
	}
	return nil, rest.RefuseKey(rest.KeyUnknown)
}

// staffKnown reports whether staff keys are loaded: they come from MySQL only.
func (d *directory) staffKnown() bool { return d.fromMySQL.Load() }

// apps lists the ids of all apps.
func (d *directory) apps() []string {
	if ids := d.appIDs.Load(); ids != nil {
		return *ids
	}
	return nil
}

// match returns the owner of a valid token and records the use of its key.
func (d *directory) match(id, token []byte) (*caller, bool) {
	callers := d.callers.Load()
	if callers == nil {
		return nil, false
	}
	who, ok := (*callers)[string(id)]
	if !ok || !who.Key.Matches(token) {
		return nil, false
	}
	now := d.now()
	if who.Key.Expired(now) {
		return nil, false
	}
	who.used.touch(now)
	return who, true
}

// byID returns the owner of a key by the key's id, for callers whose token was verified
// before.
func (d *directory) byID(id string, now time.Time) (*caller, bool) {
	callers := d.callers.Load()
	if callers == nil {
		return nil, false
	}
	who, ok := (*callers)[id]
	if !ok || who.Key.Expired(now) {
		return nil, false
	}
	who.used.touch(now)
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

// load reads the keys, unless a load was tried less than pause ago.
func (d *directory) load(ctx context.Context, pause time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pause > 0 && time.Since(d.lastLoad) < pause {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	defer func() { d.lastLoad = time.Now() }()
	found, err := d.readMySQL(ctx)
	d.mysqlAnswers.Store(err == nil)
	if err != nil {
		return errors.Join(err, d.loadMirror(ctx))
	}
	d.install(found)
	d.fromMySQL.Store(true)
	return d.mirror.save(ctx, appsOf(found))
}

func (d *directory) readMySQL(ctx context.Context) (found accessData, err error) {
	if found.Apps, found.Keys, err = d.keys.AppsAndKeys(ctx); err != nil {
		return found, fmt.Errorf("read from mysql: %w", err)
	}
	if found.Ended, err = d.keys.EndedSignIns(ctx); err != nil {
		return found, fmt.Errorf("read ended sign-ins from mysql: %w", err)
	}
	if found.TicketKeys, err = d.keys.TicketKeysInUse(ctx); err != nil {
		return found, fmt.Errorf("read keys of tickets from mysql: %w", err)
	}
	return found, nil
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
	found = appsOf(accessData{Apps: found.Apps, Keys: found.Keys, TicketKeys: found.TicketKeys}) // never keys of staff
	d.install(accessData{Apps: found.Apps, Keys: found.Keys, TicketKeys: found.TicketKeys})
	return nil
}

// install replaces what requests read. Callers that stay keep their last use.
func (d *directory) install(found accessData) {
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
	callers := make(map[string]*caller, len(found.Keys))
	before := d.callers.Load()
	for _, k := range found.Keys {
		if d.publicTokens[string(k.SecretHash)] {
			if before == nil { // log it once
				slog.Warn("a key with a public token is rejected; revoke it", slog.String("key", k.ID))
			}
			continue
		}
		who := &caller{Caller: rest.Caller{Key: k}, used: new(keyUse)}
		if before != nil && (*before)[k.ID] != nil {
			who.used = (*before)[k.ID].used
		} else if used := d.endedUses[k.ID]; used != nil {
			who.used = used
		}
		if k.Role == access.RoleApp {
			app, ok := apps[k.AppID]
			if !ok {
				continue // a key without its app is rejected
			}
			who.App = app
		}
		callers[k.ID] = who
	}
	d.keepEndedUses(before, callers)
	d.callers.Store(&callers)
}
