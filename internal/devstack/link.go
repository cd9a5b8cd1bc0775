package devstack

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Links maps the name of a link, such as "worker-redis", to the address, host:port, at which one child reaches another. A
// link without an entry is direct. Tests enter the addresses of proxies to interrupt the network between two children.
type Links map[string]string

// LinkNames lists the links that can be redirected, as caller-callee.
var LinkNames = []string{
	"api-redis", "api-mysql", "api-temporal", "api-provider",
	"worker-redis", "worker-mysql", "worker-temporal", "worker-provider",
	"provider-api",
}

// ErrLinks is wrapped by every error of ParseLinks.
var ErrLinks = errors.New("links")

// ParseLinks parses links in the form "worker-redis=127.0.0.1:7000 provider-api=127.0.0.1:7001". Its errors wrap ErrLinks.
func ParseLinks(text string) (Links, error) {
	links := Links{}
	for entry := range strings.FieldsSeq(text) {
		name, addr, _ := strings.Cut(entry, "=")
		if !slices.Contains(LinkNames, name) {
			return nil, fmt.Errorf("%w: %q is none of %s", ErrLinks, name, strings.Join(LinkNames, ", "))
		}
		if links[name] != "" {
			return nil, fmt.Errorf("%w: %s is given twice", ErrLinks, name)
		}
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("%w: the address of %s is not host:port", ErrLinks, name)
		}
		links[name] = addr
	}
	return links, nil
}

// resolve returns the address of a link: its entry, or the direct address.
func (l Links) resolve(name, direct string) string {
	if addr, ok := l[name]; ok {
		return addr
	}
	return direct
}
