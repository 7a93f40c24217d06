# Two commands for a new user: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test bench bench-peers docs clean

demo: .venv/installed
	$(BIN)/quenched demo --out demo

test: .venv/installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/pytest

bench: .venv/installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks

# Peers are installed by name into environments of their own under .benchmarks; nothing of ours depends on them.
bench-peers: .venv/installed-test
	$(BIN)/python -m benchmarks.peers

docs: .venv/installed-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "quenched needs Python 3.11 or later; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[papers]'
	@touch $@

.venv/installed-test: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch .venv/installed $@

clean:
	rm -rf .venv demo site build dist .pytest_cache .ruff_cache .import_linter_cache
