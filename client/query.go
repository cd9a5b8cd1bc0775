package client

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// get reads a resource. filter is as for queryOf.
func get[T any](ctx context.Context, c *caller, path string, filter any) (*T, error) {
	out := new(T)
	if err := c.do(ctx, call{method: http.MethodGet, path: path, query: queryOf(filter)}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// queryOf encodes a filter of package wire, without zero members. nil is no filter, and url.Values are returned.
func queryOf(filter any) url.Values {
	query := url.Values{}
	switch f := filter.(type) {
	case nil:
		return query
	case url.Values:
		return f
	}
	f := reflect.ValueOf(filter)
	for _, member := range reflect.VisibleFields(f.Type()) {
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		if v := f.FieldByIndex(member.Index); name != "" && !v.IsZero() {
			query.Set(name, queryText(reflect.Indirect(v)))
		}
	}
	return query
}

// queryText formats one value.
func queryText(v reflect.Value) string {
	if at, ok := v.Interface().(time.Time); ok {
		return at.UTC().Format(time.RFC3339Nano)
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	}
	return v.String()
}
