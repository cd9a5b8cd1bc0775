package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hongbao/test/wait"
)

func TestVerifyNotification(t *testing.T) {
	type delivery struct {
		header http.Header
		body   []byte
	}
	got := make(chan delivery, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case got <- delivery{r.Header.Clone(), body}:
		default:
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	s, _ := startSandbox(t, receiver.URL)
	o := transfer(t, s, 1, "u~pending")
	s.Send(context.Background(), o)
	d := wait.For(t, "a notification", got)
	eventID, orderNo, err := s.VerifyNotification(d.header, d.body)
	if err != nil || orderNo != o.OrderNo || eventID != d.header.Get("webhook-id") {
		t.Fatalf("%q %q %v", eventID, orderNo, err)
	}
	hook, err := standardwebhooks.NewWebhook(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(id string, at time.Time, body []byte) http.Header {
		signature, err := hook.Sign(id, at, body)
		if err != nil {
			t.Fatal(err)
		}
		return http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {fmt.Sprint(at.Unix())}, "Webhook-Signature": {signature}}
	}
	if _, _, err := s.VerifyNotification(signed(eventID, time.Now(), d.body), d.body); err != nil {
		t.Errorf("signed again: %v", err)
	}
	short := []byte(`{"order_no":"` + o.OrderNo + `"}`)
	null := []byte(`{"event_id":null,"order_no":"` + o.OrderNo + `"}`)
	for _, body := range [][]byte{short, null} { // the header, which is signed, names the event
		if id, no, err := s.VerifyNotification(signed("evt_header", time.Now(), body), body); err != nil || id != "evt_header" ||
			no != o.OrderNo {
			t.Errorf("%s: %q %q %v", body, id, no, err)
		}
	}
	emptyID := []byte(`{"event_id":"","order_no":"` + o.OrderNo + `"}`)
	changed := bytes.Replace(d.body, []byte("succeeded"), []byte("declined!"), 1)
	withoutOrder, err := json.Marshal(map[string]string{"event_id": eventID})
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]delivery{
		"changed body": {d.header, changed},
		"no headers":   {http.Header{}, d.body},
		"old":          {signed(eventID, time.Now().Add(-6*time.Minute), d.body), d.body},
		"future":       {signed(eventID, time.Now().Add(6*time.Minute), d.body), d.body},
		"other id":     {signed("evt_other", time.Now(), d.body), d.body},
		"empty id":     {signed(eventID, time.Now(), emptyID), emptyID},
		"short, other header id": {func() http.Header {
			h := signed(eventID, time.Now(), short)
			h.Set("Webhook-Id", "evt_other")
			return h
		}(), short},
		"no order": {signed(eventID, time.Now(), withoutOrder), withoutOrder},
		"not json": {signed(eventID, time.Now(), []byte("x")), []byte("x")},
	} {
		if id, no, err := s.VerifyNotification(bad.header, bad.body); !errors.Is(err, ErrNotification) || id != "" || no != "" {
			t.Errorf("%s: %q %q %v", name, id, no, err)
		}
	}
}
