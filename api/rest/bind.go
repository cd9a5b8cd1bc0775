package rest

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"hongbao/internal/money"
	"hongbao/wire"
)

// binder reads the members of a body or of a query into a struct. It is made once per type, from the tags that the
// document is made from too.
type binder func(o *Object, to reflect.Value)

// bodyReader is a body with members that depend on each other. It reads itself; its route names the type that the
// document is made from.
type bodyReader interface{ Bind(o *Object) }

// BinderOf returns the binder of a struct.
func BinderOf(t reflect.Type) binder {
	if reflect.PointerTo(t).Implements(typeOf[bodyReader]()) {
		return func(o *Object, to reflect.Value) { to.Addr().Interface().(bodyReader).Bind(o) }
	}
	var members []binder
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && !f.Anonymous {
			read := memberBinder(f, name)
			members = append(members, func(o *Object, to reflect.Value) { read(o, to.FieldByIndex(f.Index)) })
			if f.Tag.Get("alone") != "" {
				members = append(members, func(o *Object, to reflect.Value) { o.rejectOthers(name, f.Index, to) })
			}
		}
	}
	return func(o *Object, to reflect.Value) {
		for _, read := range members {
			read(o, to)
		}
	}
}

// rejectOthers records a fault when a list has elements and another member of the struct is there.
func (o *Object) rejectOthers(name string, index []int, of reflect.Value) {
	others := reflect.New(of.Type()).Elem()
	others.Set(of)
	others.FieldByIndex(index).SetZero()
	if !of.FieldByIndex(index).IsZero() && !others.IsZero() {
		o.Fault(name, Fault{FaultFormat, "must be the only member"})
	}
}

// memberBinder returns the binder of one member.
func memberBinder(f reflect.StructField, name string) binder {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	set := func(to, value reflect.Value) {
		if to.Kind() == reflect.Pointer {
			to.Set(reflect.New(t))
			to = to.Elem()
		}
		to.Set(value.Convert(t))
	}
	required, check := isRequired(f), checkOf(f)
	switch {
	case t == typeOf[time.Time]():
		return func(o *Object, to reflect.Value) { set(to, reflect.ValueOf(o.instant(name, f.Tag.Get("after")))) }
	case t.Kind() == reflect.String:
		return func(o *Object, to reflect.Value) {
			if s := o.Text(name, required, check); s != nil {
				set(to, reflect.ValueOf(*s))
			}
		}
	case t.Kind() == reflect.Bool:
		standard := f.Tag.Get("default") == "true"
		return func(o *Object, to reflect.Value) {
			if yes := o.Boolean(name); yes != nil || standard {
				set(to, reflect.ValueOf(ValueOr(yes, standard)))
			}
		}
	case t.Kind() == reflect.Int64 || t.Kind() == reflect.Int:
		low, high := boundsOf(f, t)
		return func(o *Object, to reflect.Value) {
			if n := o.Integer(name, required, low, high); n != nil {
				set(to, reflect.ValueOf(*n))
				o.notBelow(f.Tag.Get("from"), name, *n)
			}
		}
	case t.Kind() == reflect.Slice:
		most, _ := strconv.Atoi(f.Tag.Get("maxItems"))
		return func(o *Object, to reflect.Value) {
			if items := o.List(name, most, check); items != nil {
				set(to, reflect.ValueOf(items))
			}
		}
	}
	read := BinderOf(t)
	return func(o *Object, to reflect.Value) {
		in := o.Object(name, true)
		read(in, to)
		if in.RejectUnknown(); len(*o.Faults) == 0 && to.IsZero() {
			o.Fault(name, Fault{FaultRequired, "must have at least one member"})
		}
	}
}

// isRequired says whether a member of a body or a parameter is required: in bodies by default, in queries by tag.
func isRequired(f reflect.StructField) bool {
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return f.Tag.Get("required") != "false" && options != "omitempty"
}

// boundsOf returns the bounds of a whole number.
func boundsOf(f reflect.StructField, t reflect.Type) (low, high int64) {
	high = math.MaxInt64
	if t == typeOf[money.Fen]() {
		high = int64(money.Max)
	}
	if n, err := strconv.ParseInt(f.Tag.Get("minimum"), 10, 64); err == nil {
		low = n
	}
	if n, err := strconv.ParseInt(f.Tag.Get("maximum"), 10, 64); err == nil {
		high = n
	}
	return low, high
}

// textChecks are the checks that the tag check names.
var textChecks = map[string]func(string) *Fault{
	"code": checkCode, "text": checkFilter, "id": CheckID, "actor": checkActor, "app": checkAppID, "owner": checkOwner, "zone": CheckZone,
	"name": checkRecipientName, "authorization": checkAuthorization,
	"cursor": checkCursor, "ticket key": checkTicketKey, "payouts": checkIDs("payout"), "refunds": checkIDs("refund"),
}

// checkOf returns the check of a text, by its values, its length, its type or the tag check.
func checkOf(f reflect.StructField) func(string) *Fault {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, enum := f.Tag.Get("check"), strings.Split(f.Tag.Get("enum"), ",")
	if basic := basics[t]; basic != nil {
		for _, value := range basic().Enum {
			enum = append(enum, value.(string))
		}
	}
	enum = slices.DeleteFunc(enum, func(s string) bool { return s == "" })
	switch {
	case len(enum) > 0:
		return oneOf(enum)
	case textChecks[name] != nil:
		return textChecks[name]
	case name != "":
		return things[name].check(name)
	case t == typeOf[wire.Date]():
		return CheckDay
	case f.Tag.Get("maxLength") != "":
		return checkReason
	}
	return nil
}

// oneOf checks for one of some values.
func oneOf(values []string) func(string) *Fault {
	return func(s string) *Fault {
		if slices.Contains(values, s) {
			return nil
		}
		return &Fault{FaultEnum, "must be one of " + strings.Join(values, ", ")}
	}
}

// instant reads a time that is after the one of another member, if both are there.
func (o *Object) instant(name, after string) time.Time {
	var at time.Time
	o.Text(name, false, func(s string) *Fault {
		parsed, err := ParseTime(s)
		if err != nil {
			return &Fault{FaultFormat, "must be an RFC 3339 time, such as 2026-02-17T20:00:00Z; write + as %2B"}
		}
		if ms := parsed.UnixMilli(); ms < 0 || ms > MaxMs {
			return &Fault{FaultRange, "must be from 1970 to 9999"}
		}
		if from, err := ParseTime(o.valueOf(after)); err == nil && !from.Before(parsed) {
			return &Fault{FaultRange, "must be after " + after}
		}
		at = parsed.UTC()
		return nil
	})
	return at
}

// notBelow records a fault when a number is below that of another member.
func (o *Object) notBelow(from, name string, n int64) {
	if low, err := strconv.ParseInt(o.valueOf(from), 10, 64); err == nil && n < low {
		o.Fault(name, Fault{FaultRange, "must not be below " + from})
	}
}

// valueOf returns the value of a parameter as sent, or of a number in a body.
func (o *Object) valueOf(name string) string {
	for _, m := range o.members {
		if m.name == name {
			return string(m.value)
		}
	}
	return ""
}

// queryObject returns the parameters of a query; their values are not JSON.
func queryObject(values []member) *Object {
	o := &Object{plain: true, members: values, Faults: &[]wire.FieldError{}}
	o.rejectDuplicates()
	return o
}

func (r *Request) parameters() []member {
	var out []member
	for name, value := range r.C.Context().QueryArgs().All() {
		out = append(out, member{strings.ToValidUTF8(string(name), "?"), jsontext.Value(value)})
	}
	return out
}
