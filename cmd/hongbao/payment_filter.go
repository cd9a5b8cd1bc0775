package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// filterFlags are the filters of a list of payouts or refunds, as in the HTTP API.
type filterFlags struct {
	status      string
	packetID    string
	userID      string
	orderNo     string
	failureCode string
	olderThan   time.Duration
	amountMin   int64
	amountMax   int64
}

// filterNames are the flags in the order of the API's filters.
var filterNames = []string{"status", "packet", "user", "order-no", "failure-code", "older-than", "amount-min", "amount-max"}

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.status, "status", "", "only this `status`: "+strings.Join(statusNames(), ", "))
	packetID.flag(cmd, &f.packetID, "packet", "only of the packet with this `id`")
	flags.StringVar(&f.userID, "user", "", "only to the user with this `id`")
	orderNumber.flag(cmd, &f.orderNo, "order-no", "only with this order `number`, in any attempt")
	flags.StringVar(&f.failureCode, "failure-code", "", "only with this failure `code`, such as account_frozen")
	flags.DurationVar(&f.olderThan, "older-than", 0, "only created at least this `duration` ago: whole seconds, such as 36h")
	flags.Int64Var(&f.amountMin, "amount-min", 0, "only of this amount in `fen` or more")
	flags.Int64Var(&f.amountMax, "amount-max", 0, "only of this amount in `fen` or less")
	for _, name := range filterNames {
		switch name {
		case "status":
			complete(cmd, name, statusNames()...)
		case "failure-code":
			complete(cmd, name, failureCodes()...)
		default:
			complete(cmd, name)
		}
	}
}

func statusNames() []string {
	var names []string
	for _, s := range payout.Statuses {
		names = append(names, string(s))
	}
	return names
}

// failureCodes are completions with descriptions. Other codes are accepted: providers have their own.
func failureCodes() []string {
	var codes []string
	for _, c := range payout.FailureCodes {
		codes = append(codes, cobra.CompletionWithDesc(c.Code, c.Message))
	}
	return codes
}

// given returns the filter flags that are set.
func (f *filterFlags) given(cmd *cobra.Command) (names []string) {
	for _, name := range filterNames {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			names = append(names, "--"+name)
		}
	}
	return names
}

// read checks all filters before anything is sent: a mistyped filter that matches nothing would look like good news.
func (f *filterFlags) read(cmd *cobra.Command) (client.PayoutFilter, error) {
	var problems error
	wrong := func(format string, args ...any) { problems = errors.Join(problems, fmt.Errorf(format, args...)) }
	if f.status != "" && !payout.Status(f.status).Valid() {
		wrong("--status %q is none of %s: write one of them", f.status, strings.Join(statusNames(), ", "))
	}
	if strings.ContainsFunc(f.failureCode, func(r rune) bool { return r <= ' ' || r > '~' }) {
		wrong("--failure-code %q has other than visible ASCII characters: remove spaces and line ends", f.failureCode)
	}
	if f.olderThan < 0 || f.olderThan%time.Second != 0 {
		wrong("--older-than %v: write whole seconds, such as 36h", f.olderThan)
	}
	if f.amountMin < 0 || f.amountMax < 0 {
		wrong("--amount-min or --amount-max is below zero: write 0 or more")
	}
	if cmd.Flags().Changed("amount-max") && f.amountMax < max(f.amountMin, 1) {
		wrong("--amount-max %d is below --amount-min %d and matches nothing", f.amountMax, f.amountMin)
	}
	if problems != nil {
		return client.PayoutFilter{}, &usageError{problems}
	}
	return client.PayoutFilter{Status: wire.PayoutStatus(f.status), PacketID: f.packetID, UserID: f.userID, OrderNo: f.orderNo,
		FailureCode: f.failureCode, OlderThan: f.olderThan, AmountMin: money.Fen(f.amountMin), AmountMax: money.Fen(f.amountMax)}, nil
}
