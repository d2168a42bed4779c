# Everything runs in a virtual environment of its own, which the targets make and keep up to date.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
SECONDS_OF_DEMO := $(if $(SECONDS),--seconds $(SECONDS),)

.PHONY: help run test test-all lint bench clean

help:            ## Say what there is.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/' | column -t -s:

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "aioinformer needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group test --group lint
	touch $@

run: $(STAMP)    ## Run an informer on the embedded API server until Ctrl-C (SECONDS=n ends it).
	$(BIN)/aioinformer demo $(SECONDS_OF_DEMO)

test: $(STAMP) lint   ## Lint, and run all tests, with the real kube-apiserver where there is a Go toolchain.
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

test-all:        ## Run the tests on every Python version found.
	@for version in 3.11 3.12 3.13; do \
	  if command -v python$$version >/dev/null; then \
	    $(MAKE) test PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	  else echo "no python$$version here: skipped"; fi; \
	done

lint: $(STAMP)   ## Style, types, and the direction of the rooms' imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

bench: $(STAMP)  ## CPU per watch event, next to its peers.
	$(BIN)/python -m benchmarks.watch_cpu

clean:           ## Remove the environments and caches.
	rm -rf .venv .venv-* .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
