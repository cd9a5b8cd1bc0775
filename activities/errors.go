package activities

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Types of the errors workflows look at. Everything else is retried for ever.
const (
	// TypeConflict: stored with other contents. Final; a defect or tampering.
	TypeConflict = "conflict"
	// TypeUnavailable: a store could not be asked. Retried.
	TypeUnavailable = "unavailable"
	// TypeGone: the pool is not in Redis. Retried: a repeated create stages it again, or a rebuild makes it.
	TypeGone = "pool_gone"
	// TypeNotFound: the row is not there (yet). Retried.
	TypeNotFound = "not_found"
	// TypeNotClosing: the row is back at a step before closing, because the books were
	// restored (rule R13). Final: the run reads the row and begins anew (rule R3).
	TypeNotClosing = "not_closing"
	// TypeNotDeclined: the charge that was declined is not, for the same cause. Final, as above.
	TypeNotDeclined = "not_declined"
	// TypeOtherProvider: the payment is of another provider, or of another account there, than
	// this worker's adapter. Retried: by a worker of its own, or once this one is corrected.
	TypeOtherProvider = "other_provider"
	// TypeDefect: the status table forbids a change the code asked for. Final.
	TypeDefect = "defect"
)

// typed is the one switch from our errors to Temporal's error types.
func typed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, packet.ErrConflict):
		return temporal.NewNonRetryableApplicationError(err.Error(), TypeConflict, err)
	case errors.Is(err, payout.ErrTransition):
		return temporal.NewNonRetryableApplicationError(err.Error(), TypeDefect, err)
	case errors.Is(err, packet.ErrNotClosing):
		return temporal.NewNonRetryableApplicationError(err.Error(), TypeNotClosing, err)
	case errors.Is(err, packet.ErrNotDeclined):
		return temporal.NewNonRetryableApplicationError(err.Error(), TypeNotDeclined, err)
	case errors.Is(err, payout.ErrWrongProvider):
		return temporal.NewApplicationErrorWithCause(err.Error(), TypeOtherProvider, err)
	case errors.Is(err, packet.ErrPoolGone):
		return temporal.NewApplicationErrorWithCause(err.Error(), TypeGone, err)
	case errors.Is(err, packet.ErrNotFound):
		return temporal.NewApplicationErrorWithCause(err.Error(), TypeNotFound, err)
	case errors.Is(err, packet.ErrUnavailable), errors.Is(err, payout.ErrMySQLRestored):
		return temporal.NewApplicationErrorWithCause(err.Error(), TypeUnavailable, err)
	}
	return err
}

// TemporalRefuses reports whether Temporal has answered that it does not take this start, or
// signal, whatever others it takes. A repeat changes nothing.
func TemporalRefuses(err error) bool {
	_, is := errors.AsType[*serviceerror.InvalidArgument](err)
	return is
}

// TemporalUnavailable reports whether an error of a call to Temporal says that other calls fail as
// well: it is busy, or does not answer.
func TemporalUnavailable(err error) bool {
	var (
		busy *serviceerror.ResourceExhausted
		away *serviceerror.Unavailable
		late *serviceerror.DeadlineExceeded
	)
	return errors.As(err, &busy) || errors.As(err, &away) || errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled)
}
