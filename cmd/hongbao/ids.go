package main

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// idForm is the form of one kind of ids. Commands check it before they send anything: a mistyped id needs no server.
type idForm struct {
	name   string // with its article, such as "the id of a packet"
	write  string // the form in words
	valid  func(id string) bool
	secret bool // the text may be a secret: errors do not hold it
}

const (
	writeBase32 = "20 characters of 0-9 and a-v"
	writePayout = "25 characters, such as p3q5k9v0c1m7e2u8h4r6t0003"
	writeRefund = "25 characters, such as r3q5k9v0c1m7e2u8h4r6t0000"
	writeCharge = "25 characters, such as c3q5k9v0c1m7e2u8h4r6t0000"
	writeKey    = "12 characters of a-z and 2-7"
)

// The forms of all ids that commands take, except those that apps choose, such as the ids of users.
var (
	packetID   = idForm{name: "the id of a packet", write: writeBase32, valid: packet.ValidID}
	campaignID = idForm{name: "the id of a campaign", write: writeBase32, valid: packet.ValidID}
	payoutID   = idForm{name: "the id of a payout", write: writePayout, valid: idOf(payout.KindPayout, payout.KindHonour)}
	refundID   = idForm{name: "the id of a refund", write: writeRefund, valid: idOf(payout.KindRefund)}
	chargeID   = idForm{name: "the id of a charge", write: writeCharge, valid: idOf(payout.KindCharge)}
	paymentID  = idForm{name: "the id of a payout or refund", write: writePayout,
		valid: idOf(payout.KindPayout, payout.KindHonour, payout.KindRefund)}
	orderNumber = idForm{name: "an order number", write: "27 characters, such as p3q5k9v0c1m7e2u8h4r6t000301", valid: isOrderNumber}
	approvalID  = idForm{name: "the id of an approval", write: "a and 25 characters of A-Z and 2-7",
		valid: regexp.MustCompile(`^a[A-Z2-7]{25}$`).MatchString}
	reconciliationID = idForm{name: "the id of a reconciliation", write: "s and 25 characters of A-Z and 2-7",
		valid: regexp.MustCompile(`^s[A-Z2-7]{25}$`).MatchString}
	anyPaymentID = idForm{name: "the id of a charge, payout or refund", write: writePayout,
		valid: idOf(payout.KindCharge, payout.KindPayout, payout.KindHonour, payout.KindRefund)}
	holdID = idForm{name: "the id of a hold", write: "h and a number, such as h12",
		valid: regexp.MustCompile(`^h[1-9][0-9]{0,18}$`).MatchString}
	breakID = idForm{name: "the id of a break", write: "b and a number, such as b4711",
		valid: regexp.MustCompile(`^b[1-9][0-9]{0,18}$`).MatchString}
	keyID       = idForm{name: "the id of a key", write: writeKey + ", or a whole token", valid: isKeyOrToken, secret: true}
	ticketKeyID = idForm{name: "the id of a ticket key", write: writeKey, valid: access.ValidKeyID}
	appID       = idForm{name: "the id of an app", write: "1 to 32 characters of a-z, 0-9, - and _, a letter or digit first",
		valid: access.ValidAppID}
)

// idOf returns a check for the id of a payment of one of these kinds.
func idOf(kinds ...payout.Kind) func(string) bool {
	return func(id string) bool {
		parts, err := payout.Parse(id)
		return err == nil && parts.PaymentID == id && slices.Contains(kinds, parts.Kind)
	}
}

func isOrderNumber(text string) bool {
	parts, err := payout.Parse(text)
	return err == nil && parts.PaymentID != text
}

func isKeyOrToken(text string) bool { return access.ValidKeyID(idOfKey(text)) }

// arg accepts exactly one argument, an id of this form.
func (f idForm) arg(cmd *cobra.Command, args []string) error {
	if err := oneArg(cmd, args); err != nil {
		return err
	}
	return f.argument(args[0])
}

// argument checks one argument of a command.
func (f idForm) argument(text string) error {
	if err := f.check(text); err != nil {
		given := fmt.Sprintf("%q", text)
		if f.secret {
			given = "the argument"
		}
		return &usageError{fmt.Errorf("%s is %w", given, err)}
	}
	return nil
}

// check returns nil for a text of this form. Its errors do not hold the text.
func (f idForm) check(text string) error {
	if f.valid(text) {
		return nil
	}
	if parts, err := payout.Parse(text); err == nil && f.valid(parts.PaymentID) {
		return fmt.Errorf("an order number and not %s: write %s", f.name, parts.PaymentID)
	}
	return fmt.Errorf("not %s: write %s", f.name, f.write)
}

// flag declares a flag that takes an id of this form and stores it in to.
func (f idForm) flag(flags *pflag.FlagSet, to *string, name, usage string) {
	flags.Var(&parsedFlag{kind: "id", parse: func(text string) error {
		*to = text
		return f.check(text)
	}}, name, usage)
}
