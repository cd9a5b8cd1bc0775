package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hongbao/client"
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

// exitCodes is what people and scripts are told.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "Done. Of a check: all is well."},
	{exitFailed, "It was tried and failed: nobody answered, the key is not known, the id is not there, the output " +
		"could not be written. Of a check: something is wrong, or could not be checked."},
	{exitUsage, "Arguments, settings or input are wrong. Nothing was done."},
	{exitLeft, "A watched packet closed with shares left, which went back to the sender."},
	{exitRefused, "Refused: the state has moved or a rule forbids it. Nothing was done, and repeating it does not help. Of many: some were " +
		"refused, the others were done."},
	{exitWaiting, "Decided, and a second person has to agree: nothing has moved yet."},
}

// errSharesLeft: a packet closed with shares left. It is an outcome, not a failure.
var errSharesLeft = errors.New("closed with shares left")

// errReported is an error that has been shown already.
var errReported = errors.New("shown already")

// errNeedsApproval: a second person has to agree first. It has been shown.
var errNeedsApproval = fmt.Errorf("%w: a second person has to agree", errReported)

// errSomeRefused: of many decisions some were refused. It has been shown.
var errSomeRefused = fmt.Errorf("%w: some were refused", errReported)

// usageError is an error in what the caller gave: arguments or settings.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// refusals are answers of the API that a repeat does not change.
var refusedCodes = []client.Code{
	client.CodeFundingDeclined, client.CodeForbidden, client.CodeNotEligible, client.CodeNotOpenYet, client.CodeSoldOut, client.CodeExpired,
	client.CodeNotRetryable, client.CodeDecisionPending, client.CodeDecisionChanged, client.CodeOwnKey, client.CodeLastAdminKey,
	client.CodeKeyEnded,
	client.CodeCampaignEnded, client.CodeManyCampaigns,
}

// faults are answers of the API about what was typed.
var inputCodes = []client.Code{
	client.CodeInvalidRequest, client.CodeMalformedJSON, client.CodeMalformedRequest, client.CodeKeyRequired, client.CodeKeyReused,
	client.CodeBodyTooLarge, client.CodeHeadersTooLarge,
}

// exitOf is the only place that decides exit codes.
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

// exitText lists the exit codes, a paragraph each.
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

// newExitCodesTopic is a page of help, not a command.
func newExitCodesTopic() *cobra.Command {
	names := func(codes []client.Code) string {
		var all []string
		for _, c := range codes {
			all = append(all, string(c))
		}
		slices.Sort(all)
		return strings.Join(wrapped(strings.Join(all, ", ")+".", 74), "\n     ")
	}
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes of all commands mean",
		Long: "The exit codes of all commands:\n\n" + exitText() + "\n" +
			"Answers of the API that end in 4:\n     " + names(refusedCodes) + "\n\n" +
			"Answers of the API that end in 2:\n     " + names(inputCodes) + "\n\n" +
			"An answer that does not come, or says that the API could not finish (5xx,\n" +
			"request_in_progress), ends in 1: then it is not known whether a write was done,\n" +
			"and the error says with which --idempotency-key to run it again.",
	}
}
