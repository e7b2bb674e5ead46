package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"agentop/cmd/agentop/command"
)

// options is what the command line says.
type options struct {
	root, out             string // the source, and where all of it goes
	version, commit, date string // as `agentop version` tells them
	systems               string // GOOS/GOARCH, with commas between
	base                  string // from where install.sh fetches; "" = it has to be told
	deb                   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.StringVar(&o.root, "root", ".", "the source's folder")
	flag.StringVar(&o.out, "out", "dist", "the folder that all of it goes into; what it held is removed")
	flag.StringVar(&o.version, "version", "dev", "version")
	flag.StringVar(&o.commit, "commit", "", "commit")
	flag.StringVar(&o.date, "date", "", "the commit's date, RFC 3339")
	flag.StringVar(&o.systems, "systems", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "for which systems")
	flag.StringVar(&o.base, "base", "", "the URL of the folder from which install.sh fetches")
	flag.BoolVar(&o.deb, "deb", true, "make Debian packages too")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// run makes everything into a fresh folder beside out, which then replaces it.
func run(ctx context.Context, o options) error {
	date, err := time.Parse(time.RFC3339, cmp.Or(o.date, "1980-01-01T00:00:00Z"))
	if err != nil {
		return fmt.Errorf("date %q is not of RFC 3339: %w", o.date, err)
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(o.out), ".dist-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	out := filepath.Join(work, "out")
	if err := os.Mkdir(out, 0o755); err != nil { //nolint:gosec // a release is for everybody
		return err
	}
	common, err := pages(command.NewBuild(o.version, o.commit, o.date), date)
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(o.root, "README.md"))
	if err != nil {
		return err
	}
	common = append(common, file{name: "README.md", mode: 0o644, data: readme})
	for system := range strings.SplitSeq(o.systems, ",") {
		if err := o.system(ctx, system, work, common, date); err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
	}
	if err := write(out, file{name: "install.sh", mode: 0o755, data: installer(o.base)}); err != nil {
		return err
	}
	if err := checksums(out); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(o.out), os.Rename(out, o.out))
}

// system makes the archive, and on Linux the package, of one GOOS/GOARCH.
func (o options) system(ctx context.Context, system, work string, common []file, date time.Time) error {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return errors.New("want GOOS/GOARCH")
	}
	program, err := o.build(ctx, goos, goarch, work)
	if err != nil {
		return err
	}
	files := append([]file{{name: "agentop", mode: 0o755, data: program}}, common...)
	name := "agentop_" + goos + "_" + goarch
	archive, err := tarball(name, files, date)
	if err != nil {
		return err
	}
	out := filepath.Join(work, "out")
	if err := write(out, file{name: name + ".tar.gz", mode: 0o644, data: archive}); err != nil {
		return err
	}
	if goos != "linux" || !o.deb {
		return nil
	}
	return debian(ctx, debianPackage{
		version: debianVersion(o.version, o.commit, date), arch: goarch, date: date, files: files,
		work: filepath.Join(work, "deb-"+goarch), out: filepath.Join(out, name+".deb"),
	})
}

//go:embed install.sh
var installScript string

// installer is install.sh with the place from which it fetches.
func installer(base string) []byte {
	return []byte(strings.Replace(installScript, "\nbase=\n", "\nbase='"+strings.ReplaceAll(base, "'", `'\''`)+"'\n", 1))
}

// checksums writes checksums.txt, in the format of sha256sum, over all files
// of the folder.
func checksums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return write(dir, file{name: "checksums.txt", mode: 0o644, data: []byte(list.String())})
}

// debianVersion makes a version that dpkg takes, and that grows with time, of
// one that need not begin with a digit.
func debianVersion(version, commit string, date time.Time) string {
	if v := strings.TrimPrefix(version, "v"); regexp.MustCompile(`^[0-9]+\.[0-9]`).MatchString(v) {
		return strings.ReplaceAll(v, "-", "+")
	}
	return "0~" + date.UTC().Format("20060102150405") + "." + cmp.Or(regexp.MustCompile(`[^0-9A-Za-z]`).ReplaceAllString(commit, ""), "dev")
}
