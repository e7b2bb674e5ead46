package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
)

// otherVersion finds addresses that end in another version than /v1, which
// then is wanted in the place of /v1.
var otherVersion = regexp.MustCompile(`/v([02-9]|[1-9][0-9])[a-z0-9]*$`)

func (s *Server) warnings() []string {
	var list []string
	if s.InsecureSkipVerify {
		list = append(list, fmt.Sprintf("server %s: insecure_skip_verify is on: whoever is on the way can read everything sent to it, the key too; use ca_file instead", s.Name))
	}
	for _, address := range s.URLs() {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		if u.Scheme == "http" && !isLoopback(u.Hostname()) {
			list = append(list, fmt.Sprintf("server %s: %s is plain http: whoever is on the way can read everything sent to it; use https if it can", s.Name, u.Host))
		}
		if !s.StripV1 && otherVersion.MatchString(u.Path) {
			list = append(list, fmt.Sprintf("server %s: its URL ends in %s and /v1 will be added; write `v1: strip` if its paths have no /v1", s.Name, otherVersion.FindString(u.Path)))
		}
	}
	return list
}

// URLs gives the server's address, or its members'.
func (s *Server) URLs() []string {
	if s.Pool == nil {
		return []string{s.URL}
	}
	list := make([]string, len(s.Pool))
	for i, m := range s.Pool {
		list[i] = m.URL
	}
	return list
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
