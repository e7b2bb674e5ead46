package command

import (
	"context"
	"errors"
)

// runProxy joins the command to the worker that serves.
func runProxy(context.Context, ProxyOptions) error {
	return errors.New("this build has no proxy")
}

// runDemo joins the command to the demonstration.
func runDemo(context.Context, DemoOptions) error {
	return errors.New("this build has no demo")
}
