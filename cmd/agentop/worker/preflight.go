package worker

import (
	"context"

	"agentop/router/control"
)

// Preflight implements control.Backend.
func (w *Worker) Preflight(ctx context.Context, server string, agents []string) (control.Preflight, error) {
	return control.Preflight{}, &control.Error{Message: "not here yet"}
}

// Restart implements control.Backend.
func (w *Worker) Restart(context.Context) error { return &control.Error{Message: "not here yet"} }
