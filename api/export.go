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
	"strings"
	"time"

	"hongbao/internal/access"
	"hongbao/wire"

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

// fileParams select the form of a file.
type fileParams struct {
	BOM bool   `json:"bom,omitempty" doc:"true: the file begins with a byte order mark, which Excel needs to recognize UTF-8. Programs do not expect one." example:"true"`
	TZ  string `json:"tz,omitempty" check:"zone" doc:"IANA name of the time zone of local times; Asia/Shanghai by default." example:"Asia/Shanghai"`
}

// exported asks for the file of what a filter selects.
type exported[F any] struct {
	Asked
	Filter F          `in:"query"`
	Form   fileParams `in:"query"`
}

// csvFile is the answer of an operation that has begun to write a file.
type csvFile struct{}

func (csvFile) answer() answer { return answer{written: true} }

// file returns the operation that answers with the file of a list.
func (l listing[F, I]) file(columns fileColumns) operation[exported[F], csvFile] {
	return func(_ context.Context, in *exported[F]) (*csvFile, error) {
		zone, err := zone(cmp.Or(in.Form.TZ, defaultZone))
		if err != nil {
			return nil, err
		}
		form := fileForm{marked: in.Form.BOM, zone: zone}
		a := selection[F]{filter: in.Filter, caller: in.caller, now: in.now(), limit: exportStep}
		return &csvFile{}, in.sendFile(form, listFile{name: l.name, columns: columns.names,
			more: func(ctx context.Context) ([][]string, bool, error) {
				items, next, err := l.read(ctx, a)
				if err != nil {
					return nil, false, err
				}
				lines := make([][]string, len(items))
				for i, item := range items {
					if lines[i], err = columns.line(item, form); err != nil {
						return nil, false, err
					}
				}
				if next != nil {
					a.after = *next
				}
				return lines, next == nil, nil
			}})
	}
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
	host      *Host
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
func (r *Request) sendFile(form fileForm, file listFile) error {
	e := &export{host: r.host, conn: r.c.Context().Conn(), requestID: r.id, file: file}
	e.ctx, e.cancel = context.WithCancel(r.host.base)
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
		return err
	}
	r.fileHeader(file.name + "-" + r.host.now().UTC().Format("20060102T150405Z"))
	r.c.Context().SetBodyStream(e, -1)
	return nil
}

func (r *Request) fileHeader(name string) {
	r.c.Set(fiber.HeaderContentType, contentCSV)
	r.c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+name+`.csv"`)
	r.c.Status(http.StatusOK)
}

// step reads the next lines into the buffer.
func (e *export) step() error {
	if e.host.draining() {
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
	if err := e.conn.SetWriteDeadline(time.Now().Add(e.host.writeTimeout)); err != nil {
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

// exportAbout describes the file of a list. of describes its particular columns.
func exportAbout(of string, columns []string) string {
	return "Every item that the list returns for the same filters, newest first, one line each: RFC 4180 in UTF-8 with a header line. " +
		"The columns are " + strings.Join(columns, ", ") + "; " + of +
		"times are RFC 3339 UTC, local times have the form 2026-11-22 07:26:18; null is empty. Text that a spreadsheet could read as a " +
		"formula (it begins with = + - @, a tab or a line end) or as a value (a long id of digits, a date, a truth value) is prefixed with " +
		"an apostrophe, and so is text that begins with one: programs remove one apostrophe. The file is streamed while it is read, so each " +
		"line shows the moment at which it was read. A file is complete only when the answer ends properly: when reading fails, the " +
		"connection is closed within a chunk."
}

// exportRoute returns the route of the file of a list. Filters and roles are those of the list.
func exportRoute[F, I any](l listing[F, I], id, of string, columns fileColumns, roles ...access.Role) *route {
	return get(route{id: id, path: wire.PathExports + "/" + l.name + ".csv", roles: roles, tag: "staff exports",
		summary: "Export " + l.name + " as CSV", about: exportAbout(of, columns.names), answers: csvAnswer()}, l.file(columns))
}

// csvAnswer describes the answer with a file.
func csvAnswer() []reply {
	return []reply{{status: http.StatusOK, about: "The file.", body: "", kind: contentCSV,
		headers: []param{{name: "Content-Disposition", about: "Contains the file name."}}}}
}
