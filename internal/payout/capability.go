package payout

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hongbao/internal/money"
)

// Notified is a provider that sends notifications.
type Notified interface {
	Provider
	// VerifyNotification checks the signature of a notification and returns its id and order number.
	// Errors: ErrUnknownNotification for a signed one without them; ErrWrongProvider for a signed one of
	// another merchant account, which holds the provider; other errors: not signed.
	VerifyNotification(header http.Header, body []byte) (eventID, orderNo string, err error)
	// AnswerNotification returns the answer that the provider expects to a notification, refused or
	// not stored with err; nil: the API answers, with a problem document after an error.
	AnswerNotification(err error) *NotificationAnswer
}

// ErrNotPublished is returned for a statement that the provider has not made yet.
var ErrNotPublished = errors.New("the provider has not published it yet")

// Stated is a provider with a statement of each day. Errors of Statement: ErrNotPublished; any other means that there
// was no usable answer. The call may be repeated.
type Stated interface {
	Provider
	// Zone is the time zone of the statement's days, with its IANA name: the daily reconciliation is scheduled in it.
	Zone() *time.Location
	Statement(ctx context.Context, day Day, after string) (StatementPage, error)
}

// Totaled is a provider that sums the movements of a packet. Errors mean that there was no usable
// answer; the call may be repeated.
type Totaled interface {
	Provider
	Totals(ctx context.Context, packetID string) (ProviderTotals, error)
}

// Returning is a provider that lists the returned payments of one kind of a packet, in the order of
// their numbers. after is "" or the Next of the previous page. Errors as of Totaled.
type Returning interface {
	Provider
	Returns(ctx context.Context, kind Kind, packetID, after string) (ReturnPage, error)
}

// Checked is a provider with a harmless call: it moves nothing, and its error says why the settings
// or the provider do not work.
type Checked interface {
	Provider
	Check(ctx context.Context) error
}

// Funded is a provider that says how much of our money it has. Errors mean that there was no usable answer.
type Funded interface {
	Provider
	Funds(ctx context.Context) ([]Fund, error)
}

// Fund is an account of ours at a provider, with the money in it that can be used.
type Fund struct {
	Name      string
	Available money.Fen
	Payouts   bool // payouts are paid from it
}
