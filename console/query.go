package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"hongbao/client"
)

// members are what the query of a page may have: by name, how the value is read. A field
// of a form that was left empty is there too.
type params map[string]func(text string) (value string, fits bool)

// and is what pages have that take others too.
func (m params) and(others ...params) params {
	out := maps.Clone(m)
	for _, other := range others {
		maps.Copy(out, other)
	}
	return out
}

// exactly is a value that counts as it is: a user id may begin or end with a space.
func verbatim(text string) (string, bool) { return text, true }

// trimmed is a value that people type. Of a blank alone nobody can tell what it selects.
func trimmed(text string) (string, bool) {
	value := strings.TrimSpace(text)
	return value, value != "" || text == ""
}

// flag is a filter that can only be asked for.
func flag(text string) (string, bool) {
	switch text {
	case "true", "":
		return text, true
	}
	return "", text == "false"
}

func yesOrNo(text string) (string, bool) {
	return text, text == "" || text == "true" || text == "false"
}

// doneKey is what was just done, as the catalogue says it.
func doneKey(text string) (string, bool) {
	_, known := catalogue["done."+text]
	return text, known || text == ""
}

// The members of pages: of a list its filter, the place in it, and what was just done there.
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
	// pollParams are what a page that asks by itself has already (paymentPage.Poll).
	pollParams = params{"shown": verbatim, "stands": verbatim, "done": doneKey}
)

// codeQuery is the refusal of a query that a page cannot read. The API never sees it.
const codeQuery client.Code = "invalid_query"

// maxQuoted bounds, in characters, what a refusal repeats of a query.
const maxQuoted = 200

// readQuery reads the query of a page. What the page does not know, what is there twice and
// what cannot be read is refused, as by the API: a filter that is not applied would show,
// export and retry what was not meant.
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

// next is the query of the same list from a place on.
func (v *visit) next(cursor string) string {
	q := maps.Clone(v.query)
	q.Del("done")
	q.Set("cursor", cursor)
	return q.Encode()
}

func badQuery(name, code, text string) *client.Problem {
	return &client.Problem{Status: http.StatusUnprocessableEntity, Code: codeQuery,
		Errors: []client.FieldError{{Field: excerpt(name), Code: code, Message: excerpt(text)}}}
}

// quoted is the beginning of what was sent, whatever it is.
func excerpt(text string) string {
	letters := []rune(strings.ToValidUTF8(text, "?"))
	if len(letters) > maxQuoted {
		return string(letters[:maxQuoted]) + "…"
	}
	return string(letters)
}
