package api

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/internal/packet"
	"hongbao/wire"
)

// Sizes of a page.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// query reads the parameters of a list and collects all faults. Unknown parameters are faults:
// a filter that is not applied would mislead.
type query struct {
	values map[string][]string
	known  []string
	faults []wire.FieldError
}

func readQuery(r *request) *query {
	q := &query{values: map[string][]string{}}
	for name, value := range r.c.Context().QueryArgs().All() {
		q.values[string(name)] = append(q.values[string(name)], string(value))
	}
	return q
}

// checkQuery refuses a query that cannot be decoded, and any query of a route without parameters:
// what is not applied would mislead, such as a dry_run that belongs into the body.
func (r *request) checkQuery() error {
	if _, err := url.QueryUnescape(string(r.c.Context().URI().QueryString())); err != nil {
		return invalidField("query", faultFormat, "is not percent-encoded")
	}
	if r.route.hasQuery() {
		return nil
	}
	return readQuery(r).done()
}

func (q *query) fault(name string, f fault) {
	q.faults = append(q.faults, wire.FieldError{Field: name, Code: f.code, Message: f.message})
}

// text returns a parameter; "": missing. An empty value is a fault.
func (q *query) text(name string, check func(string) *fault) string {
	q.known = append(q.known, name)
	values, ok := q.values[name]
	switch {
	case !ok:
		return ""
	case len(values) > 1:
		q.fault(name, fault{faultDuplicate, "is there more than once"})
		return ""
	}
	if f := check(values[0]); f != nil {
		q.fault(name, *f)
		return ""
	}
	return values[0]
}

// integer returns a parameter and whether it is given.
func (q *query) integer(name string, low, high int64) (int64, bool) {
	text := q.text(name, func(s string) *fault {
		if n, err := strconv.ParseInt(s, 10, 64); err != nil || n < low || n > high || strconv.FormatInt(n, 10) != s {
			return &fault{faultRange, fmt.Sprintf("must be a whole number from %d to %d", low, high)}
		}
		return nil
	})
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// page reads limit and cursor; "" is the first page.
func (q *query) page() (limit int, cursor string) {
	n, ok := q.integer("limit", 1, maxLimit)
	if !ok {
		n = defaultLimit
	}
	return int(n), q.text("cursor", func(s string) *fault {
		if s == "" {
			return &fault{faultFormat, "must be the next_cursor of a page"}
		}
		return nil
	})
}

// done returns all faults, unknown parameters included. It is called after the last read.
func (q *query) done() error {
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if slices.Contains(q.known, name) {
			continue
		}
		if len(name) > maxFieldName {
			name = name[:maxFieldName]
		}
		q.fault(strings.ToValidUTF8(name, "?"), fault{faultUnknown, "is not a parameter of this path"})
	}
	if len(q.faults) > 0 {
		return invalid(q.faults[:min(len(q.faults), maxFaults)]...)
	}
	return nil
}

func badCursor() error {
	return invalidField("cursor", faultFormat, "must be the next_cursor of a page of this list")
}

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
