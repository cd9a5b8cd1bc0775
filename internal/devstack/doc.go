// Package devstack runs the parts of hongbao on one machine, without
// containers and without system services: Redis, MariaDB, the Temporal
// development server and hongbao's own programs, each as one child process.
//
// It has two users. `hongbao dev` runs all of them under a Supervisor that
// keeps its state in one folder; tests start single parts through package
// stacktest. Every child dies with the process that started it, also when that
// process is killed with SIGKILL.
//
// The package is meant for development and tests on Linux. It is not how the
// product is operated.
package devstack
