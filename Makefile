# make demo | test | soak | spark | test-all | test-long | check | bench | app | docs | release-check | lock: each sets up what it needs in .venv*, then runs.
PYTHON ?= python3
VENV ?= .venv
ALL ?= .venv-all
INTEGRATIONS ?= .venv-integrations
NOTEBOOKS ?= .venv-notebooks
RELEASE ?= .venv-release
DOCS ?= .venv-docs
APP ?= dist/app
# Where Pyodide lies; empty: `howsure app` downloads it.
HOWSURE_SHARED ?= ../shared
PYODIDE ?= $(wildcard $(HOWSURE_SHARED)/pyodide)
PIP_FLAGS ?= --quiet --disable-pip-version-check
PYTEST_FLAGS ?= --numprocesses auto
STAMP = .howsure-stamp
# `make test COVER=1`, `make test-all COVER=1`: also measure which branches the tests go through (1.4 times the CPU time).
COVER_FLAGS = $(if $(COVER),--cov=howsure --cov-branch --cov-append --cov-report=)
REPORT = report --skip-covered --skip-empty --sort=cover

.PHONY: demo test soak spark test-all test-long check bench app docs changelog release-files release-check lock fixtures clean

# The core alone, without the developers' tools.
demo:
	@echo "Installing howsure's core into .venv-demo (numpy, scipy and what prints; a few seconds) …"
	@test -d .venv-demo || $(PYTHON) -m venv .venv-demo
	@.venv-demo/bin/pip install $(PIP_FLAGS) .
	@.venv-demo/bin/howsure demo
	@echo "To type these commands as printed:  . .venv-demo/bin/activate"

test: export COVERAGE_FILE = .coverage.core
test: $(VENV)/$(STAMP)
	rm -f $$COVERAGE_FILE
	$(VENV)/bin/python -m pytest $(PYTEST_FLAGS) $(COVER_FLAGS)
	$(if $(COVER),$(VENV)/bin/coverage $(REPORT))

# The core suite again and again, each time in another order (the seed is printed), beside two processes that keep two
# cores busy. `make soak SOAK=1` for one round, `make soak SOAK=1 SOAK_FROM=7` for the order of seed 7.
SOAK ?= 20
SOAK_FROM ?= 1
soak: $(VENV)/$(STAMP)
	@for core in 1 2; do (while :; do :; done) & busy="$$busy $$!"; done; trap "kill $$busy" EXIT INT TERM; \
	for seed in $$(seq $(SOAK_FROM) $$(($(SOAK_FROM) + $(SOAK) - 1))); do echo "soak: --shuffle $$seed"; \
	  $(VENV)/bin/python -m pytest $(PYTEST_FLAGS) -q --shuffle $$seed || { echo "soak: failed with --shuffle $$seed"; exit 1; }; \
	done
	$(MAKE) spark

# The recipe for Spark of docs/scale.md on two local workers, one of which is killed; Java must be there.
spark:
	$(PYTHON) -m venv .venv-spark
	.venv-spark/bin/python -m pip install $(PIP_FLAGS) pyspark pandas pyarrow -e .
	.venv-spark/bin/python -m benchmarks.spark

test-all: export COVERAGE_FILE = .coverage.all
test-all: $(ALL)/$(STAMP) $(INTEGRATIONS)/$(STAMP) $(NOTEBOOKS)/$(STAMP)
	rm -f $$COVERAGE_FILE
	$(ALL)/bin/python -m pytest $(PYTEST_FLAGS) $(COVER_FLAGS) --ignore=tests/integrations
	$(INTEGRATIONS)/bin/python -m pytest $(PYTEST_FLAGS) $(COVER_FLAGS) tests/integrations src/howsure/integrations src/howsure/sklearn.py
	$(if $(COVER),$(INTEGRATIONS)/bin/coverage $(REPORT))
	$(NOTEBOOKS)/bin/python -m pytest tests/notebooks

# Attacks: small files that unpack to much, and mutations of files, states, lines and calls for three minutes.
test-long: $(ALL)/$(STAMP)
	$(ALL)/bin/python -m pytest $(PYTEST_FLAGS) -m long tests
	$(ALL)/bin/python -m benchmarks.attack --only 7 --minutes 8 --most 20000

check: $(VENV)/$(STAMP) $(ALL)/$(STAMP) $(INTEGRATIONS)/$(STAMP)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/lint-imports --no-cache
	$(ALL)/bin/pyright
	$(ALL)/bin/pyright --pythonpath $(INTEGRATIONS)/bin/python src/howsure/integrations
	$(VENV)/bin/python -m benchmarks.ratchet
	$(VENV)/bin/python -m release.sizes

bench: $(ALL)/$(STAMP)
	$(ALL)/bin/python -m benchmarks
	$(ALL)/bin/python -m benchmarks.write_docs

# The page that evaluates in the browser, static files in dist/app.
app: $(VENV)/$(STAMP)
	$(VENV)/bin/howsure app --to $(APP) $(if $(PYODIDE),--pyodide $(PYODIDE))

