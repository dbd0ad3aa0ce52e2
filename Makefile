# Everything a checkout needs. `make run` and `make test` set themselves up:
# Python 3.11 or newer and make are enough, root is not needed.
# PYTHON=/path/to/python picks the interpreter that .venv is built from.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run pipeline test test-long sim crash chaos check fix bench bench-backlog bench-spark \
  screenshots docs setup constraints clean

VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores, up to four: some tests wait for leases and brokers.
WORKERS := $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 4 ] && echo $$((n + 1)) || echo 4)
PYTEST := HEADWAY_COMPILED=0 $(BIN)/python -m pytest -p randomly -n $(WORKERS) --dist loadscope
CODE := src tests tools benchmarks

# Installs what a target needs into .venv and is silent when it is all there.
READY = @python=$$(sh tools/find-python $(if $(PYTHON),"$(PYTHON)")) && "$$python" -m tools.bootstrap

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

run: ## Set up and show a live server under load (DEMO=--quick for half a minute)
	$(READY) run
	@$(BIN)/headway demo $(DEMO)

pipeline: ## Set up and go from live traffic over PySpark tables to report.html
	$(READY) pipeline
	@$(BIN)/headway demo --port 0 --report report.html $(DEMO)

test: ## Set up and run the tests
	$(READY) test
	@$(BIN)/python -m tools.browser
	@$(PYTEST) -m "not long" --ignore tests/tidy

test-long: ## Run the long tests and keep their result in docs/results
	$(READY) test
	@HEADWAY_COMPILED=0 $(BIN)/python -m tools.long_tests

N := 2000
sim: ## Simulate N seeds of the real runtime under faults (SEED=1 begins there)
	$(READY) test
	@$(BIN)/python -m headway.sim.faults $(N) --seed $(or $(SEED),0) --quiet

crash: ## Kill a real process N times under load and check what is left
	$(READY) test
	@$(BIN)/python -m tests.faults.crash $(N)

SECONDS := 600
chaos: ## Hurt a cluster of three nodes for SECONDS and check what its clients were told
	$(READY) test
	@$(BIN)/python -m tests.cluster.chaos $(SECONDS) --seed $(or $(SEED),1) --result

check: ## Check format, lint, types, import contracts and tidiness
	$(READY) check
	$(BIN)/ruff format --check --quiet $(CODE)
	$(BIN)/ruff check --quiet $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -q tests/tidy

fix: ## Format the code and repair what the linter can
	$(READY) check
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: ## Measure the speed figures, or ONLY=some; fails out of bounds
	$(READY) bench
	@$(BIN)/python -m benchmarks.run $(ONLY)

bench-backlog: ## Measure ten million waiting jobs: memory, restart, starts (long)
	$(READY) bench
	@$(BIN)/python -m benchmarks.run backlog --full

bench-spark: ## Measure the data pipeline on Spark (FULL=--full for 50 million events)
	$(READY) all
	@$(BIN)/python -m benchmarks.run spark $(FULL)

screenshots: ## Take pictures of the dashboard off a live server (needs Chromium)
	$(READY) test
	@$(BIN)/python -m tools.screenshots

docs: ## Write the generated pages again and build the site in site/
	$(READY) docs
	@$(BIN)/python -m tools.states_doc
	@$(BIN)/python -m tools.cli_doc
	@$(BIN)/python -m tools.tables_doc
	@$(BIN)/python -m tools.http_doc
	@$(BIN)/python -m tools.sdk_doc
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open site/index.html"

setup: ## Install everything into .venv, with all extras and tools
	$(READY) all

constraints: ## Pin what .venv holds now in constraints.txt
	$(READY) all
	@$(BIN)/python -m tools.constraints

clean: ## Remove .venv and everything that tools left behind
	rm -rf $(VENV) dist build out site .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
