package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rejectEmptyValues makes cmd and all commands below it refuse empty flags and arguments. A script with an unset variable
// passes empty values: an empty --idempotency-key could charge twice, an empty --eligible would let every user grab.
func rejectEmptyValues(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		switch flag.Value.Type() {
		case "string", "stringSlice", "id": // the others cannot be parsed when they are empty
			flag.Value = nonEmptyValue{flag.Value}
		case "int", "int64":
			flag.Value = decimalValue{flag.Value}
		}
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			for i, arg := range args {
				if strings.TrimSpace(arg) == "" {
					return &usageError{fmt.Errorf("argument %d is empty: %q; write a value", i+1, arg)}
				}
			}
			return check(cmd, args)
		}
	}
	for _, below := range cmd.Commands() {
		rejectEmptyValues(below)
	}
}

// nonEmptyValue is the value of a flag that refuses an empty text.
type nonEmptyValue struct{ pflag.Value }

// decimalValue is the value of a flag that reads whole numbers as decimal. pflag reads 010 as 8 and 0x10 as 16:
// an amount of money would be another one.
type decimalValue struct{ pflag.Value }

// Set implements pflag.Value.
func (v decimalValue) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	return v.Value.Set(strconv.FormatInt(n, 10))
}

var errEmptyFlag = errors.New("the value is empty, write one or leave the flag out")

// Set implements pflag.Value.
func (v nonEmptyValue) Set(text string) error {
	if text == "" {
		return errEmptyFlag
	}
	return v.Value.Set(text)
}

// String implements pflag.Value. pflag formats an empty list as "[]" and would display it as a default.
func (v nonEmptyValue) String() string {
	if text := v.Value.String(); text != "[]" {
		return text
	}
	return ""
}
