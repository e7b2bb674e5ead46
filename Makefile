# Every target that has a ## comment is listed by `make`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build run test check race fuzz crash bench soak mutants chaos e2e golden docs dist cover vuln clean need-go need-git

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null)
STAMP   := -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
FUZZTIME ?= 30s
REQUESTS ?= 1000000
BASE     ?=

help: ## list the targets
	@sed -nE 's/^([a-z0-9]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do printf '%-8s %s\n' "$$name" "$$text"; done

# What a machine lacks is said before anything else goes wrong for the lack of it.
need-go:
	@command -v go >/dev/null || { echo "agentop: Go is missing: install Go 1.26 or later from https://go.dev/dl and put its bin folder into PATH" >&2; exit 1; }

need-git:
	@command -v git >/dev/null || { echo "agentop: git is missing: apt install git (macOS: xcode-select --install)" >&2; exit 1; }

build: need-go ## build bin/agentop, static on Linux
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w $(STAMP)' -o bin/agentop ./cmd/agentop

run: build ## try it: two built-in servers, a few conversations, no key, no network
	./bin/agentop demo

test: check ## everything that CI runs: the gate, then all tests; a part whose tool is missing says so
	@for tool in tmux redis-server strace npm dpkg curl; do command -v $$tool >/dev/null || echo "agentop: $$tool is missing: the tests that need it are skipped" >&2; done
	go test -timeout 20m ./...

check: need-go need-git ## the gate for each commit: format, vet (Linux and macOS), module file, build, import rules
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-clean:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	GOOS=darwin go vet ./...
	go mod tidy -diff
	go build ./...
	go test -run 'TestImports|TestMap|TestPredecessor|TestReference|TestDocsName|TestDocsBlocks' ./cmd/agentop
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else echo "agentop: golangci-lint is missing: its rules are not checked" >&2; fi

race: ## all tests under the race detector
	go test -race -timeout 40m ./...

fuzz: ## each fuzz target for FUZZTIME (30s)
	@set -e; for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; done; done

crash: ## the store's kill and fault tests at full length
	AGENTOP_TEST_FULL=1 go test -timeout 30m -run 'Crash|Kill|Fault|Process' ./filestore ./router/reqlog ./cmd/agentop/...

bench: ## benchmarks of the parts, in benchstat's format
	go test -run '^$$' -bench . -benchmem ./...

soak: ## a million requests of random conversations, in simulated time, then some against the built program
	AGENTOP_SIMULATION_REQUESTS=$(REQUESTS) AGENTOP_SIMULATION_PROGRAM=1500 \
	  go test -timeout 6h -count=1 -v -run 'TestNeverMoved' ./router/simulation

mutants: ## plant each fault of cmd/agentop/mutants and want a test to see it (an hour or two)
	AGENTOP_MUTANTS=all go test -timeout 6h -count=1 -v ./cmd/agentop/mutants

chaos: ## break everything around a running agentop, at full length; prints the table of docs/security.md
	AGENTOP_TEST_FULL=1 go test -timeout 90m -count=1 -v ./cmd/agentop/chaos

e2e: build ## only the tests with the real Claude Code, Codex, OpenCode and Qwen Code
	go test -timeout 20m -count=1 -v ./cmd/agentop/e2e

golden: ## rewrite the golden files from what the code does now
	go test ./tui/... ./cmd/agentop/... -update

docs: build ## write docs/configuration.md anew from the schema, and the pictures from the real program
	go test ./cmd/agentop -run TestReference -update
	@if command -v tmux >/dev/null && command -v python3 >/dev/null; then docs/pictures.sh; \
	  else echo "agentop: tmux and python3 are missing: the pictures are left as they are" >&2; fi

dist: need-go ## make a release in dist/: archives, Debian packages, install.sh, checksums (BASE=URL it will be fetched from)
	go run ./cmd/dist -version '$(VERSION)' -commit '$(COMMIT)' -date '$(DATE)' -base '$(BASE)'

cover: ## coverage by package
	go test -cover ./...

vuln: ## known vulnerabilities in what the program calls (needs vuln.go.dev)
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

clean: ## remove what the build and the tests made
	rm -rf bin dist .cache
