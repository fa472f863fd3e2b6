# Everything here works on a bare machine with Python, git and make: what a target needs, it installs into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Of the unit tests, each of which runs in a process of its own; the first is shown while it runs.
OTHER_PARTS := $(shell number=2; while [ $$number -le $(CORES) ]; do echo $$number; number=$$((number + 1)); done)
# Tests of processes wait for them most of the time: of two cores four workers use 1.4 in end-to-end tests.
WAITING := $(shell expr 2 \* $(CORES) + 2)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes, each of which would otherwise compile podium anew.
export PYTHONDONTWRITEBYTECODE :=

SEEDS ?= 200
STEPS ?= 2000

# Options of `make bench` and `make profile`, such as BENCH="--workload mixed --nodes 500".
BENCH ?=

# Of `make parity`: what the questions are made from, and how many of single attempts; of other kinds there are fewer.
SEED ?= 1
COUNT ?= 1000

# Of `make pythons`.
TESTS ?= tests/unit tests/properties

# Of `make soak`, and for each surface of `make fuzz`.
MINUTES ?= 10

.PHONY: help demo playground docs test check pythons sim sim-shards fgd fuzz conformance upgrade parity policies soak bench bench-all bench-report profile control-plane skew release format lock clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/.run-stamp  ## Schedule 500 pods on 50 nodes of an embedded API server, and show how it went
	@$(BIN)/podium demo --nodes 50 --pods 500

playground: $(VENV)/.dev-stamp  ## Build the page that answers questions in a browser, in build/playground (fetches 10 MB once)
	@$(BIN)/python -m tests.playground.site

docs: $(VENV)/.docs-stamp  ## Build the documentation as a site in build/docs, and fail on a warning
	@$(BIN)/python -m tests.docs_site

test: $(VENV)/.docs-stamp $(VENV)/.release-stamp  ## Everything: checks, unit, parity, integration, and the real kube-apiserver
	@$(MAKE) --no-print-directory check
	@echo "== control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl (built once, several minutes)"
	@$(BIN)/python -m tests.control_plane || [ -z "$$PODIUM_REQUIRE_CONTROL_PLANE" ]
	@echo "== kube-scheduler's packages in a program that answers questions (built once, seconds after the control plane)"
	@$(BIN)/python -m tests.parity.cross --build-only || [ -z "$$PODIUM_REQUIRE_CONTROL_PLANE" ]
	@echo "== Karmada's own estimator client (built once, about two minutes)"
	@$(BIN)/python -m tests.karmada client || [ -z "$$PODIUM_REQUIRE_CONTROL_PLANE" ]
	@echo "== helm and promtool (built once, several minutes)"
	@$(BIN)/python -m tests.go_tools || [ -z "$$PODIUM_REQUIRE_CONTROL_PLANE" ]
	@echo "== Chromium and axe-core (fetched once, half a minute)"
	@$(BIN)/python -m tests.browser || [ -z "$$PODIUM_REQUIRE_CONTROL_PLANE" ]
	@echo "== the playground (Pyodide and its wheels are fetched once, seconds)"
	@$(BIN)/python -m tests.playground.site || [ -z "$$PODIUM_REQUIRE_CONTROL_PLANE" ]
	@echo "== long unit tests, integration tests, and tests against the real control plane"
	@$(BIN)/pytest -q -n $(WAITING) --dist loadfile --after-check tests

check: $(VENV)/.dev-stamp  ## Fast: format, lint, import layers, unit tests (but for long ones), strict types
	@echo "== format, lint"
	@$(BIN)/ruff format --check -q . && $(BIN)/ruff check -q .
	@echo "== unit tests; meanwhile types, import layers, and dependencies: installed from hashes, and they fit together"
	@mkdir -p build; rm -f build/check-*.txt; trap 'kill $$processes 2> /dev/null' INT TERM; processes=; names=; \
	  beside() { name=$$1; shift; "$$@" > build/check-$$name.txt 2>&1 & processes="$$processes $$!"; names="$$names $$name"; }; \
	  for part in $(OTHER_PARTS); do \
	    beside unit-$$part $(BIN)/pytest -q -m "not long" --part $$part/$(CORES) tests/unit; \
	  done; \
	  beside types $(BIN)/mypy; beside layers $(BIN)/lint-imports --no-cache; beside dependencies $(BIN)/pip check; \
	  $(BIN)/pytest -q -m "not long" --part 1/$(CORES) tests/unit; status=$$?; \
	  set -- $$names; \
	  for process in $$processes; do \
	    wait $$process && result=0 || result=1 status=1; \
	    [ $$1-$$result = layers-0 ] || cat build/check-$$1.txt; shift; \
	  done; exit $$status

