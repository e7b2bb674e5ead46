package worker

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"time"

	"agentop/agents/outline"
	"agentop/router/config"
	"agentop/router/preflight"
)

// This file remembers what servers told of themselves, in servers.json: a
// context's limit and the formats are wanted after a restart too, and asking
// each server at each start would wake machines that nobody uses. What is in
// the file is a convenience; losing it loses nothing.

// answers are what servers said of themselves when they were last asked, by
// name. An answer of another address counts as none. Safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	by    map[string]kept
	asked map[string]time.Time // when a doubtful answer was last asked about
}

type kept struct {
	place  string
	answer *preflight.Answer
}

// told is one answer as servers.json has it.
type told struct {
	Place       string      `json:"place"`
	Kind        string      `json:"kind,omitempty"`
	Listed      bool        `json:"listed,omitempty"`
	AnyName     bool        `json:"any_name,omitempty"`
	Models      []toldModel `json:"models,omitempty"`
	Formats     []string    `json:"formats,omitempty"`
	FormatsTold bool        `json:"formats_told,omitempty"`
}

type toldModel struct {
	Name    string `json:"name"`
	Context int64  `json:"context,omitempty"`
}

// maxToldModels bounds what is remembered of one server.
const maxToldModels = 4096

// placeOf is what an answer is an answer of.
func placeOf(s *config.Server) string {
	place := strings.Join(s.URLs(), " ")
	if s.StripV1 {
		place += " v1: strip"
	}
	return place
}

// keep remembers an answer, and forgets those of servers that are gone.
func (a *answers) keep(c *config.Config, s *config.Server, answer *preflight.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[string]kept{}
	}
	for name := range a.by {
		if _, ok := c.Server(name); !ok {
			delete(a.by, name)
		}
	}
	a.by[s.Name] = kept{placeOf(s), answer}
}

// of is what the server said; nil if it was not asked.
func (a *answers) of(s *config.Server) *preflight.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.by[s.Name]; ok && k.place == placeOf(s) {
		return k.answer
	}
	return nil
}

// doubt says whether a server may be asked again now.
func (a *answers) doubt(server string, now time.Time, every time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, ok := a.asked[server]; ok && now.Sub(last) < every {
		return false
	}
	if a.asked == nil {
		a.asked = map[string]time.Time{}
	}
	a.asked[server] = now
	return true
}

// saveAnswer writes one server's answer to the file. What another worker wrote
// about others stays.
func saveAnswer(path string, c *config.Config, s *config.Server, answer *preflight.Answer) error {
	return config.Edit(path, func(data []byte) ([]byte, error) {
		all := readTold(data)
		for name := range all {
			if _, ok := c.Server(name); !ok {
				delete(all, name)
			}
		}
		all[s.Name] = tellOf(kept{placeOf(s), answer})
		out, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return nil, err
		}
		return append(out, '\n'), nil
	})
}

// load takes what is in the file. One that cannot be read counts as empty.
func (a *answers) load(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by = map[string]kept{}
	for name, t := range readTold(data) {
		a.by[name] = t.kept()
	}
}

func readTold(data []byte) map[string]told {
	var all map[string]told
	if json.Unmarshal(data, &all) != nil || all == nil {
		return map[string]told{}
	}
	return all
}

func tellOf(k kept) told {
	t := told{Place: k.place, Kind: k.answer.Kind, Listed: k.answer.Listed, AnyName: k.answer.AnyName, FormatsTold: k.answer.FormatsTold}
	for _, m := range k.answer.Models[:min(len(k.answer.Models), maxToldModels)] {
		t.Models = append(t.Models, toldModel{m.Name, m.Context})
	}
	for _, f := range k.answer.Formats {
		t.Formats = append(t.Formats, preflight.Word(f))
	}
	return t
}

func (t told) kept() kept {
	a := &preflight.Answer{Up: true, Kind: t.Kind, Listed: t.Listed, AnyName: t.AnyName, FormatsTold: t.FormatsTold}
	for _, m := range t.Models {
		a.Models = append(a.Models, preflight.Model{Name: m.Name, Context: m.Context})
	}
	for _, word := range t.Formats {
		if f, ok := preflight.FormatOf(word); ok {
			a.Formats = append(a.Formats, f)
		}
	}
	return kept{t.Place, a}
}

// keepAnswer remembers what a server said, here and for the next start.
func (w *Worker) keepAnswer(s *config.Server, a *preflight.Answer) {
	c := w.config.Current()
	w.answers.keep(c, s, a)
	if err := saveAnswer(w.opts.Home.Servers(), c, s, a); err != nil {
		w.log.Warn("what a server told is not saved", "server", s.Name, "error", err)
	}
	w.router.Learned()
}

// askAgain is how often a server is asked because a request was refused for
// what it told.
const askAgain = 10 * time.Second

// spoken gives the router what servers speak.
type spoken struct {
	w    *Worker
	life context.Context // the worker's
}

// Of implements router.Formats.
func (p spoken) Of(s *config.Server) []outline.Format {
	if a := p.w.answers.of(s); a != nil && a.FormatsTold {
		return a.Formats
	}
	return nil
}

// Doubt implements router.Formats: the server may have learned the format
// since it was asked, so it is asked again, behind the request.
func (p spoken) Doubt(server string) {
	s, ok := p.w.config.Current().Server(server)
	if !ok || !p.w.answers.doubt(server, time.Now(), askAgain) {
		return
	}
	go func() {
		if _, a := p.w.examiner(false).examine(p.life, s, nil); a.Up {
			p.w.keepAnswer(s, a)
		}
	}()
}
