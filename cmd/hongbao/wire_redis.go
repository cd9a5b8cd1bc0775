package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"hongbao/internal/pool"
)

// redisConfig is how a command reaches Redis, of all that it takes: the only place that
// reads these settings. Who opens the pool adds what is not configured.
func redisConfig(c config) (pool.Config, error) {
	cfg := pool.Config{
		Addr: c.text("redis-addr"), Mode: pool.Mode(c.text("redis-mode")), Master: c.text("redis-master"), Lanes: int(c.number("lanes")),
		Access: pool.Access{
			Username: c.text("redis-username"), Password: c.secret("redis-password").Reveal(),
			SentinelPassword: c.secret("redis-sentinel-password").Reveal(), TLS: c.boolean("redis-tls"),
		},
	}
	if _, takes := c.values["redis-replicas"]; takes {
		cfg.Replicas = int(c.number("redis-replicas"))
	}
	if _, takes := c.values["allow-volatile-redis"]; takes {
		cfg.AllowVolatile = c.boolean("allow-volatile-redis")
	}
	if file := c.text("redis-ca-file"); file != "" {
		authorities, err := readAuthorities(file)
		if err != nil { // it was there when the settings were checked
			return cfg, &usageError{fmt.Errorf("HONGBAO_REDIS_CA_FILE (--redis-ca-file) %w", err)}
		}
		cfg.Access.Authorities = authorities
	}
	return cfg, nil
}

// readAuthorities reads certificates from a PEM file.
func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err // the message names the file by itself
		}
		return nil, fmt.Errorf("cannot be read (%w): %q", err, file)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("holds no PEM certificate: %q", file)
	}
	return authorities, nil
}

func checkAuthorities(value string) error {
	if err := checkFile(value); err != nil {
		return err
	}
	_, err := readAuthorities(value)
	return err
}

// redisContradictions checks the settings of Redis against each other.
func (c config) redisContradictions() error {
	var problems error
	wrong := func(format string) { problems = errors.Join(problems, fmt.Errorf("%w: "+format, errContradiction)) }
	mode := pool.Mode(c.values["redis-mode"])
	if strings.Contains(c.values["redis-addr"], ",") && mode != pool.ModeCluster && mode != pool.ModeSentinel {
		wrong("HONGBAO_REDIS_ADDR (--redis-addr) names several nodes, which needs HONGBAO_REDIS_MODE (--redis-mode) cluster or sentinel")
	}
	if (c.values["redis-master"] != "") != (mode == pool.ModeSentinel) {
		wrong("HONGBAO_REDIS_MODE (--redis-mode) sentinel and HONGBAO_REDIS_MASTER (--redis-master) need each other")
	}
	if c.values["redis-username"] != "" && c.values["redis-password"] == "" {
		wrong("HONGBAO_REDIS_USERNAME (--redis-username) needs HONGBAO_REDIS_PASSWORD (--redis-password)")
	}
	if c.values["redis-sentinel-password"] != "" && mode != pool.ModeSentinel {
		wrong("HONGBAO_REDIS_SENTINEL_PASSWORD (--redis-sentinel-password) needs HONGBAO_REDIS_MODE (--redis-mode) sentinel")
	}
	if c.values["redis-ca-file"] != "" && checkBool(c.values["redis-tls"]) == nil && !c.boolean("redis-tls") {
		wrong("HONGBAO_REDIS_CA_FILE (--redis-ca-file) needs HONGBAO_REDIS_TLS (--redis-tls)")
	}
	return problems
}

// redisAdvice says what to do when Redis does not let us in, or we do not trust it; ""
// when that is not what is wrong.
func redisAdvice(err error) string {
	lack, _ := errors.AsType[*pool.RightsError](err)
	switch {
	case errors.Is(err, pool.ErrSentinelAuth):
		return "Correct HONGBAO_REDIS_SENTINEL_PASSWORD: the sentinels have a password of their own."
	case errors.Is(err, pool.ErrAuth):
		return "Correct HONGBAO_REDIS_USERNAME and HONGBAO_REDIS_PASSWORD, or make the user in Redis, of a Cluster on every node " +
			"(docs/scaling.md has the line)."
	case lack != nil:
		return "In Redis: ACL SETUSER <user> " + strings.Join(lack.Rules, " ") + " and ACL SAVE, of a Cluster on every node; docs/scaling.md " +
			"has the whole line."
	case errors.Is(err, pool.ErrRights):
		return "Give the user of HONGBAO_REDIS_USERNAME the rights that docs/scaling.md lists (ACL SETUSER, ACL SAVE), of a Cluster on every " +
			"node."
	case errors.Is(err, pool.ErrProtected):
		return "Give Redis a password or users, and HONGBAO_REDIS_PASSWORD with it (docs/scaling.md), or, where only this network reaches it, " +
			"start it with --protected-mode no."
	case errors.Is(err, pool.ErrTLS):
		return "Set HONGBAO_REDIS_TLS as the servers have it, and HONGBAO_REDIS_CA_FILE to who signed their certificates; these must name the " +
			"host of HONGBAO_REDIS_ADDR, and what a Cluster or Sentinel calls its servers. Certificates of clients cannot be given."
	}
	return ""
}
