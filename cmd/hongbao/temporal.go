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

// temporalConfig holds the settings of the connection to Temporal.
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

// temporal returns the Temporal settings of a checked config.
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

// dial prepares a client without connecting. refused reports whether Temporal refuses this process, as
// worker.Server.Refused, and adds the next step.
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

// dialNow is dial for commands that require Temporal: a refusal is an error.
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

// temporalAdvice holds the next step for each reason of a refusal by Temporal.
var temporalAdvice = map[worker.Reason]string{
	worker.WhyAuthority:   "Set HONGBAO_TEMPORAL_CA_FILE to the authorities of its certificate, or unset it to use those of the system.",
	worker.WhyName:        "Correct HONGBAO_TEMPORAL_ADDRESS, or set HONGBAO_TEMPORAL_SERVER_NAME to a name in its certificate.",
	worker.WhyCertificate: "Renew its certificate, and check the clock of this machine.",
	worker.WhyHandshake: "It requires a valid client certificate of an authority that it trusts: set HONGBAO_TEMPORAL_CERT_FILE " +
		"and HONGBAO_TEMPORAL_KEY_FILE. Its log names the certificate that it received.",
	worker.WhyNotTLS:   "Unset HONGBAO_TEMPORAL_TLS, or correct HONGBAO_TEMPORAL_ADDRESS.",
	worker.WhyNotHTTP2: "Correct HONGBAO_TEMPORAL_ADDRESS, or configure the proxy in front of Temporal for HTTP/2 (ALPN h2).",
	worker.WhyTLS:      "Set HONGBAO_TEMPORAL_TLS to true.",
	worker.WhyKey: "Set HONGBAO_TEMPORAL_API_KEY to a valid key, or set the client certificate " +
		"that it requires instead.",
	worker.WhyPermission: "Correct HONGBAO_TEMPORAL_NAMESPACE (in Temporal Cloud <namespace>.<account>), or grant the owner of " +
		"HONGBAO_TEMPORAL_API_KEY or of the client certificate write permission.",
}

// temporalContradictions checks the settings of Temporal against each other, and then the files that they name.
func (c config) temporalContradictions() error {
	on, err := strconv.ParseBool(c.values["temporal-tls"])
	if err != nil { // the command has no such setting, or the setting itself is reported
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
			return problems // reported by checkFile, and must not be opened
		}
	}
	if problems != nil {
		return problems
	}
	for _, err := range unjoin(worker.Server{CAFile: c.values["temporal-ca-file"], CertFile: c.values["temporal-cert-file"],
		KeyFile: c.values["temporal-key-file"]}.CheckFiles()) {
		if file, is := errors.AsType[*worker.FileError](err); is {
			why := file.Err
			if path, is := errors.AsType[*fs.PathError](why); is && file.Of != worker.MaterialCA { // without the file's name: see checkFile
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

// nameOf returns the name, for messages, of a flag that only one setting has.
func nameOf(flag string) string {
	for _, s := range settings {
		if s.flag == flag {
			return s.name()
		}
	}
	panic("there is no setting " + flag)
}
