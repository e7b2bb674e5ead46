package testkit

import (
	"runtime"
	"strings"
	"testing"
)

// told is a test that notes how it ended.
type told struct {
	testing.TB
	skipped, failed string
}

func (f *told) Helper()      {}
func (f *told) Name() string { return "TestOfNothing" }
func (f *told) Skip(args ...any) {
	f.skipped = args[0].(string)
	runtime.Goexit()
}

func (f *told) Fatal(args ...any) {
	f.failed = args[0].(string)
	runtime.Goexit()
}

func need(tools ...string) *told {
	f, done := new(told), make(chan struct{})
	go func() {
		defer close(done)
		Need(f, tools...)
	}()
	<-done
	return f
}

func TestNeedSkipsAndInCIFails(t *testing.T) {
	t.Setenv("AGENTOP_TEST_REQUIRE", "")
	if f := need("go"); f.skipped != "" || f.failed != "" {
		t.Errorf("with the tool: %+v", f)
	}
	if f := need("go", "no-such-tool"); !strings.Contains(f.skipped, "no-such-tool is not installed") || f.failed != "" {
		t.Errorf("without it: %+v", f)
	}
	t.Setenv("AGENTOP_TEST_REQUIRE", "1")
	if f := need("no-such-tool"); !strings.Contains(f.failed, "no-such-tool is not installed") || f.skipped != "" {
		t.Errorf("without it in CI: %+v", f)
	}
}
