package api

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Most answers under load are claims and plain problems. They are written member by member,
// because encoding/json costs more than the rest of a grab in the API. TestEncoders shows that
// the bytes are equal.

// usualAnswer is slightly more than the size of these answers in bytes.
const usualAnswer = 384

// encodeClaim writes a claim with the same bytes as encode.
func encodeClaim(c *Claim) []byte {
	b := make([]byte, 0, usualAnswer)
	b = appendText(b, `{"packet_id":`, c.PacketID)
	b = appendText(b, `,"user_id":`, c.UserID)
	b = appendNullable(b, `,"nickname":`, c.Nickname.Value)
	b = appendNullable(b, `,"avatar_url":`, c.AvatarURL.Value)
	b = strconv.AppendInt(append(b, `,"share_index":`...), int64(c.ShareIndex), 10)
	b = strconv.AppendInt(append(b, `,"amount":`...), int64(c.Amount), 10)
	b = appendText(b, `,"currency":`, c.Currency)
	b = time.Time(c.ClaimedAt).UTC().AppendFormat(append(b, `,"claimed_at":"`...), stampLayout)
	b = strconv.AppendBool(append(b, `","replayed":`...), c.Replayed)
	b = strconv.AppendBool(append(b, `,"best_luck":`...), c.BestLuck)
	b = appendText(b, `,"payout":{"id":`, c.Payout.ID)
	b = appendText(b, `,"status":`, string(c.Payout.Status))
	return append(b, "}}"...)
}

// appendText writes a member with its name unescaped.
func appendText(b []byte, name, value string) []byte {
	b, err := jsontext.AppendQuote(append(b, name...), value)
	_ = err // reports invalid UTF-8, for which the replacement character was written
	return b
}

func appendNullable(b []byte, name string, value *string) []byte {
	if value == nil {
		return append(append(b, name...), "null"...)
	}
	return appendText(b, name, *value)
}

// plainProblem is the constant text of a problem without members beyond path and request id:
// the parts before, between and after these.
type plainProblem struct {
	status       int
	head, middle string
}

var plainProblems = func() map[Code]plainProblem {
	all := make(map[Code]plainProblem, len(catalogue))
	for _, r := range catalogue {
		b := appendText(nil, `{"type":`, "/errors/"+string(r.code))
		b = appendText(b, `,"title":`, r.title)
		b = strconv.AppendInt(append(b, `,"status":`...), int64(r.status), 10)
		b = appendText(b, `,"detail":`, r.detail)
		all[r.code] = plainProblem{r.status, string(b) + `,"instance":`, string(appendText(nil, `,"code":`, string(r.code))) + `,"request_id":`}
	}
	return all
}()

// render returns status and body of the refusal.
func (e *refusal) render(instance, requestID string) (status int, body []byte) {
	if plain, ok := plainProblems[e.code]; ok && e.isPlain() {
		b := appendText(make([]byte, 0, usualAnswer), plain.head, instance)
		b = appendText(b, plain.middle, requestID)
		return plain.status, append(b, '}')
	}
	p := e.problem(instance, requestID)
	body, err := encode(p)
	if err != nil {
		body = nil
	}
	return p.Status, body
}

func (e *refusal) isPlain() bool {
	return e.fields == nil && e.opensAt.IsZero() && e.packetID == "" && e.failure == nil && e.detail == "" && e.requestID == ""
}
