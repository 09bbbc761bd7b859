# Commands of this clone; `make` lists them. Each works first and alone: what it needs, it brings.
#   PYTHON       the interpreter that .venv/ is made from (3.11 or later)
#   ARGS         arguments passed on, where a command takes some
PYTHON ?= python3
ARGS ?=

SERVICES = INVOKED_AS='make $@' $(PYTHON) -m deploy.services
VENV = .venv/bin/python
UV_VERSION = 0.13.9

MAKEFLAGS += --no-builtin-rules --no-print-directory
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-rabbitmq4 lint format bench profile services services-stop services-clean \
	rabbitmqctl lock can-test can-test-rabbitmq4 venv venv-dev venv-bench

help: ## list the commands
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-15s %s\n' "$$name" "$$text"; done

demo: venv ## run the sample's jobs on all three queues in one process, without any server, and check the books
	@$(VENV) -m jobs.demo $(ARGS)

test: can-test lint ## start services of its own, run linters and tests, stop the services; ARGS='-k ledger'
	@$(SERVICES) --instance test run $(VENV) -m tests $(ARGS)

test-long: can-test venv-dev ## all tests, the slow ones too
	@$(SERVICES) --instance test run $(VENV) -m tests --slow $(ARGS)

test-rabbitmq4: can-test-rabbitmq4 venv-dev ## the tests that talk to a broker, on RabbitMQ 4 and with the slow ones
	@$(SERVICES) --instance test4 --rabbitmq 4 run $(VENV) -m tests --slow --broker tests/integration tests/acceptance $(ARGS)

lint: venv-dev ## ruff and mypy
	@$(VENV) -m ruff check
	@$(VENV) -m ruff format --check
	@$(VENV) -m mypy

format: venv-dev ## let ruff rewrite what it can
	@$(VENV) -m ruff check --fix
	@$(VENV) -m ruff format

bench: venv-bench ## measure beside stock Dramatiq and other rivals; ARGS='--only send,noop --runs 5'
	@$(PYTHON) -m deploy.rivals
	@$(SERVICES) --instance bench run .venv-bench/bin/python -m tests.bench $(ARGS)

profile: venv-bench ## where the time of a no-op job and of a charge goes, by layer; ARGS='charge --seconds 10'
	@$(SERVICES) --instance bench run .venv-bench/bin/python -m tests.bench.profile $(ARGS)

services: venv ## start RabbitMQ and PostgreSQL to play with, and write .env
	@$(SERVICES) start --env-file .env

services-stop: ## stop them; data stays
	@$(SERVICES) stop

services-clean: ## stop them and delete their data, and take their addresses out of .env
	@$(SERVICES) clean --env-file .env

rabbitmqctl: ## talk to their broker: make rabbitmqctl ARGS='list_queues name messages'
	@$(SERVICES) start
	@$(SERVICES) rabbitmqctl $(ARGS)

lock: ## resolve the lock files anew; ARGS='--upgrade' for the newest versions
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PYTHON) -m venv "$$folder" && \
		"$$folder/bin/pip" -q --disable-pip-version-check install uv==$(UV_VERSION) && \
		compile() { "$$folder/bin/uv" pip compile -q pyproject.toml --group build --universal --python-version 3.11 \
			--generate-hashes --no-header --no-emit-index-url --no-emit-find-links "$$@"; } && \
		compile $(ARGS) -o deploy/requirements.lock && \
		compile $(ARGS) --extra dev -c deploy/requirements.lock -o deploy/requirements-dev.lock && \
		compile $(ARGS) --extra bench -c deploy/requirements.lock -o deploy/requirements-bench.lock

can-test:
	@INVOKED_AS='make $(MAKECMDGOALS)' $(PYTHON) -m deploy.services --instance test check

can-test-rabbitmq4:
	@INVOKED_AS='make $(MAKECMDGOALS)' $(PYTHON) -m deploy.services --instance test4 --rabbitmq 4 check

venv:
	@$(PYTHON) -m deploy.venv run

venv-dev:
	@$(PYTHON) -m deploy.venv dev

venv-bench:
	@$(PYTHON) -m deploy.venv bench
