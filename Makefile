# Two commands on a fresh machine: `make demo` and `make test`. Everything is installed into .venv, or, where another
# interpreter is asked for (`make test PYTHON=python3.13`), into a folder of its own.
PYTHON ?= python3
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(subst /,_,$(PYTHON)))
OLDEST_PYTHON ?= $(firstword $(wildcard $(HOME)/.pyenv/versions/3.10*/bin/python) python3.10)
OLDEST := .venv-oldest
WHERE := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(WHERE)
PIP := -m pip install --quiet --disable-pip-version-check
USE := $(VENV)/.installed-to-use
STAMP := $(VENV)/.installed-to-test
DOCS := $(VENV)/.installed-for-docs
TESTS := -m pytest -q -n auto --maxprocesses 4 --dist worksteal
# Data files of the paper, for benchmarks and a few tests that skip without them.
ifneq ($(wildcard ../shared/data/README.md),)
export TRISCREEN_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-oldest verify-demo nightly mutants lint docs docs-quick dist pictures bench clean

$(USE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -e ".[cli,report]"
	touch $@

$(STAMP): $(USE)
	$(BIN)/python $(PIP) -e ".[test]"
	touch $@

$(DOCS): $(USE)
	$(BIN)/python $(PIP) -e ".[docs]"
	touch $@

demo: $(USE)
	$(BIN)/triscreen demo

test: $(STAMP)
	$(BIN)/python $(TESTS)

# Python 3.10 and the lowest version of everything that pyproject.toml names.
test-oldest:
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/$(WHERE)/python tests/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/$(WHERE)/python $(PIP) --upgrade "pip>=24"  # that of 3.10 takes many minutes to see what goes together
	$(OLDEST)/$(WHERE)/python $(PIP) -e ".[test]" -c $(OLDEST)/constraints.txt
	$(OLDEST)/$(WHERE)/python $(TESTS)

# Proofs in ball arithmetic: every lambda of a path on wine, every tenth of one on segment; two minutes.
verify-demo: $(STAMP)
	$(BIN)/python benchmarks/verify.py

# The long runs: kills, damages, crash states and faults of checkpoints, files of every kind fuzzed (an hour of it guided by coverage), signals at every
# moment, how soon long work ends, points left out against refits, in about two hours; then screening, balls, predictions and
# proofs attacked for HOURS on all cores, with new seeds every night. What was done is added up in
# build/night/counts.json.
HOURS ?= 1
nightly: $(STAMP)
	$(BIN)/python tests/attack_checkpoints.py
	$(BIN)/python tests/crashes.py
	$(BIN)/python tests/cli/fuzz_files.py 5000
	$(BIN)/python $(PIP) "atheris>=3"
	$(BIN)/python tests/fuzz_loaders.py 3600
	$(BIN)/python tests/cli/sweep_signals.py 60
	$(BIN)/python tests/solvers/attack_interrupts.py
	$(BIN)/python tests/leaving_out.py
	$(BIN)/python tests/verification/claims.py 1000
	$(BIN)/python tests/night.py $(HOURS)
	TRISCREEN_NIGHTLY=1 $(BIN)/python $(TESTS) --ignore tests/distributed
	TRISCREEN_NIGHTLY=1 $(BIN)/python -m pytest -q tests/distributed
	$(BIN)/python tests/distributed/attack_cluster.py 100

# Small changes that make the safety core wrong: does a test find each? At most four hours; the same command goes on.
mutants: $(STAMP)
	$(BIN)/python tests/mutants.py $(MUTANTS)

# Style, and the types of the public surface as users see them (tests/typed.py).
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/site: warnings are errors, examples of the gallery run, links inside it lead somewhere.
docs: $(DOCS)
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -b html docs build/site
	$(BIN)/python docs/site/check.py build/site

# The same without running the gallery: some seconds.
docs-quick: $(DOCS)
	$(BIN)/python -m sphinx -W --keep-going -q -D plot_gallery=0 -b html docs build/site-quick

# Source and wheel, and the wheel in an empty environment: what works without extras, and what is said where one is missing.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python tests/package.py dist

# The picture of the report in README: it needs chromium, chromium-driver and selenium.
pictures: $(STAMP)
	$(BIN)/python docs/pictures.py

# The paper's tables and figures, peers, seconds, scaling, within MINUTES; the same command goes on where it stopped, and
# measures again what another commit has left. QUICK=1: small problems, some minutes.
MINUTES ?= 100
bench: $(STAMP)
	$(BIN)/python $(PIP) -e ".[test,bench]"
	$(BIN)/python benchmarks/run.py $(if $(QUICK),--quick,--minutes $(MINUTES)) $(BENCH)
	$(BIN)/python benchmarks/page.py $(if $(QUICK),--results build/bench-quick)

clean:
	rm -rf .venv .venv-* .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist
