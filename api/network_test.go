package api

import (
	"net"
	"testing"
)

// TestNetworkOf: the forms of an address count as one, and so do those that one customer
// of IPv6 has.
func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]string{"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:3::": "2001:db8:1:3::/64"} {
		if got := networkOf(net.ParseIP(address)); got != want {
			t.Errorf("%s counts as %q, want %q", address, got, want)
		}
	}
	if got := networkOf(nil); got != "" {
		t.Errorf("no address counts as %q", got)
	}
}
