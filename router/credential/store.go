package credential

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"agentop/router/config"
)

// lookAgain is how long the keys that were read are taken for those in the
// file, so that turns cost a look at the disk once in a while only.
const lookAgain = time.Second

// store is keys.json: the keys that were typed at the prompt, by server. The
// file is an object of strings and is replaced whole, durably and under a lock
// (config.Edit). Safe for concurrent use.
type store struct {
	path string
	warn func(string) // told once of rights that were too wide

	mu     sync.Mutex
	keys   map[string]Secret
	info   os.FileInfo // of the file that keys were read from; nil = there was none
	looked time.Time
}

// key gives a server's key; the zero Secret when none is stored.
func (s *store) key(server string) (Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys != nil && time.Since(s.looked) < lookAgain {
		return s.keys[server], nil
	}
	info, err := os.Stat(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Secret{}, fmt.Errorf("look at %q: %w", s.path, err)
	}
	if s.keys == nil || !sameFile(info, s.info) {
		if s.keys, err = s.read(); err != nil {
			return Secret{}, err
		}
	}
	s.info, s.looked = info, time.Now()
	return s.keys[server], nil
}

// forget makes the next key be read from the file.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = nil
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// read reads the file, having taken the rights of others away.
func (s *store) read() (map[string]Secret, error) {
	wide, err := config.Narrow(s.path)
	if wide && s.warn != nil {
		words := fmt.Sprintf("%s could be read by others on this machine; it is 0600 now", s.path)
		if err != nil {
			words = fmt.Sprintf("%s can be read by others on this machine, and its rights cannot be changed: %v", s.path, err)
		}
		s.warn(words + ". Consider new keys")
	}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Secret{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", s.path, err)
	}
	texts, err := s.parse(data)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]Secret, len(texts))
	for server, text := range texts {
		keys[server] = NewSecret(text)
	}
	return keys, nil
}

// parse never repeats what the file holds: package json's errors would.
func (s *store) parse(data []byte) (map[string]string, error) {
	texts := map[string]string{}
	if len(data) == 0 {
		return nil, fmt.Errorf("%q is empty: %w; move it away and add the keys again", s.path, ErrDamaged)
	}
	if json.Unmarshal(data, &texts) != nil || texts == nil {
		return nil, fmt.Errorf("%q is %w; mend it, or move it away and add the keys again", s.path, ErrDamaged)
	}
	return texts, nil
}

// change edits the keys in the file. A damaged file is not touched.
func (s *store) change(edit func(texts map[string]string)) error {
	defer s.forget()
	return config.Edit(s.path, func(data []byte) ([]byte, error) {
		texts := map[string]string{}
		if data != nil {
			var err error
			if texts, err = s.parse(data); err != nil {
				return nil, err
			}
		}
		before := len(texts)
		edit(texts)
		if data == nil && before == len(texts) {
			return nil, nil
		}
		out, err := json.MarshalIndent(texts, "", "  ")
		if err != nil {
			return nil, errors.New("the keys cannot be written as JSON")
		}
		return append(out, '\n'), nil
	})
}
