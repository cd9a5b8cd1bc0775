package rest

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"hongbao/wire"
)

// Most answers under load are claims, and problems without details. They are written member by
// member, because encoding/json costs more than the rest of a grab in the API. TestEncoders
// shows that the bytes are equal.

// usualAnswer is the capacity in bytes that holds most of these answers.
const usualAnswer = 384

// appendMember appends before, such as `,"user_id":`, as it is, and value as a JSON string.
func appendMember(b []byte, before, value string) []byte {
	b, err := jsontext.AppendQuote(append(b, before...), value)
	_ = err // reports invalid UTF-8, for which the replacement character was written
	return b
}

func appendNullableMember(b []byte, before string, value *string) []byte {
	if value == nil {
		return append(append(b, before...), "null"...)
	}
	return appendMember(b, before, *value)
}

// plainProblem is the constant text of a problem without details: head ends before the path,
// middle is between the path and the request id, which is last.
type plainProblem struct {
	status       int
	head, middle string
}

var plainProblems = func() map[wire.Code]plainProblem {
	all := make(map[wire.Code]plainProblem, len(catalogue))
	for _, r := range catalogue {
		b := appendMember(nil, `{"type":`, "/errors/"+string(r.code))
		b = appendMember(b, `,"title":`, r.title)
		b = strconv.AppendInt(append(b, `,"status":`...), int64(r.status), 10)
		b = appendMember(b, `,"detail":`, r.detail)
		all[r.code] = plainProblem{r.status, string(b) + `,"instance":`, string(appendMember(nil, `,"code":`, string(r.code))) + `,"request_id":`}
	}
	return all
}()

// Render returns status and body of the refusal.
func (e *Refusal) Render(instance, requestID string) (status int, body []byte) {
	if plain, ok := plainProblems[e.Code]; ok && e.isPlain() {
		b := appendMember(make([]byte, 0, usualAnswer), plain.head, instance)
		b = appendMember(b, plain.middle, requestID)
		return plain.status, append(b, '}')
	}
	p := e.Problem(instance, requestID)
	body, err := Encode(p)
	if err != nil {
		body = nil
	}
	return p.Status, body
}

// isPlain reports whether the problem has no details: only its path and request id vary.
func (e *Refusal) isPlain() bool {
	return e.Fields == nil && e.OpensAt.IsZero() && e.PacketID == "" && e.Failure == nil && e.Detail == "" && e.RequestID == ""
}

// EncodeClaim writes a claim without Confirm with the same bytes as encode.
func EncodeClaim(c *wire.Claim) []byte {
	b := make([]byte, 0, usualAnswer)
	b = appendMember(b, `{"packet_id":`, c.PacketID)
	b = appendMember(b, `,"user_id":`, c.UserID)
	b = appendNullableMember(b, `,"nickname":`, c.Nickname)
	b = appendNullableMember(b, `,"avatar_url":`, c.AvatarURL)
	b = strconv.AppendInt(append(b, `,"share_index":`...), int64(c.ShareIndex), 10)
	b = strconv.AppendInt(append(b, `,"amount":`...), int64(c.Amount), 10)
	b = appendMember(b, `,"currency":`, c.Currency)
	b = c.ClaimedAt.Time.UTC().AppendFormat(append(b, `,"claimed_at":"`...), wire.TimeLayout)
	b = strconv.AppendBool(append(b, `","replayed":`...), c.Replayed)
	b = strconv.AppendBool(append(b, `,"best_luck":`...), c.BestLuck)
	b = appendMember(b, `,"payout":{"id":`, c.Payout.ID)
	b = appendMember(b, `,"status":`, string(c.Payout.Status))
	b = append(b, `},"recipient_action":`...)
	if c.RecipientAction == nil {
		b = append(b, "null"...)
	} else {
		b = appendMember(b, "", string(*c.RecipientAction))
	}
	return append(b, `,"confirm":null}`...)
}

// TimeOrNull maps the zero time to null.
func TimeOrNull(t time.Time) *wire.Time {
	if t.IsZero() {
		return nil
	}
	return &wire.Time{Time: t}
}

// TextOrNull maps the empty text to null.
func TextOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
