package client_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"hongbao/client"
	"hongbao/internal/packet"
	"hongbao/wire"
)

func payoutsOf(f wire.PaymentFilter) wire.PayoutFilter { return wire.PayoutFilter{PaymentFilter: f} }

func refundsOf(f wire.PaymentFilter) wire.RefundFilter {
	return wire.RefundFilter{PayoutFilter: payoutsOf(f)}
}

func (b *bank) testStaffReads(t *testing.T) {
	ctx := t.Context()
	p := b.open(wire.CreatePacket{SenderID: "u1", TotalAmount: 300, ShareCount: 3, Split: wire.SplitEqual, GroupID: "g",
		Metadata: map[string]string{"k": "v"}})
	for _, user := range []string{"=x", "y~declined"} {
		_, err := b.client.Grab(ctx, p.ID, wire.Grab{UserID: user})
		b.must(err)
	}
	b.finish(ctx, p.ID, packet.CloseRecalled)
	from := p.CreatedAt.Time
	var seen *wire.StaffPacket
	for one, err := range b.staff.Packets(ctx,
		wire.StaffPacketFilter{SenderID: "u1", CreatedFrom: from, CreatedTo: from.Add(time.Millisecond)}) {
		b.must(err)
		if one.ID == p.ID {
			seen = one
		}
	}
	d, err := b.staff.Packet(ctx, p.ID)
	b.must(err)
	if seen == nil || seen.App == "" || seen.App != d.App || *d.StoredStatus != "closed" || *d.CloseReason != "recalled" ||
		d.Status != wire.PacketClosed || d.TotalAmount != 300 ||
		*d.GroupID != "g" || d.Metadata["k"] != "v" || d.Fairness.Seed == nil || d.Workflow.ID != "packet/"+p.ID || d.Workflow.URL == "" ||
		d.Charge == nil || d.Charge.Status != wire.PayoutPaid ||
		len(d.Charge.Attempts) != 1 || len(d.Payouts) != 2 || d.Payouts[0].Amount != 100 || len(d.Refunds) != 1 || d.Breaks == nil {
		t.Errorf("packet %+v", d)
	}
	proof, err := b.staff.Proof(ctx, p.ID)
	b.must(err)
	if !proof.Balanced || proof.Total != 300 {
		t.Errorf("proof %+v", proof)
	}
	for refund, err := range b.staff.Refunds(ctx, refundsOf(wire.PaymentFilter{PacketID: p.ID, Status: wire.PayoutPaid})) {
		b.must(err)
		one, err := b.staff.Refund(ctx, refund.ID)
		b.must(err)
		if refund.Kind != wire.RefundRemainder || refund.PayoutID != nil || refund.Amount != 100 || one.Refund.ID != d.Refunds[0].ID ||
			len(one.Attempts) != 1 || len(one.Timeline) < 2 {
			t.Errorf("refund %+v, %+v", refund, one)
		}
	}
	if _, err := b.staff.Refund(ctx, "r/../x"); !client.IsCode(err, wire.CodeRefundNotFound) {
		t.Errorf("no refund: %v", err)
	}
	var file bytes.Buffer
	b.must(b.staff.ExportPayouts(ctx, payoutsOf(wire.PaymentFilter{PacketID: p.ID}), &file))
	lines, err := csv.NewReader(&file).ReadAll()
	b.must(err)
	if len(lines) != 3 || lines[0][2] != "user_id" || lines[1][2] != "y~declined" || lines[2][2] != "'=x" {
		t.Errorf("export %v", lines)
	}
	if err := b.staff.ExportPayouts(ctx, payoutsOf(wire.PaymentFilter{Status: "x"}), &file); !client.IsCode(err, wire.CodeInvalidRequest) {
		t.Errorf("bad filter: %v", err)
	}
	b.testFiles(t, p)
	b.testTallies(t, p)
	b.testAudit(t)
}

