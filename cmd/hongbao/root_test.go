package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestHelpGroups: the help lists every command in a group, apart from those about the program itself.
func TestHelpGroups(t *testing.T) {
	root := newRoot(nil)
	for _, cmd := range root.Commands() {
		if own := slices.Contains([]string{"help", "version", "exit-codes"}, cmd.Name()); own == root.ContainsGroup(cmd.GroupID) {
			t.Errorf("%s is in group %q", cmd.Name(), cmd.GroupID)
		}
	}
	var out bytes.Buffer
	if code := execute(t.Context(), []string{"help"}, nil, &out, io.Discard); code != exitOK {
		t.Fatal(code)
	}
	rest := out.String()
	for _, next := range []string{"for apps:", "packets", "for finance", "payouts", "for operations:", "doctor", "Servers:", "worker"} {
		_, after, found := strings.Cut(rest, next)
		if !found {
			t.Fatalf("no %q in order:\n%s", next, &out)
		}
		rest = after
	}
}

// TestVersionFlag: --version prints what version prints.
func TestVersionFlag(t *testing.T) {
	var command, flag bytes.Buffer
	execute(t.Context(), []string{"version"}, nil, &command, io.Discard)
	code := execute(t.Context(), []string{"--version"}, nil, &flag, io.Discard)
	if code != exitOK || flag.String() != command.String() || !strings.HasPrefix(flag.String(), "hongbao "+version) {
		t.Errorf("exit code %d: %q, want %q", code, &flag, &command)
	}
}
