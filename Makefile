# The same commands for a person, for CI and for the README.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup check format test test-all model demo picture bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints/py311.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints/py311.txt -e '.[local,formats,analysis,test]'
	touch $(STAMP)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: setup
	$(BIN)/python -m pytest --cov --cov-report=term --cov-report=json:.coverage.json
	$(BIN)/python tests/coverage_floor.py .coverage.json

test-all: setup model
	$(BIN)/python -m pytest -m ''

model: setup
	$(BIN)/dm-jupyter model pull

demo: setup model
	$(BIN)/python -m examples.demo

picture: setup model
	$(BIN)/python -m examples.picture

bench: setup
	$(BIN)/python -m benchmarks

docs: setup
	$(BIN)/python -m pip install --quiet -c constraints/py311.txt -e '.[docs]'
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site .coverage* .pytest_cache .mypy_cache .ruff_cache
