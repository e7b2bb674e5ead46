# Every target that has a ## comment is listed by `make`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build run test check race fuzz crash bench soak mutants chaos e2e golden cover lint clean

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null)
STAMP   := -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
FUZZTIME ?= 30s
REQUESTS ?= 1000000

help: ## list the targets
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

build: ## build bin/agentop, static on Linux
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w $(STAMP)' -o bin/agentop ./cmd/agentop

run: build ## try it: two built-in servers, a few conversations, no key, no network
	./bin/agentop demo

test: check ## everything that CI runs: the gate, then all tests, the real clients included
	go test -timeout 20m ./...

check: ## the gate for each commit: format, vet (Linux and macOS), module file, build, import rules
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-clean:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	GOOS=darwin go vet ./...
	go mod tidy -diff
	go build ./...
	go test -run 'TestImports|TestMap|TestPredecessor' ./cmd/agentop
	@if command -v golangci-lint >/dev/null; then golangci-lint run; fi

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

e2e: build ## only the tests with the real Claude Code, Codex and OpenCode
	go test -timeout 20m -count=1 -v ./cmd/agentop/e2e

golden: ## rewrite the golden files from what the code does now
	go test ./tui/... ./cmd/agentop/... -update

cover: ## coverage by package
	go test -cover ./...

clean: ## remove what the build and the tests made
	rm -rf bin dist .cache
