package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"hongbao/client"
	"hongbao/wire"
)

// params are the allowed query parameters of a page: a parser of the value by name. Empty form
// fields are submitted too, so every parser accepts "".
type params map[string]func(text string) (value string, fits bool)

// and returns these parameters together with others.
func (m params) and(others ...params) params {
	out := maps.Clone(m)
	for _, other := range others {
		maps.Copy(out, other)
	}
	return out
}

// verbatim accepts any value unchanged: a user id may begin or end with a space.
func verbatim(text string) (string, bool) { return text, true }

// trimmed accepts a value without surrounding space. It refuses blanks only, which select nothing
// definite.
func trimmed(text string) (string, bool) {
	value := strings.TrimSpace(text)
	return value, value != "" || text == ""
}

// flag accepts true, false and ""; false counts as absent.
func flag(text string) (string, bool) {
	switch text {
	case "true", "":
		return text, true
	}
	return "", text == "false"
}

// yesOrNo accepts true, false and "".
func yesOrNo(text string) (string, bool) {
	return text, text == "" || text == "true" || text == "false"
}

// doneKey accepts the suffix of a "done." message.
func doneKey(text string) (string, bool) {
	_, known := catalogue["done."+text]
	return text, known || text == ""
}

// The parameters of pages: filter and position of a list, and what was just done.
var (
	cursorParam   = params{"cursor": verbatim}
	doneParam     = params{"done": doneKey}
	paymentParams = params{"status": trimmed, "code": trimmed, "packet": trimmed, "user": verbatim, "order": trimmed, "older": trimmed,
		"min": trimmed, "max": trimmed}
	refundParams   = paymentParams.and(params{"late": flag})
	approvalParams = params{"status": trimmed, "by_others": flag}
	packetParams   = params{"status": trimmed, "sender": verbatim, "overdue": flag}
	auditParams    = params{"actor": trimmed, "action": trimmed, "subject": trimmed}
	breakParams    = params{"kind": trimmed, "packet": trimmed, "run": trimmed, "resolved": yesOrNo}
	conflictParams = params{"packet_id": trimmed, "user_id": verbatim, "default_decision": trimmed}
	holdParams     = params{"active": yesOrNo, "scope": trimmed, "name": trimmed, "kind": trimmed}
	// pollParams are the digests that a polling page has (paymentPage.Poll).
	pollParams = params{"shown": verbatim, "stands": verbatim, "done": doneKey}
)

// codeQuery is the console's own code for an invalid query; the API is not called.
const codeQuery wire.Code = "invalid_query"

// maxQuoted limits, in characters, how much of a query an error repeats.
const maxQuoted = 200

// readQuery parses the query of a page. Unknown, duplicate and unreadable parameters are refused,
// as by the API: a filter that is not applied would show, export and retry the wrong payments.
func readQuery(raw string, known params) (url.Values, error) {
	given, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badQuery("query", "invalid_format", raw)
	}
	out := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		texts := given[name]
		read, ok := known[name]
		switch {
		case !ok:
			return nil, badQuery(name, "unknown_field", name+"="+texts[0])
		case len(texts) > 1:
			return nil, badQuery(name, "duplicate", strings.Join(texts, " · "))
		case !utf8.ValidString(texts[0]):
			return nil, badQuery(name, "invalid_characters", texts[0])
		}
		value, fits := read(texts[0])
		if !fits {
			return nil, badQuery(name, "invalid_format", texts[0])
		}
		out.Set(name, value)
	}
	return out, nil
}

// next is the query of the same list from a cursor on.
func (v *visit) next(cursor string) string {
	q := maps.Clone(v.query)
	q.Del("done")
	q.Set("cursor", cursor)
	return q.Encode()
}

func badQuery(name, code, text string) *client.Problem {
	return &client.Problem{Problem: wire.Problem{Status: http.StatusUnprocessableEntity, Code: codeQuery,
		Errors: []wire.FieldError{{Field: excerpt(name), Code: code, Message: excerpt(text)}}}}
}

// excerpt returns at most maxQuoted characters of a text, as valid UTF-8.
func excerpt(text string) string {
	letters := []rune(strings.ToValidUTF8(text, "?"))
	if len(letters) > maxQuoted {
		return string(letters[:maxQuoted]) + "…"
	}
	return string(letters)
}
