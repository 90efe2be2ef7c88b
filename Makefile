# Everything the project needs is installed by its own targets; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Where the environment forbids bytecode, as in many containers, every broker that a test starts would compile all its sources.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install compile wheels docs package-test deploy-test test-all test-compiled run lint types contracts unit long-test sim sink-sim test challenge clean

help: ## List the targets
	@grep -hE "^[a-z-]+:.*## " $(MAKEFILE_LIST) | sed -E "s/:.*## /\t/" | expand -t 20

install: $(STAMP) ## Build .venv from the pinned constraints

$(STAMP): pyproject.toml constraints.txt client/requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fast,spark,connect,iceberg,test,dev]' -r client/requirements.txt
	touch $@

compile: $(STAMP) ## Compile the hot path beside its source (needs a C compiler; `make clean` removes it)
	$(BIN)/python build_tools/compile.py

wheels: ## Build a compiled wheel and a pure one in dist/
	rm -rf dist
	$(PYTHON) -m venv build/wheels
	build/wheels/bin/python -m pip install --quiet --disable-pip-version-check build
	SSKAFKA_COMPILE=1 build/wheels/bin/python -m build --wheel
	SSKAFKA_COMPILE=0 build/wheels/bin/python -m build --wheel

package-test: ## Build sdist and wheel, check them, and use the wheel in an empty environment
	$(PYTHON) build_tools/package_test.py

deploy-test: ## Check the files of deploy/ and the Dockerfile against the schemas of Kubernetes, systemd and hadolint
	test -x build/deploy/bin/python || $(PYTHON) -m venv build/deploy
	build/deploy/bin/python -m pip install --quiet --disable-pip-version-check -r deploy/requirements.txt
	build/deploy/bin/python deploy/check.py

test-all: ## Run the unit tests on every Python from 3.11 to 3.14 that is on the PATH
	$(PYTHON) build_tools/every_python.py

docs: ## Build the site of the documentation in build/site; a broken link fails (no network after the first time)
	test -x build/docs/bin/python || $(PYTHON) -m venv build/docs
	test -x build/docs/bin/mkdocs || build/docs/bin/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build --strict
	@echo "build/site/index.html"

COMPILED := build/compiled
COMPILED_TESTS ?= tests/unit tests/property tests/hostile/test_lying_batches.py tests/integration/test_protocol_*.py tests/integration/test_confluent_kafka.py
test-compiled: $(STAMP) ## Run unit, property and some integration tests on a compiled copy of this checkout
	rm -rf $(COMPILED) && mkdir -p $(COMPILED)
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t $(COMPILED)
	cd $(COMPILED) && $(abspath $(BIN))/python build_tools/compile.py
	cd $(COMPILED) && PYTHONPATH=src $(abspath $(BIN))/python -c "from sskafka.compiled import BUILD, IS_COMPILED; assert IS_COMPILED, BUILD"
	cd $(COMPILED) && PYTHONPATH=$(abspath $(COMPILED))/src $(abspath $(BIN))/pytest -q -n 2 --dist loadfile -p no:cacheprovider $(COMPILED_TESTS)

run: $(STAMP) ## Three brokers, a stream of clicks, and Spark that finds sessions in it, live
	$(BIN)/sskafka demo $(DEMO_OPTIONS)

lint: $(STAMP) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## Check types (mypy --strict)
	$(BIN)/mypy
	$(BIN)/mypy client/*.py

contracts: $(STAMP) ## Check the order of layers
	$(BIN)/lint-imports --no-cache

# The files with long tests come first: the short ones at the end keep all workers busy until the last of them.
PIP_ONLY_TESTS := tests/integration tests/hostile tests/simulation tests/property tests/unit
BY_FILE := -n 3 --dist loadfile --no-loadscope-reorder
unit: $(STAMP) ## Run the tests, without the long ones
	$(BIN)/pytest -q $(BY_FILE) -m "not long" $(PIP_ONLY_TESTS)

long-test: $(STAMP) ## Run the long tests: clusters that grow, shrink, move and break (they need nothing but pip, too)
	$(BIN)/pytest -q $(BY_FILE) -m long $(PIP_ONLY_TESTS)

sim: $(STAMP) ## Simulate 10,000 quorums (SEED=123 replays one)
	SEEDS=$${SEEDS:-10000} $(BIN)/pytest -q -n 2 tests/simulation

sink-sim: $(STAMP) ## Simulate 100,000 interleavings of the Spark sink's drivers and tasks (SINK_SEED=123 replays one)
	SINK_SEEDS=$${SINK_SEEDS:-100000} $(BIN)/pytest -q -n 2 tests/simulation/test_sink_simulation.py

test: lint types contracts unit ## Lint, types, import contracts and tests; all that need nothing but pip

challenge: $(STAMP) ## Run the tester of the Kafka challenge on this repository (port 9092)
	$(BIN)/sskafka challenge .

clean: ## Remove what the targets made
	$(PYTHON) build_tools/compile.py clean
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

include benchmarks/bench.mk
include tests/interop/interop.mk
include tests/console/console.mk
include tests/chaos/chaos.mk
include tests/spark/spark.mk
include tests/faults/faults.mk
include tests/pages/pages.mk
include tests/fuzz/fuzz.mk
include tests/image/image.mk
