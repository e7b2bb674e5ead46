package service

import (
	"fmt"
	"strings"

	"agentop/cmd/agentop/home"
)

// socketUnit holds the addresses: connections wait there while the service
// starts.
func socketUnit(s Spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s; `agentop service uninstall` removes it.\n", mark)
	b.WriteString("[Unit]\nDescription=agentop, the local proxy for coding agents (addresses)\n\n[Socket]\n")
	for _, a := range s.Addresses {
		fmt.Fprintf(&b, "ListenStream=%s\n", a)
	}
	b.WriteString("Backlog=4096\n\n[Install]\nWantedBy=sockets.target\n")
	return b.String()
}

// serviceUnit runs the supervisor. `systemctl --user reload` hands over to a
// fresh worker, which restart would not: it waits for the streams first.
func serviceUnit(s Spec, withHome bool) (string, error) {
	program, err := quoteExec(s.Binary)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# %s; `agentop service uninstall` removes it.", mark)
	line("# To change a setting, use a drop-in: systemctl --user edit agentop.service")
	line("[Unit]\nDescription=agentop, the local proxy for coding agents")
	line("Requires=agentop.socket\nAfter=agentop.socket")
	line("StartLimitIntervalSec=60\nStartLimitBurst=10\n")
	line("[Service]\nType=notify\nNotifyAccess=main")
	line("ExecStart=%s proxy", program)
	line("ExecReload=/bin/kill -HUP $MAINPID")
	line("Restart=always\nRestartSec=1")
	line("# 3: another agentop serves this home; trying again would not help.")
	line("RestartPreventExitStatus=3")
	line("# The supervisor ends its workers itself; were it killed, they finish their streams.")
	line("KillMode=process\nTimeoutStopSec=%d", int(stopLimit.Seconds()))
	line("UMask=0077\nLimitNOFILE=65536")
	line("# What `key: command:` runs is bound by these too; one that needs setuid wants NoNewPrivileges=no.")
	line("NoNewPrivileges=yes\nRestrictSUIDSGID=yes\nRestrictRealtime=yes\nLockPersonality=yes\nSystemCallArchitectures=native")
	line("# Netlink tells whose a connection is.\nRestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK")
	line("Environment=%s", quoteEnv(Variable{EnvName, Systemd}))
	if withHome {
		line("Environment=%s", quoteEnv(Variable{home.EnvName, s.Home.String()}))
	}
	for _, v := range s.Env {
		line("Environment=%s", quoteEnv(v))
	}
	line("\n[Install]\nWantedBy=default.target")
	return b.String(), nil
}

// quoteEnv quotes an assignment for Environment=, where % and backslashes
// mean something.
func quoteEnv(v Variable) string {
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(v.Name + "=" + v.Value)
	return `"` + text + `"`
}

// quoteExec quotes the program of ExecStart=, in whose path systemd takes no
// quotes and no backslashes, whatever stands before them.
func quoteExec(path string) (string, error) {
	if strings.ContainsAny(path, "\"'\\") {
		return "", fmt.Errorf("systemd takes no program whose path holds quotes or backslashes: %s", path)
	}
	return `"` + strings.ReplaceAll(path, "%", "%%") + `"`, nil
}

// unquote undoes quoteEnv and quoteExec.
func unquote(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`)
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `%%`, `%`).Replace(text)
}

// parseUnits reads back what the files name.
func parseUnits(socket, service string, s *Status) {
	for line := range strings.SplitSeq(socket, "\n") {
		if a, ok := strings.CutPrefix(line, "ListenStream="); ok {
			s.Addresses = append(s.Addresses, a)
		}
	}
	for line := range strings.SplitSeq(service, "\n") {
		if word, ok := strings.CutPrefix(line, "ExecStart="); ok {
			s.Binary = unquote(strings.TrimSuffix(word, " proxy"))
		}
		if word, ok := strings.CutPrefix(line, "Environment="); ok {
			name, value, _ := strings.Cut(unquote(word), "=")
			s.Env = append(s.Env, Variable{name, value})
		}
	}
}

// checkValue refuses what a line of a unit cannot hold.
func checkValue(what, value string) error {
	if strings.ContainsAny(value, "\n\r\x00") {
		return fmt.Errorf("%s holds a line end or a zero byte: %q", what, value)
	}
	return nil
}

// check refuses a spec that would make a file that means something else.
func (s Spec) check() error {
	if err := checkValue("the program's path", s.Binary); err != nil {
		return err
	}
	if err := checkValue("the home directory", s.Home.String()); err != nil {
		return err
	}
	for _, v := range s.Env {
		if err := checkValue(v.Name, v.Value); err != nil {
			return err
		}
	}
	return nil
}
