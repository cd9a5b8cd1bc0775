package wire

import (
	"bytes"
	"encoding/json"
	"time"
)

// State is the state of a subject in an audit entry: a JSON object as it was written, or null.
type State json.RawMessage

// MarshalJSON implements json.Marshaler. A state that was tampered with and is not an object is rendered as text, so
// that it stays visible.
func (s State) MarshalJSON() ([]byte, error) {
	text := bytes.TrimSpace(s)
	if json.Valid(text) && (text[0] == '{' || string(text) == "null") {
		return text, nil
	}
	return json.Marshal(map[string]string{"unreadable": string(s)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *State) UnmarshalJSON(text []byte) error {
	*s = bytes.Clone(text)
	return nil
}

// AuditFilter selects audit entries; zero members select all.
type AuditFilter struct {
	Actor   string    `json:"actor,omitempty" check:"actor" doc:"Entries of this actor." example:"li.na"`
	Action  string    `json:"action,omitempty" check:"code" doc:"Entries with this action." example:"retry"`
	Subject string    `json:"subject,omitempty" check:"text" doc:"Entries about this payment or other subject." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	From    time.Time `json:"from,omitempty" doc:"Entries from this time on." example:"2026-02-17T00:00:00Z"`
	To      time.Time `json:"to,omitempty" after:"from" doc:"Entries before this time." example:"2026-02-18T00:00:00Z"`
}

// AuditEntry is one entry of the audit.
type AuditEntry struct {
	Seq     int64   `json:"seq" minimum:"1" doc:"Numbered from 1 without gaps." example:"4711"`
	At      Time    `json:"at" doc:"When the action took place."`
	Actor   string  `json:"actor" doc:"The owner of the key that acted." example:"li.na"`
	Role    string  `json:"role" doc:"The role of the key." example:"finance"`
	KeyID   *string `json:"key_id" doc:"The id of the key that acted; null for a command on one of our machines, and for the worker."`
	Action  string  `json:"action" doc:"The action." example:"retry"`
	Subject string  `json:"subject" doc:"What the action was about, mostly the id of a payment." example:"p3q5k9v0c1m7e2u8h4r6t0003"`
	Reason  string  `json:"reason" doc:"The reason that the actor gave."`
	Before  State   `json:"before" doc:"The state before the action."`
	After   State   `json:"after" doc:"The state after the action."`
	Hash    string  `json:"hash" pattern:"^[0-9a-f]{64}$" doc:"Hex SHA-256 of the previous hash and this entry; see docs/audit.md."`
}

// AuditVerdict is the result of a verification of the audit.
type AuditVerdict struct {
	Valid    bool   `json:"valid" doc:"true: the hashes of all entries form a chain that ends at the head."`
	Entries  int64  `json:"entries" minimum:"0" doc:"The count of entries." example:"4711"`
	Head     string `json:"head" pattern:"^[0-9a-f]{64}$" doc:"Hex hash of the last entry, which is stored separately; 64 zeros before the first entry. Keep a copy elsewhere: an audit that was truncated or rewritten together with its head is found only by comparing."`
	FirstBad *int64 `json:"first_bad" doc:"The first entry that was changed, is missing or was added; null when valid. Entries after it cannot be judged."`
}
