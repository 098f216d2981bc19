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

.PHONY: demo test verify-demo nightly lint bench clean

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

# Proofs in ball arithmetic: every lambda of a path on wine, every tenth of one on segment; two minutes.
verify-demo: $(STAMP)
	$(BIN)/python benchmarks/verify.py

# The long runs: kills, damages, crash states and faults of checkpoints, files of every kind fuzzed, signals at every
# moment, how soon long work ends, points left out against refits, in about an hour; then screening, balls, predictions and
# proofs attacked for HOURS on all cores, with new seeds every night. What was done is added up in
# build/night/counts.json.
HOURS ?= 1
nightly: $(STAMP)
	$(BIN)/python tests/attack_checkpoints.py
	$(BIN)/python tests/crashes.py
	$(BIN)/python tests/cli/fuzz_files.py 5000
	$(BIN)/python tests/cli/sweep_signals.py 60
	$(BIN)/python tests/solvers/attack_interrupts.py
	$(BIN)/python tests/leaving_out.py
	$(BIN)/python tests/verification/claims.py 1000
	$(BIN)/python tests/night.py $(HOURS)

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
