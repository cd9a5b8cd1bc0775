package client

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
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

// queryOf encodes a filter: a struct whose members have a tag query, without zero members. nil is no filter, and url.Values
// are returned.
func queryOf(filter any) url.Values {
	query := url.Values{}
	switch f := filter.(type) {
	case nil:
		return query
	case url.Values:
		return f
	}
	f := reflect.ValueOf(filter)
	for i := range f.NumField() {
		if member := f.Field(i); !member.IsZero() {
			query.Set(f.Type().Field(i).Tag.Get("query"), queryText(reflect.Indirect(member)))
		}
	}
	return query
}

// queryText formats one value: durations in seconds, amounts in fen.
func queryText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		return strconv.FormatInt(int64(x/time.Second), 10)
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	}
	return v.String()
}
