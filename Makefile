# The same commands for a person, for CI and for the README.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Node.js builds JupyterLab's side panel; where it is missing or too old, all the rest still installs.
NODE_OK := $(shell node -e 'const [a, b] = process.versions.node.split("."); process.exit((a == 20 && b >= 19) || (a == 22 && b >= 12) || a > 22 ? 0 : 1)' 2>/dev/null && echo yes)
JLPM := PATH="$(CURDIR)/$(BIN):$$PATH" jlpm
MODULES := node_modules/.installed
BUNDLE := dm_jupyter/labextension/static/style.js
LINK := $(VENV)/share/jupyter/labextensions/dm-jupyter
LINKED := $(VENV)/.linked
# With the folders, whose times tell of a removed file.
PANEL := $(shell find labextension -name __tests__ -prune -o -print)

CHROMIUM := $(shell command -v chromium || command -v chromium-browser)
BROWSER_TESTS := browser and not slow and not model
# Twice what CI has processors: tests wait half of their time.
TEST_WORKERS ?= 4
COVERAGE := --cov --cov-report=term --cov-report=json:.coverage.json
# Kernels, servers and commands that tests start shall find the modules compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup no-node check format test test-python test-panel test-browser test-all model demo lab screenshots bench docs clean

setup: $(STAMP) $(if $(NODE_OK),$(LINKED),no-node)

# Jupyter's files are copied when the package is installed, so a change of theirs installs it again. The panel has its own
# rules below; its link goes first, or pip would follow it and remove the bundle.
$(STAMP): pyproject.toml constraints/py311.txt install.json $(wildcard jupyter-config/*/* kernel_sandbox/kernelspec/*)
	$(PYTHON) -m venv $(VENV)
	rm -rf $(LINK)
	$(BIN)/python -m pip install --quiet --upgrade pip
	SKIP_JUPYTER_BUILDER=1 $(BIN)/python -m pip install --quiet -c constraints/py311.txt -e '.[local,lab,formats,analysis,test]'
	touch $(STAMP)

$(MODULES): package.json yarn.lock .yarnrc.yml | $(STAMP)
	$(JLPM) install --immutable
	touch $(MODULES)

$(BUNDLE): $(MODULES) $(PANEL) tsconfig.json
	$(JLPM) build:prod

# A link, so that JupyterLab shows a rebuilt panel after a reload of the page.
$(LINKED): $(STAMP) | $(BUNDLE)
	$(BIN)/jupyter-builder develop --overwrite .
	touch $(LINKED)

no-node:
	@echo "JupyterLab's side panel is left out: building it takes Node.js 20.19, 22.12 or newer. Get it from https://nodejs.org or with 'conda install -c conda-forge nodejs', then run 'make setup' again. The rest is installed."

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m dm_jupyter.server.protocol.typescript --check
ifdef NODE_OK
	$(JLPM) types:check
	$(JLPM) lint:check
endif

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
ifdef NODE_OK
	$(JLPM) lint
endif

# One after the other: beside the tests in Python, which keep all processors busy, those of the panel run out of time.
test: $(if $(NODE_OK),test-panel) test-python

# The tests of a file share kernels and servers: they stay in one process. What fails beside the others on a busy machine
# is run once more alone: a fault of the code fails twice, and both failures are printed.
test-python: setup
	$(BIN)/python -m pytest --cache-clear -n $(TEST_WORKERS) --dist loadscope --no-loadscope-reorder $(COVERAGE) || \
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(COVERAGE) --cov-append
	$(BIN)/python tests/coverage_floor.py .coverage.json

test-panel: setup
	$(JLPM) test

# In a process of their own: Playwright's event loop bears no other.
test-browser: setup
ifeq ($(and $(NODE_OK),$(CHROMIUM)),)
	@echo "The tests in a browser are left out: they take Node.js and Chromium ('sudo apt-get install chromium')."
else
	$(BIN)/python -m pytest -m '$(BROWSER_TESTS)' tests/browser
endif

# Not in the extra `test`: Notebook 7 would show in the JupyterLab of `make lab`.
test-all: setup model
	$(BIN)/python -m pip install --quiet -c constraints/py311.txt -e '.[train]'
	$(BIN)/python -m pip install --quiet -c constraints/py311.txt ray notebook jupyterhub configurable-http-proxy ipywidgets
	$(BIN)/python -m pytest -m 'not browser' --hypothesis-profile=thorough
	@$(MAKE) --no-print-directory test-browser BROWSER_TESTS=browser

model: setup
	$(BIN)/dm-jupyter model pull

demo: setup model
	$(BIN)/python -m examples.demo

lab: setup model
	@test -f $(BUNDLE) || { echo "'make lab' shows the side panel, so it needs Node.js." >&2; exit 1; }
	cd examples && "$(CURDIR)/$(BIN)/jupyter" lab $(LAB_FLAGS)

screenshots: setup model
	$(BIN)/python -m examples.screenshots

bench: setup
	$(BIN)/python -m benchmarks

docs: setup
	$(BIN)/python -m pip install --quiet -c constraints/py311.txt mkdocs-material
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site .coverage* .pytest_cache .mypy_cache .ruff_cache
	rm -rf node_modules .yarn lib dm_jupyter/labextension
