package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// This file is about the values of single fields. Each check gives the value,
// or what is wrong with it and what to write instead.

// checkListen accepts loopback addresses with a port. Port 0 lets the system
// choose one.
func checkListen(text string) (string, *problem) {
	text = strings.TrimSpace(text)
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", &problem{fmt.Sprintf("listen is %q, which is not host:port", clip(text)), "write " + DefaultListen}
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return "", &problem{fmt.Sprintf("listen has the port %q", clip(port)), "write a port from 1 to 65535"}
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", &problem{fmt.Sprintf("listen is %q, which others on the network could reach", clip(text)),
			fmt.Sprintf("write 127.0.0.1:%d", n)}
	}
	return text, nil
}

// sizeUnits are read with or without a space before them; K, M and G are
// powers of 1024 in every spelling.
var sizeUnits = []struct {
	name string
	size int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30},
	{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"b", 1}, {"", 1},
}

func checkSize(text string) (int64, *problem) {
	bad := &problem{fmt.Sprintf("%q is not a size", clip(text)), "write a number with KB, MB or GB, such as 256 MB"}
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, unit := range sizeUnits {
		digits, found := strings.CutSuffix(lower, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 {
			return 0, bad
		}
		if n == 0 || n > maxBodyCap/unit.size {
			return 0, &problem{fmt.Sprintf("%q is out of range", clip(text)), "write a size from 1 B to 16 GB"}
		}
		return n * unit.size, nil
	}
	return 0, bad
}

func checkDuration(text string) (time.Duration, *problem) {
	text = strings.TrimSpace(text)
	if text == "off" || text == "0" {
		return 0, nil
	}
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return 0, &problem{fmt.Sprintf("%q has no unit", text), fmt.Sprintf("write %ds", n)}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, &problem{fmt.Sprintf("%q is not a duration", clip(text)), "write a number with its unit, such as 90s or 2m, or off"}
	}
	if d < 0 {
		return 0, &problem{fmt.Sprintf("%q is negative", text), "write a number with its unit, such as 90s or 2m, or off"}
	}
	return d, nil
}

func checkBool(text string) (bool, *problem) {
	switch strings.ToLower(text) {
	case "true", "on", "yes":
		return true, nil
	case "false", "off", "no":
		return false, nil
	}
	return false, &problem{fmt.Sprintf("%q is neither on nor off", clip(text)), "write on or off (true and false are read too)"}
}

// checkToken never repeats the token.
func checkToken(text string) (string, *problem) {
	bad := strings.ContainsFunc(text, func(r rune) bool { return !isNameRune(r) })
	if bad || len(text) < minToken || strings.Trim(text, ".") == "" {
		return "", &problem{"the token is not usable as a secret path segment",
			fmt.Sprintf("use %d or more of letters, digits, \".\", \"_\" and \"-\"", minToken)}
	}
	return text, nil
}

func checkV1(text string) (bool, *problem) {
	switch text {
	case "keep":
		return false, nil
	case "strip":
		return true, nil
	}
	return false, &problem{fmt.Sprintf("v1 is %q", clip(text)), "write keep or strip"}
}

// unusableHeaders carry credentials or belong to the connection.
var unusableHeaders = []string{"authorization", "x-api-key", "api-key", "x-goog-api-key", "proxy-authorization", "cookie",
	"host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "te", "trailer",
	"upgrade", "keep-alive", "expect", "accept", "accept-encoding", "user-agent", "x-agentop-route"}

func checkHeader(text string) (string, *problem) {
	name := strings.ToLower(strings.TrimSpace(text))
	token := name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !isNameRune(r) && !strings.ContainsRune("!#$%&'*+^`|~", r)
	})
	if !token {
		return "", &problem{fmt.Sprintf("session_header %q is not a header name", clip(text)), "write one such as x-dynamo-session-id"}
	}
	if slices.Contains(unusableHeaders, name) {
		return "", &problem{fmt.Sprintf("session_header %q has another meaning", name), "write one such as x-dynamo-session-id"}
	}
	return name, nil
}

func checkFile(text string) (string, *problem) {
	if !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "~/") || strings.ContainsRune(text, 0) {
		return "", &problem{fmt.Sprintf("%q is not the full path of a file", clip(text)), "begin it with / or ~/"}
	}
	return text, nil
}

func checkHeadroom(text string) (float64, *problem) {
	return checkNumber(text, 1, "write a number from 1, such as 2")
}

func checkCost(text string) (float64, *problem) {
	value, bad := checkNumber(text, 0, "write a number over 0, such as 1")
	if bad == nil && value == 0 {
		bad = &problem{"the cost is 0", "write a number over 0, such as 1"}
	}
	return value, bad
}

func checkNumber(text string, least float64, instead string) (float64, *problem) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= least) || value > 1e9 {
		return 0, &problem{fmt.Sprintf("%q is not such a number", clip(text)), instead}
	}
	return value, nil
}

func checkCapacity(text string) (int, *problem) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1_000_000 {
		return 0, &problem{fmt.Sprintf("the capacity is %q", clip(text)), "write how many requests it serves at once, or 0 if that is not known"}
	}
	return n, nil
}
