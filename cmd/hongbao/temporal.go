package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strconv"

	"go.temporal.io/sdk/client"

	"hongbao/worker"
)

// temporalConfig is how Temporal is reached.
type temporalConfig struct {
	Address    string
	Namespace  string
	TLS        bool
	CAFile     string // "" = the authorities of the system
	CertFile   string // "" = no client certificate
	KeyFile    string
	APIKey     Secret
	ServerName string // "" = that of the address
}

// temporalFlags are the settings of a temporalConfig.
var temporalFlags = []string{"temporal-address", "temporal-namespace", "temporal-tls", "temporal-ca-file", "temporal-cert-file",
	"temporal-key-file", "temporal-api-key", "temporal-server-name"}

// temporal returns how Temporal is reached, of settings that have been checked.
func (c config) temporal() temporalConfig {
	return temporalConfig{
		Address: c.text("temporal-address"), Namespace: c.text("temporal-namespace"), TLS: c.boolean("temporal-tls"),
		CAFile: c.text("temporal-ca-file"), CertFile: c.text("temporal-cert-file"), KeyFile: c.text("temporal-key-file"),
		APIKey: c.secret("temporal-api-key"), ServerName: c.text("temporal-server-name"),
	}
}

func (t temporalConfig) server() worker.Server {
	return worker.Server{Address: t.Address, Namespace: t.Namespace, TLS: t.TLS, CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile,
		APIKey: t.APIKey.Reveal(), ServerName: t.ServerName}
}

// dial prepares a client; it does not connect. refused asks Temporal whether it takes
// this process, as worker.Server.Refused does, and says what to do when it does not.
func (t temporalConfig) dial(logger *slog.Logger, with ...func(*client.Options)) (c client.Client, refused func(context.Context) error,
	err error) {
	server := t.server()
	if c, err = server.Dial(logger, with...); err != nil {
		return nil, nil, err
	}
	return c, func(ctx context.Context) error {
		err := server.Refused(ctx, c)
		if refusal, is := errors.AsType[*worker.Refusal](err); is {
			return fmt.Errorf("%w. %s", err, temporalAdvice[refusal.Why])
		}
		return err
	}, nil
}

// dialNow is dial for what cannot do without Temporal: being refused is an error.
func (t temporalConfig) dialNow(ctx context.Context, logger *slog.Logger) (client.Client, error) {
	c, refused, err := t.dial(logger)
	if err != nil {
		return nil, err
	}
	if err := refused(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// amends is what to do when Temporal does not take us.
var temporalAdvice = map[worker.Reason]string{
	worker.WhyAuthority:   "Set HONGBAO_TEMPORAL_CA_FILE to the authorities of its certificate, or unset it when the system's know them.",
	worker.WhyName:        "Correct HONGBAO_TEMPORAL_ADDRESS, or set HONGBAO_TEMPORAL_SERVER_NAME to a name in its certificate.",
	worker.WhyCertificate: "Renew its certificate; see also that the clock of this machine is right.",
	worker.WhyHandshake: "It wants a client certificate that is valid and of an authority that it trusts: see HONGBAO_TEMPORAL_CERT_FILE " +
		"and HONGBAO_TEMPORAL_KEY_FILE. Its log says which it was shown.",
	worker.WhyNotTLS:   "Unset HONGBAO_TEMPORAL_TLS, or correct HONGBAO_TEMPORAL_ADDRESS.",
	worker.WhyNotHTTP2: "Correct HONGBAO_TEMPORAL_ADDRESS, or have what stands in front of Temporal pass on HTTP/2 (ALPN h2).",
	worker.WhyTLS:      "Set HONGBAO_TEMPORAL_TLS to true.",
	worker.WhyKey: "Set HONGBAO_TEMPORAL_API_KEY to a key that it knows and that has not expired, or give the client certificate " +
		"that it asks for instead.",
	worker.WhyPermission: "Correct HONGBAO_TEMPORAL_NAMESPACE (of Temporal Cloud <namespace>.<account>), or have the owner of " +
		"HONGBAO_TEMPORAL_API_KEY or of the client certificate permitted to write in it.",
}

// temporalContradictions checks the settings of Temporal against each other, and when
// they agree the files that they name.
func (c config) temporalContradictions() error {
	on, err := strconv.ParseBool(c.values["temporal-tls"])
	if err != nil { // the command has no such setting, or it is wrong by itself
		return nil
	}
	var problems error
	if (c.values["temporal-cert-file"] == "") != (c.values["temporal-key-file"] == "") {
		problems = fmt.Errorf("%w: %s and %s need each other", errContradiction, nameOf("temporal-cert-file"), nameOf("temporal-key-file"))
	}
	for _, flag := range []string{"temporal-ca-file", "temporal-cert-file", "temporal-key-file", "temporal-api-key", "temporal-server-name"} {
		if c.values[flag] != "" && !on {
			problems = errors.Join(problems, fmt.Errorf("%w: %s needs %s", errContradiction, nameOf(flag), nameOf("temporal-tls")))
		}
	}
	for flag := range maps.Values(materialFlags) {
		if checkFile(c.values[flag]) != nil {
			return problems // said already, and not to be looked for: see checkFile
		}
	}
	if problems != nil {
		return problems
	}
	for _, err := range unjoin(worker.Server{CAFile: c.values["temporal-ca-file"], CertFile: c.values["temporal-cert-file"],
		KeyFile: c.values["temporal-key-file"]}.CheckFiles()) {
		if file, is := errors.AsType[*worker.FileError](err); is {
			why := file.Err
			if path, is := errors.AsType[*fs.PathError](why); is && file.Of != worker.MaterialCA { // without the name: see checkFile
				why = fmt.Errorf("%s: %w", path.Op, path.Err)
			}
			err = fmt.Errorf("%s cannot be used: %w", nameOf(materialFlags[file.Of]), why)
		}
		problems = errors.Join(problems, err)
	}
	return problems
}

var materialFlags = map[worker.Material]string{worker.MaterialCA: "temporal-ca-file", worker.MaterialCert: "temporal-cert-file",
	worker.MaterialKey: "temporal-key-file"}

// masterName is how a person finds the setting of a flag that only one setting has.
func nameOf(flag string) string {
	for _, s := range settings {
		if s.flag == flag {
			return s.name()
		}
	}
	panic("there is no setting " + flag)
}
