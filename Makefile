# `make up` and `make test` are all that a newcomer needs; both install what they need into this folder first.

SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin
ENVIRONMENT := .venv/.complete

# How many test processes; the tests often wait for real servers, so twice as many as cores keep both of those busy.
TEST_PROCESSES ?= 4

# Tests that kill whole centres or take their disks away, fill whole histories, live whole lives, or stop a script at each
# of its requests: minutes, so they run while real components are built, and before the tests against those.
LONG_ONES := tests/workflows/test_kill_points.py tests/workflows/test_continue_as_new.py \
	tests/workflows/test_long_life.py tests/fuzz tests/faults tests/security \
	tests/supervisor/test_up_goes_on.py tests/supervisor/test_earlier_home.py tests/supervisor/test_up_share.py \
	tests/unit/bootstrap/test_two_runs.py tests/unit/bootstrap/test_beside_uninstall.py
PARALLEL := -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

SIDE_BY_SIDE = $(BIN)/python tools/side_by_side.py
AGAIN = $(MAKE) --no-print-directory

# Another environment's variables must not leak into ours, and the user's settings must not leak into the tests; where
# built components are cached is no setting of Edgewright's.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH
# Without compiled modules at hand, each process that starts would compile some thousands: seconds, for each.
unexport PYTHONDONTWRITEBYTECODE
SETTINGS := $(filter-out EDGEWRIGHT_COMPONENTS_DIR,$(filter EDGEWRIGHT_%,$(.VARIABLES)))
HERMETIC := env $(foreach name,$(SETTINGS),-u $(name))
# In tests, Go's programs (Temporal, Kubernetes, Flux) collect garbage a quarter as often: they lack time, not memory.
PYTEST := $(HERMETIC) GOGC=400 $(BIN)/python -m pytest

# An environment that was moved with its checkout, or whose Python is gone, is made anew.
ifneq ($(shell test -x $(BIN)/python && cat $(ENVIRONMENT) 2>/dev/null),$(CURDIR))
.PHONY: $(ENVIRONMENT)
endif

$(ENVIRONMENT): uv.lock pyproject.toml bin/make-environment
	@bin/make-environment

##@ Use
.PHONY: help install up production-demo
help: ## show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(ENVIRONMENT) ## make the environment (.tools, .venv); nothing to do when it is current
	@:

up: $(ENVIRONMENT) ## start everything on this machine and commission the cluster `demo`
	@exec $(BIN)/edgewright up

production-demo: $(ENVIRONMENT) ## the topology of docker-compose.yml as processes of this machine, until Ctrl-C
	@exec $(HERMETIC) UV_SYSTEM_CERTS=1 PYTHONPATH=tests/support:tests/real $(BIN)/python -m tools.production

.PHONY: edge-demo edge-demo-down
edge-demo: $(ENVIRONMENT) ## a centre, and a real Kubernetes cluster attached to it, left running; built once, 20 minutes
	@$(HERMETIC) UV_SYSTEM_CERTS=1 PYTHONPATH=tests/support:tests/real $(BIN)/python -m tools.edge_demo up </dev/null

edge-demo-down: $(ENVIRONMENT) ## end that, and leave nothing
	@$(HERMETIC) PYTHONPATH=tests/support:tests/real $(BIN)/python -m tools.edge_demo down </dev/null

##@ Prove
.PHONY: test test-real lint components test-python test-components test-long short-siege
test: $(ENVIRONMENT) ## lint, types, import rules and every test that PyPI can supply, side by side
	@$(SIDE_BY_SIDE) "$(AGAIN) lint" "$(AGAIN) test-python"

lint: $(ENVIRONMENT) ## uv.lock, ruff, mypy --strict, import-linter
	@.tools/bin/uv lock --check --offline --quiet || \
		{ echo "uv.lock does not fit pyproject.toml: run .tools/bin/uv lock" >&2; exit 1; }
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test-python: $(ENVIRONMENT)
	$(PYTEST) tests --ignore=tests/real $(LONG_ONES:%=--ignore=%) $(PARALLEL) --durations 25 </dev/null

