package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"hongbao/internal/staff"
	"hongbao/wire"
)

// Operation is a function of its typed input and answer. Input structs have these fields:
//
//	Asked, or Change  who asks; Change also has the Idempotency-Key, and gives a staff.Write
//	path:"id" of:"…"  a parameter of the path, one of things
//	in:"query"        a struct of parameters: names, bounds and texts are in its tags
//	in:"body"         the body, strict JSON: likewise
//
// Faults are reported in the order of the contract: query, body, Idempotency-Key, path. Creating a packet and grabbing are no
// operations: they are the hot path, and an input filled by reflection would cost each of them allocations.
type Operation[In, Out any] func(ctx context.Context, in *In) (*Out, error)

// Asked is who asks.
type Asked struct{ *Request }

// Change is a request that changes something, with who, why, key and hash of its body.
type Change struct {
	Asked
	staff.Write
}

// By gives an input its request.
func (a *Asked) By(r *Request) { a.Request = r }

// Sign gives an input the write that it is.
func (w *Change) Sign(as staff.Write) { w.Write = as }

// checker is an input with rules that tags cannot state. Their faults are reported with the others.
type checker interface{ Check(o *Object) }

// input says how the input of an operation is read.
type input struct {
	query  []inputPart
	body   *inputPart
	path   []pathPart
	write  bool
	reason []int // index of the body's reason; nil: none
}

type inputPart struct {
	field reflect.StructField
	bind  binder
}

type pathPart struct {
	field reflect.StructField
	thing thing
}

// inputOf describes an input; of is what a payment is.
func inputOf(t reflect.Type, of string) *input {
	in := &input{}
	for _, f := range reflect.VisibleFields(t) {
		switch place := f.Tag.Get("in"); {
		case f.Type == typeOf[staff.Write]():
			in.write = true
		case f.Tag.Get("of") != "":
			name := f.Tag.Get("of")
			if name == "payment" {
				name = of
			}
			in.path = append(in.path, pathPart{f, things[name]})
		case place == "query":
			in.query = append(in.query, inputPart{f, BinderOf(f.Type)})
		case place == "body":
			in.body = &inputPart{f, BinderOf(f.Type)}
			if reason, ok := f.Type.FieldByName("Reason"); ok {
				in.reason = reason.Index
			}
		}
	}
	return in
}

// read fills an input, or returns the first kind of faults that the request has.
func (in *input) read(r *Request, to reflect.Value) error {
	if a, ok := to.Addr().Interface().(interface{ By(*Request) }); ok {
		a.By(r)
	}
	if len(in.query) > 0 {
		o := queryObject(r.parameters())
		if err := in.bind(o, to, in.query...); err != nil {
			return err
		}
	}
	if in.body != nil {
		read := ReadObject
		if r.Route.Optional {
			read = readOptional
		}
		o, err := read(r.Payload)
		if err != nil {
			return err
		}
		if err := in.bind(o, to, *in.body); err != nil {
			return err
		}
	}
	var w staff.Write
	if in.write {
		body, reason := to.FieldByIndex(in.body.field.Index), ""
		if in.reason != nil {
			reason = body.FieldByIndex(in.reason).String()
		}
		var err error
		if w, err = r.staffWrite(body.Interface(), reason); err != nil {
			return err
		}
		w.Route = r.C.Method() + " " + r.Route.Path
	}
	var absent error
	for _, p := range in.path {
		name := p.field.Tag.Get("path")
		text, err := p.thing.read(name, r.C.Params(name))
		if err != nil && p.thing.missing != nil {
			absent = cmp.Or(absent, err)
			continue
		}
		if err != nil {
			return err
		}
		text = strings.Clone(text)
		to.FieldByIndex(p.field.Index).SetString(text)
		w.Route = strings.Replace(w.Route, "{"+name+"}", text, 1)
	}
	if absent != nil {
		return absent
	}
	if s, ok := to.Addr().Interface().(interface{ Sign(staff.Write) }); ok {
		s.Sign(w)
	}
	return nil
}

// bind reads parts of an input from one object and returns its faults.
func (in *input) bind(o *Object, to reflect.Value, parts ...inputPart) error {
	for _, p := range parts {
		p.bind(o, to.FieldByIndex(p.field.Index))
	}
	if c, ok := to.Addr().Interface().(checker); ok && (in.body == nil) == o.plain {
		c.Check(o)
	}
	return o.Done()
}

// params describes the parameters of an input.
func (in *input) params() (out []Param) {
	for _, p := range in.path {
		out = append(out, Param{In: "path", Name: p.field.Tag.Get("path"), Required: true, field: p.field, About: p.thing.about,
			Example: p.thing.example})
	}
	if in.write {
		out = append(out, KeyParam)
	}
	for _, part := range in.query {
		for _, f := range reflect.VisibleFields(part.field.Type) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && !f.Anonymous {
				out = append(out, Param{In: "query", Name: name, Required: isRequired(f), field: f, About: f.Tag.Get("doc")})
			}
		}
	}
	return out
}

// missing is the refusal of the last thing in the path that can be missing; nil: none can.
func (in *input) missing() *Refusal {
	for _, p := range slices.Backward(in.path) {
		if p.thing.missing != nil {
			return p.thing.missing()
		}
	}
	return nil
}

// Get makes a route of an operation that reads.
func Get[In, Out any](r Route, do Operation[In, Out]) *Route {
	r.Method = http.MethodGet
	if r.Limit == 0 {
		r.Limit = ReadTimeout
	}
	return routeOf(&r, do)
}

