package main

import (
	"os"
	"testing"

	"hongbao/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
