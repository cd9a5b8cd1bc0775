package payout

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// ErrAuditNotUTF8 means that an audit entry holds text that is not UTF-8. JSON would
// write all such bytes alike, so the hash would not tell them apart.
var ErrAuditNotUTF8 = errors.New("audit entry is not UTF-8")

// AuditHash is the hash of an audit entry. The zero value stands before the first.
type AuditHash [sha256.Size]byte

// AuditEntry is one line of the audit: who did what to what, in which role and
// why, and how it was before and after. Entries are numbered from 1 without gaps.
type AuditEntry struct {
	Seq     int64
	At      time.Time // whole milliseconds, as the column keeps them
	Actor   string
	Role    string
	KeyID   string // of the key that acted; "": a command on a machine of ours, or the worker
	Action  string
	Subject string // what it was done to: mostly the id of a payment
	Reason  string
	Before  string // JSON
	After   string // JSON
	Hash    AuditHash
}

// Sum computes the hash that the entry has to have behind the one with the hash
// prev: SHA-256 of prev and the JSON array of every other member. Whoever changes,
// removes, adds or moves an entry breaks the chain there. Errors: ErrAuditNotUTF8,
// and a time that JSON cannot write.
func (e AuditEntry) Sum(prev AuditHash) (AuditHash, error) {
	members := []any{e.Seq, e.At.UTC(), e.Actor, e.Role, e.KeyID, e.Action, e.Subject, e.Reason, e.Before, e.After}
	for _, m := range members {
		if text, ok := m.(string); ok && !utf8.ValidString(text) {
			return AuditHash{}, fmt.Errorf("entry %d: %w", e.Seq, ErrAuditNotUTF8)
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		return AuditHash{}, fmt.Errorf("encode audit entry %d: %w", e.Seq, err)
	}
	return sha256.Sum256(append(prev[:], text...)), nil
}

// AuditFilter selects entries of the audit, newest first. Zero members do not filter.
type AuditFilter struct {
	Actor   string
	Action  string
	Subject string
	From    time.Time // at or after
	To      time.Time // before
	// AfterTime and AfterSeq continue a list behind its last item.
	AfterTime time.Time
	AfterSeq  int64
	Limit     int
}

// AuditHead is the end of the chain as it is kept apart from the entries: number
// and hash of the last one. Entries cut off at the end are missed by it.
type AuditHead struct {
	Seq  int64
	Hash AuditHash
}

// AuditCheck is what walking the chain from its first entry has found.
type AuditCheck struct {
	Entries  int64 // how many there are
	Head     AuditHead
	FirstBad *int64 // number of the first entry that is wrong, missing or too many; nil: none
}

// AuditWatch is how far the chain was checked in turns.
type AuditWatch struct {
	Head     AuditHead
	Checked  int64  // number of the last entry that was checked; behind Head.Seq while the walk goes on
	FirstBad *int64 // as of AuditCheck
}

// AuditChain walks the entries of an audit in the order of their numbers.
type AuditChain struct {
	last AuditHead
	bad  *int64
}

// Add takes the next entry. It reports whether the chain holds so far; behind the
// first bad entry nothing can be said.
func (c *AuditChain) Add(e AuditEntry) bool {
	if c.bad != nil {
		return false
	}
	want := c.last.Seq + 1
	if e.Seq != want {
		first := min(e.Seq, want) // below: one too many; above: the wanted one is missing
		c.bad = &first
		return false
	}
	sum, err := e.Sum(c.last.Hash)
	if err != nil || sum != e.Hash {
		c.bad = &want
		return false
	}
	c.last = AuditHead{Seq: e.Seq, Hash: sum}
	return true
}

// End compares the end of the entries with the head and returns the first bad
// entry: nil when all is well.
func (c *AuditChain) End(head AuditHead) *int64 {
	switch {
	case c.bad != nil:
	case c.last.Seq != head.Seq: // cut off, or appended beside the head
		first := min(c.last.Seq, head.Seq) + 1
		c.bad = &first
	case c.last.Hash != head.Hash:
		c.bad = &head.Seq
	}
	return c.bad
}
