# Two commands for a new user: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Libraries are compiled to bytecode once: without, every process that tests start would do so again, for seconds.
unexport PYTHONDONTWRITEBYTECODE

# What pip says goes to a file, and its end to the screen if it fails; dots show that it is working.
define install
@printf 'Installing into .venv, about a minute ' >&2; \
$(BIN)/python -m pip install --no-compile --constraint constraints.txt --editable $(1) > .venv/pip.log 2>&1 & pid=$$!; \
trap 'kill $$pid; exit 130' INT TERM; \
while kill -0 $$pid 2>/dev/null; do printf . >&2; sleep 1; done; echo >&2; \
wait $$pid || { grep -v '^WARNING: Location' .venv/pip.log | tail -n 20 >&2; exit 1; }
endef

# Older processors, as far as flags can imitate them: the code that BLAS, NumPy and XLA choose there.
AVX2 := OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" XLA_FLAGS=--xla_cpu_max_isa=AVX2
SSE4 := OPENBLAS_CORETYPE=Nehalem NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL AVX512_SPR" XLA_FLAGS=--xla_cpu_max_isa=SSE4_2

.PHONY: demo test lint unit test-browser test-portable bench bench-peers docs clean

demo: .venv/installed
	$(BIN)/quenched demo --out demo

# The type checker takes a minute on one core: it runs beside the tests.
test: .venv/installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory -j 2 lint unit

lint: .venv/installed-test
	$(BIN)/lint-imports
	$(BIN)/basedpyright

unit: .venv/installed-test
	$(BIN)/pytest

# Pages in Chromium, which is the system's; without it the tests are skipped.
test-browser: .venv/installed-test
	$(BIN)/pytest -n 0 -rs tests/browser

test-portable: .venv/installed-test
	$(AVX2) QUENCHED_TEST_CACHE=.pytest_cache/jax-avx2 $(BIN)/pytest
	$(SSE4) QUENCHED_TEST_CACHE=.pytest_cache/jax-sse4 $(BIN)/pytest

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
	$(call install,'.[papers]')
	@touch $@

.venv/installed-test: .venv/bin/python pyproject.toml constraints.txt
	$(call install,'.[test]')
	@touch .venv/installed $@

clean:
	rm -rf .venv demo site build dist .pytest_cache .ruff_cache .import_linter_cache
