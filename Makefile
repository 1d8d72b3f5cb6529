# One entry a task. Every target says what it does; `make demo` and `make test` work on a bare machine that has
# only git, Python 3.10+, make and root for apt.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup lock check fmt lint type imports test test-newest golden demo e2e-tools e2e matrix oracle soak bench docs build sbom release-check clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-13s %s\n", $$1, $$2}'

setup: ## Python environment, test tools (helm, kubectl), tmux; a no-op when all is there
	@scripts/setup

lock: setup ## renew requirements/*.txt, which `make setup` installs: newest versions, with hashes; KEEP=1: only what must change
	@KEEP=$(KEEP) scripts/lock

check: setup ## format, lint, types, import graph, size budgets, words
	@echo "== ruff format"; ruff format --check --quiet .
	@echo "== ruff check"; ruff check --quiet .
	@echo "== mypy --strict"; mypy
	@echo "== import graph, size budgets, words"; python -m pytest -q tests/test_imports.py tests/test_budgets.py tests/test_words.py

fmt: setup ## format the code
	@ruff format . && ruff check --fix .

lint: setup ## lint only
	@ruff check .

type: setup ## types only
	@mypy

test: setup ## the test suite
	@echo "== pytest (4 workers, since many tests wait)"; start=$$SECONDS; \
	SYMPH_REQUIRE_TOOLS=1 python -m pytest -q -n 4 --dist worksteal; \
	echo "tests took $$((SECONDS - start)) s"

test-newest: setup ## the tests with the newest versions that pyproject.toml allows, in .cache/newest; TESTS=tests/cli: some
	@uv venv --quiet --clear --python $(BIN)/python .cache/newest
	@uv pip install --quiet --python .cache/newest/bin/python --editable '.[all]' --group dev
	@uv pip install --quiet --python .cache/newest/bin/python --no-deps torchx
	@.cache/newest/bin/python -m symphony_charts.torchx_scheduler
	@PATH=$(CURDIR)/.cache/newest/bin:$$PATH SYMPH_REQUIRE_TOOLS=1 python -m pytest -q -n 2 --dist worksteal $(TESTS)

golden: setup ## rewrite the golden files, to be read as a diff
	@SYMPH_GOLDEN=rewrite python -m pytest -q tests -k golden

demo: setup ## package, render and lint two experiments; run a third in tmux
	@scripts/demo

e2e-tools: setup ## build the control plane and chart tools for e2e from Go modules
	@python -m tests.e2e.tools build

e2e: e2e-tools ## the heavy suites: charts on a real control plane
	@start=$$SECONDS; SYMPH_REQUIRE_TOOLS=1 python -m pytest -q -n 3 --dist worksteal tests/e2e -m "e2e or slow" -p no:cacheprovider; \
	SYMPH_LAW_CASES=300 python -m pytest -q -n 2 -p no:cacheprovider tests/test_prepare.py -k objects_faults; \
	echo "e2e took $$((SECONDS - start)) s"

matrix: e2e-tools ## the wheel at both ends of dependencies and of Python, each extra apart; ENDS=1: no extras, and all
	@python -m tests.matrix $(if $(ENDS),,--every-extra)

oracle: setup ## placement against the real kube-scheduler: make oracle N=200
	@SYMPH_SOAK=$(or $(N),50) SYMPH_SEED=$${SYMPH_SEED:-0} python -m pytest -q -s -p no:cacheprovider -m e2e tests/e2e/test_oracle.py

soak: e2e-tools ## what takes longer than a change may: the law, the fuzz, --set, quantities, releases, local walks, placement, walks in Git
	@SYMPH_LAW_CASES=2000 SYMPH_SOAK=2000 python -m pytest -q -n 2 -p no:cacheprovider tests/test_prepare.py tests/chart/test_set_values.py
	@SYMPH_SOAK=1000 SYMPH_SEED=$${SYMPH_SEED:-$$RANDOM} python -m pytest -q -n 2 -p no:cacheprovider -m e2e tests/e2e/test_drawn_charts.py
	@SYMPH_SOAK=1000 SYMPH_SEED=$${SYMPH_SEED:-$$RANDOM} python -m pytest -q -p no:cacheprovider tests/cli/test_drawn_specs.py
	@SYMPH_SOAK=200 python -m pytest -q -n 2 -p no:cacheprovider tests/local/test_parity.py
	@SYMPH_FUZZ_CASES=2000 SYMPH_SOAK=200 python -m pytest -q -p no:cacheprovider -m e2e tests/e2e/test_fuzz.py tests/e2e/test_quantities.py
	@SYMPH_SOAK=20000 SYMPH_SEED=$${SYMPH_SEED:-$$RANDOM} python -m pytest -q -s -p no:cacheprovider -m e2e tests/e2e/test_git_walk.py
	@SYMPH_SOAK=1 SYMPH_TRIALS=200 python -m pytest -q -s -p no:cacheprovider tests/e2e/test_publish_storm.py tests/e2e/test_sweep_killed.py -m "e2e or slow"
	@SYMPH_SOAK=10000 python -m pytest -q -s -p no:cacheprovider -m slow tests/e2e/test_local_walk.py tests/e2e/test_local_many.py
	@python -m tests.e2e.tools build source-controller kustomize-controller workflow-controller argoexec \
		vc-controller-manager vc-scheduler
	@SYMPH_SOAK=1 python -m pytest -q -p no:cacheprovider -m e2e tests/e2e/test_flux.py tests/e2e/test_judges.py \
		tests/e2e/test_argo_cd.py tests/e2e/scheduling/test_run_end.py
	@SYMPH_SOAK=1000 python -m pytest -q -n 2 -p no:cacheprovider tests/kinds/test_leftovers.py tests/local/test_end_of_run.py
	@$(MAKE) oracle N=2000
	@$(MAKE) matrix

bench: setup ## every speed figure, as ratios in one run
	@for file in benchmarks/*.py; do echo "== $$file"; python $$file; done

docs: setup .cache/docs/.installed ## the documentation site, in docs/site; the README's pictures, where a session prints something new
	@python scripts/build_docs.py

.cache/docs/.installed: requirements/docs.txt | setup
	@uv venv --quiet --clear .cache/docs
	@uv pip install --quiet --python .cache/docs/bin/python --no-deps --require-hashes --requirement $<
	@cp $< $@

man: setup ## the manual pages, in docs/man
	@python scripts/man_pages.py docs/man

build: setup ## wheel and sdist, in dist
	@rm -rf dist && python -m build --outdir dist . && twine check --strict dist/*

sbom: build .cache/sbom/.installed ## the wheel and all that it installs, as CycloneDX, in sbom.cdx.json
	@uv venv --quiet --clear .cache/sbom/released
	@uv pip install --quiet --python .cache/sbom/released/bin/python dist/*.whl
	@.cache/sbom/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --mc-type library \
		--output-file sbom.cdx.json .cache/sbom/released/bin/python

.cache/sbom/.installed: requirements/sbom.txt | setup
	@uv venv --quiet --clear .cache/sbom
	@uv pip install --quiet --python .cache/sbom/bin/python --no-deps --require-hashes --requirement $<
	@cp $< $@

release-check: setup ## whether this can be released: facts of the project, changelog, description; TAG=v0.1.0
	@python scripts/check_release.py $(if $(TAG),--tag $(TAG))

clean: ## remove what the targets made
	@rm -rf $(VENV) .cache dist build sbom.cdx.json docs/site .pytest_cache .mypy_cache .ruff_cache .hypothesis
