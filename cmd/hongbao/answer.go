package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"hongbao/client"
	"hongbao/internal/visible"
	"hongbao/wire"
)

// printRaw prints JSON as received, on its own line, safe for a terminal.
func (t *call) printRaw(text []byte) error { return printJSON(t.out, text) }

// printAnswer prints the last answer of the API as received.
func (t *call) printAnswer() error { return t.printRaw(t.answer()) }

// printFacts prints a table of names and values, without the empty values.
func (t *call) printFacts(lines [][]any) {
	show := newGrid(t.out)
	for _, line := range lines {
		if line[1] != "" {
			show.row(line...)
		}
	}
	show.render()
}

// problemText shortens an API refusal to its code, detail and request id. With --json it prints the refusal too.
func (t *call) problemText(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return err
	}
	if t.json && json.Valid(p.Raw) {
		if err := t.printRaw(p.Raw); err != nil {
			return err
		}
	}
	refusal := &problemError{p, p.Error()}
	if p.RequestID != "" {
		refusal.text = fmt.Sprintf("%v (request %s)", p, p.RequestID)
	}
	return withIdempotencyKey(refusal, err)
}

// withURL adds the URL to an error without an API response, and the next step when the outcome is unknown.
func withURL(err error, url string) error {
	_, answered := errors.AsType[*client.Problem](err)
	_, called := errors.AsType[*client.CallError](err)
	if !called || answered {
		return err
	}
	return withIdempotencyKey(fmt.Errorf("%s: %w", url, err), err)
}

// withIdempotencyKey adds the idempotency key to an error whose outcome is unknown: a repeat with another key could act
// twice.
func withIdempotencyKey(refusal, err error) error {
	call, called := errors.AsType[*client.CallError](err)
	p, answered := errors.AsType[*client.Problem](err)
	if !called || call.Tries == 0 || call.IdempotencyKey == "" || answered && p.Status < http.StatusInternalServerError &&
		p.Code != wire.CodeRequestInProgress {
		return refusal
	}
	return fmt.Errorf("%w\nthe outcome is unknown: run the command again with --idempotency-key %s", refusal, call.IdempotencyKey)
}

// problemError is a refusal whose text fits one line and is safe for a terminal.
type problemError struct {
	problem *client.Problem
	text    string
}

func (p *problemError) Error() string { return visible.Text(p.text) }
func (p *problemError) Unwrap() error { return p.problem }
