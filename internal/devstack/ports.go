package devstack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// loopback is the only address on which the stack listens.
const loopback = "127.0.0.1"

// hostPort returns the address of a port on the loopback interface.
func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// Free ports are below the range of outgoing connections on Linux (from 32768 on): while a server restarts, no client
// connection may take its port.
const (
	freePortMin = 20000
	freePortMax = 32000
)

// ErrNoFreePort means that FreePorts has found too few free ports.
var ErrNoFreePort = errors.New("no free port")

// held are the latest ports that FreePorts has returned in this process. A UDP socket of the same number, which no server
// uses, holds each: FreePorts in another process skips the port, also while its server is down. The kernel closes the
// sockets when the process ends.
var held struct {
	sync.Mutex
	sockets [heldPorts]net.PacketConn
	next    int
}

// heldPorts is the number of ports that a process holds. It exceeds the number of its servers at a time.
const heldPorts = 1000

// FreePorts returns n different free TCP ports of 127.0.0.1. FreePorts in other processes does not return them until this
// process ends or has taken heldPorts others. The error is ErrNoFreePort.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range 100 * n {
		if len(ports) == n {
			return ports, nil
		}
		if port := freePortMin + rand.IntN(freePortMax-freePortMin); hold(port) {
			ports = append(ports, port)
		}
	}
	if len(ports) == n {
		return ports, nil
	}
	return nil, ErrNoFreePort
}

// hold holds a port for this process. It returns false when the port is not free.
func hold(port int) bool {
	socket, err := net.ListenPacket("udp", hostPort(port))
	if err != nil {
		return false
	}
	l, err := net.Listen("tcp", hostPort(port))
	if err != nil {
		socket.Close()
		return false
	}
	l.Close()
	held.Lock()
	defer held.Unlock()
	if old := held.sockets[held.next]; old != nil {
		old.Close()
	}
	held.sockets[held.next] = socket
	held.next = (held.next + 1) % heldPorts
	return true
}

// FreePort returns one port of FreePorts.
func FreePort() (int, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// Ports are the TCP ports of a stack, all on 127.0.0.1.
type Ports struct {
	API        int `json:"api"`
	Staff      int `json:"staff"`
	Provider   int `json:"provider"`
	Redis      int `json:"redis"`
	MySQL      int `json:"mysql"`
	Temporal   int `json:"temporal"`
	TemporalUI int `json:"temporal_ui"`
}

// DefaultPorts are the ports of a stack without settings for its ports.
var DefaultPorts = Ports{API: 8080, Staff: 8081, Provider: 8090, Redis: 16379, MySQL: 13306, Temporal: 17233, TemporalUI: 18233}

// EnvPortPrefix is the prefix of the environment variables that set ports, such as HONGBAO_PORT_API.
const EnvPortPrefix = "HONGBAO_PORT_"

// namedPort is a port and the name of its variable without EnvPortPrefix.
type namedPort struct {
	name string
	port int
}

func (p Ports) list() []namedPort {
	return []namedPort{
		{"API", p.API}, {"STAFF", p.Staff}, {"PROVIDER", p.Provider}, {"REDIS", p.Redis},
		{"MYSQL", p.MySQL}, {"TEMPORAL", p.Temporal}, {"TEMPORAL_UI", p.TemporalUI},
	}
}

// PortError means that a port of the stack cannot be used.
type PortError struct {
	Name string // the variable of the port without EnvPortPrefix, such as API
	Port int
	Err  error // ErrPortBusy, ErrPortTwice, or an error of the operating system
}

func (e *PortError) Error() string {
	return fmt.Sprintf("port %d: %v; set %s%s to a free port", e.Port, e.Err, EnvPortPrefix, e.Name)
}

func (e *PortError) Unwrap() error { return e.Err }

// Causes of a PortError.
var (
	ErrPortBusy  = errors.New("already used by another program")
	ErrPortTwice = errors.New("given to two parts of the stack")
)

// check returns a *PortError for every port that is used twice or is busy.
func (p Ports) check() error {
	var all error
	seen := map[int]bool{}
	for _, np := range p.list() {
		if seen[np.port] {
			all = errors.Join(all, &PortError{Name: np.name, Port: np.port, Err: ErrPortTwice})
			continue
		}
		seen[np.port] = true
		l, err := net.Listen("tcp", hostPort(np.port))
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				err = ErrPortBusy
			}
			all = errors.Join(all, &PortError{Name: np.name, Port: np.port, Err: err})
			continue
		}
		if err := l.Close(); err != nil {
			all = errors.Join(all, err)
		}
	}
	return all
}
