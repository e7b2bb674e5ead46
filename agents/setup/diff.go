package setup

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// diffContext is how many equal lines a diff shows around a change.
const diffContext = 3

// unified is a unified diff of one file, "" if nothing changes. Settings are
// small and edits few, so what lies between the first and the last changed
// line is one hunk.
func unified(name string, old, now []byte, oldExists, nowExists bool) string {
	if bytes.Equal(old, now) && oldExists == nowExists {
		return ""
	}
	a, b := lines(old), lines(now)
	top := 0
	for top < len(a) && top < len(b) && a[top] == b[top] {
		top++
	}
	bottom := 0
	for bottom < len(a)-top && bottom < len(b)-top && a[len(a)-1-bottom] == b[len(b)-1-bottom] {
		bottom++
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", nameOr(name, oldExists), nameOr(name, nowExists))
	from := max(0, top-diffContext)
	lead, trail := a[from:top], a[len(a)-bottom:]
	trail = trail[:min(len(trail), diffContext)]
	removed, added := a[top:len(a)-bottom], b[top:len(b)-bottom]
	fmt.Fprintf(&out, "@@ -%s +%s @@\n", hunk(from, len(lead)+len(removed)+len(trail)), hunk(from, len(lead)+len(added)+len(trail)))
	for _, part := range []struct {
		sign string
		of   []string
	}{{" ", lead}, {"", merge(removed, added)}, {" ", trail}} {
		for _, line := range part.of {
			text, ended := strings.CutSuffix(part.sign+masked(line), "\n")
			out.WriteString(strings.TrimSuffix(text, "\r") + "\n")
			if !ended {
				out.WriteString("\\ No newline at end of file\n")
			}
		}
	}
	return out.String()
}

// secrets are values that a diff must not show: those of keys that are named
// like a credential, and the user and password of an address.
var (
	secretValue = lazily(`(?i)([\w.-]*(?:key|token|secret|passw|auth|credential|cookie|header)[\w.-]*["']?\s*[:=]\s*["'])[^"'\r\n]+`)
	userInfo    = lazily(`://[^/@\s"']+@`)
)

// lazily compiles an expression when it is first used: most runs of the
// program never do, and all would wait for it.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func masked(line string) string {
	if strings.Contains(line, hintPath[1]) {
		return line
	}
	return userInfo().ReplaceAllString(secretValue().ReplaceAllString(line, "${1}(not shown)"), "://(not shown)@")
}

// merge sets removed and added lines with their signs, equal ones between
// them as context.
func merge(removed, added []string) []string {
	const limit = 2000 // lines, of which the table below has the square
	if len(removed) > limit || len(added) > limit {
		return append(signed("-", removed), signed("+", added)...)
	}
	longest := make([][]int, len(removed)+1)
	for i := range longest {
		longest[i] = make([]int, len(added)+1)
	}
	for i := len(removed) - 1; i >= 0; i-- {
		for j := len(added) - 1; j >= 0; j-- {
			if removed[i] == added[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(removed) && j < len(added) {
		switch {
		case removed[i] == added[j]:
			out = append(out, " "+removed[i])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "-"+removed[i])
			i++
		default:
			out = append(out, "+"+added[j])
			j++
		}
	}
	return append(append(out, signed("-", removed[i:])...), signed("+", added[j:])...)
}

func signed(sign string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = sign + line
	}
	return out
}

func nameOr(name string, exists bool) string {
	if exists {
		return name
	}
	return "/dev/null"
}

func hunk(from, count int) string {
	if count == 0 {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, count)
}

// lines cuts text behind each line end.
func lines(data []byte) []string {
	all := strings.SplitAfter(string(data), "\n")
	if all[len(all)-1] == "" { // behind the last line end
		all = all[:len(all)-1]
	}
	return all
}
