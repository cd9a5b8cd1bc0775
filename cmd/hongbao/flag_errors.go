package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/internal/money"
)

// flagError turns an error of pflag into a usage error that names the flag, the value and what to write instead.
func flagError(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag, value := invalid.GetFlag(), invalid.GetValue()
		return &usageError{fmt.Errorf("parse --%s %q: %s", flag.Name, value, flagAdvice(flag, value, invalid.Unwrap()))}
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		flag := missing.GetFlag()
		name, _ := pflag.UnquoteUsage(flag)
		return &usageError{fmt.Errorf("--%s needs a value: write --%s <%s>", flag.Name, flag.Name, name)}
	}
	if syntax, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return &usageError{fmt.Errorf("parse flag %q: write --name=value", syntax.GetSpecifiedFlag())}
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return &usageError{unknownFlag(cmd, unknown)}
	}
	return &usageError{err}
}

// flagAdvice says what to write for a flag whose value err refuses.
func flagAdvice(flag *pflag.Flag, value string, err error) string {
	if errors.Is(err, errEmptyFlag) || errors.Is(err, errWholeSeconds) {
		return err.Error()
	}
	switch flag.Value.Type() {
	case "int", "int64":
		return numberAdvice(flag, value, err)
	case "duration":
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			return fmt.Sprintf("durations need a unit, write %ss, %sm or %sh", value, value, value)
		}
		return "write a number and a unit, such as 90s, 15m or 36h"
	case "bool":
		return fmt.Sprintf("write --%s or --%s=false", flag.Name, flag.Name)
	case "stringSlice":
		return `separate values by commas, and put a value with a comma or a quote in it in double quotes`
	}
	return err.Error()
}

// numberAdvice says what to write for a whole number. Amounts that were given in yuan are converted to fen.
func numberAdvice(flag *pflag.Flag, value string, err error) string {
	name, _ := pflag.UnquoteUsage(flag)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "the number is too large"
	case name != "fen":
		return "write a whole number, such as 10"
	}
	yuan, part, _ := strings.Cut(value, ".")
	if digits := yuan + (part + "00")[:2]; yuan != "" && len(part) <= 2 {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n > 0 {
			return "amounts are whole fen, write " + money.Fen(n).Digits()
		}
	}
	return "amounts are whole fen, write 1050 for ¥10.50"
}

// unknownFlag names the flag that was probably meant.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	help := fmt.Sprintf(`"%s --help" lists the flags`, cmd.CommandPath())
	name := unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		return fmt.Errorf("unknown flag -%s; %s", letters, help)
	}
	var known []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, flag.Name) })
	if len(known) > 0 {
		if best := nearest(name, known); distance(name, best) <= maxTypos {
			return fmt.Errorf("unknown flag --%s; did you mean --%s? %s", name, best, help)
		}
	}
	return fmt.Errorf("unknown flag --%s; %s", name, help)
}

// maxTypos is how many letters of a name may be wrong for a suggestion.
const maxTypos = 2

// noArgs refuses arguments as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasSubCommands():
		return &usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0])}
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand is the usage error for a name that no subcommand of cmd has. It names the subcommand that was probably meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	if !cmd.HasSubCommands() {
		return &usageError{fmt.Errorf("unknown command %q: %q has no subcommands", name, cmd.CommandPath())}
	}
	var known []string
	for _, sub := range cmd.Commands() {
		known = append(known, sub.Name())
	}
	help := fmt.Sprintf(`"%s --help" lists the commands`, cmd.CommandPath())
	if best := nearest(name, known); distance(name, best) <= maxTypos {
		help = "did you mean " + best + "? " + help
	}
	return &usageError{fmt.Errorf("unknown command %q of %q; %s", name, cmd.CommandPath(), help)}
}

// rejectUnknownTopics makes "help" refuse the names of unknown commands. Without this, cobra prints the general help and succeeds.
func rejectUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = knownTopic
		}
	}
}

// knownTopic accepts the path of a command.
func knownTopic(help *cobra.Command, path []string) error {
	cmd, rest, err := help.Root().Find(path)
	switch {
	case err != nil:
		return &usageError{err}
	case len(rest) > 0:
		return unknownCommand(cmd, rest[0])
	}
	return nil
}

// oneArg refuses any other number of arguments than one as a usage error.
func oneArg(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	usage := cmd.Use
	if cmd.HasParent() {
		usage = cmd.Parent().CommandPath() + " " + usage
	}
	return &usageError{fmt.Errorf("%s takes one argument, got %d: write %s", cmd.CommandPath(), len(args), usage)}
}
