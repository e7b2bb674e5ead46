package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"agentop/router/config"
)

// commandLimit is how long a key command may run.
const commandLimit = 10 * time.Second

// keychainService is the name under which keys stand in the system's keychain.
const keychainService = "agentop"

// Resolver finds servers' keys. It is safe for concurrent use; no lock is held
// while a command runs or the keychain is asked.
type Resolver struct {
	file   file
	getenv func(string) string

	mu     sync.Mutex
	cached map[string]Secret
}

// NewResolver makes a resolver whose typed keys are in the file at path.
func NewResolver(path string) *Resolver {
	return &Resolver{file: file{path}, getenv: os.Getenv, cached: map[string]Secret{}}
}

// Key returns the key of a server; the zero Secret where it needs none, or
// where the client's own is passed on. It is read once and kept until
// Invalidate. The error says what is missing and what to do, never a key.
func (r *Resolver) Key(ctx context.Context, s *config.Server) (Secret, error) {
	if s.Key.Kind == config.KeyNone || s.Key.Kind == config.KeyClient {
		return Secret{}, nil
	}
	id := s.Name + "\x00" + s.Key.String()
	r.mu.Lock()
	key, ok := r.cached[id]
	r.mu.Unlock()
	if ok {
		return key, nil
	}
	value, err := r.read(ctx, s)
	if err != nil {
		return Secret{}, err
	}
	key = NewSecret(value)
	r.mu.Lock()
	r.cached[id] = key
	r.mu.Unlock()
	return key, nil
}

// Invalidate forgets a server's key, so that the next request reads it again:
// after a 401, and after a change.
func (r *Resolver) Invalidate(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.cached {
		if strings.HasPrefix(id, server+"\x00") {
			delete(r.cached, id)
		}
	}
}

func (r *Resolver) read(ctx context.Context, s *config.Server) (string, error) {
	switch s.Key.Kind {
	case config.KeyStored:
		keys, err := r.file.load()
		if err != nil {
			return "", err
		}
		return present(keys[s.Name], "no key is stored for it")
	case config.KeyEnv:
		return present(r.getenv(s.Key.Env), fmt.Sprintf("the environment variable %s of the proxy is not set", s.Key.Env))
	case config.KeyKeychain:
		return fromKeychain(s.Name)
	case config.KeyCommand:
		return fromCommand(ctx, s.Key.Command)
	}
	return "", fmt.Errorf("key source %q is not known", s.Key.Kind)
}

func present(value, missing string) (string, error) {
	if value = strings.TrimSpace(value); value == "" {
		return "", errors.New(missing)
	}
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", errors.New("the key holds a control character")
	}
	return value, nil
}

func fromKeychain(server string) (string, error) {
	value, err := keyring.Get(keychainService, server)
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return "", errors.New("the keychain holds no key for it")
	case err != nil:
		return "", fmt.Errorf("the system's keychain cannot be asked (%w); use `key: stored` where there is none", err)
	}
	return present(value, "the keychain holds an empty key for it")
}

// fromCommand runs a key command without a shell. What it prints to standard
// error is dropped: such commands may echo what they were given.
func fromCommand(ctx context.Context, argv []string) (string, error) {
	if len(argv) == 0 {
		return "", errors.New("its key command is empty")
	}
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return "", fmt.Errorf("the key command %q was not found; write its absolute path", argv[0])
	}
	cmd := exec.CommandContext(ctx, program, argv[1:]...) //nolint:gosec // the user's own configuration names it
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the key command %q did not end within %s", argv[0], commandLimit)
	case err != nil:
		return "", fmt.Errorf("the key command %q ended with %s", argv[0], exitWords(err))
	}
	return present(string(out), fmt.Sprintf("the key command %q printed nothing", argv[0]))
}

// exitWords tells how a command ended without what it printed.
func exitWords(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ProcessState.String()
	}
	return "an error: it could not be started"
}

// Store keeps a key that was typed, in keys.json or in the keychain.
func (r *Resolver) Store(ctx context.Context, server string, kind config.KeyKind, key Secret) error {
	defer r.Invalidate(server)
	switch kind {
	case config.KeyStored:
		return r.file.change(ctx, func(keys map[string]string) { keys[server] = key.Reveal() })
	case config.KeyKeychain:
		if err := keyring.Set(keychainService, server, key.Reveal()); err != nil {
			return fmt.Errorf("the system's keychain cannot keep the key: %w; use `key: stored` where there is none", err)
		}
		return nil
	}
	return fmt.Errorf("a key of source %q is not kept by agentop", kind)
}

// Remove forgets the key that agentop keeps of a server, if it keeps one.
func (r *Resolver) Remove(ctx context.Context, server string, kind config.KeyKind) error {
	defer r.Invalidate(server)
	switch kind {
	case config.KeyKeychain:
		if err := keyring.Delete(keychainService, server); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return fmt.Errorf("the system's keychain cannot forget the key: %w", err)
		}
	case config.KeyStored:
		keys, err := r.file.load()
		if err != nil {
			return err
		}
		if _, ok := keys[server]; ok {
			return r.file.change(ctx, func(keys map[string]string) { delete(keys, server) })
		}
	}
	return nil
}
