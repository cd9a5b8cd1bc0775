package stacktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hongbao/internal/devstack"
	"hongbao/test/wait"
)

// masters is the number of masters of a Redis Cluster of the tests: the fewest
// that still have a majority without one of them.
const masters = 3

// hashSlots is the number of hash slots of Redis Cluster.
const hashSlots = 16384

// BorrowRedisCluster returns the addresses of the three masters of a Redis Cluster, in
// the order of their hash slots: each owns a third of them. They are as durable as the
// server of BorrowRedis, and borrowed under the same conditions.
func BorrowRedisCluster(t testing.TB) []string {
	t.Helper()
	kind := borrow(t, "redis-cluster")
	var nodes []*Server
	for i := range masters {
		nodes = append(nodes, shared.get(t, kind+"-"+strconv.Itoa(i), newClusterNode))
	}
	once, _ := joined.LoadOrStore(kind, sync.OnceValue(func() error { return join(nodes) }))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return Addrs(nodes)
}

// joined holds the function that joins the nodes of each borrowed Cluster, once.
var joined sync.Map

// FreshRedisCluster starts a Redis Cluster of three masters for this test alone,
// with further redis-server options, and returns them in the order of their hash
// slots. A master that is killed leaves the others at work.
func FreshRedisCluster(t testing.TB, flags ...string) []*Server {
	t.Helper()
	return freshCluster(t, func(node *Server) *Server {
		part := node.part.(devstack.Redis)
		part.Flags = append(part.Flags, flags...)
		node.part = part
		return node
	})
}

func freshCluster(t testing.TB, dress func(node *Server) *Server) []*Server {
	t.Helper()
	var nodes []*Server
	for range masters {
		nodes = append(nodes, fresh(t, func(tools devstack.Tools, dir string) (*Server, error) {
			server, err := newClusterNode(tools, dir)
			if err != nil {
				return nil, err
			}
			return dress(server), nil
		}))
	}
	if err := join(nodes); err != nil {
		t.Fatal(err)
	}
	return nodes
}

// Addrs returns the addresses of servers.
func Addrs(servers []*Server) []string {
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr
	}
	return addrs
}

func newClusterNode(tools devstack.Tools, dir string) (*Server, error) {
	ports, err := devstack.FreePorts(2)
	if err != nil {
		return nil, err
	}
	part := devstack.Redis{Tools: tools, Dir: filepath.Join(dir, "redis"), Port: ports[0], Flags: []string{
		"--cluster-enabled", "yes",
		"--cluster-port", strconv.Itoa(ports[1]),
		"--cluster-node-timeout", "5000",
		"--cluster-require-full-coverage", "no", // one dead master holds up nobody else
	}}
	return &Server{Addr: part.Addr(), part: part, log: filepath.Join(dir, "redis.log")}, nil
}

// busPort is the port on which a node talks to the others.
func busPort(s *Server) string {
	part, plain := s.part.(devstack.Redis)
	if !plain {
		part = s.part.(lockedRedis).Redis
	}
	if i := slices.Index(part.Flags, "--cluster-port"); i >= 0 {
		return part.Flags[i+1]
	}
	return ""
}

// join makes one Cluster of nodes that know nothing of each other, gives each an
// equal part of the hash slots and returns when each of them says that all is
// well.
func join(nodes []*Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for i, n := range nodes {
		first, last := i*hashSlots/len(nodes), (i+1)*hashSlots/len(nodes)-1
		commands := []string{
			fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1), // else they quarrel about equal ones
			fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", first, last),
		}
		if i > 0 {
			host, port, err := net.SplitHostPort(nodes[0].Addr)
			if err != nil {
				return fmt.Errorf("redis cluster: %w", err)
			}
			commands = append(commands, fmt.Sprintf("CLUSTER MEET %s %s %s", host, port, busPort(nodes[0])))
		}
		for _, c := range commands {
			if _, err := n.lock.ask(ctx, n.Addr, c); err != nil {
				return fmt.Errorf("%s at %s: %w", c, n.Addr, err)
			}
		}
	}
	for _, n := range nodes {
		if err := waitJoined(ctx, n, len(nodes)); err != nil {
			return withLog(err, n.log)
		}
	}
	return nil
}

// waitJoined waits until a node knows all nodes and the owner of every slot.
func waitJoined(ctx context.Context, n *Server, size int) error {
	wanted := []string{"cluster_state:ok", fmt.Sprintf("cluster_slots_ok:%d", hashSlots), fmt.Sprintf("cluster_size:%d", size)}
	var info string
	var err error
	missing := func(w string) bool { return !strings.Contains(info, w+"\r\n") }
	joined := wait.Reached(wait.Limit(), func() bool {
		info, err = n.lock.ask(ctx, n.Addr, "CLUSTER INFO")
		return err != nil || !slices.ContainsFunc(wanted, missing)
	})
	switch {
	case err != nil:
		return fmt.Errorf("redis cluster at %s: %w", n.Addr, err)
	case !joined:
		return fmt.Errorf("%w: the cluster at %s is not joined: %s", errRedis, n.Addr, info)
	}
	return nil
}

// errRedis is an error reply of Redis.
var errRedis = errors.New("redis refuses")

// say sends one command and returns the text of the reply, which must be a string of
// either kind.
func say(conn io.Writer, reply *bufio.Reader, command string) (string, error) {
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	line, err := reply.ReadString('\n')
	if err != nil {
		return "", err
	}
	switch line = strings.TrimSpace(line); line[:min(1, len(line))] {
	case "+":
		return line[1:], nil
	case "$":
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", fmt.Errorf("%w: %q", errRedis, line)
		}
		text := make([]byte, n)
		_, err = io.ReadFull(reply, text)
		return string(text), err
	}
	return "", fmt.Errorf("%w: %q", errRedis, line)
}
