# The commands of this project. `make run` needs Python 3.10 to 3.13 and nothing else.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3.10 python3; do \
	command -v $$name >/dev/null 2>&1 && \
	$$name -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && \
	echo $$name && break; done)

.PHONY: install install-dev run test test-fast test-pages coverage test-scale chaos drills bench bench-peers fuzz-api client client-env client-env-node client-node lint demo screenshots lock wheel messages help fuzz audit licences settings fonts

help:
	@echo "make wheel  the package, in dist/, for machines without a clone"
	@echo "make run    everything, from a fresh clone: http://127.0.0.1:8000/"
	@echo "make test   all tests"
	@echo "make test-fast  the quick ones, for daily work"
	@echo "make test-pages  those of staff's pages, with and without a browser"
	@echo "make coverage  which lines the tests run; fails below 90%"
	@echo "make test-scale  tests at a million rows"
	@echo "make chaos  10,000 messages under random kills: is each stored and answered once?"
	@echo "make drills  each failure once, and what was seen; takes half an hour"
	@echo "make bench  measurements of time and memory, each in a database of its own"
	@echo "make bench-peers  recall beside Chroma, mem0 and LangGraph, in one run"
	@echo "make demo   replay recorded WhatsApp messages against the running server"
	@echo "make screenshots  the pictures of the docs, anew, by a headless Chromium"
	@echo "make fuzz   damaged input of every kind, with many more examples than the tests"
	@echo "make audit  known vulnerabilities of the server's packages; needs the internet"
	@echo "make settings  .env.example and the defaults in docs/configuration.md, from the table"
	@echo "make fonts  the letters, icons and styles of staff's pages, when a page uses a new one"
	@echo "make licences  the licences of the server's packages, in docs/licences.md"
	@echo "make fuzz-api  the API's schema against a running server, with very many calls"
	@echo "make client  the generated modules of clients/python, from the server's schema"
	@echo "make client-env  what the tests of clients/python need, in clients/.venv"
	@echo "make client-node  the packages of npm for TypeScript and n8n, in ./dist; needs node and npm"
	@echo "make lint   style, types and layers"
	@echo "make messages  collect and compile the Hebrew texts of the staff's pages"
	@echo "make lock   compile the requirements files from pyproject.toml"

# --no-deps: the files name every package. Without it pip refuses them whenever something that is
# required with an extra (coverage[toml]) has a newer release than the one named here.
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps

# What the server needs, and what is needed besides to test and change it.
install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

