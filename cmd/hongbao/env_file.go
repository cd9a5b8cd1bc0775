package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// envFileName is the variable that names a file of settings, such as the dev.env of a local stack.
const envFileName = "HONGBAO_ENV_FILE"

// withEnvFile returns environ with the variables of the file that HONGBAO_ENV_FILE names. What environ has is
// kept. `hongbao dev` writes such a file and reads none. Errors are usage errors.
func withEnvFile(args, environ []string) ([]string, error) {
	i := slices.IndexFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, envFileName+"=") })
	if i < 0 || len(args) > 0 && args[0] == cmdDev {
		return environ, nil
	}
	name := strings.TrimPrefix(environ[i], envFileName+"=")
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", envFileName, err)}
	}
	set := map[string]bool{}
	for _, entry := range environ {
		key, _, _ := strings.Cut(entry, "=")
		set[key] = true
	}
	out := slices.Clone(environ)
	for i, line := range strings.Split(string(raw), "\n") {
		key, value, err := assignment(line)
		if err != nil {
			return nil, &usageError{fmt.Errorf("%s: line %d of %s %w", envFileName, i+1, name, err)}
		}
		if key != "" && !set[key] {
			out = append(out, key+"="+value)
		}
	}
	return out, nil
}

// assignment reads a line NAME='value' as dev.env has it, or NAME=value; an empty line or a comment has no key.
func assignment(line string) (key, value string, err error) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
	if line == "" || line[0] == '#' {
		return "", "", nil
	}
	key, value, found := strings.Cut(line, "=")
	if !found || key == "" || strings.ContainsAny(key, " \t'\"") {
		return "", "", errors.New("is not NAME='value'")
	}
	value = strings.ReplaceAll(value, `'\''`, "\x00")
	if inner, quoted := strings.CutPrefix(value, "'"); quoted {
		var closed bool
		if value, closed = strings.CutSuffix(inner, "'"); !closed || strings.Contains(value, "'") {
			return "", "", errors.New("has a quote too few or too many")
		}
	} else if strings.ContainsAny(value, "'\"$`\\ \t") {
		return "", "", errors.New("needs its value in single quotes")
	}
	return key, strings.ReplaceAll(value, "\x00", "'"), nil
}
