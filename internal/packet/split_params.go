package packet

import (
	"errors"
	"fmt"
	"strings"

	"hongbao/internal/money"
)

// SplitMode says how a packet's total is divided into shares.
type SplitMode string

// The split modes. Whatever the mode, the shares add up to the total exactly,
// each lies within [Min, Max], and no share index is better than another.
const (
	// SplitRandom is the doubled mean: each share is uniform around the mean of
	// what is left, so that a share of nearly twice the mean is as likely as a
	// share near the minimum.
	SplitRandom SplitMode = "random"
	// SplitEqual gives everybody the same; shares differ by 1 fen at most, when
	// the total cannot be divided evenly.
	SplitEqual SplitMode = "equal"
	// SplitEven gives everybody the same large part and draws only a small rest,
	// which is about one mean in all, by doubled mean: lucky, but close together.
	SplitEven SplitMode = "even"
	// SplitNormal draws from a bell curve around the mean with a standard
	// deviation of a third of it, cut off at the nearer of Min and Max.
	SplitNormal SplitMode = "normal"
)

// SplitModes lists every split mode, in the order of the API document.
var SplitModes = []SplitMode{SplitRandom, SplitEqual, SplitEven, SplitNormal}

// ParseSplitMode returns the mode with this name. Any other text, the empty one
// too, returns a *SplitParamError for the field "split".
func ParseSplitMode(text string) (SplitMode, error) {
	for _, mode := range SplitModes {
		if text == string(mode) {
			return mode, nil
		}
	}
	return "", &SplitParamError{Field: "split", Code: CodeUnknownSplit, Message: "must be one of random, equal, even, normal"}
}

// SplitParams is everything, besides the seed, that decides how a packet is split.
type SplitParams struct {
	// PacketID binds the random stream to one packet.
	PacketID string
	Mode     SplitMode
	// Total is what is divided, 1 to money.Max.
	Total money.Fen
	// Count is the number of shares, 1 to MaxShares.
	Count int
	// Min is the least share, at least 1 fen: a share of nothing cannot be paid.
	Min money.Fen
	// Max is the largest share; 0 stands for no cap.
	Max money.Fen
}

// Codes of a SplitParamError.
const (
	CodeUnknownSplit  = "unknown_split"   // the mode is none of SplitModes
	CodeOutOfRange    = "out_of_range"    // the value itself is outside its limits
	CodeTotalTooSmall = "total_too_small" // the total cannot give every share the minimum
	CodeTotalTooLarge = "total_too_large" // the total does not fit into the shares under the cap
	CodeBadPacketID   = "bad_packet_id"   // not the form of a packet id
	CodeBelowMinimum  = "below_minimum"   // the total cannot give every share the payout provider's minimum
	CodeAboveMaximum  = "above_maximum"   // the total does not fit into shares of the payout provider's maximum
)

// SplitParamError is one fault of one field. Field is the field's name in the
// create request (split, total_amount, share_count, min_share, max_share).
type SplitParamError struct {
	Field   string
	Code    string
	Message string // for the caller of the API
}

// Error implements error.
func (e *SplitParamError) Error() string { return e.Field + ": " + e.Message }

// SplitParamErrors holds every fault found, at least one, in the order of the
// fields. errors.As reaches the single faults.
type SplitParamErrors []*SplitParamError

// Error implements error.
func (e SplitParamErrors) Error() string {
	faults := make([]string, len(e))
	for i, fault := range e {
		faults[i] = fault.Error()
	}
	return "split parameters: " + strings.Join(faults, "; ")
}

// Unwrap returns the single faults, for errors.As.
func (e SplitParamErrors) Unwrap() []error {
	faults := make([]error, len(e))
	for i, fault := range e {
		faults[i] = fault
	}
	return faults
}

// Validate reports whether a split with these parameters exists, as SplitParamErrors or nil.
// Relations between fields are checked only once each field is in range. PacketID is not checked,
// because a request is validated before it has an id; Split checks it.
func (p SplitParams) Validate() error {
	var faults SplitParamErrors
	outOfRange := func(field, format string, args ...any) {
		faults = append(faults, &SplitParamError{Field: field, Code: CodeOutOfRange, Message: fmt.Sprintf(format, args...)})
	}
	if _, err := ParseSplitMode(string(p.Mode)); err != nil {
		if fault, ok := errors.AsType[*SplitParamError](err); ok {
			faults = append(faults, fault)
		}
	}
	if p.Total < 1 || p.Total > money.Max {
		outOfRange("total_amount", "must be from 1 to %d", int64(money.Max))
	}
	if p.Count < 1 || p.Count > MaxShares {
		outOfRange("share_count", "must be from 1 to %d", MaxShares)
	}
	if p.Min < 1 || p.Min > money.Max {
		outOfRange("min_share", "must be from 1 to %d", int64(money.Max))
	}
	if p.Max != 0 && (p.Max < 1 || p.Max > money.Max || p.Max < p.Min) {
		outOfRange("max_share", "must be from min_share to %d", int64(money.Max))
	}
	if len(faults) > 0 {
		return faults
	}
	if fault := p.totalFault(); fault != nil {
		return SplitParamErrors{fault}
	}
	return nil
}

// totalFault checks Count*Min <= Total <= Count*Max for fields that are in
// range. It divides: the products go up to 2^73.
func (p SplitParams) totalFault() *SplitParamError {
	count := money.Fen(p.Count)
	roundedDown := p.Total / count
	roundedUp := roundedDown
	if p.Total%count != 0 {
		roundedUp++
	}
	if p.Min > roundedDown {
		return &SplitParamError{Field: "total_amount", Code: CodeTotalTooSmall, Message: "must be at least share_count times min_share"}
	}
	if p.Max != 0 && p.Max < roundedUp {
		return &SplitParamError{Field: "total_amount", Code: CodeTotalTooLarge, Message: "must be at most share_count times max_share"}
	}
	return nil
}
