package main

import (
	"os"
	"testing"

	"hongbao/devstack/stacktest"
)

func TestMain(m *testing.M) { os.Exit(stacktest.Main(m)) }
