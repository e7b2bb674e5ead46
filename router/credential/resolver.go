package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"agentop/router/config"
)

// sourceLimit is how long a command or the system's keychain may take.
const sourceLimit = 10 * time.Second

// keychainService is the name under which keys stand in the system's
// keychain; the account is the server's name.
const keychainService = "agentop"

// Resolver finds servers' keys. It is safe for concurrent use; no lock is held
// while a command runs or the keychain is asked, and requests that need the
// same key at once share one run.
type Resolver struct {
	store  *store
	getenv func(string) string
	limit  time.Duration

	mu       sync.Mutex
	runs     map[string]*run // by source: what a command or the keychain gave, or is about to give
	warnings []string
}

// run is one reading of a key. key and err may be read once done is closed.
type run struct {
	server string
	done   chan struct{}
	key    Secret
	err    error
}

// NewResolver makes a resolver whose typed keys are in the file at path.
func NewResolver(path string) *Resolver {
	r := &Resolver{getenv: os.Getenv, limit: sourceLimit, runs: map[string]*run{}}
	r.store = &store{path: path, warn: r.addWarning}
	return r
}

func (r *Resolver) addWarning(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.warnings) < 8 {
		r.warnings = append(r.warnings, line)
	}
}

// Warnings lists what deserves a word to the user, one line each.
func (r *Resolver) Warnings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.warnings...)
}

// Key returns the key of a server; the zero Secret where it needs none, or
// where the client's own is passed on. What a command or the keychain gave is
// kept until Invalidate; a change of keys.json is seen within about a second.
// It returns early when ctx ends. Errors are of type *Error or ctx's.
func (r *Resolver) Key(ctx context.Context, s *config.Server) (Secret, error) {
	switch s.Key.Kind {
	case config.KeyNone, config.KeyClient, "":
		return Secret{}, nil
	case config.KeyStored:
		return r.stored(s.Name)
	case config.KeyEnv:
		return r.fromEnv(s.Name, s.Key.Env)
	case config.KeyKeychain:
		return r.shared(ctx, s, fromKeychain)
	case config.KeyCommand:
		return r.shared(ctx, s, fromCommand)
	}
	return Secret{}, &Error{Server: s.Name, Reason: fmt.Sprintf("its key source %q is not known", s.Key.Kind), Do: "mend `key` in config.yaml"}
}

// Invalidate forgets a server's key, so that the next request reads it anew:
// after a 401, and after a change. A reading that has begun still answers
// those who wait for it, and nobody else.
func (r *Resolver) Invalidate(server string) {
	r.store.forget()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, one := range r.runs {
		if one.server == server {
			delete(r.runs, id)
		}
	}
}

func (r *Resolver) stored(server string) (Secret, error) {
	key, err := r.store.key(server)
	if err != nil {
		return Secret{}, &Error{Server: server, Reason: "its stored key cannot be read", Do: "see there", Cause: err}
	}
	if key.IsZero() {
		return Secret{}, &Error{Server: server, Reason: "no key is stored for it", Do: addAgain(server)}
	}
	key, err = Clean(key.Reveal())
	if err != nil {
		return Secret{}, &Error{Server: server, Reason: "its stored key " + err.Error(), Do: addAgain(server)}
	}
	return key, nil
}

func addAgain(server string) string {
	return fmt.Sprintf("give it one with `agentop server add %s URL`", server)
}

func (r *Resolver) fromEnv(server, name string) (Secret, error) {
	value := r.getenv(name)
	if value == "" {
		return Secret{}, &Error{Server: server, Reason: fmt.Sprintf("its key is in the environment variable %s, which the proxy does not have", name),
			Do: "set it where the proxy is started (a login service does not see the shell's), or store the key with `agentop server add`"}
	}
	key, err := Clean(value)
	if err != nil {
		return Secret{}, &Error{Server: server, Reason: fmt.Sprintf("its key in the environment variable %s %v", name, err), Do: "set it to the key alone"}
	}
	return key, nil
}

// shared gives what one run of a source gives to all who need it meanwhile,
// and to all later ones if it gave a key. A client that hangs up does not end
// the run, for others may wait for it.
func (r *Resolver) shared(ctx context.Context, s *config.Server, read func(context.Context, *config.Server) (Secret, error)) (Secret, error) {
	id := strings.Join(append([]string{s.Name, string(s.Key.Kind)}, s.Key.Command...), "\x00")
	r.mu.Lock()
	one, found := r.runs[id]
	if !found {
		one = &run{server: s.Name, done: make(chan struct{})}
		r.runs[id] = one
		go r.start(context.WithoutCancel(ctx), id, one, func(ctx context.Context) (Secret, error) { return read(ctx, s) })
	}
	r.mu.Unlock()
	select {
	case <-one.done:
		return one.key, one.err
	case <-ctx.Done():
		return Secret{}, ctx.Err()
	}
}

