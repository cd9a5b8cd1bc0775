package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hongbao/internal/payout"
	"hongbao/internal/provider"
)

// providers are the configured providers.
type providers struct {
	*payout.Registry
	entries  map[string]providerEntry // by name
	adapters []adapter
}

// Close closes the idle connections of all adapters.
func (p *providers) Close() {
	for _, a := range p.adapters {
		a.Close()
	}
}

// rates are the limits of all sends together per second, by name.
func (p *providers) rates() map[string]int64 {
	out := map[string]int64{}
	for name, e := range p.entries {
		out[name] = e.Rate.all
	}
	return out
}

// providerEntry is a provider of the file of providers. It has no text form: members of its kind are secret.
type providerEntry struct {
	// Name is in rows, metrics and paths. It is bound once to the account.
	Name string `json:"name"`
	Kind string `json:"kind"`
	// URL is that of the payment API.
	URL string `json:"url"`
	// Rate limits the calls.
	Rate callRates `json:"rate"`
	// Draining: new packets do not use the provider; open payments go on.
	Draining bool `json:"draining"`
	// Own are the members of the kind.
	Own jsontext.Value `json:",embed"`

	timeout time.Duration // of one call; 0: the adapter's default
	tryOut  bool          // public secrets are accepted
}

// decode decodes the members of the kind. Unknown ones are errors.
func (e providerEntry) decode(into any) error {
	if len(e.Own) == 0 {
		return nil
	}
	return jsonFault(json.Unmarshal(e.Own, into, json.RejectUnknownMembers(true)))
}

// jsonFault names the member that could not be decoded, without its value.
func jsonFault(err error) error {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		member := strings.TrimPrefix(string(wrong.JSONPointer), "/")
		if errors.Is(err, json.ErrUnknownName) {
			return fmt.Errorf("unknown member %s", member)
		}
		return fmt.Errorf("member %s has a value of the wrong type", member)
	}
	return err
}

// checkMember checks a member. Its error does not hold the value.
func checkMember(member, value string, check func(string) error) error {
	if value == "" {
		return fmt.Errorf("member %s %w", member, errMissing)
	}
	if err := check(value); err != nil {
		return fmt.Errorf("member %s %w", member, err)
	}
	return nil
}

// secretMember returns a secret that is a value or the text of the file that member_file names.
func (e providerEntry) secretMember(member, value, file string, check func(string) error) (Secret, error) {
	if (value == "") == (file == "") {
		return Secret{}, fmt.Errorf("member %s or %s_file %w, and not both", member, member, errMissing)
	}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return Secret{}, fmt.Errorf("member %s_file: %w", member, err)
		}
		member, value = member+"_file", strings.TrimSpace(string(text))
	}
	if !e.tryOut && containsPublicSecret(value) {
		return Secret{}, fmt.Errorf("member %s %w: set your own", member, errPublicSecret)
	}
	return Secret{value}, checkMember(member, value, check)
}

// validProviderName is a name that fits in paths and columns.
var validProviderName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// check checks the members that all kinds have.
func (e providerEntry) check() error {
	if !validProviderName.MatchString(e.Name) {
		return errors.New("member name is not 1 to 32 characters of a-z, 0-9, - and _, a letter or digit first")
	}
	if _, known := providerKinds[e.Kind]; !known {
		return fmt.Errorf("member kind is none of %s", strings.Join(slices.Sorted(maps.Keys(providerKinds)), ", "))
	}
	if err := e.Rate.check(); err != nil {
		return err
	}
	return checkMember("url", e.URL, checkHostURL)
}

// openProviders opens the configured providers, each call bounded by timeout (0: the adapter's default). It makes no connection.
// Errors are usage errors that name the setting and the member.
func (c config) openProviders(timeout time.Duration) (*providers, error) {
	var p *providers
	var err error
	if name := c.text("providers-file"); name == "" {
		p, err = c.onlySandbox(timeout)
	} else if p, err = c.readProviders(timeout); err != nil {
		err = fmt.Errorf("HONGBAO_PROVIDERS_FILE (--providers-file): %s: %w", name, err)
	}
	if err == nil {
		p.Registry, err = c.registry(p)
	}
	if err != nil {
		return nil, &usageError{err}
	}
	return p, nil
}

// onlySandbox opens the sandbox of the settings HONGBAO_PROVIDER_*, the only provider without a file.
func (c config) onlySandbox(timeout time.Duration) (*providers, error) {
	pay, err := provider.NewSandbox(provider.SandboxConfig{BaseURL: c.text("provider-url"), APIKey: c.secret("provider-key").Reveal(),
		Account: c.text("provider-account"), WebhookSecret: c.values["sandbox-webhook-secret"], Timeout: timeout})
	if err != nil {
		return nil, err
	}
	entry := providerEntry{Name: kindSandbox, Kind: kindSandbox, URL: c.text("provider-url")}
	if _, has := c.values["provider-rate"]; has {
		entry.Rate.all = c.number("provider-rate")
	}
	return &providers{adapters: []adapter{pay}, entries: map[string]providerEntry{entry.Name: entry}}, nil
}

// readProviders opens the adapters of the file, without the registry.
func (c config) readProviders(timeout time.Duration) (*providers, error) {
	text, err := os.ReadFile(c.text("providers-file"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Providers []providerEntry `json:"providers"`
	}
	if err := jsonFault(json.Unmarshal(text, &file, json.RejectUnknownMembers(true))); err != nil {
		return nil, err
	}
	if len(file.Providers) == 0 {
		return nil, errors.New("member providers is empty")
	}
	p := &providers{entries: map[string]providerEntry{}}
	for i, e := range file.Providers {
		e.timeout, e.tryOut = timeout, c.values["try-out"] != "" && c.boolean("try-out")
		a, err := c.openProvider(e)
		if err != nil {
			return nil, fmt.Errorf("provider %q: %w", cmp.Or(e.Name, fmt.Sprintf("number %d", i+1)), err)
		}
		p.entries[e.Name], p.adapters = e, append(p.adapters, a)
	}
	return p, nil
}

func (c config) openProvider(e providerEntry) (adapter, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	if c.values["crash-points"] != "" && !isLoopbackURL(e.URL) {
		return nil, fmt.Errorf("member url: %w", errFailpointProvider)
	}
	return providerKinds[e.Kind](e)
}

// registry returns the registry of the opened adapters with the configured defaults.
func (c config) registry(p *providers) (*payout.Registry, error) {
	all := make([]payout.Provider, len(p.adapters))
	for i, a := range p.adapters {
		all[i] = a
	}
	defaults := map[string]string{"charge-provider": "", "payout-provider": ""}
	for _, s := range settingsOf(c.command) {
		if _, is := defaults[s.flag]; !is {
			continue
		}
		name := c.text(s.flag)
		if name == "" && len(all) == 1 {
			name = all[0].Name()
		}
		entry, known := p.entries[name]
		switch {
		case name == "":
			return nil, fmt.Errorf("%s %w with several providers", s.name(), errMissing)
		case !known:
			return nil, fmt.Errorf("%s is none of %s: %q", s.name(), strings.Join(slices.Sorted(maps.Keys(p.entries)), ", "), name)
		case entry.Draining:
			return nil, fmt.Errorf("%s: provider %q is draining and takes no new packets", s.name(), name)
		}
		defaults[s.flag] = name
	}
	return payout.NewRegistry(defaults["charge-provider"], defaults["payout-provider"], all...)
}
