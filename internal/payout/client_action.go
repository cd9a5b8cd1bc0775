package payout

import "time"

// ClientActionType says what a client does with a ClientAction.
type ClientActionType string

// The types.
const (
	ClientSDK      ClientActionType = "client_sdk" // pass Parameters to the provider's SDK
	ClientRedirect ClientActionType = "redirect"   // open URL
	ClientQRCode   ClientActionType = "qr_code"    // show QRCode
)

// ClientAction is what the client of a sender needs in order to pay a charge, or that of a recipient in order
// to confirm a payout. It works like a bearer key: it is in no log, and elsewhere only sealed.
type ClientAction struct {
	Type       ClientActionType  `json:"type"`
	Parameters map[string]string `json:"parameters,omitempty"`
	URL        string            `json:"url,omitempty"`
	QRCode     string            `json:"qr_code,omitempty"`
	ValidUntil time.Time         `json:"valid_until"`
}

// MaxSealedAction is the maximum length in bytes of a sealed ClientAction of a recipient. A longer one is not
// stored: truncated it is of no use.
const MaxSealedAction = 2048
