// Package nondeterministic is what the static check must refuse.
package nondeterministic

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// Clock reads the machine's clock: each replay reads another time.
func Clock(workflow.Context) (time.Time, error) { return time.Now(), nil }
