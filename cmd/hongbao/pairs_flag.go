package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

var errDuplicateName = errors.New("is given twice")

// pairsFlag is a flag of name=value pairs. It parses like pflag's StringToString, except that a duplicate name is an error:
// one of two values would be lost silently.
type pairsFlag struct{ texts *map[string]string }

// Set implements pflag.Value.
func (f *pairsFlag) Set(value string) error {
	pairs := []string{strings.Trim(value, `"`)} // a single pair may hold commas
	if strings.Count(value, "=") > 1 {
		var err error
		if pairs, err = csv.NewReader(strings.NewReader(value)).Read(); err != nil {
			return errNotPairs
		}
	}
	if *f.texts == nil {
		*f.texts = map[string]string{}
	}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q %w", pair, errNotPair)
		}
		if _, known := (*f.texts)[name]; known {
			return fmt.Errorf("%q %w", name, errDuplicateName)
		}
		(*f.texts)[name] = text
	}
	return nil
}

var (
	errNotPair  = errors.New("is not name=value")
	errNotPairs = errors.New(`write name=value, several with commas between, and a pair with a comma or a quote in it in double quotes`)
)

// Type implements pflag.Value.
func (f *pairsFlag) Type() string { return "name=value" }

// String implements pflag.Value.
func (f *pairsFlag) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*f.texts)) {
		all = append(all, name+"="+(*f.texts)[name])
	}
	return strings.Join(all, ",")
}
