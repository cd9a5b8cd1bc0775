package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls do with the path of every command that there is, without "hongbao".
func everyCommand(cmd *cobra.Command, do func(path []string, cmd *cobra.Command)) {
	do(strings.Fields(cmd.CommandPath())[1:], cmd)
	for _, below := range cmd.Commands() {
		everyCommand(below, do)
	}
}

// runLine runs a command line with this environment and returns its exit code and output.
func runLine(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer
	code = execute(ctx, args, environ, &out, &errs)
	return code, out.String(), errs.String()
}

// TestEmptyFlags: no flag of any command takes an empty text, alone or beside another.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	flags := 0
	everyCommand(newRoot(nil), func(path []string, cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			flags++
			given := [][]string{{"--" + flag.Name + "="}}
			if strings.Contains(flag.Value.Type(), "Slice") {
				given = append(given, []string{"--" + flag.Name + "=alice", "--" + flag.Name + "="})
			}
			for _, more := range given {
				code, stdout, stderr := runLine(t, nil, slices.Concat(path, more)...)
				if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "hongbao: parse --"+flag.Name+` "": `) {
					t.Errorf("%q %q: exit code %d\n%s%s", path, more, code, stdout, stderr)
				}
			}
		})
	})
	if flags < 200 {
		t.Errorf("only %d flags were found", flags)
	}
}

// TestEmptyArguments: no command takes an empty argument.
func TestEmptyArguments(t *testing.T) {
	t.Parallel()
	everyCommand(newRoot(nil), func(path []string, cmd *cobra.Command) {
		if cmd.Args == nil {
			return
		}
		for _, empty := range []string{"", " "} {
			code, stdout, stderr := runLine(t, nil, slices.Concat(path, []string{empty})...)
			if code != exitUsage || stdout != "" || !strings.Contains(stderr, "argument 1 is empty") {
				t.Errorf("%q %q: exit code %d\n%s%s", path, empty, code, stdout, stderr)
			}
		}
	})
}
