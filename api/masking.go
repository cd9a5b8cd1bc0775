package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// mask stands for what staff need not see.
const mask = "***"

// secretNames are parts of the names of members that hold secrets in the requests
// of one provider or another.
var secretNames = []string{"secret", "token", "password", "passwd", "sign", "api_key", "apikey", "private", "certificate", "id_card",
	"bank_card"}

// masked is a request as staff sees it: JSON with its secrets masked. What is not
// JSON is not shown at all.
func masked(request []byte) string {
	if len(request) == 0 {
		return ""
	}
	var body any
	in := json.NewDecoder(bytes.NewReader(request))
	in.UseNumber() // amounts stay as they were written
	if in.Decode(&body) != nil {
		return mask
	}
	maskMembers(body)
	out, err := encode(body)
	if err != nil { // it came out of JSON
		return mask
	}
	return string(out)
}

func maskMembers(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			lower := strings.ToLower(name)
			if slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) }) {
				v[name] = mask
				continue
			}
			maskMembers(member)
		}
	case []any:
		for _, member := range v {
			maskMembers(member)
		}
	}
}