$(VENV)/.installed: requirements.txt
	@test -n "$(PYTHON)" || { echo "FATAL: Python 3.10 or newer is required (3.10 to 3.13)." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing packages …"
	@$(PIP_INSTALL) -r requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	@echo "Installing development packages …"
	@$(PIP_INSTALL) -r requirements.txt -r requirements-dev.txt
	@touch $@

run: install
	@exec $(BIN)/python -m memoryproject.launch

# One file's tests share servers; tests/order.py says how many run at once, and which start first.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
FAST := not processes and not browser and not slow and not scale
# A page takes much longer than a call of the API. Folders that are not collected take no time at all.
PAGES := tests/browser tests/dashboard tests/staff

test: install-dev
	@$(PYTEST) $(ARGS)

test-fast: install-dev
	@$(PYTEST) -m "$(FAST)" $(addprefix --ignore=,tests/processes $(PAGES)) $(ARGS)

test-pages: install-dev
	@$(PYTEST) $(PAGES) $(ARGS)

# Tracing takes longer than the tests themselves, and sees only the tests' own processes.
coverage: install-dev
	@$(PYTEST) -m "not processes and not browser and not scale" --cov --cov-report=term $(ARGS)

test-scale: install-dev
	@$(BIN)/python -m pytest -m scale $(ARGS)

# ARGS="--messages 500" for a short run.
chaos: install-dev
	@$(BIN)/python -m tests.chaos $(ARGS)

# ARGS="--only stop,kill" for some of them.
drills: install-dev
	@$(BIN)/python benchmarks/drills.py $(ARGS)

# What recall finds in conversations is measured where their file is named: CONVERSATIONS=FILE.
MEASURED := $(filter-out %/measure_conversations.py,$(wildcard benchmarks/measure_*.py))
bench: install-dev
	@for each in $(MEASURED); do echo "== $$each"; $(BIN)/python $$each || exit 1; done
	@echo "== benchmarks/suites.py"; $(BIN)/python benchmarks/suites.py --held-out
	@if [ -n "$(CONVERSATIONS)" ]; then \
		echo "== benchmarks/measure_conversations.py"; \
		$(BIN)/python benchmarks/measure_conversations.py --data "$(CONVERSATIONS)"; fi

# Installs the others into data/peers. CONVERSATIONS=FILE asks real questions.
bench-peers: install-dev
	@$(BIN)/python benchmarks/bench_peers.py $(if $(CONVERSATIONS),--data "$(CONVERSATIONS)") $(ARGS)

# 80 times the examples of the tests, and others each time; FUZZ_FACTOR=800 for a night.
FUZZ_FACTOR ?= 80
FUZZED := tests/fuzz tests/unit tests/api/test_bound.py tests/api/test_bad_input_everywhere.py \
	tests/mcp/test_bound.py tests/mcp/test_bad_input.py tests/sessions/test_invariants.py \
	tests/sessions/test_timeline.py
fuzz: install-dev
	@FUZZ_FACTOR=$(FUZZ_FACTOR) $(BIN)/python -m pytest -n 0 $(FUZZED) $(ARGS)

# pip-audit runs in an environment of its own, and asks PyPI for advisories of exactly these versions.
PIP_AUDIT := pip-audit==2.10.1
audit: install-dev
	@$(BIN)/uv tool run --quiet --from "$(PIP_AUDIT)" pip-audit --strict --disable-pip \
		--require-hashes -r requirements.txt -r requirements-tracing.txt -r requirements-s3.txt \
		$(ARGS)

# The letters and icons that staff's pages use, of unfold's fonts.
fonts: install-dev
	@$(BIN)/uv run --quiet --with "fonttools==4.68.0" --with "brotli==1.2.1" \
		--python $(BIN)/python --no-project python -m docs.fonts
	@$(BIN)/python -m docs.stylesheet

wheel: install-dev
	@$(BIN)/python -m hatchling build --target wheel

settings: install-dev
	@$(BIN)/python -m docs.setting_files

licences: install-dev
	@$(BIN)/python docs/licences.py

fuzz-api: install-dev
	@$(BIN)/python -m tests.processes.contract.fuzzing $(ARGS)

# What is generated of the Python client, from the server's schema; a test says when it is old.
client: install-dev
	@$(BIN)/python manage.py spectacular --validate --fail-on-warn --format openapi-json | \
		$(BIN)/python clients/python/generate.py

# The environment of the Python client's tests, with the frameworks that it has adapters for.
client-env: clients/.venv/.installed-python
clients/.venv/.installed-python: clients/python/requirements-test.txt | install-dev
	@$(BIN)/python -m venv clients/.venv
	@clients/$(PIP_INSTALL) --no-compile -r clients/python/requirements-test.txt
	@touch $@

# What the packages of npm in clients/ are built and tested with; nothing of it runs to be installed.
client-env-node: clients/node_modules/.installed
clients/node_modules/.installed: clients/package-lock.json
	@cd clients && npm ci --silent
	@touch $@

client-node: install client-env-node
	@$(BIN)/python manage.py spectacular --format openapi-json --file clients/typescript/schema.json
	@mkdir -p dist
	@cd clients && npm run --silent build && npm pack --silent --workspaces --pack-destination ../dist

lint: install-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

demo: install
	@$(BIN)/python manage.py demo

# The staff's pages in Hebrew: collect what is to be translated, and compile what is. Needs GNU
# gettext (Debian: gettext); the compiled catalogue is in the repository, so that users don't.
messages: install-dev
	@$(BIN)/python manage.py makemessages -l he --no-location --no-obsolete --no-wrap -i tests -i benchmarks \
		-i docs -i data -i logs -i chats -i clients -i .venv
	@$(BIN)/python manage.py compilemessages -l he -v 0 -i .venv

screenshots: install-dev
	@$(BIN)/python docs/screenshots.py $(ARGS)

# Compile the requirements files from pyproject.toml, for all supported Pythons. Versions stay
# unless ARGS=--upgrade is given.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url
lock: install-dev
	@$(COMPILE) $(ARGS) pyproject.toml -o requirements.txt
	@$(COMPILE) $(ARGS) --group tracing -c requirements.txt -o requirements-tracing.txt
	@$(COMPILE) $(ARGS) --group s3 -c requirements.txt -o requirements-s3.txt
	@$(COMPILE) $(ARGS) --group dev -c requirements.txt -c requirements-tracing.txt -c requirements-s3.txt \
		-o requirements-dev.txt
	@$(COMPILE) $(ARGS) clients/python/pyproject.toml --all-extras \
		--group clients/python/pyproject.toml:test -o clients/python/requirements-test.txt
