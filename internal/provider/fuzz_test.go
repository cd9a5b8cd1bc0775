package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hongbao/internal/payout"
)

// FuzzObserve: for every answer, only a well-formed order of this operation and currency is a final
// outcome, and only a documented refusal is one.
func FuzzObserve(f *testing.F) {
	f.Add(200, `{"order_no":"p1","op":"transfer","account":"u","amount":1,"currency":"CNY","status":"succeeded","provider_ref":"r"}`, "", true)
	f.Add(200, `{"order_no":"p1","op":"transfer","account":"u","amount":1,"currency":"CNY","status":"needs_recipient","expires_at":"9999-12-31T23:59:59-23:59"}`, "", true)
	f.Add(404, `{"code":"order_not_found"}`, "", false)
	f.Add(429, `{"code":"rate_limited"}`, "99999999999999999999", true)
	f.Add(503, `<html>`, "-1", true)
	f.Fuzz(func(t *testing.T, status int, body, retry string, send bool) {
		o := new(Sandbox).newObservation(payout.SourceQuery, "p1")
		if send {
			o = new(Sandbox).newObservation(payout.SourceSend, "p1")
		}
		observe(&o, answer{status: status, body: []byte(body), header: http.Header{"Retry-After": {retry}}, mayHaveLeft: true}, payout.OpTransfer)
		if o.RetryAfter < 0 || o.RetryAfter > max(retryAfterMax, retryAfterKeyRefused) {
			t.Fatalf("wait for %v", o.RetryAfter)
		}
		if status != http.StatusOK {
			if o.Kind == payout.ObsSucceeded || !send && o.Kind != payout.ObsNoAnswer &&
				o.Kind != payout.ObsNeverReceived && o.Kind != payout.ObsRetryAfter {
				t.Fatalf("%d %q is %v", status, body, o.Kind)
			}
			return
		}
		if o.Kind == payout.ObsNoAnswer {
			return
		}
		var v struct {
			Op       payout.Op `json:"op"`
			Amount   int64     `json:"amount"`
			Currency string    `json:"currency"`
			Account  string    `json:"account"`
		}
		if err := json.Unmarshal([]byte(body), &v); err != nil || v.Op != payout.OpTransfer || v.Currency != "CNY" ||
			v.Amount != int64(o.Amount) || v.Account != o.Account || o.OrderNo == "" {
			t.Fatalf("%q is %+v, %v", body, o, err)
		}
	})
}

// FuzzVerifyNotification: an unsigned notification is never accepted, and a signed one only for the
// event that the signature covers.
func FuzzVerifyNotification(f *testing.F) {
	f.Add("e1", "1760000000", "v1,abc", []byte(`{"event_id":"e1","order_no":"p1"}`))
	f.Add("", "", "", []byte(``))
	f.Add("e1", "99999999999999999999", "v1,", []byte(`{"event_id":"e1","event_id":"e2","order_no":"p1"}`))
	f.Add("e", "-1", "v1 v1, ,", []byte(`[]`))
	s, err := NewSandbox(SandboxConfig{BaseURL: "http://127.0.0.1:1", APIKey: "k", WebhookSecret: testSecret})
	if err != nil {
		f.Fatal(err)
	}
	hook, err := standardwebhooks.NewWebhook(testSecret)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, at, signature string, body []byte) {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {signature}}
		if _, _, err := s.VerifyNotification(header, body); !errors.Is(err, ErrNotification) {
			t.Fatalf("forged %v %q: %v", header, body, err)
		}
		now := time.Now()
		if signature, err = hook.Sign(id, now, body); err != nil {
			t.Fatal(err)
		}
		header.Set("Webhook-Timestamp", fmt.Sprint(now.Unix()))
		header.Set("Webhook-Signature", signature)
		event, order, err := s.VerifyNotification(header, body)
		if err != nil {
			if !errors.Is(err, ErrNotification) || event != "" || order != "" {
				t.Fatalf("%q: %q %q %v", body, event, order, err)
			}
			return
		}
		if event != id || event == "" || order == "" || !json.Valid(body) {
			t.Fatalf("%q as %q: %q %q", body, id, event, order)
		}
		if _, _, err := s.VerifyNotification(header, append(body, ' ')); !errors.Is(err, ErrNotification) {
			t.Fatalf("changed %q: %v", body, err)
		}
	})
}

// FuzzStatement: an accepted page of a statement has lines in order, of its day, with valid
// amounts.
func FuzzStatement(f *testing.F) {
	f.Add([]byte(`{"date":"2026-02-17","items":[{"seq":1,"op":"transfer","order_no":"p1","account":"u","amount":1,"at":"2026-02-17T00:00:00Z"}],"next_after":1}`), uint64(0))
	f.Add([]byte(`{"date":"2026-02-17","items":[]}`), uint64(7))
	f.Add([]byte(`{"date":"2026-02-17","items":null}`), uint64(0))
	const day = payout.Day("2026-02-17")
	from, to := day.Span(time.UTC)
	f.Fuzz(func(t *testing.T, body []byte, after uint64) {
		var v statementAnswer
		if json.Unmarshal(body, &v) != nil {
			return
		}
		page, err := v.page(day, after, time.UTC)
		if err != nil {
			if !errors.Is(err, errStatement) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		last := from
		for _, line := range page.Lines {
			if line.Amount < 1 || line.Amount.Check() != nil || line.At.Before(last) || !line.At.Before(to) || line.OrderNo == "" || line.Ref == "" {
				t.Fatalf("%q: %+v", body, line)
			}
			last = line.At
		}
		if page.Next != "" && page.Next != page.Lines[len(page.Lines)-1].Ref {
			t.Fatalf("%q: goes on at %q", body, page.Next)
		}
	})
}
