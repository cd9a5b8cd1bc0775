package devstack

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Links says at which address, as host:port, one child reaches another: by the
// name of the link, such as "worker-redis". A link that is not in it is direct.
// Tests put proxies there and break the network between two parts of the stack.
type Links map[string]string

// LinkNames lists the links that can be redirected, as caller-callee.
var LinkNames = []string{
	"api-redis", "api-mysql", "api-temporal", "api-provider",
	"worker-redis", "worker-mysql", "worker-temporal", "worker-provider",
	"provider-api",
}

// ErrLinks is wrapped by every error of ParseLinks.
var ErrLinks = errors.New("links")

// ParseLinks reads links in the form "worker-redis=127.0.0.1:7000 provider-api=127.0.0.1:7001".
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

// at is the address of a link: its own, or the direct one.
func (l Links) resolve(name, direct string) string {
	if addr, ok := l[name]; ok {
		return addr
	}
	return direct
}
