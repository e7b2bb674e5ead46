package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockWait is how long a change of keys.json waits for another process.
const lockWait = 5 * time.Second

// file is keys.json: the keys that were typed at the prompt, by server.
type file struct{ path string }

// load reads all keys. A missing file holds none; a damaged one is an error,
// and is never overwritten.
func (f file) load() (map[string]string, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", f.path, err)
	}
	keys := map[string]string{}
	if json.Unmarshal(data, &keys) != nil { // its error would quote the file
		return nil, fmt.Errorf("%q is not a JSON object of server names and keys; mend it, or move it away and add the keys again", f.path)
	}
	return keys, nil
}

// change replaces the file by what edit makes of it, by write and rename, so
// that it is whole at every moment. A symlink stays one.
func (f file) change(ctx context.Context, edit func(map[string]string)) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock := flock.New(f.path+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, 20*time.Millisecond); !ok {
		return fmt.Errorf("lock %q: %w", f.path, err)
	}
	defer func() { _ = lock.Unlock() }() // ends with the descriptor anyway
	keys, err := f.load()
	if err != nil {
		return err
	}
	edit(keys)
	data, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		return fmt.Errorf("encode keys: %w", errors.Unwrap(err))
	}
	return f.write(append(data, '\n'))
}

func (f file) write(data []byte) error {
	target := f.path
	if resolved, err := filepath.EvalSymlinks(f.path); err == nil {
		target = resolved
	}
	tmp, err := os.CreateTemp(filepath.Dir(target), ".keys-*") // 0600
	if err != nil {
		return fmt.Errorf("save keys: %w", err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), target)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // the error that counts is told
		return fmt.Errorf("save keys: %w", err)
	}
	return syncDir(filepath.Dir(target))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %q: %w", dir, err)
	}
	return errors.Join(d.Sync(), d.Close())
}
