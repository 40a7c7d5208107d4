# Two commands do everything: `make demo` and `make test`. Both build the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test lint types check bench clean

demo: $(VENV)/.installed
	$(BIN)/everthread demo

test: lint types check

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

check: $(VENV)/.installed-test
	$(BIN)/pytest -n logical --dist loadfile

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/turn.py
	$(BIN)/python benchmarks/block.py
	$(BIN)/python benchmarks/threads.py
	$(BIN)/python benchmarks/host.py
	$(BIN)/python benchmarks/recall.py
	$(BIN)/python -m benchmarks.stores
	$(BIN)/python -m benchmarks.stores --postgres --scale 0.1
	$(BIN)/python benchmarks/extraction.py
	$(BIN)/python -m benchmarks.writing
	@if [ -n "$(DATA)" ]; then \
	$(BIN)/python benchmarks/longmemeval.py --data $(DATA)/longmemeval; \
	$(BIN)/python benchmarks/madial.py --data $(DATA)/madial; \
	for file in $(DATA)/locomo/*.json; do $(BIN)/python benchmarks/locomo.py --data $$file; done; \
	else echo "recall figures need data: make bench DATA=path/to/data"; fi

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "everthread needs Python 3.11 or newer; set PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(VENV)/bin/python
	$(PIP) install --quiet -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml $(VENV)/bin/python
	$(PIP) install --quiet -e '.[test,server]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(VENV)/.installed-test
	$(PIP) install --quiet -e '.[test,bench]'
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
