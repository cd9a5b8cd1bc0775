# `make run` brings everything up, `make test` passes the tests; both install and
# build first what is missing. Settings of the local stack: hongbao dev --help

SHELL   := /bin/bash
BIN     := .cache/bin
HONGBAO := $(BIN)/hongbao
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo dev)
# The version control stamp is ours: go's own fails in a checkout of another user.
GOBUILD := go build -buildvcs=false -ldflags '-X main.version=$(VERSION)'

# Services and test rigs start commands without HOME; Go keeps modules and builds there.
ifeq ($(origin HOME),undefined)
export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif

.DEFAULT_GOAL := help
.PHONY: help build forget run status stop reset setup test night often check lint vuln fuzz bench mutants guarantees chaos soak simulate compose

help: ## Show the targets
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## /\1	/' | while IFS=$$'\t' read -r name text; do printf '  %-10s %s\n' "$$name" "$$text"; done

build: ## Build the binary into .cache/bin
	@mkdir -p $(BIN)
	@[ -x $(HONGBAO) ] || echo 'building hongbao; the first time takes a minute or two'
	@$(GOBUILD) -o $(HONGBAO) ./cmd/hongbao

$(HONGBAO):
	@$(MAKE) --no-print-directory build

# Building takes a minute: the addresses of a stack that was killed are gone before it,
# and those of one that runs stay. `hongbao dev` holds the lock as long as it lives.
forget:
	@home="$${HONGBAO_HOME:-.hongbao}"; [ ! -e "$$home/lock" ] || ! command -v flock >/dev/null || \
	flock -E 75 -w 1 "$$home/lock" rm -f "$$home/dev.env" || [ $$? -ne 75 ] || { echo "a stack is already running in $$home" >&2; exit 1; }

# exec: the program gets the signals, not a shell in front of it.
run: forget build ## Run the whole stack in the foreground
	@exec $(HONGBAO) dev

# These act on what runs, also while the source does not compile.
status: $(HONGBAO) ## Show what runs and how it is
	@exec $(HONGBAO) dev status

stop: $(HONGBAO) ## Stop the stack and wait until it is gone
	@exec $(HONGBAO) dev stop

reset: $(HONGBAO) ## Stop the stack and delete its state
	@exec $(HONGBAO) dev reset

setup: build
	@exec $(HONGBAO) dev setup

# Most tests wait, for timers, leases and servers that start again: more of them run at once
# than there are processors.
GOTEST := go test -parallel 4
# A deadline tells a defect from a slow machine only if it is generous.
test: export TEST_PATIENCE ?= 5

# worker is tested alone: next to a browser its servers answer too late for the deadlines of the product. Fewer garbage
# collections, in Temporal and the tests, save an eighth of the processor time.
# Of the others two are tested at a time, and these begin.
LONG := ./console/browser ./test/e2e ./cmd/hongbao

# These share memory between callers, and are tested with the race detector. So is the loss of a process of
# the worker: each of those tests runs every loop that it has. The rest of ./worker would take too long with it.
RACE := ./api ./internal/pool ./internal/store ./internal/store/report ./console ./activities

# What proves a guarantee: failpoints, the fault table, the rules about money, a crowd, a kill
# of each process, four restored stores. What repeats it in greater number is in `night`.
test: setup ## Pass the tests, on real Redis, MariaDB and Temporal
	GOGC=400 $(GOTEST) -parallel 8 -timeout 45m ./worker
	$(GOTEST) -timeout 45m $(LONG) $$(go list ./... | grep -vxF -f <(go list ./worker $(LONG) $(RACE); echo hongbao/test/bench))
	$(GOTEST) -race -timeout 30m $(RACE)
	$(GOTEST) -race -timeout 30m -run '^TestR3_' ./worker

check: ## Check format and vet
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet ./...

# The name says what it was built from and with, so another version is another file.
LINTMOD := internal/devstack/tools/lint
LINT    := $(BIN)/golangci-lint-$(shell { cat $(LINTMOD)/go.mod $(LINTMOD)/go.sum; go version; } 2>/dev/null | sha256sum | cut -c1-12)

$(LINT):
	@mkdir -p $(BIN) && rm -f $(BIN)/golangci-lint-*
	@echo 'building golangci-lint from source: two to three minutes on two cores, and only the first time'
	@cd $(LINTMOD) && GOWORK=off go build -buildvcs=false -ldflags='-s -w' -o $(CURDIR)/$@.new github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@mv $@.new $@

# Examples without output are compiled and never run.
lint: check $(LINT) ## Check format, vet, the rules of .golangci.yml, and that a program or a test reaches every function
	$(LINT) run
	@dead=$$(go tool -modfile=internal/devstack/tools/deadcode/go.mod deadcode -test ./...) || exit 1; \
	dead=$$(grep -v ' unreachable func: Example' <<<"$$dead"); [ -z "$$dead" ] || { echo "no program and no test reaches:"; echo "$$dead"; exit 1; }