// testFiles: lists come as files, with the filters of the lists.
func (b *bank) testFiles(t *testing.T, p *wire.Packet) {
	ctx := t.Context()
	for _, one := range []struct {
		name  string
		write func(io.Writer) error
		first string // columns
		about string // the one line's cell under packet
		cell  string
	}{
		{"refunds", func(w io.Writer) error {
			return b.staff.ExportRefunds(ctx, refundsOf(wire.PaymentFilter{PacketID: p.ID, Status: wire.PayoutPaid}), w)
		}, "id,packet_id,kind", "packet_id", p.ID},
		{"packets", func(w io.Writer) error {
			return b.staff.ExportPackets(ctx, wire.StaffPacketFilter{SenderID: "u1", Status: wire.PacketClosed, CreatedFrom: p.CreatedAt.Time,
				CreatedTo: p.CreatedAt.Add(time.Millisecond)}, w)
		}, "id,app,status", "id", p.ID},
	} {
		var file bytes.Buffer
		b.must(one.write(&file))
		text := file.String()
		lines, err := csv.NewReader(&file).ReadAll()
		b.must(err)
		if !strings.HasPrefix(text, one.first) || len(lines) != 2 || lines[1][slices.Index(lines[0], one.about)] != one.cell {
			t.Errorf("%s:\n%s", one.name, text)
		}
	}
	var none bytes.Buffer
	b.must(b.staff.ExportBreaks(ctx, wire.BreakFilter{PacketID: p.ID}, &none))
	if lines, err := csv.NewReader(&none).ReadAll(); err != nil || len(lines) != 1 || lines[0][1] != "kind" {
		t.Errorf("breaks: %v, %v", lines, err)
	}
	none.Reset()
	b.must(b.staff.ExportApprovals(ctx, wire.ApprovalFilter{Status: "expired"}, &none))
	if lines, err := csv.NewReader(&none).ReadAll(); err != nil || len(lines) != 1 || lines[0][8] != "decided_by" {
		t.Errorf("approvals: %v, %v", lines, err)
	}
	for name, err := range map[string]error{
		"breaks":  b.staff.ExportBreaks(ctx, wire.BreakFilter{Kind: "é"}, io.Discard),
		"refunds": b.staff.ExportRefunds(ctx, refundsOf(wire.PaymentFilter{Status: "x"}), io.Discard),
		"packets": b.staff.ExportPackets(ctx, wire.StaffPacketFilter{Status: "x"}, io.Discard),

		"approvals": b.staff.ExportApprovals(ctx, wire.ApprovalFilter{Status: "x"}, io.Discard),
	} {
		if !client.IsCode(err, wire.CodeInvalidRequest) {
			t.Errorf("%s with a bad filter: %v", name, err)
		}
	}
}

// testTallies: lists are counted with the filters of the lists.
func (b *bank) testTallies(t *testing.T, p *wire.Packet) {
	ctx := t.Context()
	f := wire.StaffPacketFilter{SenderID: "u1", Status: wire.PacketClosed, CreatedFrom: p.CreatedAt.Time,
		CreatedTo: p.CreatedAt.Add(time.Millisecond)}
	sum, err := b.staff.SumPackets(ctx, f)
	if b.must(err); sum.Count != 1 || sum.More || sum.Amount == nil || *sum.Amount != 300 {
		t.Errorf("packets: %+v", sum)
	}
	for _, status := range []wire.PacketStatus{"", wire.PacketFunding, wire.PacketScheduled, wire.PacketOpen, wire.PacketSoldOut,
		wire.PacketClosing, wire.PacketClosed, wire.PacketRejected} {
		f.Status = status
		want := int64(0)
		if status == "" || status == wire.PacketClosed {
			want = 1
		}
		if sum, err := b.staff.SumPackets(ctx, f); err != nil || sum.Count != want || sum.More {
			t.Errorf("packets in status %q: %+v, %v", status, sum, err)
		}
	}
	all := 0
	for _, err := range b.staff.Approvals(ctx, wire.ApprovalFilter{Status: "rejected"}) {
		b.must(err)
		all++
	}
	if sum, err = b.staff.SumApprovals(ctx, wire.ApprovalFilter{Status: "rejected"}); err != nil || sum.Count != int64(all) ||
		sum.Amount == nil {
		t.Errorf("%d approvals: %+v, %v", all, sum, err)
	}
	if n, err := b.staff.CountBreaks(ctx, wire.BreakFilter{PacketID: p.ID}); err != nil || n.Count != 0 || n.More {
		t.Errorf("breaks: %+v, %v", n, err)
	}
	if sum, err := b.staff.SumBreaks(ctx, wire.BreakFilter{PacketID: p.ID}); err != nil || sum.Count != 0 || sum.Amount == nil ||
		*sum.Amount != 0 || sum.WithoutAmount != 0 {
		t.Errorf("breaks: %+v, %v", sum, err)
	}
	if _, err := b.staff.CountAudit(ctx, wire.AuditFilter{}); !client.IsCode(err, wire.CodeForbidden) {
		t.Errorf("the audit for finance: %v", err)
	}
}

