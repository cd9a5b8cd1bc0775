package stacktest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"

	"hongbao/internal/devstack"
)

// FreshSentinels starts some Redis Sentinels for this test alone. They watch a master
// under a name and replace it about a second after it has died, when more than half of
// them say so. They may not know each other or the master's replicas yet.
func FreshSentinels(t testing.TB, name string, master *Server, count int) []*Server {
	t.Helper()
	return FreshLockedSentinels(t, name, master, count, Lock{})
}

// FreshLockedSentinels is FreshSentinels behind a lock of their own; to the servers they
// come with the password of the master.
func FreshLockedSentinels(t testing.TB, name string, master *Server, count int, lock Lock) []*Server {
	t.Helper()
	var all []*Server
	for range count {
		one := fresh(t, func(tools devstack.Tools, dir string) (*Server, error) {
			port, err := devstack.FreePort()
			if err != nil {
				return nil, err
			}
			part := sentinel{Redis: devstack.Redis{Tools: tools, Dir: filepath.Join(dir, "sentinel"), Port: port},
				name: name, master: master.Addr, password: master.lock.Password, quorum: count/2 + 1, lock: lock}
			return &Server{Addr: part.Addr(), part: part, lock: lock, log: filepath.Join(dir, "sentinel.log")}, nil
		})
		if _, err := lock.ask(t.Context(), one.Addr, "SENTINEL DEBUG "+sentinelPeriods); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// sentinelPeriods is how often a sentinel reads the replicas of a master and publishes its own
// state, in milliseconds. The defaults are 10 s and 2 s. A returned master becomes a replica
// after four times the second period.
const sentinelPeriods = "info-period 500 publish-period 500"

// sentinel is redis-server in its other role. It keeps what it learns in its
// configuration file.
type sentinel struct {
	devstack.Redis
	name     string
	master   string // host:port of the first one
	password string // of the master and its replicas; "" = none
	quorum   int
	lock     Lock
}

// Ready implements devstack.Part.
func (s sentinel) Ready(ctx context.Context) error { return s.lock.ping(ctx, s.Addr()) }

// Command implements devstack.Part.
func (s sentinel) Command(context.Context) (*osexec.Cmd, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("sentinel folder: %w", err)
	}
	file := filepath.Join(s.Dir, "sentinel.conf")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		host, port, err := net.SplitHostPort(s.master)
		if err != nil {
			return nil, fmt.Errorf("sentinel: %w", err)
		}
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor %s %s %s %d\nsentinel down-after-milliseconds %s 1000\nsentinel "+
			"failover-timeout %s 10000\n",
			s.Port, s.name, host, port, s.quorum, s.name, s.name)
		if s.password != "" {
			text += fmt.Sprintf("sentinel auth-pass %s %s\n", s.name, s.password)
		}
		for _, option := range s.lock.options(s.Port) {
			text += option[0] + " " + option[1] + "\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("sentinel: %w", err)
		}
	}
	cmd := osexec.Command(s.Tools.RedisServer, "sentinel.conf", "--sentinel")
	cmd.Dir = s.Dir
	return cmd, nil
}