func (r *Resolver) start(ctx context.Context, id string, one *run, read func(context.Context) (Secret, error)) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	one.key, one.err = read(ctx)
	r.mu.Lock()
	if one.err != nil && r.runs[id] == one { // the next request tries again
		delete(r.runs, id)
	}
	r.mu.Unlock()
	close(one.done)
}

// fromKeychain reads a key from the system's keychain.
func fromKeychain(ctx context.Context, s *config.Server) (Secret, error) {
	var value string
	err := askKeychain(ctx, func() (err error) {
		value, err = keyring.Get(keychainService, s.Name)
		return err
	})
	switch {
	case errors.Is(err, errNoAnswer):
		return Secret{}, &Error{Server: s.Name, Reason: err.Error(), Do: unlockIt}
	case errors.Is(err, keyring.ErrNotFound):
		return Secret{}, &Error{Server: s.Name, Reason: "the system's keychain has no key for it", Do: fmt.Sprintf("give it one with `agentop server add %s URL --keychain`", s.Name)}
	case err != nil:
		return Secret{}, &Error{Server: s.Name, Reason: noKeychain, Do: storeIt(s.Name), Cause: err}
	}
	key, err := Clean(value)
	if err != nil {
		return Secret{}, &Error{Server: s.Name, Reason: "its key in the system's keychain " + err.Error(), Do: addAgain(s.Name)}
	}
	return key, nil
}

// What is said where the keychain does not work: there is none on many
// servers and in many containers, and a login service may not reach it.
const (
	noKeychain = "the system's keychain cannot be used here"
	unlockIt   = "unlock it, then try again"
)

func storeIt(server string) string {
	return fmt.Sprintf("`agentop server add %s URL --keychain=false` keeps the key in keys.json, which only you can read", server)
}

var errNoAnswer = errors.New("the system's keychain did not answer in time")

// askKeychain asks the system's keychain, which may ask the user. A question
// that stays open is left behind when the time is up; what ask writes may be
// read only where the error is not errNoAnswer.
func askKeychain(ctx context.Context, ask func() error) error {
	answered := make(chan error, 1)
	go func() { answered <- ask() }()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return errNoAnswer
	}
}

// Store keeps a key that was typed, in keys.json or in the keychain. The
// keychain may ask the user, for which it has until ctx ends, or sourceLimit.
func (r *Resolver) Store(ctx context.Context, server string, kind config.KeyKind, key Secret) error {
	defer r.Invalidate(server)
	key, err := Clean(key.Reveal())
	if err != nil {
		return &Error{Server: server, Reason: "the key " + err.Error(), Do: "give the key alone, in one line"}
	}
	switch kind {
	case config.KeyStored:
		return r.store.change(func(texts map[string]string) { texts[server] = key.Reveal() })
	case config.KeyKeychain:
		ctx, cancel := context.WithTimeout(ctx, r.limit)
		defer cancel()
		err := askKeychain(ctx, func() error { return keyring.Set(keychainService, server, key.Reveal()) })
		switch {
		case errors.Is(err, errNoAnswer):
			return &Error{Server: server, Reason: err.Error(), Do: unlockIt}
		case err != nil:
			return &Error{Server: server, Reason: noKeychain, Do: storeIt(server), Cause: err}
		}
		return nil
	}
	return &Error{Server: server, Reason: fmt.Sprintf("a key of the source %q is not kept by agentop", kind), Do: "use stored or keychain"}
}

// Remove forgets the key that agentop keeps of a server, if it keeps one.
func (r *Resolver) Remove(ctx context.Context, server string, kind config.KeyKind) error {
	defer r.Invalidate(server)
	switch kind {
	case config.KeyStored:
		return r.store.change(func(texts map[string]string) { delete(texts, server) })
	case config.KeyKeychain:
		ctx, cancel := context.WithTimeout(ctx, r.limit)
		defer cancel()
		err := askKeychain(ctx, func() error { return keyring.Delete(keychainService, server) })
		if err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return &Error{Server: server, Reason: "the system's keychain cannot forget its key", Do: "remove it there by hand", Cause: err}
		}
	}
	return nil
}

// Drop is Remove for a server that is configured no more: a key in keys.json
// goes too where its `key` was changed by hand since.
func (r *Resolver) Drop(ctx context.Context, server string, kind config.KeyKind) error {
	err := r.Remove(ctx, server, kind)
	if kind == config.KeyStored {
		return err
	}
	if left, lookErr := r.store.key(server); lookErr == nil && left.IsZero() {
		return err
	}
	return errors.Join(err, r.Remove(ctx, server, config.KeyStored))
}