func (b *bank) testAudit(t *testing.T) {
	ctx := t.Context()
	if _, err := b.staff.VerifyAudit(ctx); !client.IsCode(err, wire.CodeForbidden) {
		t.Errorf("the audit for finance: %v", err)
	}
	failed := ""
	for one, err := range b.staff.Payouts(ctx, payoutsOf(wire.PaymentFilter{Status: wire.PayoutFailed})) {
		b.must(err)
		failed = one.ID
	}
	_, err := b.staff.RetryPayout(ctx, failed, wire.Retry{Reason: "因为"})
	b.must(err)
	verdict, err := b.auditor.VerifyAudit(ctx)
	b.must(err)
	found := 0
	for e, err := range b.auditor.Audit(ctx, wire.AuditFilter{Subject: failed, Action: "retry", From: time.Now().Add(-time.Hour),
		To: time.Now().Add(time.Hour)}) {
		b.must(err)
		if found++; e.Reason != "因为" || !strings.Contains(string(e.Before), `"status":"failed"`) || e.Seq != verdict.Entries ||
			e.Hash != verdict.Head ||
			e.Role != "finance" {
			t.Errorf("entry %+v", e)
		}
	}
	var file bytes.Buffer
	b.must(b.auditor.ExportAudit(ctx, wire.AuditFilter{Subject: failed, Action: "retry"}, &file))
	if lines, err := csv.NewReader(&file).ReadAll(); err != nil || len(lines) != 2 || lines[0][6] != "reason" || lines[1][6] != "因为" ||
		lines[1][9] != verdict.Head {
		t.Errorf("file %v, %v", lines, err)
	}
	if err := b.staff.ExportAudit(ctx, wire.AuditFilter{}, &file); !client.IsCode(err, wire.CodeForbidden) || file.Len() > 0 {
		t.Errorf("the file for finance: %v", err)
	}
	n, err := b.auditor.CountAudit(ctx, wire.AuditFilter{Subject: failed, Action: "retry"})
	if b.must(err); n.Count != 1 || n.More {
		t.Errorf("count %+v", n)
	}
	if found != 1 || !verdict.Valid || verdict.FirstBad != nil {
		t.Errorf("%d entries, %+v", found, verdict)
	}
}

// TestExportIsRepeatedBeforeItsFirstByteOnly: a part that was written cannot be taken back.
func TestExportIsRepeatedBeforeItsFirstByteOnly(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
		switch calls++; {
		case calls == 1:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":503,"code":"unavailable"}`)
		case r.URL.Query().Get("packet_id") == "whole":
			_, _ = io.WriteString(w, "id\r\np1\r\n")
		default:
			_, _ = fmt.Fprint(w, strings.Repeat("x", 10_000))
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	staff, err := client.NewStaff(server.URL, "key", client.WithRetry(client.Retry{MinPause: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	defer staff.Close()
	var out bytes.Buffer
	whole := payoutsOf(wire.PaymentFilter{PacketID: "whole"})
	if err := staff.ExportPayouts(t.Context(), whole, &out); err != nil || out.String() != "id\r\np1\r\n" ||
		calls != 2 {
		t.Errorf("%q after %d calls: %v", out.String(), calls, err)
	}
	calls = 1
	err = staff.ExportPayouts(t.Context(), wire.PayoutFilter{}, &out)
	if call, ok := errors.AsType[*client.CallError](err); !ok || call.Tries != 1 || !errors.Is(err, io.ErrUnexpectedEOF) || calls != 2 {
		t.Errorf("cut off: %v after %d calls", err, calls-1)
	}
}