test-real: $(ENVIRONMENT) ## the long tests while real components are built, once, outside the checkout; then those against them
	@$(SIDE_BY_SIDE) "$(AGAIN) components" "$(AGAIN) test-long"
	@$(MAKE) --no-print-directory test-components
	@$(MAKE) --no-print-directory short-siege

components: $(ENVIRONMENT) ## build what real components are not there yet
	$(HERMETIC) UV_SYSTEM_CERTS=1 nice $(BIN)/python tests/real/components.py

test-components: $(ENVIRONMENT)
	$(PYTEST) tests/real -m real $(PARALLEL) --durations 40 </dev/null

# By itself: it tells whether anybody is kept waiting, and a machine that runs other tests keeps everybody waiting.
short-siege: $(ENVIRONMENT)
	$(HERMETIC) PYTHONPATH=tests/support:. $(BIN)/python -m bench.siege --edges 10 --interval 4 --rounds 3 --no-ratios </dev/null

test-long: $(ENVIRONMENT)
	$(PYTEST) $(LONG_ONES) $(PARALLEL) --durations 25 </dev/null
	$(PYTEST) tests/contracts/database --store postgresql $(PARALLEL) </dev/null

.PHONY: fuzz
fuzz: $(ENVIRONMENT) ## some thousands of odd requests to every operation, and odd lives of a cluster; FUZZ_SEED=n again
	$(HERMETIC) FUZZ_EXAMPLES=200 $(FUZZ_SEED:%=FUZZ_SEED=%) $(BIN)/python -m pytest tests/fuzz --timeout 3600 </dev/null

.PHONY: races
races: $(ENVIRONMENT) ## two runs of the bootstrap line that meet, at each of their requests, on a real API server: hours; RACES=n SEED=n
	RACES=$(or $(RACES),all) $(SEED:%=RACES_SEED=%) $(PYTEST) tests/real/races -m real --log-cli-level=INFO </dev/null

##@ Work on it
.PHONY: format hooks images chaos siege long-life bench record-histories clean
format: $(ENVIRONMENT) ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(ENVIRONMENT) ## run the linters before each commit
	$(BIN)/pre-commit install

images: $(ENVIRONMENT) ## ask the registries (docker with buildx) which platforms the pinned images are for
	$(BIN)/python tools/image_platforms.py

chaos: $(ENVIRONMENT) ## kill -9 a running centre at random, and check its stores: KILLS=1000 SEED=n SECONDS=n TOPOLOGY=production CENTRES=n
	$(HERMETIC) UV_SYSTEM_CERTS=1 PYTHONPATH=tests/support:tests/real $(BIN)/python -m tools.chaos --kills $(or $(KILLS),1000) \
		$(SEED:%=--seed %) $(SECONDS:%=--seconds %) $(TOPOLOGY:%=--topology %) $(CENTRES:%=--centres %) </dev/null

siege: $(ENVIRONMENT) ## one hostile caller of each kind beside a fleet that lives, and what the fleet notices: EDGES=200 ATTACK=name
	$(HERMETIC) PYTHONPATH=tests/support:. $(BIN)/python -m bench.siege --edges $(or $(EDGES),200) $(ATTACK:%=--attack %) </dev/null

long-life: $(ENVIRONMENT) ## ten years of one cluster in less than an hour: what grows, and whether all of it is told: YEARS=10
	PYTHONPATH=tests/support $(HERMETIC) $(BIN)/python -m tools.long_life --years $(or $(YEARS),10) </dev/null

bench: $(ENVIRONMENT) ## measure this machine; docs/performance.md explains it; FULL=1 takes longer, PART=centre, lists, fleets, production, edge, edges, held (EDGES=n), database, creation, start (BESIDE=folder)
	$(HERMETIC) UV_SYSTEM_CERTS=1 PYTHONPATH=tests/real:tests/support:. $(BIN)/python -m bench $(if $(FULL),--full) $(PART:%=--part %) \
		$(EDGES:%=--edges %) $(if $(BESIDE),--beside $(BESIDE)) $(if $(JSON),--json $(JSON))

record-histories: $(ENVIRONMENT) ## record the workflow histories that the replay tests use
	$(HERMETIC) $(BIN)/python tests/replay/record.py

clean: ## remove the environment and every cache of this folder (EDGEWRIGHT_HOME is not touched)
	rm -rf .tools .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
