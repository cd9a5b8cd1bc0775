package api

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/ticket"
)

// maxReason is the longest reason, and the longest evidence, in characters.
const maxReason = 500

// checkReason checks a reason or an evidence.
func checkReason(s string) *fault {
	switch n := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "" || n > maxReason:
		return &fault{faultLength, "must have 1 to 500 characters, not only spaces"}
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return &fault{faultCharacters, "must not contain control characters"}
	}
	return nil
}

// maxActor is the largest length of an actor, 64 characters, in bytes.
const maxActor = 64 * utf8.UTFMax

func checkActor(s string) *fault {
	if s == "" || len(s) > maxActor || !utf8.ValidString(s) {
		return &fault{faultFormat, fmt.Sprintf("must have 1 to %d bytes of UTF-8", maxActor)}
	}
	return nil
}

func checkAppID(s string) *fault {
	if !access.ValidAppID(s) {
		return &fault{faultFormat, "is not the id of an app"}
	}
	return nil
}

func checkOwner(s string) *fault {
	if !access.ValidOwner(s) {
		return &fault{faultCharacters, "must have 1 to 64 visible characters, no space at the ends"}
	}
	return nil
}

// maxNamed is how many payments a request can list by id.
const maxNamed = 100

// checkFilter checks a text that is only compared.
func checkFilter(s string) *fault {
	if s == "" || len(s) > maxFieldName || !utf8.ValidString(s) {
		return &fault{faultFormat, "must have 1 to 128 bytes of UTF-8"}
	}
	return nil
}

// checkCode checks a text that is compared with codes, which are ASCII: MySQL refuses to
// compare them with other text.
func checkCode(s string) *fault {
	if !isVisible(s, maxFieldName) {
		return &fault{faultFormat, "must have 1 to 128 visible ASCII characters"}
	}
	return nil
}

// isPayment checks for the id of a payment of one of some kinds. Share conflicts are listed as payouts.
func isPayment(kinds ...payout.Kind) func(string) bool {
	return func(id string) bool {
		parts, err := payout.Parse(id)
		return err == nil && slices.Contains(kinds, parts.Kind) && parts.PaymentID == id
	}
}

// checkIDs checks ids of one kind of thing, with commas between them.
func checkIDs(thing string) func(string) *fault {
	return func(text string) *fault {
		ids := strings.Split(text, ",")
		if len(ids) > maxNamed {
			return &fault{faultLength, fmt.Sprintf("must have 1 to %d ids", maxNamed)}
		}
		for i, id := range ids {
			if !things[thing].valid(id) {
				return &fault{faultFormat, "must be ids, each of a " + thing + ", with commas between them"}
			}
			if slices.Contains(ids[:i], id) {
				return &fault{faultDuplicate, "must have no id twice"}
			}
		}
		return nil
	}
}

func checkDay(s string) *fault {
	if _, err := payout.ParseDay(s); err != nil {
		return &fault{faultFormat, fmt.Sprintf("must be a day, YYYY-MM-DD, of the years %d to %d", payout.FirstYear, payout.LastYear)}
	}
	return nil
}

// checkTicketKey never repeats the text in its fault: it may be a private key sent by mistake.
func checkTicketKey(s string) *fault {
	if _, err := ticket.ParseKey(s); err != nil {
		return &fault{faultFormat, "is not one Ed25519 public key in PEM"}
	}
	return nil
}

// zone loads a time zone by its IANA name. Other names known to the machine are refused: its
// local zone, and zones with leap seconds.
func zone(name string) (*time.Location, error) {
	first, _, _ := strings.Cut(name, "/")
	if name == "" || len(name) > maxZoneName || slices.Contains([]string{"Local", "localtime", "posixrules", "Factory", "right", "posix"},
		first) {
		return nil, fmt.Errorf("time zone %q", name)
	}
	return time.LoadLocation(name)
}

func checkZone(name string) *fault {
	if _, err := zone(name); err != nil {
		return &fault{faultFormat, "must be the IANA name of a time zone such as Asia/Shanghai"}
	}
	return nil
}

const (
	defaultZone = "Asia/Shanghai"
	maxZoneName = 64
)

const (
	maxRecipientName = 64 // characters
	maxAuthorization = 64 // bytes
)

func checkRecipientName(s string) *fault {
	if s == "" {
		return &fault{faultLength, "must not be empty"}
	}
	return checkText(maxRecipientName)(s)
}

func checkAuthorization(s string) *fault {
	if !isVisible(s, maxAuthorization) {
		return &fault{faultFormat, "must be 1 to 64 visible ASCII characters"}
	}
	return nil
}

// rfc3339 matches a valid time. time.Parse also accepts one-digit hours, commas for points,
// and zones of a whole day.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// parseTime reads an RFC 3339 time.
func parseTime(s string) (time.Time, error) {
	if !rfc3339.MatchString(s) {
		return time.Time{}, errors.New("not an RFC 3339 time")
	}
	return time.Parse(time.RFC3339, s)
}

// checkText checks a text for people: at most limit characters, no control characters.
func checkText(limit int) func(string) *fault {
	return func(s string) *fault {
		switch {
		case utf8.RuneCountInString(s) > limit:
			return &fault{faultLength, fmt.Sprintf("must have at most %d characters", limit)}
		case strings.ContainsFunc(s, unicode.IsControl):
			return &fault{faultCharacters, "must not contain control characters"}
		}
		return nil
	}
}

func valueOr[T any](v *T, other T) T {
	if v == nil {
		return other
	}
	return *v
}

// isVisible reports whether s is 1 to max visible ASCII characters.
func isVisible(s string, max int) bool {
	if len(s) == 0 || len(s) > max {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// checkID checks a user, sender, group or account id: 1 to 64 bytes of UTF-8
// without control characters.
func checkID(s string) *fault {
	switch {
	case len(s) == 0 || len(s) > packet.MaxUserIDBytes:
		return &fault{faultLength, fmt.Sprintf("must have 1 to %d bytes", packet.MaxUserIDBytes)}
	case !utf8.ValidString(s):
		return &fault{faultCharacters, "must be UTF-8"}
	case strings.ContainsFunc(s, unicode.IsControl):
		return &fault{faultCharacters, "must not contain control characters"}
	}
	return nil
}
