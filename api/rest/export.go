package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"

	"hongbao/internal/access"
	"hongbao/internal/money"
	"hongbao/wire"
)

const (
	// exportStep is how many items are read and held at a time.
	exportStep = 1000
	// exportReadLimit bounds the read of one step: a filter without an index, such as amounts,
	// may scan every payout.
	exportReadLimit = 30 * time.Second
	contentCSV      = "text/csv; charset=utf-8"
	// ByteOrderMark lets Excel detect UTF-8.
	ByteOrderMark = "\ufeff"
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

// File is the answer of an operation that has begun to write a file.
type File struct{}

func (File) answer() Answer { return Answer{Written: true} }

// file returns the operation that answers with the file of a list.
func (l Listing[F, I]) file(columns FileColumns) Operation[exported[F], File] {
	return func(_ context.Context, in *exported[F]) (*File, error) {
		zone, err := Zone(cmp.Or(in.Form.TZ, DefaultZone))
		if err != nil {
			return nil, err
		}
		form := fileForm{marked: in.Form.BOM, zone: zone}
		a := Selection[F]{Filter: in.Filter, Caller: in.Caller, Now: in.Now(), Limit: exportStep}
		return &File{}, in.sendFile(form, listFile{name: l.Name, columns: columns.Names,
			more: func(ctx context.Context) ([][]string, bool, error) {
				items, next, err := l.Read(ctx, a)
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
					a.After = *next
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
	e := &export{host: r.Host, conn: r.C.Context().Conn(), requestID: r.ID, file: file}
	e.ctx, e.cancel = context.WithCancel(r.Host.Base)
	e.out = csv.NewWriter(&e.buffer)
	e.out.UseCRLF = true
	if form.marked {
		e.buffer.WriteString(ByteOrderMark)
	}
	err := e.out.Write(file.columns)
	if err == nil {
		err = e.step() // the first step runs here, where an error is still answered with a problem
	}
	if err != nil {
		e.cancel()
		return err
	}
	r.fileHeader(file.name + "-" + r.Host.Now().UTC().Format("20060102T150405Z"))
	r.C.Context().SetBodyStream(e, -1)
	return nil
}

// SendFile answers with a small file.
func (r *Request) SendFile(name string, file []byte) (*File, error) {
	r.fileHeader(name)
	return &File{}, r.C.Send(file)
}

func (r *Request) fileHeader(name string) {
	r.C.Set(fiber.HeaderContentType, contentCSV)
	r.C.Set(fiber.HeaderContentDisposition, `attachment; filename="`+name+`.csv"`)
	r.C.Status(http.StatusOK)
}

// step reads the next lines into the buffer.
func (e *export) step() error {
	if e.host.Draining() {
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
	if err := e.conn.SetWriteDeadline(time.Now().Add(e.host.WriteTimeout)); err != nil {
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

// ExportRoute returns the route of the file of a list. Filters and roles are those of the list.
func ExportRoute[F, I any](l Listing[F, I], id, of string, columns FileColumns, roles ...access.Role) *Route {
	return Get(Route{ID: id, Path: wire.PathExports + "/" + l.Name + ".csv", Roles: roles, Tag: "staff exports",
		Summary: "Export " + l.Name + " as CSV", About: exportAbout(of, columns.Names), Answers: CSVAnswer()}, l.file(columns))
}

// CSVAnswer describes the answer with a file.
func CSVAnswer() []Reply {
	return []Reply{{Status: http.StatusOK, About: "The file.", Body: "", Kind: contentCSV,
		Headers: []Param{{Name: "Content-Disposition", About: "Contains the file name."}}}}
}

// FileColumns are the columns of the file of a list. A column is a member of the list's item, such as amount or
// failure_code for the member code of failure. Some are made for people: amount_yuan is amount in
// yuan, created_local is created_at in the time zone local_zone.
type FileColumns struct {
	Names []string
	// of has the members of columns with another name; of several the first that is not null.
	Of map[string][]string
}

// line returns the cells of an item, a struct of package wire.
func (c FileColumns) line(item any, form fileForm) ([]string, error) {
	members := map[string]reflect.Value{}
	flatten(members, "", reflect.ValueOf(item))
	out := make([]string, len(c.Names))
	for i, name := range c.Names {
		text, err := c.cell(members, name, form)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		out[i] = text
	}
	return out, nil
}

func (c FileColumns) cell(members map[string]reflect.Value, name string, form fileForm) (string, error) {
	if name == "local_zone" {
		return form.zone.String(), nil
	}
	if v, ok := c.member(members, name); ok {
		return cellOf(v)
	}
	if base, ok := strings.CutSuffix(name, "_yuan"); ok {
		if v, ok := c.member(members, base); ok {
			if amount, is := v.Interface().(money.Fen); is {
				return amount.String(), nil
			}
		}
	}
	if base, ok := strings.CutSuffix(name, "_local"); ok {
		for _, of := range []string{base + "_at", base} {
			if v, ok := c.member(members, of); ok {
				if at, is := v.Interface().(wire.Time); is {
					return form.local(at.Time), nil
				}
			}
		}
	}
	return "", nil
}

// member returns the member of a column; false: it is null.
func (c FileColumns) member(members map[string]reflect.Value, name string) (reflect.Value, bool) {
	paths, ok := c.Of[name]
	if !ok {
		paths = []string{name}
	}
	for _, path := range paths {
		if v, ok := members[path]; ok {
			return v, true
		}
	}
	return reflect.Value{}, false
}

// flatten collects the members of a struct that are not null, those of a struct in it after its name.
func flatten(members map[string]reflect.Value, prefix string, of reflect.Value) {
	for i := range of.NumField() {
		field, v := of.Type().Field(i), of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				continue
			}
			v = v.Elem()
		}
		_, isTime := v.Interface().(wire.Time)
		switch {
		case field.Anonymous:
			flatten(members, prefix, v)
		case v.Kind() == reflect.Struct && !isTime:
			flatten(members, prefix+name+"_", v)
		default:
			members[prefix+name] = v
		}
	}
}

// cellOf returns the cell of a member.
func cellOf(v reflect.Value) (string, error) {
	switch of := v.Interface().(type) {
	case wire.Time:
		return of.String(), nil
	case money.Fen:
		return of.Digits(), nil
	case wire.State:
		text, err := of.MarshalJSON() // as the list renders it, an invalid one too
		return Cell(string(text)), err
	case encoding.TextMarshaler:
		text, err := of.MarshalText()
		return Cell(string(text)), err
	}
	switch {
	case v.Kind() == reflect.String:
		return Cell(v.String()), nil
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	}
	text, err := json.Marshal(v.Interface(), json.Deterministic(true))
	return Cell(string(text)), err
}
