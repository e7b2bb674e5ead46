package command

import (
	"context"

	"agentop/cmd/agentop/doctor"
	"agentop/cmd/agentop/home"
)

// LoginService is what setup, doctor and uninstall need of the login service.
// Each method works whatever state it is in; Install and Uninstall say what
// they changed, one line each, nothing if all was right before.
type LoginService interface {
	Status(context.Context) (doctor.Service, error)
	Install(context.Context) ([]string, error)
	Uninstall(context.Context) ([]string, error)
}

// service is the login service of a home; nil where there is none.
func (a *App) service(dir home.Home) LoginService {
	if a.Service == nil {
		return nil
	}
	return a.Service(dir)
}
