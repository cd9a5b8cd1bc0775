package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// verifyFlags are the flags of "verify".
type verifyFlags struct {
	claims     string
	commitment string
	json       bool
	rows       int
}

// defaultRows is the number of shares in the table; shares with a fault are always listed.
const defaultRows = 50

func verifyCommand() command {
	var f verifyFlags
	return command{
		use:   "verify <packet.json>",
		short: "Verify offline that a closed packet was split as committed",
		long: `Verify offline that a closed packet was split as committed. The command reads the
response of GET /v1/packets/{id} from a file (- = standard input), computes every share
from the seed, and compares counts, sums and, if given, the claims.

  hongbao packets show <packet id> --json > packet.json
  hongbao packets claims <packet id> --json > claims.json
  hongbao verify packet.json --claims claims.json

docs/fairness.md says what this proves and what it does not.

Exit code: 0 valid; 1 not valid, or not fully checked because claims are missing from
the file; 2 unusable input: not a packet, not closed, a duplicate member or one in
another case, or an unknown algorithm.`,
		args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Errorf("give exactly one file with a packet, not %d", len(args))}
			}
			return nil
		},
		valid: cobra.FixedCompletions([]cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt),
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.claims, "claims", "", "`file` with the claims: pages of GET /v1/packets/{id}/grabs, or their items")
			_ = flags.SetAnnotation("claims", cobra.BashCompFilenameExt, []string{"json"}) // the flag exists
			flags.StringVar(&f.commitment, "commitment", "", "commitment that was noted at creation, in `hex`")
			flags.BoolVar(&f.json, "json", false, "print the verdict as JSON")
			flags.IntVar(&f.rows, "rows", defaultRows, "number of shares in the table; shares with a fault are always listed")
		},
		run: func(_ context.Context, t *call) error { return f.verify(t.in, t.out, t.args[0]) },
	}
}

func (f verifyFlags) verify(in io.Reader, out io.Writer, packetFile string) error {
	p, claims, err := f.read(in, packetFile)
	if err != nil {
		return &usageError{err}
	}
	v, err := judge(p, claims, f.commitment)
	if err != nil {
		return &usageError{fmt.Errorf("%s: %w", packetFile, err)}
	}
	if f.json {
		err = encodeJSON(out, v)
	} else {
		err = f.print(out, v)
	}
	if err == nil && !v.Valid {
		err = errReported
	}
	return err
}

// read reads both files. The claims are nil without --claims.
func (f verifyFlags) read(in io.Reader, packetFile string) (judgedPacket, []judgedClaim, error) {
	var p judgedPacket
	text, err := readInput(in, packetFile)
	if err != nil {
		return p, nil, err
	}
	if err := unmarshalStrict(text, &p); err != nil {
		return p, nil, fmt.Errorf("%s: %w: %w", packetFile, errNoPacket, jsonProblem(err))
	}
	if f.claims == "" {
		return p, nil, nil
	}
	if text, err = readInput(in, f.claims); err != nil {
		return p, nil, err
	}
	claims, err := readClaims(text)
	if err != nil {
		return p, nil, fmt.Errorf("%s: %w: %w", f.claims, errNoClaims, jsonProblem(err))
	}
	return p, claims, nil
}

func readInput(in io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

// errCase: a name matches one of the API's only when case is ignored.
var errCase = errors.New("a member's name is written in another case")

// unmarshalStrict decodes one JSON value into the value that into points to. It refuses duplicate names, also in another
// case, because other readers may use the other one.
func unmarshalStrict(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return err
	}
	folded := reflect.New(reflect.TypeOf(into).Elem())
	if err := json.Unmarshal(text, folded.Interface(), json.MatchCaseInsensitiveNames(true)); err != nil {
		return err
	}
	if !reflect.DeepEqual(into, folded.Interface()) {
		return errCase
	}
	return nil
}

// jsonProblem says what is wrong with a document of JSON, without the decoder's words.
func jsonProblem(err error) error {
	syntax, _ := errors.AsType[*jsontext.SyntacticError](err)
	semantic, _ := errors.AsType[*json.SemanticError](err)
	switch {
	case syntax != nil && errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("duplicate member %s", syntax.JSONPointer)
	case syntax != nil:
		return fmt.Errorf("not valid JSON at byte %d", syntax.ByteOffset)
	case semantic != nil:
		return fmt.Errorf("member %s has a wrong type or value", cmp.Or(string(semantic.JSONPointer), "/"))
	}
	return err
}

// readClaims reads one or more consecutive pages, or an array of items.
func readClaims(text []byte) ([]judgedClaim, error) {
	all := []judgedClaim{}
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		document, err := dec.ReadValue()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var page struct {
			Items *[]judgedClaim `json:"items"`
		}
		if document.Kind() == '[' {
			page.Items = &[]judgedClaim{}
			err = unmarshalStrict(document, page.Items)
		} else {
			err = unmarshalStrict(document, &page)
		}
		if err != nil {
			return nil, err
		}
		if page.Items == nil {
			return nil, errors.New("a page has no items")
		}
		all = append(all, *page.Items...)
	}
}

// print prints the verdict as tables.
func (f verifyFlags) print(out io.Writer, v verdict) error {
	shares := newGrid(out, "share", "computed", "claimed", "user", "fault")
	claims, left := map[int][]shareClaim{}, 0
	for _, c := range v.Claims {
		claims[c.ShareIndex] = append(claims[c.ShareIndex], c)
	}
	for i, share := range v.Shares {
		row := []any{i, formatYuan(share), "", "", ""}
		faulty := len(claims[i]) > 1
		for n, c := range claims[i] {
			faulty = faulty || c.Problem != ""
			if n == 0 {
				row = []any{i, formatYuan(share), formatYuan(c.Amount), c.UserID, c.Problem}
			}
		}
		if i >= f.rows && !faulty {
			left++
			continue
		}
		shares.row(row...)
		for _, c := range claims[i][min(1, len(claims[i])):] {
			shares.row("", "", formatYuan(c.Amount), c.UserID, c.Problem)
		}
	}
	shares.render()
	if left > 0 {
		if err := printf(out, "%d more shares without a fault: add --rows %d\n", left, len(v.Shares)); err != nil {
			return err
		}
	}
	for _, c := range v.Checks {
		mark := "ok"
		switch {
		case !c.Checked:
			mark = "UNCHECKED"
		case !c.OK:
			mark = "FAULT"
		}
		if err := printf(out, "%-9s %s\n", mark, c.Says); err != nil {
			return err
		}
	}
	return printf(out, "packet %s is %s\n", v.PacketID, v.label())
}

// label summarizes a verdict.
func (v verdict) label() string {
	wrong := func(c check) bool { return c.Checked && !c.OK }
	switch {
	case v.Valid && v.Claims == nil:
		return "valid; its claims were not compared: add --claims"
	case v.Valid:
		return "valid"
	case slices.ContainsFunc(v.Checks, wrong):
		return "NOT VALID"
	}
	return "NOT FULLY CHECKED"
}
