package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"hongbao/api/rest"
	"hongbao/internal/observe"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// unsignedLog bounds the log lines about unsigned notifications: anybody can send them.
var unsignedLog logThrottle

// receiveNotification stores a notification once and answers as the provider expects.
func receiveNotification(r *request) (rest.Answer, error) {
	to, err := r.server.cfg.Providers.Of(r.C.Params("name"))
	provider, notified := to.(payout.Notified)
	if err != nil || !notified {
		return rest.Answer{}, rest.Refuse(wire.CodeUnauthenticated)
	}
	cause := r.storeNotification(provider)
	if own := provider.AnswerNotification(cause); own != nil {
		return rest.Answer{Status: own.Status, Raw: own.Body, Kind: own.Type}, nil
	}
	switch {
	case errors.Is(cause, payout.ErrUnknownNotification):
		return rest.Answer{}, notificationFaults(r.Payload)
	case errors.Is(cause, errNotVerified):
		return rest.Answer{}, rest.Refuse(wire.CodeUnauthenticated)
	}
	return rest.Answer{Status: http.StatusNoContent}, cause
}

// errNotVerified means that the provider's adapter refused a notification.
var errNotVerified = errors.New("notification refused")

// storeNotification stores a notification. The provider's signature is checked first: an unsigned
// notification is refused without details, a signed one with the faults of its body. A signed one of
// another merchant account holds the provider. Errors: those of the adapter with errNotVerified, those
// of the store.
func (r *request) storeNotification(provider payout.Notified) error {
	header := http.Header{}
	for name, value := range r.C.Request().Header.All() {
		header.Add(string(name), string(value))
	}
	eventID, orderNo, err := provider.VerifyNotification(header, r.Payload)
	if err != nil {
		signed := errors.Is(err, payout.ErrUnknownNotification) || errors.Is(err, payout.ErrWrongProvider)
		if signed || unsignedLog.allow() { // signed notifications are few
			slog.WarnContext(r.Ctx, "notification refused", slog.String(observe.LogRequest, r.ID), slog.Any("error", err))
		}
		if errors.Is(err, payout.ErrWrongProvider) { // signed; a repeat holds it if this fails
			if err := r.server.cfg.Store.HoldNotified(r.Ctx, provider.Name(), err); err != nil {
				return err
			}
		}
		return fmt.Errorf("%w: %w", errNotVerified, err)
	}
	return r.server.cfg.Store.RecordNotification(r.Ctx, provider.Limits().Adapter, eventID, orderNo, r.Payload)
}

// notificationFaults returns what is wrong with a signed body that names no order. Unknown
// members are permitted: a provider may add some.
func notificationFaults(body []byte) error {
	o, err := rest.ReadObject(body)
	if err != nil {
		return err
	}
	o.Text("event_id", false, nil)
	o.Text("order_no", true, nil)
	if len(*o.Faults) == 0 {
		o.Fault("event_id", rest.Fault{Code: rest.FaultFormat, Message: "must be what webhook-id says or left out, and order_no not empty"})
	}
	return rest.Invalid(*o.Faults...)
}
