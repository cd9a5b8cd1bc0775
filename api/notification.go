package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// unsignedLog bounds the log lines about unsigned notifications: anybody can send them.
var unsignedLog logThrottle

// receiveNotification stores a notification once and answers as the provider expects.
func receiveNotification(r *request) (answer, error) {
	to, err := r.server.cfg.Providers.Of(r.c.Params("name"))
	provider, notified := to.(payout.Notified)
	if err != nil || !notified {
		return answer{}, refuse(wire.CodeUnauthenticated)
	}
	cause := r.storeNotification(provider)
	if own := provider.AnswerNotification(cause); own != nil {
		return answer{status: own.Status, raw: own.Body, kind: own.Type}, nil
	}
	switch {
	case errors.Is(cause, payout.ErrUnknownNotification):
		return answer{}, notificationFaults(r.payload)
	case errors.Is(cause, errNotVerified):
		return answer{}, refuse(wire.CodeUnauthenticated)
	}
	return answer{status: http.StatusNoContent}, cause
}

// errNotVerified means that the provider's adapter refused a notification.
var errNotVerified = errors.New("notification refused")

// storeNotification stores a notification. The provider's signature is checked first: an unsigned
// notification is refused without details, a signed one with the faults of its body. Errors: those of
// the adapter with errNotVerified, those of the store.
func (r *request) storeNotification(provider payout.Notified) error {
	header := http.Header{}
	for name, value := range r.c.Request().Header.All() {
		header.Add(string(name), string(value))
	}
	eventID, orderNo, err := provider.VerifyNotification(header, r.payload)
	if err != nil {
		signed := errors.Is(err, payout.ErrUnknownNotification)
		if signed || unsignedLog.allow() { // signed notifications are few
			slog.WarnContext(r.ctx, "notification refused", slog.String(observe.LogRequest, r.id), slog.Any("error", err))
		}
		return fmt.Errorf("%w: %w", errNotVerified, err)
	}
	return r.server.cfg.Store.RecordNotification(r.ctx, provider.Limits().Adapter, eventID, orderNo, r.payload)
}

// notificationFaults returns what is wrong with a signed body that names no order. Unknown
// members are permitted: a provider may add some.
func notificationFaults(body []byte) error {
	o, err := readObject(body)
	if err != nil {
		return err
	}
	o.text("event_id", false, nil)
	o.text("order_no", true, nil)
	if len(*o.faults) == 0 {
		o.fault("event_id", fault{faultFormat, "must be what webhook-id says or left out, and order_no not empty"})
	}
	return invalid(*o.faults...)
}
