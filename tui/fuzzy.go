package tui

import (
	"slices"
	"strings"
)

// fuzzy lists the names that hold the letters of pattern in order, the best
// match first: a name that begins with it, one that holds it whole, one whose
// letters stand closest. Equal matches keep their order.
func fuzzy(pattern string, names []string) []int {
	type match struct{ index, score int }
	var found []match
	pattern = strings.ToLower(pattern)
	for i, name := range names {
		if score, ok := fuzzyScore(pattern, strings.ToLower(name)); ok {
			found = append(found, match{i, score})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return a.score - b.score })
	order := make([]int, len(found))
	for i, m := range found {
		order[i] = m.index
	}
	return order
}

// fuzzyScore is the worse the larger.
func fuzzyScore(pattern, name string) (int, bool) {
	switch {
	case pattern == "":
		return 0, true
	case strings.HasPrefix(name, pattern):
		return 1, true
	case strings.Contains(name, pattern):
		return 2, true
	}
	first, at := -1, 0
	for _, r := range pattern {
		i := strings.IndexRune(name[at:], r)
		if i < 0 {
			return 0, false
		}
		if first < 0 {
			first = at + i
		}
		at += i + len(string(r))
	}
	return 3 + at - first, true
}
