package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

// file is one file of an archive or a package.
type file struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
}

// write puts a file into a folder, which must be there.
func write(dir string, f file) error {
	path := filepath.Join(dir, filepath.FromSlash(f.name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a release is for everybody
		return err
	}
	return os.WriteFile(path, f.data, f.mode)
}

// build compiles agentop for a system. -trimpath keeps the folder out of it,
// -buildvcs=false what git thinks of the working tree.
func (o options) build(ctx context.Context, goos, goarch, work string) ([]byte, error) {
	program := filepath.Join(work, "agentop-"+goos+"-"+goarch)
	stamp := "-s -w -buildid= -X main.version=" + o.version + " -X main.commit=" + o.commit + " -X main.date=" + o.date
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", program, "./cmd/agentop")
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+goos, "GOARCH="+goarch, "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	return os.ReadFile(program)
}

// tarball packs the files below one folder. Owner, order and times are fixed,
// so that equal files make equal bytes.
func tarball(dir string, files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: path.Join(dir, f.name), Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: date, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %q: %w", f.name, err)
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, fmt.Errorf("pack %q: %w", f.name, err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
