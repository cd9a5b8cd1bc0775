package staff

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"hongbao/api/rest"
)

// mask replaces secrets in answers to staff.
const mask = "***"

// secretNames are parts of member names that hold secrets in provider requests.
var secretNames = []string{"secret", "token", "password", "passwd", "sign", "api_key", "apikey", "private", "certificate", "id_card",
	"bank_card"}

// masked returns a stored request with its secrets masked. Text that is not JSON is not shown.
func masked(request []byte) string {
	if len(request) == 0 {
		return ""
	}
	var body any
	in := json.NewDecoder(bytes.NewReader(request))
	in.UseNumber() // amounts keep their form
	if in.Decode(&body) != nil {
		return mask
	}
	maskMembers(body)
	out, err := rest.Encode(body)
	if err != nil { // it was decoded from JSON
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
