# Every target makes .venv by itself; nothing needs to be activated. PYTHON=... picks the interpreter.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test live lint typecheck bench soak clean install

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.hostler-installed
EXTRAS := sandbox,checks,celery,dev
# pytest-xdist workers: one more than two cores, for many tests wait for processes.
JOBS ?= 3
SEEDS ?= 1000

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

install: $(STAMP) ## make .venv with the `hostler` command in it

$(STAMP): pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" VENV="$(VENV)" EXTRAS="$(EXTRAS)" bash .ci/make-venv
	@touch $(STAMP)

demo: $(STAMP) ## a real training run lives its whole life on rehearsal nodes (SEED=n replays, KEEP=1 leaves Airflow up)
	@$(BIN)/python -m hostler_sandbox.demo

test: $(STAMP) ## all tests but the live ones; needs no account, no GPU, no Docker
	@$(BIN)/pytest -n $(JOBS) --ignore tests/live

live: $(STAMP) ## all live scenarios side by side on a real Airflow with the sandbox; alone, for it needs the cores
	@$(BIN)/pytest tests/live

lint: $(STAMP) ## ruff and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache

typecheck: $(STAMP) ## mypy, strict
	@$(BIN)/mypy

bench: $(STAMP) ## speed and memory as ratios, side by side with a bound
	@$(BIN)/python -m tests.bench

soak: $(STAMP) ## the simulator over SEEDS=n schedules of crashes and lies, 200 years of noisy nodes, every parser on any input
	@$(BIN)/python -m tests.sim.soak --seeds $(SEEDS)
	@$(BIN)/python -m tests.health.year
	@HYPOTHESIS_PROFILE=soak $(BIN)/pytest -q tests/fuzz

clean: ## remove what the other targets made
	@rm -rf $(VENV) .demo .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
