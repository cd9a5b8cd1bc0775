package api

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"hongbao/internal/money"
	"hongbao/wire"
)

// fileColumns are the columns of the file of a list. A column is a member of the list's item, such as amount or
// failure_code for the member code of failure. Some are made for people: amount_yuan is amount in
// yuan, created_local is created_at in the time zone local_zone.
type fileColumns struct {
	names []string
	// of has the members of columns with another name; of several the first that is not null.
	of map[string][]string
}

// line returns the cells of an item, a struct of package wire.
func (c fileColumns) line(item any, form fileForm) ([]string, error) {
	members := map[string]reflect.Value{}
	flatten(members, "", reflect.ValueOf(item))
	out := make([]string, len(c.names))
	for i, name := range c.names {
		text, err := c.cell(members, name, form)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		out[i] = text
	}
	return out, nil
}

func (c fileColumns) cell(members map[string]reflect.Value, name string, form fileForm) (string, error) {
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
func (c fileColumns) member(members map[string]reflect.Value, name string) (reflect.Value, bool) {
	paths, ok := c.of[name]
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
		return cell(string(text)), err
	case encoding.TextMarshaler:
		text, err := of.MarshalText()
		return cell(string(text)), err
	}
	switch {
	case v.Kind() == reflect.String:
		return cell(v.String()), nil
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	}
	text, err := json.Marshal(v.Interface(), json.Deterministic(true))
	return cell(string(text)), err
}
