package control

import "fmt"

// maxPath is the longest socket path in bytes that every system takes: macOS
// has room for 104 with the closing zero, Linux for 108.
const maxPath = 103

func checkLength(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("%w: %q has %d bytes, the limit is %d", ErrTooLong, path, len(path), maxPath)
	}
	return nil
}
