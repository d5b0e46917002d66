# Two commands from a fresh clone: `make demo` and `make test`. Both make .venv first. `make test-vllm`, `test-clip`, `test-browser`, `test-ray` and `test-consumers` make their own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
VLLM := .venv-vllm
CLIP := .venv-clip
RAY := .venv-ray
BROWSER := .venv-browser
# Trainers whose own loaders read what is exported; each has an environment under .venv-consumers.
CONSUMERS ?= llamafactory ms-swift trl verl

# Children and later suites read what the first one compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow bench-planted test-faults test-postgres test-vllm test-clip test-browser test-ray test-consumers test-prefect test-wheel docs lint install clean

install: $(STAMP)

$(STAMP): pyproject.toml .ci/constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/synth run demo
	$(BIN)/synth verify

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint .ci/Dockerfile

test: lint
	$(BIN)/pytest -n 2 --dist worksteal

# What takes long: kills, full disks, planted defects, mutants of the checks; properties on many more examples.
test-slow: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal --hypothesis-profile full -m "slow or hypothesis"

# Every fault of a model server: what the command says, and that it goes on after the repair; ROLES is a pattern.
ROLES ?= writer or rewriter or solver or teacher
test-faults: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal -m faults tests/faults -k "$(ROLES)"

# How good the checks are on planted defects: PAIRS of them each.
PAIRS ?= 150
bench-planted: $(STAMP)
	$(BIN)/python -m tests.planted.bench --pairs $(PAIRS)

# Replies in a PostgreSQL of the tests' own.
test-postgres: $(STAMP)
	bash .ci/postgres.sh
	$(BIN)/pytest -m postgres tests/conformance tests/pipelines

# A real vLLM on CPU, in an environment of its own: its dependencies and ours exclude one another.
test-vllm: $(STAMP)
	bash .ci/vllm.sh $(VLLM) $(PYTHON)
	SYNTH_VLLM_PYTHON=$(abspath $(VLLM))/bin/python $(BIN)/pytest -m vllm tests/vllm

# A real open_clip, in an environment that has torch.
test-clip: $(STAMP)
	bash .ci/extra.sh clip $(CLIP) $(PYTHON) open_clip
	$(CLIP)/bin/python -m pytest -m clip tests/clip

# The view and the report in a real Chromium, with axe.
test-browser: $(STAMP)
	bash .ci/browser.sh
	bash .ci/extra.sh browser $(BROWSER) $(PYTHON) playwright axe_playwright_python
	$(BROWSER)/bin/python -m pytest -n 0 -m browser tests/browser

# A real Prefect server with workers, from this clone and from a wheel: the documentation's schedule as it stands.
test-prefect: $(STAMP)
	$(BIN)/pytest -n 0 -m prefect tests/flows

# A wheel as .ci/Dockerfile builds and installs it, in an empty folder: demo, verify, push to a stand-in, load.
test-wheel: $(STAMP)
	$(BIN)/pytest -n 0 -m wheel tests/wheel

# Two Ray nodes with a network, processes and folders of their own, a Prefect server and PostgreSQL 15; needs root.
FAULTS ?= 4
ALONE := unshare --mount --net --pid --fork --kill-child --mount-proc
test-ray: $(STAMP)
	bash .ci/extra.sh ray $(RAY) $(PYTHON) ray prefect_ray
	SYNTH_RAY_FAULTS=$(FAULTS) $(ALONE) $(RAY)/bin/python -m pytest -n 0 -m ray tests/ray

# The loaders of trainers, without weights; tests of one without an environment are skipped.
test-consumers: $(STAMP)
	PYTHON=$(PYTHON) bash .ci/consumers.sh $(CONSUMERS)
	$(BIN)/pytest -m consumers tests/consumers

# The documentation as a site, dist/docs/index.html; a link or an anchor that leads nowhere is an error.
docs: $(STAMP)
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --config-file .ci/mkdocs.yml

clean:
	rm -rf $(VENV) $(VLLM) $(CLIP) $(RAY) $(BROWSER) .venv-consumers workspace