pythons: $(VENV)/.dev-stamp  ## Unit and property tests on each Python from 3.11 to 3.14 that uv finds or can fetch; says which it has not
	@for version in 3.11 3.12 3.13 3.14; do \
	  folder=build/python-$$version; \
	  echo "== Python $$version"; \
	  $(BIN)/uv venv -q --clear --python $$version $$folder || continue; \
	  $(BIN)/uv pip install -q --python $$folder --require-hashes -r requirements/dev.lock && \
	    $(BIN)/uv pip install -q --python $$folder --no-deps --no-build-isolation -e . && \
	    $$folder/bin/python -m pytest -q -n $(CORES) $(TESTS) || exit 1; \
	done

sim: $(VENV)/.dev-stamp  ## Simulate the whole scheduler in virtual time: SEEDS=200 STEPS=2000
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --steps $(STEPS)

sim-shards: $(VENV)/.dev-stamp  ## The same with three schedulers that divide the nodes: SEEDS=200 STEPS=2000
	@$(BIN)/python -m tests.simulation --shards --gangs --devices --seeds $(SEEDS) --steps $(STEPS)

fgd: $(VENV)/.dev-stamp  ## Place the trace of the paper on FragmentationGradientDescent: TREE=a clone of its simulator
	@$(BIN)/python -m tests.fgd --tree $(TREE)

fuzz: $(VENV)/.fuzz-stamp  ## Hostile configurations, objects, watch bytes and every parser (Atheris), each for MINUTES=10
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES)
	@$(BIN)/python -m tests.fuzz.one_input --minutes $(MINUTES)

conformance: $(VENV)/.dev-stamp control-plane  ## docs/conformance.md: corpora, new questions, simulations, kills, upstream's specs (two hours)
	@$(BIN)/python -m tests.conformance

upgrade: $(VENV)/.dev-stamp control-plane  ## The last release and this tree side by side under load, there and back: 5,000 pods
	@$(BIN)/python -m tests.upgrade

parity: $(VENV)/.dev-stamp control-plane  ## New questions, answered by kube-scheduler's own code and by podium: SEED=1 COUNT=1000
	@$(BIN)/python -m tests.parity.cross --seed $(SEED) --scenarios $(COUNT)
	@$(BIN)/python -m tests.parity.insight --seed $(SEED) --fixes $$(($(COUNT) / 2)) --capacities $$(($(COUNT) * 3 / 10))

policies: $(VENV)/.dev-stamp  ## New questions to scheduler-plugins' own code: TREE=a clone of it, PLACEMENT=of numaplacement
	@$(BIN)/python -m tests.parity.policies --tree $(TREE) --placement $(PLACEMENT) --seed $(SEED) --count $(COUNT)

soak: $(VENV)/.dev-stamp  ## Pods and nodes that come and go for MINUTES=10; fails where memory, tasks or files grow
	@$(BIN)/python -m tests.soak --minutes $(MINUTES)

format: $(VENV)/.dev-stamp  ## Format the code and fix what can be fixed
	@$(BIN)/ruff format -q . && $(BIN)/ruff check --fix -q .

control-plane: $(VENV)/.dev-stamp  ## Build (once) and locate etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl
	@$(BIN)/python -m tests.control_plane

skew: $(VENV)/.dev-stamp  ## podium against kube-apiserver of each minor release that it supports (each is built once)
	@$(BIN)/python -m tests.skew

bench: $(VENV)/.dev-stamp control-plane  ## Measure podium and kube-scheduler in turn on a real API server, and the flight recorder, attempts beside many claims, and policies (28 minutes)
	@$(BIN)/python -m benchmarks $(BENCH)
	@$(if $(BENCH),,$(BIN)/python -m benchmarks recorder)
	@$(if $(BENCH),,$(BIN)/python -m benchmarks claims)
	@$(if $(BENCH),,$(BIN)/python -m benchmarks policies)

bench-all: bench  ## That, the engine alone, its growth, forks, a fleet, start-up in a large cluster, a storm of events, bursts, shards, a million nodes, estimates, plans, recorders, replay (some two hours)
	@$(BIN)/python -m benchmarks in-process
	@$(BIN)/python -m benchmarks growth
	@$(BIN)/python -m benchmarks forks
	@$(BIN)/python -m benchmarks make-room
	@$(BIN)/python -m benchmarks outlook
	@$(BIN)/python -m benchmarks fleets
	@$(BIN)/python -m benchmarks start-up
	@$(BIN)/python -m benchmarks storm
	@$(BIN)/python -m benchmarks burst
	@$(BIN)/python -m benchmarks shards
	@$(BIN)/python -m benchmarks million
	@$(BIN)/python -m benchmarks subsystems
	@$(BIN)/python -m benchmarks estimator
	@$(BIN)/python -m benchmarks recording --repeat 5
	@$(BIN)/python -m tests.churn --minutes 20 --times 200
	@$(BIN)/python -m benchmarks provisioning
	@$(BIN)/python -m benchmarks gang-plans

bench-report: $(VENV)/.dev-stamp  ## docs/performance.md with its plots, from what was measured last
	@$(BIN)/python -m benchmarks report

profile: $(VENV)/.dev-stamp control-plane  ## Where the CPU time goes, by subsystem and by function
	@$(BIN)/python -m benchmarks profile $(BENCH)

lock: $(VENV)/.dev-stamp  ## Renew the lock files from pyproject.toml
	@compile() { $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    pyproject.toml --group $$1 -c requirements/runtime.lock -o requirements/$$2.lock $$3; }; \
	  compile build runtime && compile build estimator --extra=estimator && compile build otel --extra=otel && compile dev dev && compile release release && \
	  compile fuzz fuzz "-c requirements/dev.lock" && compile docs docs "-c requirements/dev.lock"

release: $(VENV)/.release-stamp  ## All that is published, in dist/, twice to the same bytes, signed with KEY=private.pem, published at URL=https://… (downloads 300 MB)
	@$(BIN)/python -m release --twice $(if $(KEY),--key $(KEY)) $(if $(URL),--url $(URL))

clean:  ## Remove the environment and caches
	@rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@echo "== creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "podium needs Python 3.11 or newer; set PYTHON=<path> to one"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run-stamp: requirements/runtime.lock pyproject.toml | $(VENV)/bin/python
	@echo "== installing what podium needs (about 20 packages)"
	@[ -e $(VENV)/.dev-stamp ] || $(BIN)/pip install -q --progress-bar on --require-hashes -r requirements/runtime.lock
	@$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev-stamp: requirements/dev.lock pyproject.toml | $(VENV)/bin/python
	@echo "== installing what podium and its development need"
	@$(BIN)/pip install -q --progress-bar on --require-hashes -r requirements/dev.lock
	@$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.run-stamp

$(VENV)/.release-stamp: requirements/release.lock $(VENV)/.dev-stamp
	@$(BIN)/pip install -q --progress-bar on --require-hashes -r requirements/release.lock
	@touch $@

$(VENV)/.fuzz-stamp: requirements/fuzz.lock $(VENV)/.dev-stamp
	@$(BIN)/pip install -q --progress-bar on --require-hashes -r requirements/fuzz.lock
	@touch $@

$(VENV)/.docs-stamp: requirements/docs.lock $(VENV)/.dev-stamp
	@echo "== installing what builds the documentation"
	@$(BIN)/pip install -q --progress-bar on --require-hashes -r requirements/docs.lock
	@touch $@
