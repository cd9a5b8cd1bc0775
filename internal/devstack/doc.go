// Package devstack runs the parts of hongbao on one machine, without containers and system services: Redis, MariaDB, the
// Temporal development server and hongbao's own programs, each as one child process.
//
// `hongbao dev` runs all parts under a supervisor (Run), whose state is in one folder (Home). Tests start single parts
// through package stacktest. The kernel kills every child when the process that started it ends, also by SIGKILL.
//
// The package is for development and tests on Linux, not for the operation of the product.
package devstack
