package service

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"

	"agentop/cmd/agentop/home"
)

// label is the agent's name for launchd.
const label = "dev.agentop.proxy"

// plist is the launchd agent. The supervisor holds the sockets itself.
func plist(s Spec, withHome bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<?xml version="1.0" encoding="UTF-8"?>`)
	line(`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">`)
	line("<!-- %s; `agentop service uninstall` removes it. -->", mark)
	line(`<plist version="1.0">` + "\n<dict>")
	key := func(name, value string) { line("\t<key>%s</key>\n\t%s", name, value) }
	key("Label", str(label))
	key("ProgramArguments", "<array>\n\t\t"+str(s.Binary)+"\n\t\t"+str("proxy")+"\n\t</array>")
	env := []Variable{{EnvName, Launchd}}
	if withHome {
		env = append(env, Variable{home.EnvName, s.Home.String()})
	}
	var vars strings.Builder
	for _, v := range append(env, s.Env...) {
		fmt.Fprintf(&vars, "\t\t<key>%s</key>\n\t\t%s\n", escape(v.Name), str(v.Value))
	}
	key("EnvironmentVariables", "<dict>\n"+vars.String()+"\t</dict>")
	key("RunAtLoad", "<true/>")
	// A clean end is meant: a stop, or another agentop that serves this home.
	key("KeepAlive", "<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>")
	key("ThrottleInterval", "<integer>5</integer>")
	key("ExitTimeOut", fmt.Sprintf("<integer>%d</integer>", int(stopLimit.Seconds())))
	key("ProcessType", str("Interactive"))
	key("AbandonProcessGroup", "<true/>") // workers finish their streams
	key("Umask", "<integer>63</integer>") // 0077
	key("SoftResourceLimits", "<dict>\n\t\t<key>NumberOfFiles</key>\n\t\t<integer>8192</integer>\n\t</dict>")
	key("StandardErrorPath", str(errorLog(s.Home)))
	line("</dict>\n</plist>")
	return b.String()
}

// errorLog is where launchd puts what the supervisor says: a line for each
// start and each trouble.
func errorLog(h home.Home) string { return filepath.Join(h.LogDir(), "service.log") }

func str(s string) string { return "<string>" + escape(s) + "</string>" }

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
