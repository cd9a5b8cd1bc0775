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

// appList is the data that apps need while MySQL is unavailable; Redis has a copy. It never
// contains staff keys: write access to Redis must not grant staff rights.
type appList struct {
	Apps       []access.App       `json:"apps"`
	Keys       []access.Key       `json:"keys"` // of role app
	TicketKeys []access.TicketKey `json:"ticket_keys,omitempty"`
}

// appsOf returns the part of all keys that belongs in the copy.
func appsOf(found accessData) appList {
	out := appList{Apps: found.Apps, TicketKeys: found.TicketKeys}
	for _, k := range found.Keys {
		if k.Role == access.RoleApp {
			out.Keys = append(out.Keys, k)
		}
	}
	return out
}

// signedApps is the copy in Redis. Number rises with each change, so that a process refuses a
// copy older than one it has seen.
type signedApps struct {
	Number int64           `json:"number"`
	List   json.RawMessage `json:"list"` // of an appList
	MAC    []byte          `json:"mac"`
}

// errForeignCopy means that no process of this installation wrote the copy in Redis, or that
// it was changed.
var errForeignCopy = errors.New("the copy of apps and keys in redis is not authentic")

// errOlderCopy means that the copy in Redis is older than one this process has seen.
var errOlderCopy = errors.New("the copy of apps and keys in redis is older than one seen before")

// appMirror reads and writes the copy of apps and their keys in Redis.
type appMirror struct {
	redis KeyMirror
	key   [32]byte
	now   func() time.Time
	seen  int64 // the highest number of an authentic copy
}

// sum returns the MAC of a list and its number.
func (m *appMirror) sum(number int64, list []byte) []byte {
	mac := hmac.New(sha256.New, m.key[:])
	_, _ = mac.Write([]byte("hongbao copy of apps v1\x00"))
	_, _ = mac.Write(binary.BigEndian.AppendUint64(nil, uint64(number)))
	_, _ = mac.Write(list)
	return mac.Sum(nil)
}

// load returns the copy in Redis. With write access to Redis the copy can be removed, or an
// older authentic copy put back before this process has seen a newer one; then a revoked app
// key is accepted until MySQL is reached.
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

// save updates the copy in Redis. It may be missing, or be an older one with keys revoked
// since, of another process or of a restored Redis.
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
