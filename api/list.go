package api

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/internal/packet"
)

// Sizes of a page.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// readQuery returns the parameters of a request. Unknown parameters are faults: a filter that is not applied would
// mislead.
func readQuery(r *Request) *object { return queryObject(r.parameters()) }

// checkQuery refuses a query that cannot be decoded, and any query of a route without parameters:
// what is not applied would mislead, such as a dry_run that belongs into the body.
func (r *Request) checkQuery() error {
	if _, err := url.QueryUnescape(string(r.c.Context().URI().QueryString())); err != nil {
		return invalidField("query", faultFormat, "is not percent-encoded")
	}
	if r.route.hasQuery() {
		return nil
	}
	return readQuery(r).done()
}

const cursorFault = "must be the next_cursor of a page of this list"

func badCursor() error { return invalidField("cursor", faultFormat, cursorFault) }

// maxMs is the last millisecond that a time may have.
const maxMs = packet.MaxMillis

// inMySQLRange reports whether MySQL can compare with a time: a forged cursor may contain any
// number.
func inMySQLRange(at time.Time) bool {
	ms := at.UnixMilli()
	return ms >= 0 && ms <= maxMs
}

// encodeCursor returns the opaque text of a position in a list.
func encodeCursor(position any) *string {
	b, err := json.Marshal(position)
	if err != nil {
		return nil // positions are plain structs
	}
	text := base64.RawURLEncoding.EncodeToString(b)
	return &text
}

// decodeCursor parses a cursor strictly: cursors that this API did not issue are refused.
func decodeCursor(text string, position any) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	if err := json.Unmarshal(b, position, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	return nil
}
