# make demo, make test, make check, make report, make bench-speed: each sets up what it needs in .venv, nothing else is asked of the machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(wildcard native/*)

.PHONY: demo test check report bench-speed format clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/demo.stamp: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[plot]"
	touch $@

$(VENV)/test.stamp: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[test]"
	touch $@

$(VENV)/check.stamp: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[test,check]"
	touch $@

$(VENV)/speed.stamp: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[speed]"
	touch $@

demo: $(VENV)/demo.stamp  ## cluster an embedded data set, print what was found, write demo/
	$(BIN)/pemeans demo --out demo

test: $(VENV)/test.stamp  ## all tests, well under ten minutes on two cores
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

check: $(VENV)/check.stamp  ## style, types and the floors of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

RESULTS ?= benchmarks/results/runs.parquet
report: $(VENV)/test.stamp  ## tables, figures and page of benchmarks/results; RESULTS="a.sqlite b.sqlite" takes others
	$(BIN)/pemeans bench report $(RESULTS) --out benchmarks/results

bench-speed: $(VENV)/speed.stamp  ## speed beside the peers, into benchmarks/results/speed.md; under ten minutes
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py

format: $(VENV)/check.stamp  ## mend what can be mended by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build demo src/pemeans/kernels/*.so src/*.egg-info
