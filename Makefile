# The targets create their virtual environment and keep it up to date.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_STAMP := $(VENV)/.installed-demo
STAMP := $(VENV)/.installed
BENCH_VENV ?= .venv-bench
BENCH_BIN := $(BENCH_VENV)/bin
BENCH_STAMP := $(BENCH_VENV)/.installed
PYTEST_ARGS ?=
SECONDS_OF_DEMO := $(if $(SECONDS),--seconds $(SECONDS),)

.PHONY: help run check test test-all test-versions frameworks test-eager test-protobuf lint bench bench-quick bench-full bench-operators bench-replicas bench-server bench-serve bench-web browser count soak chaos failures migrations conformance fuzz edits simulate replicas mutants schema docs-tables clean

help:            ## List the targets.
	@awk -F ':.*## *' '/^[a-z-]+:.*##/ {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(DEMO_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "aioinformer needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[cli]'
	touch $@

$(STAMP): $(DEMO_STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group test --group lint
	touch $@

run: $(DEMO_STAMP) ## Run an informer on the embedded API server until Ctrl-C (SECONDS=n ends it).
	$(BIN)/aioinformer demo $(SECONDS_OF_DEMO)

CHECKED := $(addprefix tests/,core client controller fifo informer listwatch objects processor reflector store typed watchtools workqueue)

check: $(STAMP) lint  ## Lint, then run the tests of the pipeline that need neither Go nor end-to-end servers, in 3 minutes.
	$(BIN)/python -m pytest -n 4 --dist loadgroup -m 'not kubernetes' -q $(CHECKED) $(PYTEST_ARGS)

test: $(STAMP) lint   ## Lint, then run all tests in 20 minutes; those on the real kube-apiserver need Go.
	$(BIN)/python -m pytest -n 3 --dist loadgroup --durations 10 $(PYTEST_ARGS)

test-all:        ## Run the tests on every Python version found.
	@for version in 3.11 3.12 3.13 3.14; do \
	  if python$$version -c '' 2>/dev/null; then \
	    $(MAKE) test PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	  else echo "python$$version not found: skipped"; fi; \
	done

# Both environments are made again at each run.
test-versions:   ## Run the tests of client, listwatch and e2e (embedded server) on the lowest and newest libraries.
	for versions in lowest newest; do \
	  $(PYTHON) -m venv --clear .venv-$$versions && \
	  .venv-$$versions/bin/python -m pip install --quiet --upgrade 'pip>=25.1' || exit 1; \
	done
	.venv-lowest/bin/python -m pip install --quiet --constraint tests/constraints-lowest.txt --editable . --group wire
	.venv-newest/bin/python -m pip install --quiet --editable '.[kubernetes]' --group wire
	for versions in lowest newest; do \
	  echo "with the $$versions versions:" && \
	  .venv-$$versions/bin/python -m pip list | grep -iE '^(aiohttp|anyio|kubernetes.*|msgspec) ' && \
	  .venv-$$versions/bin/python -m pytest tests/client tests/listwatch tests/e2e -m 'not kubernetes' \
	    -n 2 --dist loadgroup $(PYTEST_ARGS) || exit 1; \
	done

# Its packages do not fit constraints.txt. uWSGI is compiled.
frameworks:      ## Run the examples of aioinformer.blocking in gunicorn, uWSGI, Django, Celery and Jupyter.
	$(PYTHON) -m venv .venv-frameworks
	.venv-frameworks/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-frameworks/bin/python -m pip install --quiet --editable . --group frameworks
	.venv-frameworks/bin/python -m pytest tests/blocking/test_frameworks.py $(PYTEST_ARGS)

test-protobuf: $(STAMP)  ## Run the end-to-end tests with informers that read protobuf.
	$(BIN)/python -m pytest tests/e2e -n 2 --dist loadgroup --protobuf $(PYTEST_ARGS)

test-eager: $(STAMP)  ## Run the tests with asyncio's eager tasks (Python 3.12 or newer).
	$(BIN)/python -m pytest -n 2 --dist loadgroup --eager-tasks $(PYTEST_ARGS)

lint: $(STAMP)   ## Check style, types, and the direction of imports between rooms.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & mypy=$$!; $(BIN)/pyright --pythonpath $(BIN)/python && wait $$mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.plain_english --strict

$(BENCH_STAMP): $(STAMP)
	python="$${BENCH_PYTHON:-$$($(BIN)/python benchmarks/interpreter.py)}" && echo "measuring with $$python" && \
	  "$$python" -m venv --clear --without-pip $(BENCH_VENV)
	$(BIN)/python -m pip --python $(BENCH_BIN)/python install --quiet --constraint constraints.txt --editable . --group test
	touch $@

bench-quick: $(BENCH_STAMP) ## Benchmark clients side by side in 4 minutes (BENCH_ARGS='--only REGEX' selects, --help lists more).
	$(BENCH_BIN)/python -m benchmarks.harness quick $(BENCH_ARGS)

bench: $(BENCH_STAMP) ## Measure all goals of benchmarks/goals.toml in 40 minutes; writes docs/benchmarks.md.
	$(BENCH_BIN)/python -m benchmarks.harness bench --publish $(BENCH_ARGS)

bench-full: $(BENCH_STAMP) ## Measure all of benchmarks/matrix.toml in some hours; resumes where it ended.
	$(BENCH_BIN)/python -m benchmarks.harness full --resume $(BENCH_ARGS)

bench-operators: $(BENCH_STAMP) ## Benchmark operators and work queues in over an hour; writes docs/benchmarks-operators.md.
	$(BENCH_BIN)/python -m benchmarks.operators bench --publish $(BENCH_ARGS)

bench-replicas: $(BENCH_STAMP) ## Measure 1, 2, 4 and 8 replicas that share 100,000 objects in ten minutes; writes docs/benchmarks-replicas.md.
	$(BENCH_BIN)/python -m benchmarks.replicas --publish $(BENCH_ARGS)

bench-web: $(BENCH_STAMP) ## Measure a FastAPI service while informers read in its process, in 20 minutes; writes docs/web.md.
	$(BENCH_BIN)/python -m benchmarks.web --publish $(BENCH_ARGS)

bench-server: $(BENCH_STAMP) ## Measure the embedded API server with 100,000 objects in a minute.
	$(BENCH_BIN)/python -m benchmarks.embedded_server $(BENCH_ARGS)

bench-serve: $(BENCH_STAMP) ## Compare aioinformer serve with etcd and kube-apiserver in a minute.
	$(BENCH_BIN)/python -m benchmarks.serve $(BENCH_ARGS)

count: $(BENCH_STAMP) ## Count calls of a lone event and reconcile, then machine instructions per event and listed pod in ten minutes (valgrind).
	$(BENCH_BIN)/python -m benchmarks.calls
	$(BENCH_BIN)/python -m benchmarks.instructions $(BENCH_ARGS)

browser: $(STAMP) ## Let a browser lose its event stream a hundred times (needs Chromium: apt-get install chromium).
	$(BIN)/python -m pytest tests/web/test_browser.py -rs $(PYTEST_ARGS)

soak: $(STAMP)   ## Run informers under load and faults for MINUTES (30), look for growth, draw .cache/soak.svg.
	$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),30) --svg .cache/soak.svg