# The site, from nothing: its code runs, warnings are errors, links and anchors are checked.
docs: $(DOCS)/$(STAMP)
	$(DOCS)/bin/python -m docs.build $(if $(PYODIDE),--pyodide $(PYODIDE))

# Prints the section of the next release, from the fragments in changes/.
changelog:
	PYTHONPATH=src $(PYTHON) -m release.changes

# Wheel and sdist, built twice with the same bytes, checked, with a bill of materials.
release-files: $(RELEASE)/$(STAMP)
	$(RELEASE)/bin/python -m release.build

# The same, and then installed into empty environments: each Python of this machine with the lowest and the newest dependencies.
release-check: release-files
	$(RELEASE)/bin/python -m release.matrix

# The core and the tools to work on it, in the versions of release/dev.txt, each file checked by its hash, so that a
# clone builds the same in a year. Set up again when these change.
$(VENV)/$(STAMP): pyproject.toml release/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) --require-hashes -r release/dev.txt
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	touch $@

# The small logs that tests read, made anew by the tools themselves with mock models. Their versions stand in one file;
# the harness and the others have an environment each, npm brings promptfoo.
MADE = tests/formats/logs/made
pinned = $(shell sed -n 's/^$(1)==/$(2)/p' $(MADE)/versions.txt)
fixtures:
	$(PYTHON) -m venv .venv-fixtures/tools && $(PYTHON) -m venv .venv-fixtures/harness
	.venv-fixtures/tools/bin/python -m pip install $(PIP_FLAGS) $(call pinned,inspect-ai,inspect-ai==) $(call pinned,deepeval,deepeval==)
	.venv-fixtures/harness/bin/python -m pip install $(PIP_FLAGS) torch==2.13.0 $(call pinned,lm_eval,lm_eval==)
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix .venv-fixtures/promptfoo $(call pinned,promptfoo,promptfoo@)
	.venv-fixtures/tools/bin/python $(MADE)/make_inspect.py $(MADE)
	.venv-fixtures/tools/bin/python $(MADE)/make_deepeval.py $(MADE)
	.venv-fixtures/harness/bin/python $(MADE)/make_lm_eval.py $(MADE)
	$(PYTHON) -m venv .venv-fixtures/models
	.venv-fixtures/models/bin/python -m pip install $(PIP_FLAGS) torch==2.13.0 accelerate scikit-learn $(call pinned,transformers,transformers==) $(call pinned,xgboost,xgboost==)
	.venv-fixtures/models/bin/python $(MADE)/make_xgboost.py $(MADE)
	.venv-fixtures/models/bin/python $(MADE)/make_transformers.py $(MADE)
	$(PYTHON) $(MADE)/make_promptfoo.py $(MADE) node $(CURDIR)/.venv-fixtures/promptfoo/node_modules/promptfoo/dist/src/main.js

# Everything: all extras and the peers that we measure ourselves against.
# Peers may fail to install: tests skip them and the benchmark names them. The last three would pull
# torchvision, lightning, gpytorch or pyro; the parts that we compare with do without.
$(ALL)/$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(ALL)
	$(ALL)/bin/python -m pip install $(PIP_FLAGS) torch==2.13.0
	$(ALL)/bin/python -m pip install $(PIP_FLAGS) -e '.[dev,all,browser,interop,studies]'
	-$(ALL)/bin/python -m pip install $(PIP_FLAGS) -e '.[torch,peers]'
	-$(ALL)/bin/python -m pip install $(PIP_FLAGS) --no-deps netcal
	-$(ALL)/bin/python -m pip install $(PIP_FLAGS) --no-deps torch-uncertainty
	-$(ALL)/bin/python -m pip install $(PIP_FLAGS) --no-deps relplot
	touch $@

# Lightning, transformers, MLflow and TensorBoard with all that they bring, which nothing else needs.
# torch comes first and alone, so that no other package decides which torch it is. Few of their modules are ever
# imported, so Python compiles those on the way: it halves the time of the set-up.
$(INTEGRATIONS)/$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install $(PIP_FLAGS) --no-compile torch==2.13.0
	$(INTEGRATIONS)/bin/python -m pip install $(PIP_FLAGS) --no-compile -e '.[dev,integrations]'
	touch $@

# JupyterLab and marimo, for the widget in a real notebook.
$(NOTEBOOKS)/$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(NOTEBOOKS)
	$(NOTEBOOKS)/bin/python -m pip install $(PIP_FLAGS) --no-compile -e '.[test,notebooks]'
	touch $@

$(DOCS)/$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install $(PIP_FLAGS) -e '.[docs]'
	touch $@

$(RELEASE)/$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install $(PIP_FLAGS) -e '.[release]'
	touch $@

# Newer versions for $(VENV), for every Python that we support.
lock: $(RELEASE)/$(STAMP)
	$(RELEASE)/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --quiet --output-file release/dev.txt

clean:
	rm -rf $(VENV) $(ALL) $(INTEGRATIONS) $(NOTEBOOKS) $(RELEASE) $(DOCS) .pytest_cache .ruff_cache .hypothesis dist docs/_build
