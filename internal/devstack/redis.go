package devstack

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Redis is a Redis server that keeps every acknowledged write: an append-only file, fsync before each response, and no
// eviction. It implements Part.
type Redis struct {
	Tools Tools
	Dir   string // data folder, created when missing
	Port  int    // on 127.0.0.1
	// Flags are further redis-server options, such as "--maxmemory", "64mb".
	Flags []string
	// Env are further environment variables, NAME=value, with which tests set the clock of the server.
	Env []string
}

// Addr returns host:port for clients.
func (r Redis) Addr() string { return hostPort(r.Port) }

// Command implements Part.
func (r Redis) Command(context.Context) (*exec.Cmd, error) {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("redis folder: %w", err)
	}
	args := []string{
		"--port", strconv.Itoa(r.Port),
		"--bind", loopback,
		"--dir", ".", // relative: Redis' parser could misread a path
		"--daemonize", "no",
		"--appendonly", "yes",
		"--appendfsync", "always",
		"--no-appendfsync-on-rewrite", "no",
		"--aof-load-truncated", "yes",
		"--save", "",
		"--maxmemory-policy", "noeviction",
	}
	cmd := exec.Command(r.Tools.RedisServer, append(args, r.Flags...)...)
	cmd.Dir = r.Dir
	if len(r.Env) > 0 {
		cmd.Env = append(os.Environ(), r.Env...)
	}
	return cmd, nil
}

// Ready implements Part: the server responds to PING with PONG, so its data is loaded.
func (r Redis) Ready(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", r.Addr())
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	defer conn.Close()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(readyProbeTimeout)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return fmt.Errorf("redis ping: %w", err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return fmt.Errorf("redis ping: %w", err)
	}
	if answer := strings.TrimSpace(line); answer != "+PONG" {
		return fmt.Errorf("redis ping: got %q, want +PONG", answer)
	}
	return nil
}