chaos: $(STAMP)  ## Run every fault on a real kube-apiserver REPEAT (3) times, next to client-go: recovery and requests.
	$(BIN)/python -m pytest tests/chaos --chaos $(or $(REPEAT),3) --reruns 0 $(PYTEST_ARGS)

migrations: $(STAMP)  ## Run programs of others before and after they use aioinformer, under trouble, in two hours (NAMES).
	$(BIN)/python -m tests.migrations $(NAMES) $(MIGRATIONS_ARGS)
	$(if $(NAMES)$(MIGRATIONS_ARGS),,$(BIN)/python -m tests.migrations --hour)
	$(if $(NAMES)$(MIGRATIONS_ARGS),,$(BIN)/python -m tests.migrations.installing)

failures: $(STAMP) ## Inject ten failures into the operator of a chart on a real kube-apiserver, in 15 minutes; checks docs/failures.md.
	$(BIN)/python -m pytest tests/failures --failures --reruns 0 $(PYTEST_ARGS)

conformance: $(STAMP) ## Compare the embedded server with the real one in ten minutes; writes docs/conformance.md (CONFORMANCE_ARGS).
	$(BIN)/python -m tests.conformance $(CONFORMANCE_ARGS)

fuzz: $(STAMP)   ## Compare client-go and aioinformer on random scripts for MINUTES (1), from SEED.
	$(BIN)/python -m tests.oracle.fuzz fuzz --minutes $(or $(MINUTES),1) $(if $(SEED),--seed '$(SEED)')

edits: $(STAMP)  ## Make EDITS (10000) random edits through random classes on a real kube-apiserver, FROM a seed (0).
	$(BIN)/python -m tests.edits $(or $(EDITS),10000) $(or $(FROM),0)

simulate: $(STAMP) ## Simulate HISTORIES (10000) with faults, FROM a seed (0), JOBS (1) at once; or print the history of SEED.
	$(BIN)/python -m tests.testing.simulation.campaign $(if $(SEED),--seed $(SEED),--histories $(or $(HISTORIES),10000) \
	  --from $(or $(FROM),0) --jobs $(or $(JOBS),1) $(if $(STATE),--state $(STATE)))

replicas: $(STAMP) ## Simulate HISTORIES (5000) of replicas FROM a seed (0), JOBS (1) at once, then run 8 processes on a real kube-apiserver (GATE), in an hour.
	$(BIN)/python -m tests.sharding.campaign --histories $(or $(HISTORIES),5000) --from $(or $(FROM),0) --jobs $(or $(JOBS),1) $(if $(STATE),--state $(STATE))
	$(BIN)/python -m tests.sharding.processes $(if $(GATE),--gate $(GATE))
	$(BIN)/python -m tests.sharding.example

mutants: $(STAMP) ## Plant bugs in a copy of the package and measure how soon the simulation finds each.
	$(BIN)/python -m tests.testing.simulation.mutations

schema: $(STAMP) ## Write the data files of Kubernetes' types, for the Kubernetes version in tests/kubernetes/go.mod.
	cd tests/kubernetes && go run ./cmd/protobuf-schema > ../../.schema.partial
	mv .schema.partial aioinformer/objects/protobuf/schema.json
	cd tests/kubernetes && go run ./cmd/builtin-schema > ../../.schema.partial
	mv .schema.partial aioinformer/testing/schema/types.json
	$(BIN)/python -m tests.kubernetes.openapi aioinformer/testing/schema/openapi.json.xz
	$(BIN)/python -m tests.kubernetes.resources aioinformer/testing/schema/resources.json
	$(BIN)/python -m tests.kubernetes.server_data

docs-tables: $(STAMP) ## Write the generated tables of the docs: tests by corner, public names.
	$(BIN)/python -m tests.docs_tables

clean:           ## Remove the environments and caches.
	rm -rf .venv .venv-* .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
