package rest

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
func checkReason(s string) *Fault {
	switch n := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "" || n > maxReason:
		return &Fault{FaultLength, "must have 1 to 500 characters, not only spaces"}
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return &Fault{FaultCharacters, "must not contain control characters"}
	}
	return nil
}

// maxActor is the largest length of an actor, 64 characters, in bytes.
const maxActor = 64 * utf8.UTFMax

func checkActor(s string) *Fault {
	if s == "" || len(s) > maxActor || !utf8.ValidString(s) {
		return &Fault{FaultFormat, fmt.Sprintf("must have 1 to %d bytes of UTF-8", maxActor)}
	}
	return nil
}

func checkAppID(s string) *Fault {
	if !access.ValidAppID(s) {
		return &Fault{FaultFormat, "is not the id of an app"}
	}
	return nil
}

func checkOwner(s string) *Fault {
	if !access.ValidOwner(s) {
		return &Fault{FaultCharacters, "must have 1 to 64 visible characters, no space at the ends"}
	}
	return nil
}

// maxNamed is how many payments a request can list by id.
const maxNamed = 100

// checkFilter checks a text that is only compared.
func checkFilter(s string) *Fault {
	if s == "" || len(s) > maxFieldName || !utf8.ValidString(s) {
		return &Fault{FaultFormat, "must have 1 to 128 bytes of UTF-8"}
	}
	return nil
}

// checkCode checks a text that is compared with codes, which are ASCII: MySQL refuses to
// compare them with other text.
func checkCode(s string) *Fault {
	if !IsVisible(s, maxFieldName) {
		return &Fault{FaultFormat, "must have 1 to 128 visible ASCII characters"}
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
func checkIDs(thing string) func(string) *Fault {
	return func(text string) *Fault {
		ids := strings.Split(text, ",")
		if len(ids) > maxNamed {
			return &Fault{FaultLength, fmt.Sprintf("must have 1 to %d ids", maxNamed)}
		}
		for i, id := range ids {
			if !things[thing].valid(id) {
				return &Fault{FaultFormat, "must be ids, each of a " + thing + ", with commas between them"}
			}
			if slices.Contains(ids[:i], id) {
				return &Fault{FaultDuplicate, "must have no id twice"}
			}
		}
		return nil
	}
}

// CheckDay checks a day.
func CheckDay(s string) *Fault {
	if _, err := payout.ParseDay(s); err != nil {
		return &Fault{FaultFormat, fmt.Sprintf("must be a day, YYYY-MM-DD, of the years %d to %d", payout.FirstYear, payout.LastYear)}
	}
	return nil
}

// checkTicketKey never repeats the text in its fault: it may be a private key sent by mistake.
func checkTicketKey(s string) *Fault {
	if _, err := ticket.ParseKey(s); err != nil {
		return &Fault{FaultFormat, "is not one Ed25519 public key in PEM"}
	}
	return nil
}

// Zone loads a time zone by its IANA name. Other names known to the machine are refused: its
// local zone, and zones with leap seconds.
func Zone(name string) (*time.Location, error) {
	first, _, _ := strings.Cut(name, "/")
	if name == "" || len(name) > maxZoneName || slices.Contains([]string{"Local", "localtime", "posixrules", "Factory", "right", "posix"},
		first) {
		return nil, fmt.Errorf("time zone %q", name)
	}
	return time.LoadLocation(name)
}

// CheckZone checks the name of a time zone.
func CheckZone(name string) *Fault {
	if _, err := Zone(name); err != nil {
		return &Fault{FaultFormat, "must be the IANA name of a time zone such as Asia/Shanghai"}
	}
	return nil
}

// DefaultZone is the time zone of local times.
const DefaultZone = "Asia/Shanghai"

const maxZoneName = 64

const (
	maxRecipientName = 64 // characters
	maxAuthorization = 64 // bytes
)

func checkRecipientName(s string) *Fault {
	if s == "" {
		return &Fault{FaultLength, "must not be empty"}
	}
	return CheckText(maxRecipientName)(s)
}

func checkAuthorization(s string) *Fault {
	if !IsVisible(s, maxAuthorization) {
		return &Fault{FaultFormat, "must be 1 to 64 visible ASCII characters"}
	}
	return nil
}

// rfc3339 matches a valid time. time.Parse also accepts one-digit hours, commas for points,
// and zones of a whole day.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseTime reads an RFC 3339 time.
func ParseTime(s string) (time.Time, error) {
	if !rfc3339.MatchString(s) {
		return time.Time{}, errors.New("not an RFC 3339 time")
	}
	return time.Parse(time.RFC3339, s)
}

// CheckText checks a text for people: at most limit characters, no control characters.
func CheckText(limit int) func(string) *Fault {
	return func(s string) *Fault {
		switch {
		case utf8.RuneCountInString(s) > limit:
			return &Fault{FaultLength, fmt.Sprintf("must have at most %d characters", limit)}
		case strings.ContainsFunc(s, unicode.IsControl):
			return &Fault{FaultCharacters, "must not contain control characters"}
		}
		return nil
	}
}

// ValueOr returns what v points to; other for nil.
func ValueOr[T any](v *T, other T) T {
	if v == nil {
		return other
	}
	return *v
}

// IsVisible reports whether s is 1 to max visible ASCII characters.
func IsVisible(s string, max int) bool {
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

// CheckID checks a user, sender, group or account id: 1 to 64 bytes of UTF-8
// without control characters.
func CheckID(s string) *Fault {
	switch {
	case len(s) == 0 || len(s) > packet.MaxUserIDBytes:
		return &Fault{FaultLength, fmt.Sprintf("must have 1 to %d bytes", packet.MaxUserIDBytes)}
	case !utf8.ValidString(s):
		return &Fault{FaultCharacters, "must be UTF-8"}
	case strings.ContainsFunc(s, unicode.IsControl):
		return &Fault{FaultCharacters, "must not contain control characters"}
	}
	return nil
}
