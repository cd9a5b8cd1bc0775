package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hongbao/client"
	"hongbao/wire"
)

// Exit codes. exitCodes says what they mean; exitOf decides which one an error gets.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitLeft    = 3
	exitRefused = 4
	exitWaiting = 5
)

// exitCodes documents the exit codes for users and scripts.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "Success. For a check: no fault found."},
	{exitFailed, "Failure: no response, unknown key, unknown id, or the output could not be written. " +
		"For a check: a fault was found, or the check could not run."},
	{exitUsage, "Wrong arguments, settings or input. Nothing was done."},
	{exitLeft, "A watched packet closed with shares left, which were refunded to the sender."},
	{exitRefused, "Refused: the state or a rule forbids it. Nothing was done; a repeat does not help. For many: some were " +
		"refused, the others were done."},
	{exitWaiting, "Requested: a second person has to approve. No money has moved."},
}

// errSharesLeft: a packet closed with shares left. It is an outcome, not a failure.
var errSharesLeft = errors.New("closed with shares left")

// errReported is a failure that the command has already printed.
var errReported = errors.New("already reported")

// errNeedsApproval: a second person has to approve first. The command has printed it.
var errNeedsApproval = fmt.Errorf("%w: a second person has to approve", errReported)

// errSomeRefused: some of many decisions were refused. The command has printed them.
var errSomeRefused = fmt.Errorf("%w: some were refused", errReported)

// usageError is an error in arguments, settings or input.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// refusedCodes are API codes that a repeat does not change.
var refusedCodes = []wire.Code{
	wire.CodeFundingDeclined, wire.CodeForbidden, wire.CodeNotEligible, wire.CodeNotOpenYet, wire.CodeSoldOut, wire.CodeExpired,
	wire.CodeNotRetryable, wire.CodeRecipientFixed, wire.CodeDecisionPending, wire.CodeDecisionChanged, wire.CodeHeld,
	wire.CodeRecoveryRequired,
	wire.CodeInsufficientBalance, wire.CodeReferenceUsed,
	wire.CodeOwnKey, wire.CodeLastAdminKey,
	wire.CodeKeyEnded,
	wire.CodeCampaignEnded, wire.CodeManyCampaigns, wire.CodeManyUnpaid,
}

// inputCodes are API codes about wrong input.
var inputCodes = []wire.Code{
	wire.CodeInvalidRequest, wire.CodeMalformedJSON, wire.CodeMalformedRequest, wire.CodeKeyRequired, wire.CodeKeyReused,
	wire.CodeBodyTooLarge, wire.CodeHeadersTooLarge, wire.CodeRecipientIncomplete,
}

// exitOf returns the exit code of an error. No other code decides exit codes.
func exitOf(err error) int {
	_, usage := errors.AsType[*usageError](err)
	switch {
	case err == nil:
		return exitOK
	case usage, errors.Is(err, client.ErrText), client.IsCode(err, inputCodes...):
		return exitUsage
	case errors.Is(err, errSharesLeft):
		return exitLeft
	case errors.Is(err, errSomeRefused), client.IsCode(err, refusedCodes...):
		return exitRefused
	case errors.Is(err, errNeedsApproval):
		return exitWaiting
	}
	return exitFailed
}

// exitText returns the list of exit codes, one paragraph each.
func exitText() string {
	var b strings.Builder
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %d  %s\n", e.code, strings.Join(wrapped(e.meaning, 74), "\n     "))
	}
	return b.String()
}

// wrapped breaks text into lines of at most width characters.
func wrapped(text string, width int) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// newExitCodesTopic returns a help page, not a command.
func newExitCodesTopic() *cobra.Command {
	names := func(codes []wire.Code) string {
		var all []string
		for _, c := range codes {
			all = append(all, string(c))
		}
		slices.Sort(all)
		return strings.Join(wrapped(strings.Join(all, ", ")+".", 74), "\n     ")
	}
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "Explain the exit codes of all commands",
		Long: "The exit codes of all commands:\n\n" + exitText() + "\n" +
			"API codes with exit code 4:\n     " + names(refusedCodes) + "\n\n" +
			"API codes with exit code 2:\n     " + names(inputCodes) + "\n\n" +
			"A missing response, a 5xx and request_in_progress give exit code 1: the outcome of a\n" +
			"write is unknown then, and the error names the --idempotency-key for a repeat.",
	}
}
