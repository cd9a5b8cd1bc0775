package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/internal/observe"
)

// environment holds the environment variables that concern hongbao.
type environment struct {
	values map[string]string // HONGBAO_ variables, and other variables that are settings
	order  []string          // names of the HONGBAO_ variables, sorted
}

const envPrefix = "HONGBAO_"

func newEnvironment(environ []string) environment {
	e := environment{values: map[string]string{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, envPrefix):
			e.values[name] = value
			e.order = append(e.order, name)
		case slices.ContainsFunc(settings, func(s setting) bool { return s.env == name }):
			e.values[name] = value
		}
	}
	slices.Sort(e.order)
	return e
}

// settingsOf returns the settings of a command with their defaults for that command.
func settingsOf(command string) []setting {
	var list []setting
	for _, s := range settings {
		if slices.Contains(s.commands, command) {
			if slices.Contains(s.noDefaultFor, command) {
				s.fallback = ""
			}
			list = append(list, s)
		}
	}
	return list
}

// flagValue is a flag that stores any text. readConfig checks it later, so that all wrong settings are reported together.
type flagValue struct {
	text string
	kind string
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.kind }

// Set implements pflag.Value. An empty flag is an error, although an empty variable counts as unset.
func (v *flagValue) Set(text string) error {
	if text == "" {
		return errEmptyFlag
	}
	v.text = text
	return nil
}

// config holds the settings of one command, read once and checked.
type config struct {
	command string
	values  map[string]string // by flag
}

