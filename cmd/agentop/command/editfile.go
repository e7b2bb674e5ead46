package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// editFile reads a file, changes it and writes it back.
func editFile(path string, change func([]byte) ([]byte, error)) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if data, err = change(data); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