VULNDB ?= https://vuln.go.dev

vuln: ## Look for known vulnerabilities in what we call, where the database is reachable
	@if curl -fsSL -m 20 -o /dev/null $(VULNDB)/index/modules.json.gz; \
	then go tool -modfile=internal/devstack/tools/vuln/go.mod govulncheck -db $(VULNDB) ./...; \
	else echo 'NOT CHECKED: $(VULNDB) cannot be reached from here, so nothing is known about vulnerabilities'; fi

FUZZTIME ?= 10s

# FUZZ picks some by a regular expression of their names: make fuzz FUZZ=Cursor
# Before Go 1.27 a run whose time is over may end with nothing but "context deadline
# exceeded" (golang/go#75804): it has found nothing, and is begun again.
fuzz: ## Fuzz every parser, one after the other, e.g. make fuzz FUZZTIME=1m FUZZ='Cursor|Claim'
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; set -o pipefail; \
	grep -HE '^func Fuzz' $$(git ls-files '*_test.go') | sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*).*|./\1 \2|' | sort | grep -E ' Fuzz.*($(FUZZ))' | \
	while read -r package name; do echo "== $$package $$name"; \
		until go test "$$package" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) </dev/null 2>&1 | tee "$$log"; do \
			grep -A1 -- "^--- FAIL: $$name " "$$log" | grep -qx '    context deadline exceeded' && ! grep -q 'Failing input written' "$$log" || exit 1; \
		done; \
	done

bench: setup ## Measure everything beside baselines, e.g. make bench BENCH='-only engine,http -length 10s'; -docs writes docs/performance.md
	@go test -C test/bench -count=1 -timeout 180m -run '^TestReport$$' -args -report $(BENCH)

# MUTANT selects patches by a regular expression of their names: make mutants MUTANT='^(r5|r6)-'
mutants: setup ## Break each rule of money in the product and see its test fail, e.g. make mutants MUTANT=^r5
	@go test -C test/house -count=1 -timeout 60m -run '^TestMutants$$/$(MUTANT)' -args -mutants

guarantees: ## Print the tests and mutants of each rule of money, and the failpoints
	@go test -C test/house -count=1 -run '^TestGuarantees$$' -args -guarantees

# Without CHAOS: two minutes of a seed that is printed. CHAOS='-provider wechat' pays through the simulator of WeChat Pay.
chaos: setup ## Break everything under load and count the money, e.g. make chaos CHAOS='-length 5m -seed 7 -rate 50'
	@go test -C test/chaos -count=1 -timeout 180m -run '^TestChaos$$' -args -length 2m $(CHAOS)

# What the console's pages look like is kept in .cache/pictures, for people.
night: export TEST_NIGHT := 1
night: export TEST_PATIENCE ?= 5
night: export CONSOLE_PICTURES ?= $(CURDIR)/.cache/pictures
night: setup ## Run everything else, for hours: all tests marked for the night, 50 runs, chaos, soak, fuzz, mutants, simulation, docker-compose.yml
	@mkdir -p "$(CONSOLE_PICTURES)"
	$(GOTEST) -count=1 -timeout 120m ./...
	$(GOTEST) -count=1 -race -timeout 120m ./worker
	go test -timeout 5m -run '^$$' -bench . -benchtime 1x ./api
	@$(MAKE) --no-print-directory often simulate chaos soak fuzz mutants compose
	@$(MAKE) --no-print-directory chaos CHAOS='-provider wechat'

# Packages that keep deadlines, and whose tests take a minute at most. They wait more than they work: four packages and sixteen tests of
# each at a time; OFTEN=./worker RUNS=5 picks others. A package that takes longer than 90 minutes hangs, and shows where.
OFTEN ?= ./activities ./client ./console ./internal/devstack/... ./internal/observe ./internal/pool ./internal/provider/... ./internal/risk ./test/harness/... ./test/logs/... ./test/wait/...
RUNS  ?= 50

often: setup ## Run the tests of what keeps deadlines 50 times, e.g. make often OFTEN=./worker RUNS=5
	TEST_NIGHT= $(GOTEST) -p 4 -parallel 16 -count=$(RUNS) -timeout 90m $(OFTEN)

# Without SIMULATE: 100,000 lifetimes of a seed that is printed, and 2,000 by the real workflows.
simulate: ## Run whole packets in memory and count the money, e.g. make simulate SIMULATE='-lifetimes 20000 -seed 7'
	@go test -C test/simulate -count=1 -timeout 180m -v -args -progress -lifetimes 100000 -seed 0 $(SIMULATE)

# Without SOAK: half an hour at 30 grabs a second.
soak: setup ## Keep a steady load on the whole stack and fail when anything grows, e.g. make soak SOAK='-length 3m -rate 20'
	@go test -C test/chaos -count=1 -timeout 720m -run '^TestSoak$$' -args -soak $(SOAK)

compose: setup ## Run docker-compose.yml on a Docker engine, break it and read every payout back
	@test/compose/run.sh
