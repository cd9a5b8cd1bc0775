// Package providertest is the suite that every adapter to a payment provider has to pass before it
// may move money. It knows no provider's protocol: it calls the adapter as the payment machine
// does, controls the provider through a Harness, and spoils answers with a proxy in between.
//
// What a provider cannot be made to do in a test is reported: the harness returns ErrUnsupported,
// the table of the run lists the case, and the list has to equal the agreed one
// (Config.Unsupported).
package providertest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hongbao/internal/payout"
)

// Adapter is the interface of the payment machine to a provider. Send and Query never return an
// error: silence and nonsense are observations too.
type Adapter interface {
	Name() string
	Limits() payout.Limits
	EncodeRequest(in payout.Instruction) ([]byte, error)
	Send(ctx context.Context, o payout.Order) payout.Observation
	Query(ctx context.Context, op payout.Op, orderNo string) payout.Observation
}

// NotificationVerifier is implemented by adapters to providers that send notifications.
type NotificationVerifier interface {
	// VerifyNotification returns the event's id, the same at every delivery, and the order number
	// of the event, or an error; then both are empty.
	VerifyNotification(header http.Header, body []byte) (eventID, orderNo string, err error)
}

// StatementReader is implemented by adapters to providers with statements.
type StatementReader interface {
	Zone() *time.Location
	Statement(ctx context.Context, day payout.Day, after string) (payout.StatementPage, error)
}

// ErrUnsupported is returned by a harness whose provider cannot be made to do this.
var ErrUnsupported = errors.New("the provider cannot be made to do this")

// Situation is the provider's behaviour towards one account.
type Situation string

// The situations.
const (
	Succeeds       Situation = "succeeds"
	Declines       Situation = "declines"                 // final, with a documented code
	StaysPending   Situation = "pending, then succeeds"   // within Config.Within
	NeedsRecipient Situation = "recipient has to confirm" // no confirmation arrives
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
	// Arrange returns an account, new at every call, with the provider's behaviour s until end is
	// called. Errors: ErrUnsupported.
	Arrange(s Situation) (account string, end func(), err error)
	// Moved returns how often money was moved under an order number; returns are not counted.
	// Errors: ErrUnsupported.
	Moved(orderNo string) (int, error)
	// Through returns an adapter like Adapter, with the provider at another base URL, where the
	// suite's proxy listens. Errors: ErrUnsupported.
	Through(baseURL string) (Adapter, error)
	// Upstream is the provider's own base URL.
	Upstream() string
	// Delivered waits for a genuine notification about an order. Errors: ErrUnsupported.
	Delivered(ctx context.Context, orderNo string) (http.Header, []byte, error)
	// Sign returns the headers of a notification as the provider signs it; with genuine false,
	// signed with a wrong secret. Errors: ErrUnsupported.
	Sign(genuine bool, eventID string, at time.Time, body []byte) (http.Header, error)
}

// Instructor is implemented by harnesses whose provider needs more of an order than its account and
// amount: a recipient's name, an authorisation, the charge of a refund.
type Instructor interface {
	// Instruct completes an instruction; the same one always in the same way.
	Instruct(in *payout.Instruction)
}

// Payer is implemented by harnesses whose charges wait for their sender (payout.Method.NeedsPayer).
type Payer interface {
	// Pay is the sender's payment of a charge.
	Pay(orderNo string) error
}

// Enveloped is implemented by harnesses whose stored requests hold more than the body of the call.
type Enveloped interface {
	// Body returns the body of the call for a stored request.
	Body(request []byte) []byte
}

// Config is one run of the suite.
type Config struct {
	Harness Harness
	// Timeout is the maximum duration of one call of the adapter.
	Timeout time.Duration
	// Within is how long the provider may take to finish a pending order, to return money and to
	// deliver a notification.
	Within time.Duration
	// Currency of all orders.
	Currency string
	// Unsupported lists the cases that this provider cannot be made to show. The run fails when the
	// list is not exact: an omitted case is a risk that has to be accepted explicitly.
	Unsupported []string
}
