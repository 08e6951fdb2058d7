.DEFAULT_GOAL := help
.PHONY: help test vet fmt-check fmt lint bench fuzz soak cover

GOLANGCI := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
BENCH    ?= .
FUZZTIME ?= 30s
SOAK     ?= .

SOAK_MINUTES ?= 60

# Every test runs under the race detector, which does not watch the interpreter of the embedded server: it is not ours, runs
# each script in one goroutine, and would take most of the time.
RACE := -race -gcflags='github.com/yuin/gopher-lua/...=-race=false'

# The packages whose tests take longest begin first, and three at once: many of them wait for servers and clocks.
SLOW := ./repair ./internal/proof ./cli ./opaque ./ranked . ./index

# Tests that the race detector only slows down: under it they run in a smaller form, and once more in full without it.
FULL := NoSchedule|TheSimulator|TestEachSafeguard|TestEveryKindOfDamage|TestAnIndexBuiltUnderLoad|TestAPageThatSaysItIsComplete|TestOneValueHeldByFifty|TestFoldingAgrees

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## vet, format check and every test under the race detector (installs the servers in CI)
	@scripts/install-servers.sh
	@$(MAKE) --no-print-directory vet
	@$(MAKE) --no-print-directory fmt-check
	go test $(RACE) -vet=off -count=1 -p 3 -timeout 20m $(SLOW) ./...
	go test -vet=off -count=1 -p 3 -timeout 20m -run '$(FULL)' ./opaque ./repair ./internal/proof ./ranked ./index ./membership

vet: ## go vet
	go vet ./...

fmt-check: ## fail and list the files that are not formatted
	@files=$$(gofmt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted (make fmt):"; echo "$$files"; exit 1; fi

fmt: ## format with gofumpt
	$(GOLANGCI) fmt ./...

lint: ## golangci-lint; the first run builds it, which takes minutes
	$(GOLANGCI) run ./...

bench: ## every benchmark matching BENCH
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

fuzz: ## every fuzz target for FUZZTIME
	@FUZZTIME='$(FUZZTIME)' scripts/fuzz.sh

soak: ## faults, kills, histories for SOAK_MINUTES and longer; PROOF_SEED repeats a failure, SOAK picks tests by name
	SOAK_MINUTES='$(SOAK_MINUTES)' go test $(RACE) -count=1 -v -timeout 24h -run '$(SOAK)' ./internal/proof

cover: ## coverage by function in cover.out, the total printed
	go test -count=1 -coverpkg=./... -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -n 1
