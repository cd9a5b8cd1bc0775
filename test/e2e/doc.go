// Package e2e tests the product as its users meet it: the built binary, the
// local stack, HTTP and nothing else. The tests start `hongbao dev` on a home and
// ports of their own.
package e2e
