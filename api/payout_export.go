package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"hongbao/payout"
)

const (
	// exportStep is how many payouts are read and held at a time.
	exportStep = 1000
	// exportReadLimit bounds the reading of one step: a filter without an index of
	// its own, such as amounts, may look at every payout to find one.
	exportReadLimit = 30 * time.Second
	contentCSV      = "text/csv; charset=utf-8"
	// byteOrderMark tells Excel that a file is UTF-8.
	byteOrderMark = "\ufeff"
)

// errDraining ends an export: a file of a million lines would outlast the drain.
var errDraining = errors.New("the server drains")

// exportColumns are the members of a Payout, one column each, and behind them what
// people read: the amount in yuan, and the times in a time zone, which is named.
var exportColumns = []string{
	"id", "packet_id", "user_id", "share_index", "amount", "currency", "status", "order_no", "provider", "provider_ref",
	"failure_code", "failure_message", "failure_retryable", "failure_next_action", "attempt_count", "created_at", "updated_at", "workflow_id", "workflow_url",
	"amount_yuan", "created_local", "updated_local", "local_zone",
}

// exportLocal is the form of local times, which spreadsheets take for times.
const exportLocal = "2006-01-02 15:04:05"

// lineEnds leaves one form of line end: of a lone CR the writer would keep nothing.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// cell makes a text harmless for spreadsheets, which take what begins with one of
// these characters for a formula: an apostrophe before it makes it a text there.
// So that programs can take it off again without doubt, a text that begins with
// an apostrophe gets one too.
func cell(text string) string {
	text = lineEnds.Replace(strings.ToValidUTF8(text, "?"))
	for _, start := range []string{"=", "+", "-", "@", "\t", "\n", "'", "＝", "＋", "－", "＠"} {
		if strings.HasPrefix(text, start) {
			return "'" + text
		}
	}
	return text
}

func (s *Server) exportRecord(r payout.Row, in *time.Location) []string {
	link := s.workflowLink(payoutWorkflow(r))
	share := ""
	if r.ShareIndex >= 0 {
		share = strconv.Itoa(r.ShareIndex)
	}
	out := []string{
		r.ID, r.PacketID, cell(r.UserID), share, strconv.FormatInt(int64(r.Amount), 10), r.Currency, string(r.Status), r.OrderNo,
		r.Provider, cell(r.ProviderRef), "", "", "", "", strconv.Itoa(r.AttemptCount), Stamp(r.CreatedAt).String(), Stamp(r.UpdatedAt).String(), link.ID, link.URL,
		r.Amount.String(), r.CreatedAt.In(in).Format(exportLocal), r.UpdatedAt.In(in).Format(exportLocal), in.String(),
	}
	if f := r.Failure; f != nil {
		copy(out[10:14], []string{cell(f.Code), cell(f.Message), strconv.FormatBool(f.Retryable), cell(f.NextAction)})
	}
	return out
}

// export is the body of an answer that is made while it is sent. Memory does not
// grow with its length: payouts are read step by step, newest first, each behind
// the last, so each is there once whatever is added meanwhile, as it is when it
// is read. A step that cannot be read ends the connection in the middle of a
// chunk: no client can take the part for the whole.
type export struct {
	server    *Server
	ctx       context.Context
	cancel    context.CancelFunc
	conn      net.Conn
	requestID string
	filter    payout.Filter
	zone      *time.Location
	buffer    bytes.Buffer
	out       *csv.Writer
	ended     bool // nothing is left to be read
	broken    error
}

func exportPayouts(r *request) (answer, error) {
	q := readQuery(r)
	filter := readFilter(q, r.server.cfg.Now().UTC())
	bom := q.text("bom", func(s string) *fault {
		if s != "true" && s != "false" {
			return &fault{faultEnum, "must be true or false"}
		}
		return nil
	})
	name := q.text("tz", checkZone)
	if err := q.done(); err != nil {
		return answer{}, err
	}
	loc, err := zone(cmp.Or(name, defaultZone))
	if err != nil {
		return answer{}, err
	}
	filter.Limit = exportStep
	e := &export{server: r.server, conn: r.c.Context().Conn(), requestID: r.id, filter: filter, zone: loc}
	e.ctx, e.cancel = context.WithCancel(r.server.base)
	e.out = csv.NewWriter(&e.buffer)
	e.out.UseCRLF = true
	if bom == "true" {
		e.buffer.WriteString(byteOrderMark)
	}
	if err = e.out.Write(exportColumns); err == nil {
		err = e.step() // the first one here, where it can still be answered with a problem
	}
	if err != nil {
		e.cancel()
		return answer{}, err
	}
	file := "payouts-" + r.server.cfg.Now().UTC().Format("20060102T150405Z") + ".csv"
	r.c.Set(fiber.HeaderContentType, contentCSV)
	r.c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+file+`"`)
	r.c.Set(fiber.HeaderCacheControl, "no-store")
	r.c.Status(http.StatusOK)
	r.c.Context().SetBodyStream(e, -1)
	return answer{written: true}, nil
}

// step reads the next payouts into the buffer.
func (e *export) step() error {
	if e.server.draining.Load() {
		return errDraining
	}
	ctx, cancel := context.WithTimeout(e.ctx, exportReadLimit)
	defer cancel()
	rows, err := e.server.cfg.Store.Payments(ctx, e.filter)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := e.out.Write(e.server.exportRecord(row, e.zone)); err != nil {
			return fmt.Errorf("write payout %s: %w", row.ID, err)
		}
	}
	e.out.Flush()
	if len(rows) < e.filter.Limit {
		e.ended = true
		return e.out.Error()
	}
	last := rows[len(rows)-1]
	e.filter.AfterTime, e.filter.AfterID = last.CreatedAt, last.ID
	return e.out.Error()
}

// Read implements io.Reader. It is called while the answer is written, outside of
// the chain of handlers: deadline, panics and the log are its own business.
func (e *export) Read(b []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(e.ctx, "export panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			n, err = 0, fmt.Errorf("panic: %v", p)
		}
		if err != nil && !errors.Is(err, io.EOF) && e.broken == nil {
			e.broken = err
			slog.ErrorContext(e.ctx, "export was cut off", slog.String("request_id", e.requestID), slog.Any("error", err))
		}
	}()
	switch {
	case e.broken != nil:
		return 0, e.broken
	case e.buffer.Len() > 0:
	case e.ended:
		return 0, io.EOF
	default:
		if err := e.step(); err != nil {
			return 0, err
		}
		if e.buffer.Len() == 0 {
			return 0, io.EOF
		}
	}
	// Each piece has as long as a whole answer has otherwise.
	if err := e.conn.SetWriteDeadline(time.Now().Add(e.server.cfg.WriteTimeout)); err != nil {
		return 0, fmt.Errorf("write deadline: %w", err)
	}
	return e.buffer.Read(b)
}

// Close implements io.Closer: the answer is written, or its client has gone.
func (e *export) Close() error {
	e.cancel()
	return nil
}
