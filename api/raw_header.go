package api

import (
	"bytes"
	"strings"

	"hongbao/api/rest"
)

// The parsed headers of a request hide some faults: these functions read its raw bytes.

// countHeaderLines returns how many lines a header has; of some names the parser keeps only one.
func countHeaderLines(raw []byte, name string) (n int) {
	for line := range bytes.Lines(raw) {
		if len(line) > len(name) && line[len(name)] == ':' && bytes.EqualFold(line[:len(name)], []byte(name)) {
			n++
		}
	}
	return n
}

// hasFoldedLine reports whether a line continues the previous one: a proxy may parse such
// headers differently.
func hasFoldedLine(raw []byte) bool {
	return bytes.HasPrefix(raw, []byte(" ")) || bytes.HasPrefix(raw, []byte("\t")) || bytes.Contains(raw, []byte("\n ")) ||
		bytes.Contains(raw, []byte("\n\t"))
}

// hasInvalidKey reports whether the raw headers of a write have an invalid Idempotency-Key.
// The HTTP server refuses a key with a control character, but reports only that a header is
// wrong.
func hasInvalidKey(head []byte) bool {
	line, left, _ := bytes.Cut(head, []byte("\n"))
	if bytes.HasPrefix(line, []byte("GET ")) || bytes.HasPrefix(line, []byte("HEAD ")) {
		return false
	}
	for len(left) > 0 {
		line, left, _ = bytes.Cut(left, []byte("\n"))
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 {
			return false // the body
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if strings.EqualFold(string(name), rest.HeaderIdempotencyKey) && !rest.IsVisible(string(bytes.Trim(value, " \t")), rest.MaxKey) {
			return true
		}
	}
	return false
}
