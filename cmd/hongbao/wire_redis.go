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

// redisConfig returns the configuration of the pool from the settings of a command. openPool adds Epochs and Logger. The error
// is a *usageError about the file of authorities.
func redisConfig(c config) (pool.Config, error) {
	cfg := pool.Config{
		Addr: c.text("redis-addr"), Mode: pool.Mode(c.text("redis-mode")), Master: c.text("redis-master"),
		Access: pool.Access{
			Username: c.text("redis-username"), Password: c.secret("redis-password").Reveal(),
			SentinelPassword: c.secret("redis-sentinel-password").Reveal(), TLS: c.boolean("redis-tls"),
		},
	}
	if cfg.Lanes = cfg.Mode.DefaultLanes(); c.text("lanes") != "" {
		cfg.Lanes = int(c.number("lanes"))
	}
	if _, has := c.values["redis-replicas"]; has {
		cfg.Replicas = int(c.number("redis-replicas"))
	}
	if _, has := c.values["allow-volatile-redis"]; has {
		cfg.AllowVolatile = c.boolean("allow-volatile-redis")
	}
	if file := c.text("redis-ca-file"); file != "" {
		authorities, err := readAuthorities(file)
		if err != nil { // the file has changed since checkAuthorities
			return cfg, &usageError{fmt.Errorf("HONGBAO_REDIS_CA_FILE (--redis-ca-file) %w", err)}
		}
		cfg.Access.Authorities = authorities
	}
	return cfg, nil
}

// readAuthorities reads the certificates of authorities from a PEM file.
func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err // this message names the file
		}
		return nil, fmt.Errorf("cannot be read (%w): %q", err, file)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("holds no PEM certificate: %q", file)
	}
	return authorities, nil
}

// checkAuthorities checks the name of a PEM file and its content.
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

// redisAdvice returns what to correct when Redis refuses this process, its certificate is not trusted, or it was used with another
// number of lanes; "" for other errors.
func redisAdvice(err error) string {
	lack, _ := errors.AsType[*pool.RightsError](err)
	switch {
	case errors.Is(err, pool.ErrLanes):
		return lanesAdvice
	case errors.Is(err, pool.ErrSentinelAuth):
		return "Correct HONGBAO_REDIS_SENTINEL_PASSWORD: the sentinels have their own password."
	case errors.Is(err, pool.ErrAuth):
		return "Correct HONGBAO_REDIS_USERNAME and HONGBAO_REDIS_PASSWORD, or create the user in Redis (in a Cluster on every node) " +
			"with the command in docs/scaling.md."
	case lack != nil:
		return "Run in Redis, in a Cluster on every node: ACL SETUSER <user> " + strings.Join(lack.Rules, " ") + " and ACL SAVE; " +
			"docs/scaling.md has the whole command."
	case errors.Is(err, pool.ErrRights):
		return "Give the user of HONGBAO_REDIS_USERNAME the rights that docs/scaling.md lists (ACL SETUSER, ACL SAVE), in a Cluster on every " +
			"node."
	case errors.Is(err, pool.ErrProtected):
		return "Set a password or users in Redis, and HONGBAO_REDIS_PASSWORD (docs/scaling.md). If only a trusted network reaches Redis, " +
			"you can start it with --protected-mode no instead."
	case errors.Is(err, pool.ErrTLS):
		return "Set HONGBAO_REDIS_TLS to true if the servers use TLS, and HONGBAO_REDIS_CA_FILE to the authority of their certificates. These " +
			"must name the host of HONGBAO_REDIS_ADDR, and the hosts that a Cluster or Sentinel announces. Client certificates are not supported."
	}
	return ""
}
