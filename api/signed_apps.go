package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hongbao/internal/access"
	"hongbao/internal/packet"
)

// appList is what apps need while MySQL is away; Redis has a copy of it. Keys of staff are
// never in it: whoever can write to Redis must not become staff.
type appList struct {
	Apps       []access.App       `json:"apps"`
	Keys       []access.Key       `json:"keys"` // of role app
	TicketKeys []access.TicketKey `json:"ticket_keys,omitempty"`
}

// appsOf is what of all keys belongs into the copy.
func appsOf(found accessList) appList {
	out := appList{Apps: found.Apps, TicketKeys: found.TicketKeys}
	for _, k := range found.Keys {
		if k.Role == access.RoleApp {
			out.Keys = append(out.Keys, k)
		}
	}
	return out
}

// signedApps is the copy in Redis. Number rises with each change, so that a process does not
// take a copy that is older than one it has seen.
type signedApps struct {
	Number int64           `json:"number"`
	List   json.RawMessage `json:"list"` // of an appList
	MAC    []byte          `json:"mac"`
}

// errForeignCopy is a copy in Redis that no process of this installation has made, or that
// was changed since.
var errForeignCopy = errors.New("the copy of apps and keys in redis is not authentic")

// errOlderCopy is a copy in Redis that is older than one that this process has seen.
var errOlderCopy = errors.New("the copy of apps and keys in redis is older than one seen before")

// appMirror reads and writes the copy of apps and their keys in Redis.
type appMirror struct {
	redis KeyMirror
	key   [32]byte
	now   func() time.Time
	seen  int64 // the highest number of an authentic copy
}

// sum authenticates a list under its number.
func (m *appMirror) sum(number int64, list []byte) []byte {
	mac := hmac.New(sha256.New, m.key[:])
	_, _ = mac.Write([]byte("hongbao copy of apps v1\x00"))
	_, _ = mac.Write(binary.BigEndian.AppendUint64(nil, uint64(number)))
	_, _ = mac.Write(list)
	return mac.Sum(nil)
}

// load returns the copy in Redis. Whoever can write to Redis can remove it, or put back an
// older authentic one before this process has seen a newer one; then an app's key that was
// revoked since works until MySQL is reached.
//
// Errors: packet.ErrNotFound, errForeignCopy, errOlderCopy, pool.ErrUnavailable.
func (m *appMirror) load(ctx context.Context) (list []byte, err error) {
	blob, err := m.redis.LoadApps(ctx)
	if err != nil {
		return nil, err
	}
	var found signedApps
	if json.Unmarshal(blob, &found) != nil || !hmac.Equal(found.MAC, m.sum(found.Number, found.List)) {
		return nil, errForeignCopy
	}
	if found.Number < m.seen {
		return nil, fmt.Errorf("number %d after %d: %w", found.Number, m.seen, errOlderCopy)
	}
	m.seen = found.Number
	return found.List, nil
}

// save brings the copy in Redis up to date. What is there may be an older one, with keys that
// were revoked since, of another process or of a Redis that was restored, or no copy at all.
func (m *appMirror) save(ctx context.Context, apps appList) error {
	list, err := json.Marshal(apps)
	if err != nil {
		return fmt.Errorf("encode apps and keys: %w", err)
	}
	switch have, err := m.load(ctx); {
	case err == nil && string(have) == string(list):
		return nil
	case err == nil, errors.Is(err, packet.ErrNotFound), errors.Is(err, errForeignCopy), errors.Is(err, errOlderCopy):
	default:
		return fmt.Errorf("copy to redis: %w", err)
	}
	next := signedApps{Number: max(m.seen+1, m.now().UnixMilli()), List: list}
	next.MAC = m.sum(next.Number, list)
	blob, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode apps and keys: %w", err)
	}
	if err := m.redis.SaveApps(ctx, blob); err != nil {
		return fmt.Errorf("copy to redis: %w", err)
	}
	m.seen = next.Number
	return nil
}
