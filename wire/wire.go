// Package wire is the HTTP contract of hongbao: every request, answer, code and role. Server, client, CLI and console
// share these types, and the OpenAPI document is made from their tags.
//
// Besides the tags of huma, fen says which amounts a member takes: "positive", "sum" (a number, or above 2^53-1 a string
// of digits) or "net" (a sum that may be negative). A pointer without omitempty, and a member with orNull, is a value or
// null. Of what the server reads, check names the form of a text, from and after name a member that is not above a number
// or is before a time, and alone marks a member with which no other is allowed.
package wire

import (
	"time"
)

// TimeLayout is the layout of every time in answers: RFC 3339, UTC, milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Time is a time in answers.
type Time struct{ time.Time }

// At returns the Time of t.
func At(t time.Time) Time { return Time{t} }

// String returns the time in TimeLayout.
func (t Time) String() string { return t.UTC().Format(TimeLayout) }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(TimeLayout)+len(`""`))
	return append(t.UTC().AppendFormat(append(b, '"'), TimeLayout), '"'), nil
}

// Date is a day: YYYY-MM-DD.
type Date string

// NonZero returns a pointer to v, for an optional member; nil for the zero value.
func NonZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// List is one page of a list.
type List[T any] struct {
	Items []T `json:"items" nullable:"false" doc:"Newest first."`
	// NextCursor is nil on the last page.
	NextCursor *string `json:"next_cursor" doc:"The cursor of the next page; null on the last page."`
}

// Role is the role of a key.
type Role string

// The roles of keys.
const (
	RoleApp     Role = "app"     // its own packets, public listener
	RoleFinance Role = "finance" // staff reads and writes
	RoleOps     Role = "ops"     // staff reads, provider holds, recalls of packets
	RoleAuditor Role = "auditor" // staff reads, audit
	RoleAdmin   Role = "admin"   // staff reads, keys; no decisions about money
)

// NoMembers is an optional body without members.
type NoMembers struct{}
