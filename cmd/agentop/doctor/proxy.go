package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"agentop/router/control"
)

// routeHeader is on every response of agentop's.
const routeHeader = "X-Agentop-Route"

// checkConfig tells what config.yaml says that is not right.
func (d *Doctor) checkConfig() {
	if d.ConfigErr != nil {
		d.wrong("config", d.ConfigErr.Error(), "agentop config check")
		return
	}
	for _, w := range d.Config.Warnings() {
		d.note("config", w, "agentop config check")
	}
	d.ok("config", d.Home.Config()+" is valid")
}

// checkProxy tells what the running proxy says of itself.
func (d *Doctor) checkProxy(err error) {
	switch {
	case errors.Is(err, control.ErrTooLong):
		d.wrong("proxy", err.Error(), "export AGENTOP_HOME=/a/shorter/path")
		return
	case errors.Is(err, control.ErrNotRunning):
		d.noProxy()
		return
	case err != nil:
		d.wrong("proxy", err.Error(), "agentop service restart")
		return
	}
	s := &d.status
	if s.Version != d.Version {
		d.note("proxy", fmt.Sprintf("the running proxy is %s, this command is %s", s.Version, d.Version), "agentop service restart")
	}
	if s.ConfigError != "" && d.ConfigErr == nil {
		d.wrong("proxy", "the proxy has not taken the configuration: "+s.ConfigError, "agentop config check")
	}
	if s.Store.ReadOnly != "" {
		d.wrong("store", "pins are not saved: "+s.Store.ReadOnly, "agentop service restart")
	}
	if s.Store.Error != "" {
		d.wrong("store", "pins are in memory only: "+s.Store.Error, "free space or mend the disk; it is retried by itself")
	}
	if s.Log.Error != "" {
		d.wrong("log", s.Log.Error, "free space or mend the disk; it is retried by itself")
	}
	told := d.Config.Warnings()
	for _, w := range s.Warnings {
		if !slices.Contains(told, w) { // checkConfig has said those
			d.note("proxy", w, "agentop status")
		}
	}
	d.ok("proxy", fmt.Sprintf("agentop %s runs as process %d", s.Version, s.PID))
}

// noProxy tells of a home whose proxy gives no status: there is none, or it
// lives and no worker of it can serve.
func (d *Doctor) noProxy() {
	h := d.holder
	switch {
	case h.PID == 0:
		d.wrong("proxy", "no agentop proxy is running", d.startCommand())
	case d.ConfigErr != nil && h.Trouble == d.ConfigErr.Error():
		d.wrong("proxy", fmt.Sprintf("process %d cannot serve before config.yaml is right", h.PID), h.Cure)
	case h.Trouble != "":
		d.wrong("proxy", fmt.Sprintf("process %d cannot serve: %s", h.PID, h.Trouble), cmp.Or(h.Cure, "agentop service restart"))
	default:
		d.wrong("proxy", fmt.Sprintf("process %d holds this home as its proxy, and does not answer on %s", h.PID, d.Home.Socket()), fmt.Sprintf("kill %d", h.PID))
	}
}

// startCommand is what starts the proxy here.
func (d *Doctor) startCommand() string {
	if d.Service == nil {
		return "agentop proxy"
	}
	if s, err := d.Service(context.Background()); err == nil && s.Supported {
		if s.Installed {
			return "agentop service start"
		}
		return "agentop service install"
	}
	return "agentop proxy"
}

// serveCommand is what makes the proxy serve here.
func (d *Doctor) serveCommand() string {
	if d.holder.PID > 0 {
		return "see the proxy above"
	}
	return d.startCommand()
}

// checkPort asks who answers at the address that agents are pointed at, in
// both ways that `localhost` may be meant.
func (d *Doctor) checkPort(ctx context.Context) {
	listen := d.Config.Listen
	if d.ConfigErr != nil { // then only a running proxy can tell
		if len(d.status.Listen) == 0 {
			return
		}
		listen = d.status.Listen[0]
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return
	}
	hosts := []string{host}
	if host == "127.0.0.1" {
		hosts = append(hosts, "::1")
	}
	for i, h := range hosts {
		address := net.JoinHostPort(h, port)
		who, err := d.whoAnswers(ctx, address)
		switch {
		case err == nil && who:
			d.ok("port", "agentop answers on "+address)
		case err == nil:
			d.wrong("port", "another program answers on "+address+listener(port), "choose another `listen` in "+d.Home.Config()+", then agentop agent enable for each agent")
		case i > 0 && !d.up:
		case i > 0:
			d.note("port", "nobody answers on "+address+", which `localhost` may mean", "write 127.0.0.1 in base URLs")
		case d.up:
			d.wrong("port", fmt.Sprintf("the proxy runs, but nobody answers on %s: %v", address, err), "agentop service restart")
		default:
			d.note("port", address+" is free", d.startCommand())
		}
	}
}

// whoAnswers says whether it is agentop that answers at an address; an error
// means that nobody does.
func (d *Doctor) whoAnswers(ctx context.Context, address string) (agentop bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false, err
	}
	_ = conn.Close() // only whether somebody is there
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/-/healthy", nil)
	if err != nil {
		return false, err
	}
	client := d.Client
	if client == nil {
		client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	res, err := client.Do(req)
	if err != nil {
		return false, nil // it speaks something else
	}
	_ = res.Body.Close()
	return res.Header.Get(routeHeader) != "", nil
}

// checkSocket looks at the control socket.
func (d *Doctor) checkSocket() {
	path := d.Home.Socket()
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if d.up {
			d.wrong("socket", path+" is gone, so commands cannot reach the proxy", "agentop service restart")
		}
		return
	case err != nil:
		d.wrong("socket", err.Error(), "look at "+path)
	case info.Mode()&fs.ModeSocket == 0:
		d.wrong("socket", path+" is not a socket", "mv "+path+" "+path+".away")
	case d.up:
		d.ok("socket", "the proxy answers on "+path)
	case d.holder.PID > 0: // checkProxy has told; its next worker takes the socket's place
	default:
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = conn.Close()
			d.wrong("socket", "something answers on "+path+" that is not a proxy", "agentop service restart")
			return
		}
		d.repairable(Finding{Check: "socket", Level: Note, Text: path + " was left by a proxy that has ended; the next one takes its place", Fix: "rm " + path},
			func() error { return os.Remove(path) })
	}
}

// checkService looks at the login service.
func (d *Doctor) checkService(ctx context.Context) {
	if d.Service == nil {
		return
	}
	s, err := d.Service(ctx)
	switch {
	case err != nil:
		d.wrong("service", err.Error(), "agentop service install")
	case !s.Supported:
		d.note("service", "this system has no login service that agentop can use", "agentop proxy")
	case !s.Installed:
		d.note("service", "agentop does not start by itself at login", "agentop service install")
	case s.Trouble != "":
		d.wrong("service", s.Trouble, s.Fix)
	case !s.Running && !d.up && d.holder.PID == 0:
		d.wrong("service", "the login service is installed, and does not run", "agentop service start")
	case !s.Running:
		d.note("service", "the login service is installed, and another proxy runs in its place", "agentop service start")
	default:
		d.ok("service", "the login service runs")
	}
}
