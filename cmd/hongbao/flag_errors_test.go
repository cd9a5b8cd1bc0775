package main

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagErrors: an error in a flag or an argument names it, its value, and what to write.
func TestFlagErrors(t *testing.T) {
	for line, want := range map[string]string{
		"packets create --total 10.50":       `parse --total "10.50": amounts are whole fen, write 1050`,
		"packets create --total 10.5":        `parse --total "10.5": amounts are whole fen, write 1050`,
		"packets create --total ¥10":         `parse --total "¥10": amounts are whole fen, write 1050 for ¥10.50`,
		"packets create --min 0.001":         `parse --min "0.001": amounts are whole fen, write 1050 for ¥10.50`,
		"packets create --total 1" + zeros:   `parse --total "1` + zeros + `": the number is too large`,
		"packets create --shares ten":        `parse --shares "ten": write a whole number, such as 10`,
		"packets create --expires-in 5":      `parse --expires-in "5": durations need a unit, write 5s, 5m or 5h`,
		"packets create --expires-in 1d":     `parse --expires-in "1d": write a number and a unit, such as 90s, 15m or 36h`,
		"packets create --tickets=maybe":     `parse --tickets "maybe": write --tickets or --tickets=false`,
		`packets create --eligible a"b`:      `parse --eligible "a\"b": separate values by commas`,
		`packets create --metadata a`:        `parse --metadata "a": "a" is not name=value`,
		`packets create --metadata a=b,"c=d`: `parse --metadata "a=b,\"c=d": write name=value`,
		"packets create --sender":            `--sender needs a value: write --sender <user>`,
		"packets create --sende=x":           `unknown flag --sende; did you mean --sender? "hongbao packets create --help" lists the flags`,
		"packets create --colour=x":          `unknown flag --colour; "hongbao packets create --help" lists the flags`,
		"packets create -x":                  `unknown flag -x; "hongbao packets create --help" lists the flags`,
		"packets create --=x":                `parse flag "--=x": write --name=value`,
		"payouts list --amount-min 0x":       `parse --amount-min "0x": amounts are whole fen`,
		"payouts list --older-than soon":     `parse --older-than "soon": write a number and a unit`,
		"payouts list --status faild": `parse --status "faild": is none of pending, sending, unknown, awaiting_recipient, ` +
			`awaiting_payer, paid, failed, returned, cancelled, paid_outside (did you mean failed?)`,
		"payouts list --status x": `parse --status "x": is none of pending`,
		"payouts lst": `unknown command "lst" of "hongbao payouts"; did you mean list? ` +
			`"hongbao payouts --help" lists the commands`,
		"payouts list x":              `hongbao payouts list takes no arguments, got "x"`,
		"payouts show":                `hongbao payouts show takes one argument, got 0: write hongbao payouts show <payout id>`,
		"nonsense":                    `unknown command "nonsense" of "hongbao"; "hongbao --help" lists the commands`,
		"help nope":                   `unknown command "nope" of "hongbao"; "hongbao --help" lists the commands`,
		"help payout":                 `unknown command "payout" of "hongbao"; did you mean payouts? "hongbao --help" lists the commands`,
		"help payouts lst":            `unknown command "lst" of "hongbao payouts"; did you mean list?`,
		"help payouts list x":         `unknown command "x": "hongbao payouts list" has no subcommands`,
		"audit list --from yesterday": `parse --from "yesterday": write an RFC 3339 time such as 2026-02-17T20:00:00+08:00`,
		"close balances --at noon":    `parse --at "noon": write an RFC 3339 time such as 2026-02-17T20:00:00+08:00`,
		"packets watch --timeout=-1s 97h0uojo11oljc4bchnk": `parse --timeout "-1s": write 0s or more; 0s = no limit`,
	} {
		var out, errs bytes.Buffer
		env := []string{"HONGBAO_APP_KEY=k", "HONGBAO_FINANCE_KEY=k", "HONGBAO_AUDITOR_KEY=k"}
		code := execute(t.Context(), strings.Fields(line), env, &out, &errs)
		if code != exitUsage || out.Len() > 0 || !strings.HasPrefix(errs.String(), "hongbao: "+want) {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", line, code, errs.String(), want)
		}
	}
}

// TestHelpKnowsEveryCommand: "help" prints the same help as --help, for each command.
func TestHelpKnowsEveryCommand(t *testing.T) {
	t.Parallel()
	everyCommand(newRoot(nil), func(path []string, cmd *cobra.Command) {
		_, want, _ := runLine(t, nil, slices.Concat(path, []string{"--help"})...)
		code, out, errs := runLine(t, nil, slices.Concat([]string{"help"}, path)...)
		if code != exitOK || errs != "" || out != want || !strings.HasPrefix(out, cmp.Or(cmd.Long, cmd.Short)) {
			t.Errorf("help %s: exit code %d, %s\n%s\nwant\n%s", strings.Join(path, " "), code, errs, out, want)
		}
	})
}

// TestNumbersAreDecimal: a leading zero changes no amount, and other notations are refused.
func TestNumbersAreDecimal(t *testing.T) {
	cmd := newRoot(nil)
	create, _, err := cmd.Find([]string{"packets", "create"})
	if err != nil {
		t.Fatal(err)
	}
	if err := create.ParseFlags([]string{"--total", "010"}); err != nil || create.Flag("total").Value.String() != "10" {
		t.Errorf("010 is %s: %v", create.Flag("total").Value, err)
	}
	for _, value := range []string{"0x10", "0b1", "0o7", "1_000"} {
		if err := create.ParseFlags([]string{"--total", value}); err == nil {
			t.Errorf("%s is %s", value, create.Flag("total").Value)
		}
	}
}

const zeros = "0000000000000000000000"

// TestFlagErrorsHideGo: no flag of any command reports an error in the words of Go's packages.
func TestFlagErrorsHideGo(t *testing.T) {
	t.Parallel()
	everyCommand(newRoot(nil), func(path []string, cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			for _, value := range []string{"", "x", "1.5", "1" + zeros, `a"b`, "-"} {
				switch flag.Value.Type() {
				case "int", "int64", "duration", "bool", "stringSlice", "name=value":
				default:
					continue // these keep any text; settings are checked by TestReadConfig
				}
				if flag.Value.Set(value) == nil {
					continue
				}
				_, _, errs := runLine(t, nil, slices.Concat(path, []string{"--" + flag.Name + "=" + value})...)
				for _, inside := range []string{"strconv.", "time:", "invalid argument", "parse error", "invalid syntax"} {
					if strings.Contains(errs, inside) {
						t.Errorf("%s --%s=%s: %s", cmd.CommandPath(), flag.Name, value, errs)
					}
				}
				if !strings.HasPrefix(errs, "hongbao: parse --"+flag.Name+" ") {
					t.Errorf("%s --%s=%s: %s", cmd.CommandPath(), flag.Name, value, errs)
				}
			}
		})
	})
}
