package api

import (
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"hongbao/packet"
	"hongbao/payout"
)

// maxReason is the longest reason in characters.
const maxReason = 500

// Retry is the body of a retry.
type Retry struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit: 1 to 500 characters." example:"account unfrozen, see ticket 4711"`
}

// Decision is what a person decided.
type Decision struct {
	ID     string `json:"id" doc:"The decision's id."`
	Kind   string `json:"kind" enum:"retry" doc:"What was decided."`
	Reason string `json:"reason" doc:"Why."`
	By     string `json:"by" doc:"Who decided."`
	Status string `json:"status" enum:"waiting,carried_out,rejected,expired" doc:"waiting: for a second person, nothing has moved."`
}

// Approval is a second person's agreement that is waited for.
type Approval struct {
	ID        string `json:"id" doc:"The approval's id."`
	ExpiresAt Stamp  `json:"expires_at" doc:"Until when somebody may agree."`
}

// Decided is the answer to a decision.
type Decided struct {
	Decision Decision           `json:"decision" doc:"What was decided."`
	Payout   Payout             `json:"payout" doc:"The payout after it."`
	Approval Nullable[Approval] `json:"approval" doc:"null: carried out."`
}

// readReason parses and checks the body of a decision.
func readReason(body []byte) (Retry, error) {
	o, err := readObject(body)
	if err != nil {
		return Retry{}, err
	}
	return reasonFrom(o)
}

func reasonFrom(o *object) (Retry, error) {
	reason := o.text("reason", true, func(s string) *fault {
		switch n := utf8.RuneCountInString(s); {
		case strings.TrimSpace(s) == "" || n > maxReason:
			return &fault{faultLength, "must have 1 to 500 characters, not only spaces"}
		case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
			return &fault{faultCharacters, "must not contain control characters"}
		}
		return nil
	})
	return Retry{Reason: valueOr(reason, "")}, o.done()
}

func retryPayout(r *request) (answer, error) {
	// The path is part of the route: an id that cannot be one is not found.
	id, idErr := r.payoutID()
	body, err := readReason(r.payload)
	if err != nil {
		return answer{}, err
	}
	key, err := r.idempotencyKey()
	if err != nil {
		return answer{}, err
	}
	if idErr != nil {
		return answer{}, idErr
	}
	hash, err := bodyHash(body)
	if err != nil {
		return answer{}, err
	}
	owner := r.caller.key
	w := payout.StaffWrite{Owner: owner.Owner, Role: string(owner.Role), Route: r.c.Method() + " " + r.route.on(id), Key: key, BodyHash: hash, Reason: body.Reason}
	stored, err := r.server.cfg.Store.RetryPayment(r.ctx, w, id, r.server.cfg.ApprovalAmount, r.renderDecision)
	switch {
	case errors.Is(err, packet.ErrNotFound):
		return answer{}, refuse(CodePayoutNotFound)
	case errors.Is(err, payout.ErrKeyReused):
		return answer{}, refuse(CodeKeyReused)
	case err != nil:
		return answer{}, err
	}
	a := answer{status: stored.Status, raw: stored.Body, replayed: stored.Replayed}
	if stored.Status >= http.StatusBadRequest {
		a.kind = contentProblem
	}
	return a, nil
}

// renderDecision makes the answer that is stored with the decision.
func (r *request) renderDecision(d *payout.Decision, p payout.Row, refused error) (int, []byte) {
	var status int
	var body any
	if refused != nil {
		code := CodeNotRetryable
		if errors.Is(refused, payout.ErrDecisionPending) {
			code = CodeDecisionPending
		}
		problem := refuse(code).problem(instanceOf(r.c), r.id)
		status, body = problem.Status, problem
	} else {
		out := Decided{
			Decision: Decision{ID: d.ID, Kind: string(d.Kind), Reason: d.Reason, By: d.By, Status: string(d.Status)},
			Payout:   r.server.renderPayout(p),
		}
		if d.ApprovalID != "" {
			out.Approval = orNull(&Approval{ID: d.ApprovalID, ExpiresAt: Stamp(d.ExpiresAt)})
		}
		status, body = http.StatusAccepted, out
	}
	raw, err := encode(body)
	if err != nil { // only our own types come here
		raw = []byte("{}")
	}
	return status, raw
}
