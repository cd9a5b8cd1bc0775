package api

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"hongbao/internal/staff"
	"hongbao/wire"
)

// An operation is a function of its typed input and answer. Input structs have these fields:
//
//	Asked, or Change  who asks; Change also has the Idempotency-Key, and gives a staff.Write
//	path:"id" of:"…"  a parameter of the path, one of things
//	in:"query"        a struct of parameters: names, bounds and texts are in its tags
//	in:"body"         the body, strict JSON: likewise
//
// Faults are reported in the order of the contract: query, body, Idempotency-Key, path. createPacket and grab are no
// operations: they are the hot path, and an input filled by reflection would cost each of them allocations.
type operation[In, Out any] func(ctx context.Context, in *In) (*Out, error)

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
type checker interface{ Check(o *object) }

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
			in.query = append(in.query, inputPart{f, binderOf(f.Type)})
		case place == "body":
			in.body = &inputPart{f, binderOf(f.Type)}
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
		read := readObject
		if r.route.optional {
			read = readOptional
		}
		o, err := read(r.payload)
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
		w.Route = r.c.Method() + " " + r.route.path
	}
	var absent error
	for _, p := range in.path {
		name := p.field.Tag.Get("path")
		text, err := p.thing.read(name, r.c.Params(name))
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
func (in *input) bind(o *object, to reflect.Value, parts ...inputPart) error {
	for _, p := range parts {
		p.bind(o, to.FieldByIndex(p.field.Index))
	}
	if c, ok := to.Addr().Interface().(checker); ok && (in.body == nil) == o.plain {
		c.Check(o)
	}
	return o.done()
}

// params describes the parameters of an input.
func (in *input) params() (out []param) {
	for _, p := range in.path {
		out = append(out, param{in: "path", name: p.field.Tag.Get("path"), required: true, field: p.field, about: p.thing.about,
			example: p.thing.example})
	}
	if in.write {
		out = append(out, keyParam)
	}
	for _, part := range in.query {
		for _, f := range reflect.VisibleFields(part.field.Type) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && !f.Anonymous {
				out = append(out, param{in: "query", name: name, required: isRequired(f), field: f, about: f.Tag.Get("doc")})
			}
		}
	}
	return out
}

// missing is the refusal of the last thing in the path that can be missing; nil: none can.
func (in *input) missing() *refusal {
	for _, p := range slices.Backward(in.path) {
		if p.thing.missing != nil {
			return p.thing.missing()
		}
	}
	return nil
}

// get makes a route of an operation that reads.
func get[In, Out any](r route, do operation[In, Out]) *route {
	r.method = http.MethodGet
	if r.limit == 0 {
		r.limit = readTimeout
	}
	return routeOf(&r, do)
}

// post makes a route of an operation that writes.
func post[In, Out any](r route, do operation[In, Out]) *route {
	r.method = http.MethodPost
	return routeOf(&r, do)
}

func routeOf[In, Out any](r *route, do operation[In, Out]) *route {
	r.listener, r.realm = listenPublic, realmApp
	if strings.HasPrefix(r.path, staffPrefix) {
		r.listener, r.realm = listenStaff, realmStaff
	}
	in := inputOf(typeOf[In](), r.payment)
	r.params = in.params()
	if in.body != nil && r.body == nil {
		r.body = reflect.Zero(in.body.field.Type).Interface()
	}
	if in.write {
		r.problems = append(r.problems, wire.CodeKeyRequired, wire.CodeKeyReused)
	}
	if missing := in.missing(); missing != nil {
		r.problems = append(r.problems, missing.code)
	}
	for i := range r.answers {
		if r.answers[i].body == nil {
			r.answers[i].body = bodyOf[Out]()
		}
		if in.write {
			r.answers[i].headers = append(r.answers[i].headers, replayed)
		}
	}
	limit, status := r.limit, r.answers[0].status
	r.handle = func(q *Request) (answer, error) {
		var given In
		if err := in.read(q, reflect.ValueOf(&given).Elem()); err != nil {
			return answer{}, err
		}
		ctx, cancel := q.ctx, context.CancelFunc(func() {})
		if limit > 0 && limit < requestTimeout { // which every request has
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		defer cancel()
		out, err := do(ctx, &given)
		if err != nil {
			return answer{}, refusedWrite(err, in.missing())
		}
		if own, ok := any(out).(interface{ answer() answer }); ok {
			return own.answer(), nil
		}
		return answer{status: status, body: out}, nil
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

// stored is the answer T to a write, as it is kept for repeats.
type stored[T any] struct {
	staff.Answer
	fresh *T // instead of the kept body; nil: that
}

// storedAs returns the kept answer of a write.
func storedAs[T any](a staff.Answer, err error) (*stored[T], error) {
	return &stored[T]{Answer: a}, err
}

func (*stored[T]) bodyOf() any {
	var body T
	return body
}

func (s *stored[T]) answer() answer {
	a := answer{status: s.Status, raw: s.Body, replayed: s.Replayed}
	if s.fresh != nil {
		a.body, a.raw = s.fresh, nil
	}
	if s.Status >= http.StatusBadRequest {
		a.kind = contentProblem
	}
	return a
}

// ok, created and accepted describe the answer of an operation.
func ok(about string) []reply       { return []reply{{status: http.StatusOK, about: about}} }
func created(about string) []reply  { return []reply{{status: http.StatusCreated, about: about}} }
func accepted(about string) []reply { return []reply{{status: http.StatusAccepted, about: about}} }

// renderStored renders a refusal that is stored as the answer to a write.
func (r *Request) renderStored(e *refusal) (status int, body []byte) {
	p := e.problem(instanceOf(r.c), r.id)
	return p.Status, encodeBody(p)
}

// now is the time of a request.
func (r *Request) now() time.Time { return r.host.now().UTC() }

// accept returns status 202 and a body.
func accept(body any) (int, []byte) { return http.StatusAccepted, encodeBody(body) }

// encodeBody encodes an answer of this package, which cannot fail.
func encodeBody(body any) []byte {
	raw, err := encode(body)
	if err != nil {
		return []byte("{}")
	}
	return raw
}

// staffWrite returns who writes, why, and under which Idempotency-Key.
func (r *Request) staffWrite(body any, reason string) (staff.Write, error) {
	key, err := r.idempotencyKey()
	if err != nil {
		return staff.Write{}, err
	}
	hash, err := bodyHash(body)
	if err != nil {
		return staff.Write{}, err
	}
	owner := r.caller.key
	return staff.Write{Owner: owner.Owner, Role: string(owner.Role), KeyID: owner.ID, Key: key, BodyHash: hash, Reason: reason}, nil
}
