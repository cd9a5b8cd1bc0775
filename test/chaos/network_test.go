package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// network holds a proxy for every link of the stack.
type network struct {
	proxies map[string]*proxy
}

// proxy is one link. A new fault replaces the one before it.
type proxy struct {
	name   string
	listen string
	link   *toxiproxy.Proxy

	mu    sync.Mutex
	epoch int  // counts changes: a fault that ends late must not mend a newer one
	lossy bool // the current fault loses bytes
}

func newNetwork(direct map[string]int, ports []int) (*network, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	n := &network{proxies: map[string]*proxy{}}
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	for i, name := range slices.Concat(links, wechatLinks) {
		_, to, _ := strings.Cut(name, "-")
		p := &proxy{name: name, listen: at(ports[i])}
		p.link = toxiproxy.NewProxy(server, name, p.listen, at(direct[to]))
		if err := p.link.Start(); err != nil {
			n.close()
			return nil, fmt.Errorf("proxy of %s: %w", name, err)
		}
		n.proxies[name] = p
	}
	return n, nil
}

// settings returns the proxies in the form of HONGBAO_LINKS.
func (n *network) settings() string {
	var out []string
	for _, name := range links {
		out = append(out, name+"="+n.proxies[name].listen)
	}
	return strings.Join(out, " ")
}

func (n *network) close() {
	for _, p := range n.proxies {
		p.link.Stop()
	}
}

// heal mends every link.
func (n *network) heal() error {
	var all error
	for _, p := range n.proxies {
		all = errors.Join(all, p.mend(-1))
	}
	return all
}

// toxic is a fault in the form of toxiproxy.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Attributes map[string]any `json:"attributes"`
}

// toxics returns a fault in the form of toxiproxy; downstream is the direction of answers.
func (f fault) toxics() []toxic {
	switch f.action {
	case latency:
		return []toxic{{"late", "latency", "downstream", map[string]any{"latency": f.delay.Milliseconds(), "jitter": f.delay.Milliseconds() / 3}}}
	case reset:
		return []toxic{{"reset", "reset_peer", "downstream", map[string]any{"timeout": 0}}}
	case lostReplies: // also closes the connections after a second, for callers without a deadline
		return []toxic{{"lost", "timeout", "downstream", map[string]any{"timeout": 1000}}}
	case cutReplies:
		return []toxic{{"cut", "limit_data", "downstream", map[string]any{"bytes": f.bytes}}}
	case silence:
		return []toxic{{"deaf", "timeout", "downstream", map[string]any{"timeout": 0}},
			{"mute", "timeout", "upstream", map[string]any{"timeout": 0}}}
	}
	return nil
}

// breaks applies a fault to its link and returns the function that ends it.
func (n *network) breaks(f fault) (mend func() error, err error) {
	p := n.proxies[f.target]
	if err := p.mend(-1); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch++
	mine := p.epoch
	p.lossy = f.action != latency
	if f.action == refuse {
		p.link.Stop()
	}
	for _, t := range f.toxics() {
		text, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		if _, err := p.link.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
			return nil, fmt.Errorf("break %s: %w", p.name, err)
		}
	}
	return func() error { return p.mend(mine) }, nil
}

// mend ends the fault of that epoch if it is still the current one; -1 ends any. Connections that
// have lost bytes are closed.
func (p *proxy) mend(epoch int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch != -1 && epoch != p.epoch {
		return nil
	}
	p.epoch++
	if p.lossy {
		p.link.Stop()
	}
	done := make(chan struct{})
	go func() {
		p.link.Toxics.ResetToxics(context.Background())
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Second): // bytes are stuck in a connection without a reader
		p.link.Stop()
		<-done
	}
	p.lossy = false
	if err := p.link.Start(); err != nil && !errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
		return fmt.Errorf("mend %s: %w", p.name, err)
	}
	if left := p.link.Toxics.GetToxicArray(); len(left) > 0 {
		return fmt.Errorf("mend %s: %d toxics are left", p.name, len(left))
	}
	return nil
}
