# Two commands on a fresh machine: `make demo` and `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
USE := $(VENV)/.installed-to-use
STAMP := $(VENV)/.installed-to-test
# Data files of the paper, for benchmarks and a few tests that skip without them.
ifneq ($(wildcard ../shared/data/README.md),)
export TRISCREEN_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test nightly lint bench clean

$(USE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cli,report]"
	touch $@

$(STAMP): $(USE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@

demo: $(USE)
	$(BIN)/triscreen demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist worksteal

# The long runs, an hour in all: 50 million screening decisions at every scale, kills and damages of checkpoints, files
# of every kind fuzzed, signals at every moment, how soon long work ends, a hundred harms to the workers of a cluster.
nightly: $(STAMP)
	$(BIN)/python tests/screening/safety.py
	$(BIN)/python tests/attack_checkpoints.py
	$(BIN)/python tests/cli/fuzz_files.py 5000
	$(BIN)/python tests/cli/sweep_signals.py 60
	$(BIN)/python tests/solvers/attack_interrupts.py
	$(BIN)/python tests/distributed/attack_cluster.py 100

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The paper's tables and figures, peers and scaling: some hours, goes on where it stopped. QUICK=1: a minute.
bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,bench]"
	$(BIN)/python benchmarks/run.py $(if $(QUICK),--quick) $(BENCH)
	$(BIN)/python benchmarks/page.py $(if $(QUICK),--results build/bench-quick)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