// Post makes a route of an operation that writes.
func Post[In, Out any](r Route, do Operation[In, Out]) *Route {
	r.Method = http.MethodPost
	return routeOf(&r, do)
}

func routeOf[In, Out any](r *Route, do Operation[In, Out]) *Route {
	r.Listener, r.Realm = ListenPublic, RealmApp
	if strings.HasPrefix(r.Path, StaffPrefix) {
		r.Listener, r.Realm = ListenStaff, RealmStaff
	}
	in := inputOf(typeOf[In](), r.Payment)
	r.Params = in.params()
	if in.body != nil && r.Body == nil {
		r.Body = reflect.Zero(in.body.field.Type).Interface()
	}
	if in.write {
		r.Problems = append(r.Problems, wire.CodeKeyRequired, wire.CodeKeyReused)
	}
	if missing := in.missing(); missing != nil {
		r.Problems = append(r.Problems, missing.Code)
	}
	for i := range r.Answers {
		if r.Answers[i].Body == nil {
			r.Answers[i].Body = bodyOf[Out]()
		}
		if in.write {
			r.Answers[i].Headers = append(r.Answers[i].Headers, Replayed)
		}
	}
	limit, status := r.Limit, r.Answers[0].Status
	r.Handle = func(q *Request) (Answer, error) {
		var given In
		if err := in.read(q, reflect.ValueOf(&given).Elem()); err != nil {
			return Answer{}, err
		}
		ctx, cancel := q.Ctx, context.CancelFunc(func() {})
		if limit > 0 && limit < RequestTimeout { // which every request has
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		defer cancel()
		out, err := do(ctx, &given)
		if err != nil {
			return Answer{}, refusedWrite(err, in.missing())
		}
		if own, ok := any(out).(interface{ answer() Answer }); ok {
			return own.answer(), nil
		}
		return Answer{Status: status, Body: out}, nil
	}
	return r
}

// bodyOf returns the zero value of the body of an answer.
func bodyOf[Out any]() any {
	out := new(Out)
	if of, ok := any(out).(interface{ bodyOf() any }); ok {
		return of.bodyOf()
	}
	return *out
}

// Stored is the answer T to a write, as it is kept for repeats.
type Stored[T any] struct {
	staff.Answer
	Fresh *T // instead of the kept body; nil: that
}

// StoredAs returns the kept answer of a write.
func StoredAs[T any](a staff.Answer, err error) (*Stored[T], error) {
	return &Stored[T]{Answer: a}, err
}

func (*Stored[T]) bodyOf() any {
	var body T
	return body
}

func (s *Stored[T]) answer() Answer {
	a := Answer{Status: s.Status, Raw: s.Body, Replayed: s.Replayed}
	if s.Fresh != nil {
		a.Body, a.Raw = s.Fresh, nil
	}
	if s.Status >= http.StatusBadRequest {
		a.Kind = ContentProblem
	}
	return a
}

// OK describes the answer of an operation with status 200.
func OK(about string) []Reply { return []Reply{{Status: http.StatusOK, About: about}} }

// Created describes the answer of an operation with status 201.
func Created(about string) []Reply { return []Reply{{Status: http.StatusCreated, About: about}} }

// Accepted describes the answer of an operation with status 202.
func Accepted(about string) []Reply { return []Reply{{Status: http.StatusAccepted, About: about}} }

// RenderStored renders a refusal that is stored as the answer to a write.
func (r *Request) RenderStored(e *Refusal) (status int, body []byte) {
	p := e.Problem(InstanceOf(r.C), r.ID)
	return p.Status, EncodeBody(p)
}

// Now is the time of a request.
func (r *Request) Now() time.Time { return r.Host.Now().UTC() }

// Accept returns status 202 and a body.
func Accept(body any) (int, []byte) { return http.StatusAccepted, EncodeBody(body) }

// EncodeBody encodes an answer of this package, which cannot fail.
func EncodeBody(body any) []byte {
	raw, err := Encode(body)
	if err != nil {
		return []byte("{}")
	}
	return raw
}

// staffWrite returns who writes, why, and under which Idempotency-Key.
func (r *Request) staffWrite(body any, reason string) (staff.Write, error) {
	key, err := r.IdempotencyKey()
	if err != nil {
		return staff.Write{}, err
	}
	hash, err := BodyHash(body)
	if err != nil {
		return staff.Write{}, err
	}
	owner := r.Caller.Key
	return staff.Write{Owner: owner.Owner, Role: string(owner.Role), KeyID: owner.ID, Key: key, BodyHash: hash, Reason: reason}, nil
}

// MaxKey is the longest Idempotency-Key in characters.
const MaxKey = 128

// IdempotencyKey returns the one Idempotency-Key header.
func (r *Request) IdempotencyKey() (string, error) {
	key, ok := r.single(HeaderIdempotencyKey)
	if !ok || !IsVisible(key, MaxKey) {
		return "", Refuse(wire.CodeKeyRequired)
	}
	return key, nil
}

// BodyHash is the hex SHA-256 of a parsed request with defaults filled in: member order, white
// space and explicit defaults make no difference.
func BodyHash(parsed any) (string, error) {
	canonical, err := json.Marshal(parsed) // members in the order of the struct, maps sorted
	if err != nil {
		return "", fmt.Errorf("encode canonical request: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
