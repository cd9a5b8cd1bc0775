// Package e2e tests the product from outside: the built binary, the local stack and HTTP. The tests
// start `hongbao dev` with a home and ports of their own.
package e2e
