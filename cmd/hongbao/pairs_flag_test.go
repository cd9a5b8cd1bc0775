package main

import (
	"bytes"
	"maps"
	"strings"
	"testing"
)

// TestTexts: a name that is given twice, in one flag or in two, is refused.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		given []string
		want  map[string]string
		fault string
	}{
		{[]string{"a=b,c=d"}, map[string]string{"a": "b", "c": "d"}, ""},
		{[]string{"a=b", "c=d"}, map[string]string{"a": "b", "c": "d"}, ""},
		{[]string{"a=b,c"}, map[string]string{"a": "b,c"}, ""},
		{[]string{`"a=b,c",d=e=f`, "g="}, map[string]string{"a": "b,c", "d": "e=f", "g": ""}, ""},
		{[]string{"a=b,a=c"}, nil, `"a" is given twice`},
		{[]string{"a=b,a=b"}, nil, `"a" is given twice`},
		{[]string{"a=b", "a=c"}, nil, `"a" is given twice`},
		{[]string{"a"}, nil, "is not name=value"},
		{[]string{"a=b,c=d,e"}, nil, "is not name=value"},
		{[]string{"a=b,\"c=d"}, nil, "write name=value, several with commas"},
	} {
		args := []string{"packets", "create", "--sender", "s", "--total", "1", "--shares", "1"}
		for _, value := range c.given {
			args = append(args, "--metadata", value)
		}
		var texts map[string]string
		var err error
		for _, value := range c.given {
			if err = addPairs(&texts, value); err != nil {
				break
			}
		}
		if c.fault == "" && (err != nil || !maps.Equal(texts, c.want)) {
			t.Errorf("%q: %v, %v", c.given, texts, err)
		}
		if c.fault == "" {
			continue
		}
		var out, errs bytes.Buffer
		if code := execute(t.Context(), args, nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), c.fault) {
			t.Errorf("%q: exit code %d, %s", c.given, code, &errs)
		}
	}
}
