package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// otherVersion gives the end of a path that names another version than /v1,
// which then is wanted in the place of /v1; "" where there is none.
func otherVersion(path string) string {
	end := path[max(strings.LastIndexByte(path, '/'), 0):]
	word, ok := strings.CutPrefix(end, "/v")
	isDigit := func(i int) bool { return i < len(word) && word[i] >= '0' && word[i] <= '9' }
	if !ok || !isDigit(0) || word[0] == '1' && !isDigit(1) || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return ""
	}
	return end
}

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
		if end := otherVersion(u.Path); end != "" && !s.StripV1 {
			list = append(list, fmt.Sprintf("server %s: its URL ends in %s and /v1 will be added; write `v1: strip` if its paths have no /v1", s.Name, end))
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
