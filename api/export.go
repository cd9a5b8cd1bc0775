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
	"time"

	"github.com/gofiber/fiber/v2"
)

const (
	// exportStep is how many items are read and held at a time.
	exportStep = 1000
	// exportReadLimit bounds the read of one step: a filter without an index, such as amounts,
	// may scan every payout.
	exportReadLimit = 30 * time.Second
	contentCSV      = "text/csv; charset=utf-8"
	// byteOrderMark lets Excel detect UTF-8.
	byteOrderMark = "\ufeff"
)

// errDraining ends an export at shutdown: a file of a million lines takes longer than the
// drain.
var errDraining = errors.New("the server drains")

// exportLocal is the layout of local times, which spreadsheets recognize as times.
const exportLocal = "2006-01-02 15:04:05"

// listFile describes the file of a list.
type listFile struct {
	name    string // of the list
	columns []string
	// more reads the next lines, about exportStep of them, each call after the previous one.
	// end: there are no more. It is called after the handler returned.
	more func(ctx context.Context) (lines [][]string, end bool, err error)
}

// fileForm is the form of a file.
type fileForm struct {
	marked bool           // with a byte order mark
	zone   *time.Location // of local times
}

// fileForm reads the form of a file. These are the last parameters of the query.
func (q *query) fileForm() (fileForm, error) {
	marked := q.text("bom", checkBool)
	name := q.text("tz", checkZone)
	if err := q.done(); err != nil {
		return fileForm{}, err
	}
	in, err := zone(cmp.Or(name, defaultZone))
	return fileForm{marked: marked == "true", zone: in}, err
}

// local formats a time in the file's time zone; the zero time is "".
func (f fileForm) local(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(f.zone).Format(exportLocal)
}

// export is a streamed answer body. Memory does not grow with its length: the list is read in
// steps, newest first, each after the last. So each item appears once, as it is when it is
// read, whatever is added during the export. When a step cannot be read, the connection is
// closed within a chunk: no client can take the part for the whole.
type export struct {
	server    *Server
	ctx       context.Context
	cancel    context.CancelFunc
	conn      net.Conn
	requestID string
	file      listFile
	buffer    bytes.Buffer
	out       *csv.Writer
	ended     bool // all items are read
	broken    error
}

// sendFile answers with the file of a list.
func (r *request) sendFile(form fileForm, file listFile) (answer, error) {
	e := &export{server: r.server, conn: r.c.Context().Conn(), requestID: r.id, file: file}
	e.ctx, e.cancel = context.WithCancel(r.server.base)
	e.out = csv.NewWriter(&e.buffer)
	e.out.UseCRLF = true
	if form.marked {
		e.buffer.WriteString(byteOrderMark)
	}
	err := e.out.Write(file.columns)
	if err == nil {
		err = e.step() // the first step runs here, where an error is still answered with a problem
	}
	if err != nil {
		e.cancel()
		return answer{}, err
	}
	name := file.name + "-" + r.server.cfg.Now().UTC().Format("20060102T150405Z") + ".csv"
	r.c.Set(fiber.HeaderContentType, contentCSV)
	r.c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+name+`"`)
	r.c.Set(fiber.HeaderCacheControl, "no-store")
	r.c.Status(http.StatusOK)
	r.c.Context().SetBodyStream(e, -1)
	return answer{written: true}, nil
}

// step reads the next lines into the buffer.
func (e *export) step() error {
	if e.server.draining.Load() {
		return errDraining
	}
	ctx, cancel := context.WithTimeout(e.ctx, exportReadLimit)
	defer cancel()
	lines, end, err := e.file.more(ctx)
	if err != nil {
		return err
	}
	if err := e.out.WriteAll(lines); err != nil { // flushes too
		return fmt.Errorf("write %s: %w", e.file.name, err)
	}
	e.ended = end
	return nil
}

// Read implements io.Reader. It runs while the answer is written, outside the chain of
// handlers, and so handles deadline, panics and logging itself.
func (e *export) Read(b []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(e.ctx, "export panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			n, err = 0, fmt.Errorf("panic: %v", p)
		}
		if err != nil && !errors.Is(err, io.EOF) && e.broken == nil {
			e.broken = err
			slog.ErrorContext(e.ctx, "export was aborted", slog.String("request_id", e.requestID), slog.Any("error", err))
		}
	}()
	if e.broken != nil {
		return 0, e.broken
	}
	for e.buffer.Len() == 0 { // a step may find nothing without being the last
		if e.ended {
			return 0, io.EOF
		}
		if err := e.step(); err != nil {
			return 0, err
		}
	}
	// Each piece has the write timeout of a whole answer.
	if err := e.conn.SetWriteDeadline(time.Now().Add(e.server.cfg.WriteTimeout)); err != nil {
		return 0, fmt.Errorf("write deadline: %w", err)
	}
	return e.buffer.Read(b)
}

// Close implements io.Closer. It is called when the answer is written or its client has
// disconnected.
func (e *export) Close() error {
	e.cancel()
	return nil
}
