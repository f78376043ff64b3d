# What people and CI type. Each target does its own set-up, once; the scripts in tools/ say how.
# ARGS goes to the program behind a target: make render ARGS=prod-eu-1; make test ARGS='-k emit -x'; make lock ARGS=--upgrade
# PYTHON names the interpreter that .venv is made with: make setup PYTHON=python3.12

.DEFAULT_GOAL := help
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
ARGS ?=
BIN := .venv/bin
# What tools/ builds is found like any other program, after the user's own.
# Paths may hold any letters, whatever the locale says.
export PYTHONUTF8 := 1
export PATH := $(PATH):$(CURDIR)/.tools/bin

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: venv-dev kubeconform ## Make .venv and build kubeconform (the other targets do it when they need it)

.PHONY: render
render: venv-runtime kubeconform ## Compile every policy in policies/ to dist/ and validate it (ARGS: clusters or files)
	@$(BIN)/gpustack render $(ARGS)
	@$(BIN)/gpustack validate

.PHONY: check
check: venv-runtime ## Fail when dist/ is not what the policies render to
	@$(BIN)/gpustack check $(ARGS)

.PHONY: validate
validate: venv-runtime kubeconform ## Validate dist/ with kubeconform against the schemas of each cluster's Kubernetes
	@$(BIN)/gpustack validate $(ARGS)

# A test that hangs is named, with where every thread of it stands, and fails like any other.
STUCK := -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true

.PHONY: test
test: lint kubeconform go venv-schemas venv-release ## Lint, then run the tests (not those that need a control plane or a browser: .ci/run does)
	$(BIN)/pytest -q -n 2 $(STUCK) $(ARGS)

.PHONY: test-control-plane
test-control-plane: venv-dev control-plane debian-root go ## Test against a real API server and its controllers (the first time builds them: 10 minutes)
	$(BIN)/pytest -q -n 2 --dist loadfile tests/control_plane $(ARGS)

.PHONY: test-engines
test-engines: venv-dev control-plane engines go ## Test with whole Argo CD and whole Flux (the first time builds them: 12 minutes; ARGS=--all: all of it)
	$(BIN)/pytest -q tests/engines $(ARGS)

.PHONY: test-browser
test-browser: venv-dev venv-docs chromium ## Test report and documentation in Chromium without a window (as root, installs Debian's where there is none)
	$(BIN)/pytest -q tests/browser $(ARGS)

.PHONY: test-machines
test-machines: venv-dev venv-fleet venv-objects ## Test fleet work on several machines: Dask workers, and a cache in an object store
	$(BIN)/pytest -q tests/machines $(ARGS)

.PHONY: laptop-cluster
laptop-cluster: venv-dev control-plane ## Run the cluster of docs/tutorial.md until Ctrl-C (the first time builds it: 10 minutes)
	@PYTHONPATH=. $(BIN)/python tools/laptop_cluster.py

.PHONY: site
site: venv-docs ## Build the documentation as a site into build/site (ARGS='--into DIR': beside other versions there)
	@.tools/docs-venv/bin/python tools/site/build.py $(ARGS)

.PHONY: explore
explore: venv-dev ## Follow the reconciler through all that can happen to two nodes (ARGS='--nodes 3 --faults 2': for hours)
	$(BIN)/python -m tests.bench.reconciler_explore $(ARGS)

.PHONY: lint
lint: venv-dev ## Check style, formatting, types and the direction of imports
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet --diff
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: venv-dev ## Repair what ruff can repair: formatting, imports and simple findings
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format

.PHONY: bench
bench: venv-dev kubeconform ## Measure rendering: time and memory, cold and warm
	@$(BIN)/python -m tests.bench $(ARGS)

.PHONY: schemas
schemas: venv-runtime venv-schemas go ## Make schemas/ anew from pinned packages and from the policy models
	PYTHONPATH=. .tools/schemas-venv/bin/python tools/make_schemas.py $(ARGS)
	$(BIN)/gpustack schema
	PYTHONPATH=. $(BIN)/python tools/make_docs.py

.PHONY: lock
lock: ## Pin the dependencies of pyproject.toml into requirements/ (ARGS=--upgrade: take the newest)
	@tools/lock.sh $(ARGS)

.PHONY: release
release: venv-release $(if $(findstring --image,$(ARGS)),debian-root) ## Build wheel, sources, list of parts and provenance into release/ (ARGS=--image: and the reconciler's image)
	@.tools/release-venv/bin/python tools/release.py $(ARGS)

.PHONY: clean
clean: ## Remove everything that was made here, but not dist/
	rm -rf .venv .tools .cache build release .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: venv-runtime venv-dev venv-schemas venv-release venv-lock venv-sign venv-docs venv-fleet venv-objects kubeconform control-plane engines debian-root chromium go
venv-runtime venv-dev venv-schemas venv-release venv-lock venv-sign venv-docs venv-fleet venv-objects: venv-%:
	@tools/venv.sh $*

kubeconform: # the second opinion of `gpustack validate`
	@tools/kubeconform.sh

control-plane: # what tests/control_plane starts
	@tools/control_plane.sh

engines: # what tests/engines starts besides
	@tools/engines.sh
	@tools/docker_registry.sh

debian-root: venv-dev # what the reconciler's image is started in
	@tools/debian_root.sh

chromium: # what tests/browser starts
	@tools/chromium.sh

go: # tests read what we wrote with Kubernetes' own YAML reader
	@tools/go.sh >/dev/null
