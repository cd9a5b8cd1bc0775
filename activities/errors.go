package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Error types that workflows read. All other errors are retried without limit.
const (
	// TypeConflict: stored with other contents; a defect or tampering. Final.
	TypeConflict = "conflict"
	// TypeUnavailable: a store did not answer. Retried.
	TypeUnavailable = "unavailable"
	// TypeGone: the pool is not in Redis. Retried: a repeated create stages it again, or a
	// rebuild writes it.
	TypeGone = "pool_gone"
	// TypeNotFound: the row does not exist (yet). Retried.
	TypeNotFound = "not_found"
	// TypeOtherProvider: the payment belongs to another provider or merchant account than this
	// worker's adapter. Retried until a matching worker takes it or the settings are corrected.
	TypeOtherProvider = "other_provider"
	// TypeThrottled: a query waits for the throttle. Retried after the wait.
	TypeThrottled = "throttled"
	// TypeDefect: the status table forbids the requested change. Final.
	TypeDefect = "defect"
)

// temporalError maps our errors to Temporal's error types; no other code does.
func temporalError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, packet.ErrConflict):
		return temporal.NewNonRetryableApplicationError(err.Error(), TypeConflict, err)
	case errors.Is(err, payout.ErrTransition):
		return temporal.NewNonRetryableApplicationError(err.Error(), TypeDefect, err)
	case errors.Is(err, payout.ErrWrongProvider), errors.Is(err, payout.ErrProviderMissing):
		return temporal.NewApplicationErrorWithCause(err.Error(), TypeOtherProvider, err)
	case errors.Is(err, packet.ErrPoolGone):
		return temporal.NewApplicationErrorWithCause(err.Error(), TypeGone, err)
	case errors.Is(err, packet.ErrNotFound):
		return temporal.NewApplicationErrorWithCause(err.Error(), TypeNotFound, err)
	case errors.Is(err, packet.ErrUnavailable), errors.Is(err, payout.ErrHeld), errors.Is(err, payout.ErrMySQLRestored):
		return temporal.NewApplicationErrorWithCause(err.Error(), TypeUnavailable, err)
	}
	return err
}

// throttled is the error of a query that waits for the throttle. It is expected, so it is neither logged nor counted as
// a failure.
func throttled(orderNo string, wait time.Duration) error {
	return temporal.NewApplicationErrorWithOptions("query of order "+orderNo+" waits for the throttle", TypeThrottled,
		temporal.ApplicationErrorOptions{NextRetryDelay: wait, Category: temporal.ApplicationErrorCategoryBenign})
}

// TemporalRefuses reports whether Temporal rejected this start or signal as invalid. A retry gets
// the same answer.
func TemporalRefuses(err error) bool {
	_, is := errors.AsType[*serviceerror.InvalidArgument](err)
	return is
}

// TemporalUnavailable reports whether an error of a call to Temporal implies that other calls
// fail too: Temporal is overloaded or does not answer.
func TemporalUnavailable(err error) bool {
	var (
		busy *serviceerror.ResourceExhausted
		away *serviceerror.Unavailable
		late *serviceerror.DeadlineExceeded
	)
	return errors.As(err, &busy) || errors.As(err, &away) || errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled)
}