// String, GoString and LogValue display no value: some are secret.
func (c config) String() string       { return "settings of " + c.command }
func (c config) GoString() string     { return c.String() }
func (c config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// addSettings declares the flags of a command from the table of settings.
func addSettings(flags *pflag.FlagSet, command string) {
	for _, s := range settingsOf(command) {
		usage := s.usage + " (env " + s.env
		if s.required && s.fallback == "" {
			usage += ", required"
		}
		if s.secret {
			usage += ", secret: prefer the variable"
		}
		if s.fallback == "false" {
			usage += ", default false" // pflag hides a default of false
		}
		flag := flags.VarPF(&flagValue{text: s.fallback, kind: s.kind.name}, s.flag, "", usage+")")
		if s.kind.name == kindBool.name {
			flag.NoOptDefVal = "true" // --flag without a value means true
		}
	}
}

// readConfig reads the settings of a command. The error is a *usageError that names each wrong setting with its flag and
// its variable.
func readConfig(cmd *cobra.Command, command string, env environment) (config, error) {
	c, wrong, problems := gatherConfig(cmd, command, env)
	for _, s := range settingsOf(command) {
		problems = errors.Join(problems, wrong[s.flag])
	}
	if problems = errors.Join(problems, c.contradictions()); problems != nil {
		return config{}, &usageError{fmt.Errorf("wrong settings:\n%w", problems)}
	}
	return c, nil
}

// readLocalConfig is readConfig for commands of the local stack. A developer's shell may export other HONGBAO_ variables,
// so unknown ones cause a warning, not an error. unread holds their names.
func readLocalConfig(cmd *cobra.Command, command string, env environment) (c config, unread []string, err error) {
	known := env
	known.order = nil
	for _, name := range env.order {
		if name == envFileName { // the processes of the stack get their settings from it
			unread = append(unread, name)
			continue
		}
		one := environment{order: []string{name}}
		if problem := one.unknown(); problem != nil {
			unread = append(unread, name)
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %v It is ignored.\n", problem)
			continue
		}
		known.order = append(known.order, name)
	}
	c, err = readConfig(cmd, command, known)
	return c, unread, err
}

// gatherConfig reads the settings of a command, valid or not. wrong holds the errors by flag; unknown reports unknown
// variables.
func gatherConfig(cmd *cobra.Command, command string, env environment) (c config, wrong map[string]error, unknown error) {
	c, wrong = config{command: command, values: map[string]string{}}, map[string]error{}
	for _, s := range settingsOf(command) {
		value := s.fallback
		if fromEnv, ok := env.values[s.env]; ok && fromEnv != "" {
			value = fromEnv // an empty variable counts as unset
		}
		if flag := cmd.Flags().Lookup(s.flag); flag != nil && flag.Changed {
			value = flag.Value.String()
		}
		c.values[s.flag] = value
		if err := s.validate(value); err != nil {
			wrong[s.flag] = err
		}
	}
	for _, s := range settingsOf(command) {
		if c.values[s.unless] != "" && errors.Is(wrong[s.flag], errMissing) {
			delete(wrong, s.flag)
		}
	}
	return c, wrong, env.unknown()
}

// Errors of settings.
var (
	errUnknownVariable = errors.New("unknown environment variable")
	errMissing         = errors.New("is required")
	errContradiction   = errors.New("contradictory settings")
)

// name returns the variable and the flag of a setting, for messages.
func (s setting) name() string { return s.env + " (--" + s.flag + ")" }

func (s setting) validate(value string) error {
	if value == "" {
		if s.required {
			return fmt.Errorf("%s %w", s.name(), errMissing)
		}
		return nil
	}
	err := s.kind.check(value)
	switch {
	case err == nil:
		return nil
	case s.secret, s.kind.name == kindFile.name, // see checkFile
		strings.Contains(value, "@"): // may follow a password in a URL
		return fmt.Errorf("%s %w", s.name(), err)
	default:
		return fmt.Errorf("%s %w: %q", s.name(), err, value)
	}
}

// unknown returns an error for each HONGBAO_ variable that no command reads.
func (e environment) unknown() error {
	known := slices.Clone(scriptVariables)
	for _, s := range settings {
		known = append(known, s.env)
	}
	var problems error
	for _, name := range e.order {
		if !slices.Contains(known, name) {
			problems = errors.Join(problems, fmt.Errorf("%w %s; did you mean %s?", errUnknownVariable, name, nearest(name, known)))
		}
	}
	return problems
}

// contradictions checks settings against each other.
func (c config) contradictions() error {
	problems := errors.Join(c.redisContradictions(), c.rejectPublicSecrets())
	differ := func(a, b setting) {
		x, y := c.values[a.flag], c.values[b.flag]
		if x == y && x != "" && !strings.HasSuffix(x, ":0") { // two free ports differ
			problems = errors.Join(problems, fmt.Errorf("%w: %s and %s are both %q", errContradiction, a.name(), b.name(), x))
		}
	}
	if c.values["crash-points"] != "" && c.values["providers-file"] == "" && !isLoopbackURL(c.values["provider-url"]) {
		problems = errors.Join(problems, fmt.Errorf("%w, or set HONGBAO_PROVIDER_URL (--provider-url) to a loopback address",
			errFailpointProvider))
	}
	problems = errors.Join(problems, c.temporalContradictions())
	if url, asked := c.values["risk-url"]; asked && (url == "") != (c.values["risk-key"] == "") {
		problems = errors.Join(problems, fmt.Errorf("%w: HONGBAO_RISK_URL (--risk-url) and HONGBAO_RISK_KEY (--risk-key) need each other",
			errContradiction))
	}
	own := settingsOf(c.command)
	for i, a := range own {
		for _, b := range own[i+1:] {
			sameKind := a.kind.name == b.kind.name
			if sameKind && (a.kind.name == kindPort.name || strings.HasSuffix(a.flag, "listen") && strings.HasSuffix(b.flag, "listen")) {
				differ(a, b)
			}
		}
	}
	return problems
}

// text returns a setting as written. It panics for a flag that the command does not have.
func (c config) text(flag string) string {
	value, ok := c.values[flag]
	if !ok {
		panic("hongbao " + c.command + " has no setting " + flag)
	}
	return value
}

func (c config) secret(flag string) Secret { return Secret{c.text(flag)} }

// number returns a setting that is checked to be a whole number.
func (c config) number(flag string) int64 {
	n, err := strconv.ParseInt(c.text(flag), 10, 64)
	if err != nil {
		panic(flag + " was not checked: " + err.Error())
	}
	return n
}

// boolean returns a setting that is checked to be a truth value.
func (c config) boolean(flag string) bool {
	value, err := strconv.ParseBool(c.text(flag))
	if err != nil {
		panic(flag + " was not checked: " + err.Error())
	}
	return value
}

// logger returns a logger to w with the configured format and level.
func (c config) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.text("log-level"))); err != nil {
		panic("log-level was not checked: " + err.Error())
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if c.text("log-format") == "text" {
		handler = slog.NewTextHandler(w, options)
	}
	return slog.New(observe.NewLogHandler(handler)).With(slog.String("program", c.command))
}

// kebab turns TEMPORAL_UI into temporal-ui.
func kebab(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// nearest returns the candidate with the smallest distance to name.
func nearest(name string, candidates []string) string {
	return slices.MinFunc(candidates, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance returns the number of letters to insert, delete or replace (Levenshtein distance).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
