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

.PHONY: demo test gate test-slow bench test-readme test-postgres test-vllm test-clip test-browser test-ray test-consumers test-prefect test-wheel docs lint install clean

install: $(STAMP)

$(STAMP): pyproject.toml .ci/constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c .ci/constraints.txt -e '.[dev]'
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
	$(BIN)/python .ci/budget.py

# Types are checked while tests run.
test: $(STAMP)
	$(MAKE) --no-print-directory -j 2 lint gate

gate: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal

# What takes long: kills, full disks, whole runs of the recipes. A file's tests share what they are made with, so one
# process runs them; many wait, so there is one more than cores. Properties are tried on many more examples.
test-slow: $(STAMP)
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --hypothesis-profile full -m "slow or hypothesis"

# How good the checks are: planted defects, mutants, faults of services, benchmarks, two Ray nodes. Hours; SAMPLE=1 takes
# a part of the first three, a few minutes, as .ci/run does.
BENCH := tests/planted tests/mutants tests/faults tests/benchmarks
SAMPLE ?=
bench: $(STAMP)
ifdef SAMPLE
	$(BIN)/python -m tests.planted.bench --pairs 8 --missing 0
	SYNTH_SAMPLE=1 $(BIN)/pytest -o norecursedirs=".*" -n 2 --dist loadfile -m "" tests/mutants tests/faults
else
	$(BIN)/python -m tests.planted.bench --pairs 150 --missing 0 --missing 0.1 --missing 0.2 --missing 0.3
	$(BIN)/pytest -o norecursedirs=".*" -n 2 --dist loadfile -m "" $(BENCH)
	$(BIN)/python -m tests.benchmarks.run
	$(MAKE) test-ray
endif

# Whether README and docs say what `make demo` did.
test-readme: $(STAMP)
	$(BIN)/python -m tests.readme

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
	bash .ci/extra.sh clip $(CLIP) open_clip
	$(CLIP)/bin/python -m pytest -m clip tests/clip

# The view and the report in a real Chromium, with axe.
test-browser: $(STAMP)
	bash .ci/browser.sh
	bash .ci/extra.sh browser $(BROWSER) playwright axe_playwright_python
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
	bash .ci/extra.sh ray $(RAY) ray prefect_ray
	SYNTH_RAY_FAULTS=$(FAULTS) $(ALONE) $(RAY)/bin/python -m pytest -o norecursedirs=".*" -n 0 -m ray tests/ray

# The loaders of trainers, without weights; tests of one without an environment are skipped.
test-consumers: $(STAMP)
	PYTHON=$(PYTHON) bash .ci/consumers.sh $(CONSUMERS)
	$(BIN)/pytest -m consumers tests/consumers

# The documentation as a site, dist/docs/index.html; a link or an anchor that leads nowhere is an error.
docs: $(STAMP)
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --config-file .ci/mkdocs.yml

clean:
	rm -rf $(VENV) $(VLLM) $(CLIP) $(RAY) $(BROWSER) .venv-consumers workspace
