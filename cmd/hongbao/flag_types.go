package main

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/internal/payout"
	"hongbao/wire"
)

// parsedFlag is the value of a flag that parse checks and stores.
type parsedFlag struct {
	text   string
	kind   string
	parse  func(text string) error
	values []cobra.Completion // completions
}

// Set implements pflag.Value.
func (v *parsedFlag) Set(text string) error {
	if err := v.parse(text); err != nil {
		return err
	}
	v.text = text
	return nil
}

// Type implements pflag.Value.
func (v *parsedFlag) Type() string { return v.kind }

// String implements pflag.Value.
func (v *parsedFlag) String() string { return v.text }

// choice declares a flag that takes one of some values, which a usage that ends in ": " lists.
func choice[S, V ~string](flags *pflag.FlagSet, to *S, name, usage string, values []V) {
	names := textsOf(values)
	if strings.HasSuffix(usage, ": ") {
		usage += strings.Join(names, ", ")
	}
	flags.Var(&parsedFlag{text: string(*to), kind: "string", values: names, parse: func(text string) error {
		*to = S(text)
		return oneOf(names...)(text)
	}}, name, usage)
}

// suggest declares a flag that takes any text; values are completions.
func suggest(flags *pflag.FlagSet, to *string, name, usage string, values []cobra.Completion) {
	flags.Var(&parsedFlag{kind: "string", values: values, parse: func(text string) error {
		*to = text
		return nil
	}}, name, usage)
}

// timeFlag declares a flag that takes an RFC 3339 time.
func timeFlag(flags *pflag.FlagSet, to *time.Time, name, usage string) {
	flags.Var(&parsedFlag{kind: "string", parse: func(text string) (err error) {
		if *to, err = time.Parse(time.RFC3339, text); err != nil {
			return errors.New("write an RFC 3339 time such as 2026-02-17T20:00:00+08:00")
		}
		return nil
	}}, name, usage)
}

// dayFlag declares a flag that takes a day.
func dayFlag[S ~string](flags *pflag.FlagSet, to *S, name, usage string) {
	flags.Var(&parsedFlag{kind: "string", parse: func(text string) error {
		*to = S(text)
		return checkDay(text)
	}}, name, usage)
}

func checkDay(text string) error {
	if _, err := payout.ParseDay(text); err != nil {
		return errors.New("write YYYY-MM-DD, such as 2026-02-17")
	}
	return nil
}

var errWholeSeconds = errors.New("write whole seconds, such as 90s")

// secondsFlag declares a flag that takes a duration of whole seconds, zero included; *to is its default.
func secondsFlag(flags *pflag.FlagSet, to *time.Duration, name, usage string) {
	text := ""
	if *to > 0 {
		text = to.String()
	}
	flags.Var(&parsedFlag{text: text, kind: "duration", parse: func(text string) (err error) {
		if *to, err = time.ParseDuration(text); err == nil && (*to < 0 || *to%time.Second != 0) {
			err = errWholeSeconds
		}
		return err
	}}, name, usage)
}

// seconds are those of a duration; nil for zero.
func seconds(d time.Duration) *int64 { return wire.NonZero(int64(d / time.Second)) }

func textsOf[V ~string](values []V) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return texts
}

// completeFlags completes the flags of cmd and of all commands below it. Only flags with a file get names of files.
func completeFlags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if _, known := cmd.GetFlagCompletionFunc(flag.Name); known {
			return
		}
		values, directive := []cobra.Completion(nil), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder
		switch v := flag.Value.(type) {
		case *flagValue:
			return // a setting
		case *parsedFlag:
			values = v.values
		}
		if slices.Contains([]string{"file", "claims"}, flag.Name) {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(values, directive)) // the flag exists
	})
	for _, below := range cmd.Commands() {
		completeFlags(below)
	}
}
