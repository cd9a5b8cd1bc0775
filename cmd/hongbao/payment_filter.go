package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// filterFlags narrow a list of payouts or refunds, as the HTTP API does.
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
	flags.StringVar(&f.status, "status", "", "in this `status`: "+strings.Join(statusNames(), ", "))
	flags.StringVar(&f.packetID, "packet", "", "of this packet: its `id`")
	flags.StringVar(&f.userID, "user", "", "to this user: his `id`")
	flags.StringVar(&f.orderNo, "order-no", "", "that used this order `number`, in any attempt")
	flags.StringVar(&f.failureCode, "failure-code", "", "that failed with this `code`, account_frozen for example")
	flags.DurationVar(&f.olderThan, "older-than", 0, "made at least this `time` ago: whole seconds, 36h for example")
	flags.Int64Var(&f.amountMin, "amount-min", 0, "of this many `fen` or more")
	flags.Int64Var(&f.amountMax, "amount-max", 0, "of this many `fen` or less")
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

// failureCodes are completed, each with what it means; others are taken too:
// providers have codes of their own.
func failureCodes() []string {
	var codes []string
	for _, c := range payout.FailureCodes {
		codes = append(codes, cobra.CompletionWithDesc(c.Code, c.Message))
	}
	return codes
}

// given lists the filters that were typed.
func (f *filterFlags) given(cmd *cobra.Command) (names []string) {
	for _, name := range filterNames {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			names = append(names, "--"+name)
		}
	}
	return names
}

// read checks the filters, all of them before anything is sent: a filter that
// fits nothing by a slip would look like good news.
func (f *filterFlags) read(cmd *cobra.Command) (client.PayoutFilter, error) {
	var problems error
	wrong := func(format string, args ...any) { problems = errors.Join(problems, fmt.Errorf(format, args...)) }
	if f.status != "" && !payout.Status(f.status).Valid() {
		wrong("--status %q is none of %s", f.status, strings.Join(statusNames(), ", "))
	}
	if f.packetID != "" && !packet.ValidID(f.packetID) {
		wrong("--packet %q is not the id of a packet", f.packetID)
	}
	if f.orderNo != "" {
		if parts, err := payout.Parse(f.orderNo); err != nil || parts.PaymentID == f.orderNo {
			wrong("--order-no %q is not an order number", f.orderNo)
		}
	}
	if strings.ContainsFunc(f.failureCode, func(r rune) bool { return r <= ' ' || r > '~' }) {
		wrong("--failure-code %q has other than visible ASCII characters", f.failureCode)
	}
	if f.olderThan < 0 || f.olderThan%time.Second != 0 {
		wrong("--older-than %v is not a number of whole seconds", f.olderThan)
	}
	if f.amountMin < 0 || f.amountMax < 0 {
		wrong("--amount-min or --amount-max is below zero")
	}
	if cmd.Flags().Changed("amount-max") && f.amountMax < max(f.amountMin, 1) {
		wrong("--amount-max %d fits nothing from --amount-min %d on", f.amountMax, f.amountMin)
	}
	if problems != nil {
		return client.PayoutFilter{}, &usageError{problems}
	}
	return client.PayoutFilter{Status: client.PayoutStatus(f.status), PacketID: f.packetID, UserID: f.userID, OrderNo: f.orderNo,
		FailureCode: f.failureCode, OlderThan: f.olderThan, AmountMin: money.Fen(f.amountMin), AmountMax: money.Fen(f.amountMax)}, nil
}

// paymentID takes exactly one argument: the id of a payment of one of the kinds.
func paymentID(what string, kinds ...payout.Kind) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := oneArg(cmd, args); err != nil {
			return err
		}
		return checkPaymentID(args[0], what, kinds...)
	}
}

func checkPaymentID(id, what string, kinds ...payout.Kind) error {
	parts, err := payout.Parse(id)
	if err == nil && parts.PaymentID == id {
		for _, kind := range kinds {
			if parts.Kind == kind {
				return nil
			}
		}
	}
	if err == nil && parts.PaymentID != id {
		return &usageError{fmt.Errorf("%q is an order number; the %s it belongs to is %s", id, what, parts.PaymentID)}
	}
	return &usageError{fmt.Errorf("%q is not the id of a %s", id, what)}
}
