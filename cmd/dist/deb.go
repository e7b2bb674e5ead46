package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// nfpm is the program that writes packages. Its later versions want modules
// that not every module proxy serves.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.1"

// debianPackage is one package to be made.
type debianPackage struct {
	version, arch string
	date          time.Time
	files         []file // of the archive
	work, out     string
}

// place says where a file of the archive goes on Debian; what is not listed
// is documentation.
func place(name string) string {
	switch {
	case name == "agentop":
		return "/usr/bin/agentop"
	case strings.HasPrefix(name, "man/"):
		return "/usr/share/" + name + ".gz"
	case name == "completions/agentop.bash":
		return "/usr/share/bash-completion/completions/agentop"
	case name == "completions/_agentop":
		return "/usr/share/zsh/vendor-completions/_agentop"
	case name == "completions/agentop.fish":
		return "/usr/share/fish/vendor_completions.d/agentop.fish"
	}
	return "/usr/share/doc/agentop/" + path.Base(name)
}

// debian has nfpm make the package.
func debian(ctx context.Context, p debianPackage) error {
	var c strings.Builder
	fmt.Fprintf(&c, `name: agentop
arch: %s
version: %q
version_schema: none
mtime: %s
section: utils
priority: optional
maintainer: The agentop authors <agentop@agentop.invalid>
description: |-
  Local proxy for coding agents, with a terminal UI
  New conversations go to the inference server chosen for their agent; a running
  one stays on the server it started on.
contents:
`, p.arch, p.version, p.date.UTC().Format(time.RFC3339))
	for _, f := range p.files {
		if strings.HasPrefix(f.name, "man/") {
			f.data = gzipped(f.data)
		}
		if err := write(p.work, f); err != nil {
			return err
		}
		fmt.Fprintf(&c, "  - {src: %q, dst: %q, file_info: {mode: 0%o, owner: root, group: root}}\n",
			filepath.Join(p.work, filepath.FromSlash(f.name)), place(f.name), f.mode)
	}
	if err := write(p.work, file{name: "nfpm.yaml", mode: 0o600, data: []byte(c.String())}); err != nil {
		return err
	}
	// For this system, whatever the package is for; nothing of this module.
	cmd := exec.CommandContext(ctx, "go", "run", nfpm, "package", "--packager", "deb", "--config", filepath.Join(p.work, "nfpm.yaml"), "--target", p.out)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOOS=", "GOARCH=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm: %w\n%s", err, out)
	}
	return nil
}

// gzipped compresses without a name and a time.
func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one there is
	_, _ = z.Write(data)                                  // to memory
	_ = z.Close()
	return b.Bytes()
}
