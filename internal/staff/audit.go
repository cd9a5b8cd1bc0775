// Package staff holds what people read and write about the money: their writes and the audit of
// them, decisions and approvals, what the release of a hold lets go, lists, the overview and the
// timelines, reconciliations with their breaks and the comparison with a statement, the day-end
// close, the proof of the ledger, and how long rows are kept. It is pure, and no rule of payout
// depends on it.
package staff

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// ErrAuditNotUTF8 means that an audit entry holds text that is not UTF-8. JSON encodes all invalid
// bytes alike, so the hash would not distinguish them.
var ErrAuditNotUTF8 = errors.New("audit entry is not UTF-8")

// AuditHash is the hash of an audit entry. The zero value precedes the first entry.
type AuditHash [sha256.Size]byte

// AuditEntry is one line of the audit: who did what to which subject, in which role and why, with
// the state before and after. Entries are numbered from 1 without gaps.
type AuditEntry struct {
	Seq     int64
	At      time.Time // whole milliseconds, the precision of the column
	Actor   string
	Role    string
	KeyID   string // the API key that acted; "": the local CLI or the worker
	Action  string
	Subject string // the object of the action, mostly a payment id
	Reason  string
	Before  string // JSON
	After   string // JSON
	Hash    AuditHash
}

// Sum computes the hash of the entry that follows the entry with the hash prev: SHA-256 of prev and
// the JSON array of every other member. A changed, removed, added or moved entry breaks the chain
// there. Errors: ErrAuditNotUTF8, and a time that JSON cannot encode.
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

// AuditHead is the sequence number and hash of the last entry. It is stored apart from the entries,
// so that truncation of the chain is detected.
type AuditHead struct {
	Seq  int64
	Hash AuditHash
}

// AuditCheck is the result of checking the chain from its first entry.
type AuditCheck struct {
	Entries  int64 // number of entries
	Head     AuditHead
	FirstBad *int64 // sequence number of the first entry that is wrong, missing or surplus; nil: none
}

// AuditWatch is the position of the incremental check of the chain.
type AuditWatch struct {
	Head     AuditHead
	Checked  int64  // sequence number of the last checked entry; below Head.Seq while a check is unfinished
	FirstBad *int64 // as in AuditCheck
}

// AuditChain checks the entries of an audit in the order of their sequence numbers.
type AuditChain struct {
	last AuditHead
	bad  *int64
}

// Add takes the next entry and reports whether the chain is intact so far. After the first bad
// entry it always returns false.
func (c *AuditChain) Add(e AuditEntry) bool {
	if c.bad != nil {
		return false
	}
	want := c.last.Seq + 1
	if e.Seq != want {
		first := min(e.Seq, want) // below want: a surplus entry; above: the wanted entry is missing
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

// End compares the last entry with the head and returns the sequence number of the first bad entry;
// nil: the chain is intact.
func (c *AuditChain) End(head AuditHead) *int64 {
	switch {
	case c.bad != nil:
	case c.last.Seq != head.Seq: // truncated, or appended without the head
		first := min(c.last.Seq, head.Seq) + 1
		c.bad = &first
	case c.last.Hash != head.Hash:
		c.bad = &head.Seq
	}
	return c.bad
}
