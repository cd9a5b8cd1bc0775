// Package providertest is the suite that every adapter to a payment provider has
// to pass before it may move money. It knows nothing of a provider's protocol: it
// talks to the adapter as the payment machine does, to the provider through a
// Harness, and spoils what goes between the two by standing in between.
//
// What a provider cannot be made to do in a test is not passed over in silence:
// the harness says so, the table of the run lists it, and the list has to be the
// one that was agreed (Config.Cannot).
package providertest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hongbao/internal/payout"
)

// Adapter is what the payment machine asks of a provider. Send and Ask never
// return an error: silence and nonsense are observations too.
type Adapter interface {
	Name() string
	Limits() payout.Limits
	EncodeRequest(in payout.Instruction) ([]byte, error)
	Send(ctx context.Context, o payout.Order) payout.Observation
	Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation
}

// Notified is implemented by adapters to providers that send notifications.
type NotificationVerifier interface {
	// VerifyNotification returns the event's id, the same at every delivery, and
	// the order number it is about, or an error; then both are empty.
	VerifyNotification(header http.Header, body []byte) (eventID, orderNo string, err error)
}

// Stated is implemented by adapters to providers that give statements.
type StatementReader interface {
	Zone() *time.Location
	Statement(ctx context.Context, day payout.Day, after string) (payout.StatementPage, error)
}

// ErrUnsupported is what a harness answers when its provider cannot be made to do that.
var ErrUnsupported = errors.New("the provider cannot be made to do this")

// Situation is how the provider treats one account.
type Situation string

// The situations.
const (
	Succeeds       Situation = "succeeds"
	Declines       Situation = "declines"                 // for good, with a documented code
	StaysPending   Situation = "pending, then succeeds"   // within Config.Within
	NeedsRecipient Situation = "recipient has to confirm" // and nobody does
	Returns        Situation = "returned after success"   // within Config.Within
	LowBalance     Situation = "low balance"              // nothing is stored
	RateLimited    Situation = "rate limited"             // nothing is stored
	SilentBefore   Situation = "no answer, nothing stored"
	SilentAfter    Situation = "no answer, money moved"
	ErrorBefore    Situation = "server error, nothing stored"
	ErrorAfter     Situation = "server error, money moved"
	ErrorLate      Situation = "server error, lands later" // within Config.Within
	QuerySilent    Situation = "no answer to a query"
	QueryError     Situation = "server error to a query"
	QueryLimited   Situation = "query rate limited"
	NotFoundYet    Situation = "query says not found of an order that exists"
)

// Harness is a provider and the adapter to it.
type Harness interface {
	// Adapter returns the adapter under test, connected to the provider.
	Adapter() Adapter
	// Arrange returns an account, new at every call, that the provider treats so
	// until end is called. Errors: ErrUnsupported.
	Arrange(s Situation) (account string, end func(), err error)
	// Moved returns how often money was moved under an order number; what came
	// back is not counted. Errors: ErrUnsupported.
	Moved(orderNo string) (int, error)
	// Through returns an adapter as Adapter does, which finds the provider at
	// another base URL: the suite listens there. Errors: ErrUnsupported.
	Through(baseURL string) (Adapter, error)
	// Upstream is the provider's own base URL.
	Upstream() string
	// Delivered waits for a genuine notification about an order. Errors: ErrUnsupported.
	Delivered(ctx context.Context, orderNo string) (http.Header, []byte, error)
	// Sign returns the headers of a notification as the provider signs it; with
	// genuine false by somebody who does not know the secret. Errors: ErrUnsupported.
	Sign(genuine bool, eventID string, at time.Time, body []byte) (http.Header, error)
}

// Config is one run of the suite.
type Config struct {
	Harness Harness
	// Timeout is what one call of the adapter may take.
	Timeout time.Duration
	// Within is how long the provider may take to finish a pending order, to
	// return money and to deliver a notification.
	Within time.Duration
	// Currency of all orders.
	Currency string
	// Cannot lists the cases that this provider cannot be made to show. The run
	// fails when the list is not exact: a case that is not run is a risk that
	// somebody has to have seen.
	Unsupported []string
}
