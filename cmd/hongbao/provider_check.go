package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"hongbao/internal/provider/providercheck"
)

func providerCheckCommand() command {
	asJSON := false
	return command{
		use:   "test <provider>",
		short: "Test a configured provider without moving money",
		long: `Test a configured provider and its settings with calls that move no money: the account,
the clock, queries of unknown order numbers, notifications with bad signatures and the
statement of yesterday. Run it before a provider pays for the first time, and after its
keys or certificates were changed. A statement that is not published yet is skipped.

Use the settings of the worker. The whole suite for adapters is in docs/providers.md.

Exit code: 0 no check failed; 1 a check failed.`,
		example: "  hongbao provider test sandbox",
		args:    oneArg, as: local(cmdProviderTest),
		flags: func(flags *pflag.FlagSet) { flags.BoolVar(&asJSON, "json", false, "print the results as JSON") },
		run: func(ctx context.Context, t *call) error {
			pays, err := t.config.openProviders(partTimeout)
			if err != nil {
				return err
			}
			defer pays.Close()
			entry, known := pays.entries[t.args[0]]
			if !known {
				return &usageError{fmt.Errorf("provider %q is none of %s", t.args[0],
					strings.Join(slices.Sorted(maps.Keys(pays.entries)), ", "))}
			}
			p, err := pays.Of(entry.Name)
			if err != nil {
				return err
			}
			return printChecks(t.out, asJSON, providercheck.Run(ctx, p, entry.URL, time.Now))
		},
	}
}

// printChecks prints the results and returns errReported when a check failed.
func printChecks(out io.Writer, asJSON bool, results []providercheck.Result) error {
	failed := slices.ContainsFunc(results, func(r providercheck.Result) bool { return r.Verdict == providercheck.Failed })
	if asJSON {
		if err := encodeJSON(out, struct {
			Passed  bool                   `json:"passed"`
			Results []providercheck.Result `json:"results"`
		}{!failed, results}); err != nil {
			return err
		}
	} else {
		show := newGrid(out, "case", "result", "why")
		for _, r := range results {
			show.row(r.Case, r.Verdict, r.Why)
		}
		show.render()
	}
	if failed {
		return errReported
	}
	return nil
}
