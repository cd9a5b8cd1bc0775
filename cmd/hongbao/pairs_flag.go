package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

var errDuplicateName = errors.New("is given twice")

// pairsFlag declares a flag of name=value pairs. It parses like pflag's StringToString, except that a duplicate name is an error:
// one of two values would be lost silently.
func pairsFlag(flags *pflag.FlagSet, to *map[string]string, name, usage string) {
	flags.Var(&parsedFlag{kind: "name=value", parse: func(text string) error { return addPairs(to, text) }}, name, usage)
}

// addPairs adds the pairs of a text.
func addPairs(to *map[string]string, text string) error {
	pairs := []string{strings.Trim(text, `"`)} // a single pair may hold commas
	if strings.Count(text, "=") > 1 {
		var err error
		if pairs, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil {
			return errNotPairs
		}
	}
	if *to == nil {
		*to = map[string]string{}
	}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q %w", pair, errNotPair)
		}
		if _, known := (*to)[name]; known {
			return fmt.Errorf("%q %w", name, errDuplicateName)
		}
		(*to)[name] = value
	}
	return nil
}

var (
	errNotPair  = errors.New("is not name=value")
	errNotPairs = errors.New(`write name=value, several with commas between, and a pair with a comma or a quote in it in double quotes`)
)
