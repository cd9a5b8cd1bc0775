package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// filterNames are the flags of a list of payouts or refunds, in the order of the API's filters.
var filterNames = []string{"status", "packet", "user", "order-no", "failure-code", "older-than", "amount-min", "amount-max"}

// paymentFlags are the filters of a list of payouts or refunds; checkFilter completes the embedded one.
type paymentFlags struct {
	wire.RefundFilter
	olderThan time.Duration
	min, max  money.Fen
}

// filterFlags declares the filters of a list of payouts or refunds, as in the HTTP API.
func filterFlags(flags *pflag.FlagSet, f *paymentFlags) {
	choice(flags, &f.Status, "status", "only this `status`: ", payout.Statuses)
	packetID.flag(flags, &f.PacketID, "packet", "only of the packet with this `id`")
	flags.StringVar(&f.UserID, "user", "", "only to the user with this `id`")
	orderNumber.flag(flags, &f.OrderNo, "order-no", "only with this order `number`, in any attempt")
	suggest(flags, &f.FailureCode, "failure-code", "only with this failure `code`, such as account_frozen", failureCodes())
	secondsFlag(flags, &f.olderThan, "older-than", "only created at least this `duration` ago: whole seconds, such as 36h")
	flags.Int64Var((*int64)(&f.min), "amount-min", 0, "only of this amount in `fen` or more")
	flags.Int64Var((*int64)(&f.max), "amount-max", 0, "only of this amount in `fen` or less")
}

// failureCodes are completions with descriptions. Other codes are accepted: providers have their own.
func failureCodes() []string {
	var codes []string
	for _, c := range payout.FailureCodes {
		codes = append(codes, cobra.CompletionWithDesc(c.Code, c.Message))
	}
	return codes
}

// givenFilters returns the filter flags that are set.
func givenFilters(t *call) (names []string) {
	for _, name := range filterNames {
		if t.cmd.Flags().Changed(name) {
			names = append(names, "--"+name)
		}
	}
	return names
}

// checkFilter checks all filters before anything is sent: a mistyped filter that matches nothing would look like good news.
func checkFilter(t *call, f *paymentFlags) error {
	var problems error
	wrong := func(format string, args ...any) { problems = errors.Join(problems, fmt.Errorf(format, args...)) }
	if strings.ContainsFunc(f.FailureCode, func(r rune) bool { return r <= ' ' || r > '~' }) {
		wrong("--failure-code %q has other than visible ASCII characters: remove spaces and line ends", f.FailureCode)
	}
	if f.min < 0 || f.max < 0 {
		wrong("--amount-min or --amount-max is below zero: write 0 or more")
	}
	if t.cmd.Flags().Changed("amount-max") && f.max < max(f.min, 1) {
		wrong("--amount-max %d is below --amount-min %d and matches nothing", f.max, f.min)
	}
	if problems != nil {
		return &usageError{problems}
	}
	f.OlderThanSeconds, f.AmountMin, f.AmountMax = seconds(f.olderThan), wire.NonZero(f.min), wire.NonZero(f.max)
	return nil
}
