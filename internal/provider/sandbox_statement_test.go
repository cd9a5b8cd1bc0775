package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
)

func TestStatementOfTheSandbox(t *testing.T) {
	adapter, _ := startSandbox(t, "")
	ctx := t.Context()
	began := time.Now().Add(-time.Second)
	send := func(op payout.Op, n int, account string) string {
		t.Helper()
		no := payout.OrderNo(payout.ID(payout.KindPayout, testPacketID, n), 1)
		raw, err := adapter.EncodeRequest(payout.Instruction{Op: op, OrderNo: no, Account: account, Amount: 100, Currency: "CNY"})
		if err != nil {
			t.Fatal(err)
		}
		adapter.Send(ctx, payout.Order{Op: op, OrderNo: no, Request: raw, Send: 1})
		return no
	}
	charged, declined, back := send(payout.OpCharge, 1, "a"), send(payout.OpTransfer, 2, "b~declined"),
		send(payout.OpTransfer, 3, "大伟~returned")
	for n := range 1200 { // more than a page
		send(payout.OpTransfer, 10+n, "crowd")
	}
	read := func() (lines []payout.StatementLine, pages int) {
		t.Helper()
		day := payout.DayOf(time.Now(), adapter.Zone())
		for after := ""; ; {
			page, err := adapter.Statement(ctx, day, after)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, page.Lines...)
			if pages++; page.Next == "" {
				return lines, pages
			}
			after = page.Next
		}
	}
	var lines []payout.StatementLine
	pages := 0
	for deadline := time.Now().Add(5 * time.Second); len(lines) != 1203; lines, pages = read() {
		if time.Now().After(deadline) {
			t.Fatalf("%d lines", len(lines))
		}
	}
	if pages != 2 {
		t.Errorf("%d pages", pages)
	}
	refs := map[string]bool{}
	ops := map[string][]payout.Op{}
	for _, l := range lines {
		refs[l.Ref] = true
		ops[l.OrderNo] = append(ops[l.OrderNo], l.Op)
		if l.Amount != 100 || l.At.Before(began) || l.At.After(time.Now().Add(time.Second)) || l.At.Location() != time.UTC {
			t.Errorf("%+v", l)
		}
	}
	if len(refs) != len(lines) {
		t.Errorf("%d references for %d lines", len(refs), len(lines))
	}
	if fmt.Sprint(ops[charged], ops[declined], ops[back]) != "[charge] [] [transfer return]" || lines[1].Account != "大伟~returned" {
		t.Errorf("%v %v %v", ops[charged], ops[declined], ops[back])
	}
	again, _ := read()
	if fmt.Sprint(again) != fmt.Sprint(lines) {
		t.Error("read again, the statement is another one")
	}
	for _, day := range []payout.Day{"2020-01-01", "2999-12-31"} {
		if page, err := adapter.Statement(ctx, day, ""); err != nil || len(page.Lines) != 0 || page.Next != "" {
			t.Errorf("%s: %+v, %v", day, page, err)
		}
	}
}

// TestStatementIsReadStrictly: an incomplete or unordered answer, or one about another day, is
// refused.
func TestStatementIsReadStrictly(t *testing.T) {
	line := func(seq int, at string) string {
		return fmt.Sprintf(`{"seq":%d,"op":"transfer","order_no":"n","account":"a","amount":1,"at":%q}`, seq, at)
	}
	const noon, later = "2026-02-17T12:00:00.000Z", "2026-02-17T12:00:00.001Z"
	page := func(lines ...string) string {
		return `{"date":"2026-02-17","items":[` + strings.Join(lines, ",") + `],"next_after":null}`
	}
	spoil := func(from, to string) string { return page(strings.Replace(line(8, noon), from, to, 1)) }
	for name, tc := range map[string]struct {
		status int
		body   string
		lines  int // -1: an error
	}{
		"nothing moved":   {200, page(), 0},
		"two lines":       {200, page(line(8, noon), line(9, noon)), 2},
		"unknown members": {200, `{"new":1,` + spoil(`"seq"`, `"fee":0,"seq"`)[1:], 1},
		"a fee of no order": {200, page(strings.NewReplacer("transfer", "fee", `"order_no":"n"`, `"order_no":""`,
			`"account":"a"`, `"account":""`).Replace(line(8, noon))), 1},
		"goes on":              {200, strings.Replace(page(line(8, noon)), "null", "8", 1), 1},
		"an error":             {500, page(), -1},
		"no JSON":              {200, "<html>", -1},
		"cut off":              {200, page(line(8, noon))[:90], -1},
		"another day":          {200, strings.Replace(page(), "02-17", "02-18", 1), -1},
		"no lines at all":      {200, `{"date":"2026-02-17"}`, -1},
		"lines are null":       {200, `{"date":"2026-02-17","items":null}`, -1},
		"member twice":         {200, spoil(`"seq"`, `"amount":2,"seq"`), -1},
		"no reference":         {200, spoil(`"seq":8,`, ""), -1},
		"line already read":    {200, page(line(7, noon)), -1},
		"same line twice":      {200, page(line(8, noon), line(8, noon)), -1},
		"unknown op":           {200, spoil("transfer", "gift"), -1},
		"no order number":      {200, spoil(`"order_no":"n",`, ""), -1},
		"no account":           {200, spoil(`"account":"a",`, ""), -1},
		"no amount":            {200, spoil(`"amount":1,`, ""), -1},
		"amount of zero":       {200, spoil(`"amount":1`, `"amount":0`), -1},
		"amount below zero":    {200, spoil(`"amount":1`, `"amount":-1`), -1},
		"fraction":             {200, spoil(`"amount":1`, `"amount":1.5`), -1},
		"amount too large":     {200, spoil(`"amount":1`, `"amount":9007199254740992`), -1},
		"no time":              {200, spoil(`,"at":"`+noon+`"`, ""), -1},
		"time of the day":      {200, page(line(8, "12:00")), -1},
		"day before":           {200, page(line(8, "2026-02-16T23:59:59.999Z")), -1},
		"day after":            {200, page(line(8, "2026-02-18T00:00:00.000Z")), -1},
		"back in time":         {200, page(line(8, later), line(9, noon)), -1},
		"goes on elsewhere":    {200, strings.Replace(page(line(8, noon)), "null", "9", 1), -1},
		"goes on from nowhere": {200, strings.Replace(page(), "null", "8", 1), -1},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); r.URL.Path != "/v1/statement" || q.Get("date") != "2026-02-17" || q.Get("after") != "7" ||
				q.Get("limit") != "1000" ||
				r.Header.Get("Authorization") != "Bearer "+testKey {
				t.Errorf("queried %s", r.URL)
			}
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}))
		got, err := newAdapter(t, server.URL, time.Second).Statement(t.Context(), "2026-02-17", "7")
		server.Close()
		if tc.lines < 0 && (!errors.Is(err, ErrAnswer) || got.Lines != nil) || tc.lines >= 0 && (err != nil || len(got.Lines) != tc.lines) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newAdapter(t, "http://127.0.0.1:1", time.Second).Statement(ctx, "2026-02-17", ""); !errors.Is(err, ErrAnswer) {
		t.Errorf("no server: %v", err)
	}
	if _, err := newAdapter(t, "http://127.0.0.1:1", time.Second).Statement(t.Context(), "2026-02-17", "x"); !errors.Is(err, ErrAnswer) {
		t.Errorf("not one of our cursors: %v", err)
	}
}
