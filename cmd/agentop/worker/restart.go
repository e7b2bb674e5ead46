package worker

import (
	"context"

	"agentop/router/control"
)

// Restart implements control.Backend.
func (w *Worker) Restart(ctx context.Context) error {
	if w.opts.Supervisor == nil {
		return &control.Error{
			Message: "this proxy runs inside of another program and cannot hand over",
			Hint:    "end it and start it again", Code: control.CodeConflict,
		}
	}
	return w.opts.Supervisor.Restart(ctx)
}
