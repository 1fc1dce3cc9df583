# `make demo` and `make test` need Python 3.11 to 3.15 and nothing else; everything is installed into $(VENV).

PYTHON ?= python3
VENV ?= .venv
TESTS ?= tests
JOBS ?= 2
BENCHMARKS ?= networks kernels narrow_weights start_up packing can_run_on partition quantization_passes memory_plan tensorrt_module

# Compiled kernels are kept here, so that a second run starts warm and nothing outside this folder is written.
export DRYFIT_CACHE_DIR ?= $(CURDIR)/.cache/dryfit
export DRYFIT_CACHE_KEY ?= $(CURDIR)/.cache/dryfit.key

# Tests start some hundred commands; each would compile dryfit's modules again where no bytecode may be written.
unexport PYTHONDONTWRITEBYTECODE

python := $(VENV)/bin/python
pip := $(python) -m pip --quiet --quiet --disable-pip-version-check
uv := $(python) -m uv --quiet
wheel_python := build/wheel/venv/bin/python
comma := ,
# $(call install,PYTHON,WHAT): uv takes a tenth of pip's time (5 s of 48 for all of `make test`). Where uv has no wheel, or
# an index is only known to pip, pip installs.
install = $(uv) pip install --python $(1) $(2) || { echo "uv cannot install this here; using pip instead"; $(pip) --python $(1) install $(2); }
all_tests = $(python) tests/in_parts.py $(JOBS)
some_tests = $(python) -m pytest --quiet --numprocesses=$(JOBS) --dist=worksteal $(TESTS)
strangers := dryfit-npu dryfit-ethos-u quantized-plugin
packaged := pyproject.toml README.md $(shell find core targets plugins frontends -type f -not -name '*.pyc')

.DEFAULT_GOAL := help
.PHONY: help demo test thorough quick lint types contracts kernels generated unit site stranger strangers-installed bench docs pictures wheel clean

help: ## what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(VENV)/demo.stamp ## calibrate, place, build and run the digits network in INT8, with reasons and accuracy
	@$(python) examples/digits/demo.py

quick: lint types ## style, types and a representative part of the tests, before a commit
	$(python) -m pytest --quiet --numprocesses=$(JOBS) --dist=worksteal -m quick $(TESTS)

# The tests check contracts and generated pages themselves. What uses one processor runs beside another of its kind.
test: ## everything that has to hold before a change is done
	$(MAKE) --no-print-directory --jobs=$(JOBS) $(VENV)/test.stamp build/wheel/vela.stamp
	$(MAKE) --no-print-directory --jobs=$(JOBS) --output-sync types lint kernels site stranger
	$(MAKE) --no-print-directory unit

thorough: export DRYFIT_FORGERIES ?= 20000
thorough: export DRYFIT_ETHOS_U_LAYERS ?= 2000
thorough: THOROUGH = --thorough
thorough: lint types unit site stranger ## what `make test` does, and all of what it takes samples of: for a night

lint: $(VENV)/development.stamp ## style and formatting
	$(VENV)/bin/ruff check --quiet
	$(VENV)/bin/ruff format --quiet --check

types: $(VENV)/development.stamp ## mypy, strict
	$(VENV)/bin/mypy --no-error-summary

contracts: $(VENV)/development.stamp ## which package may import which
	@$(VENV)/bin/lint-imports > $(VENV)/contracts.log 2>&1 || { cat $(VENV)/contracts.log; exit 1; }

# In one process, where `dryfit warmup` has several: what kernels have in common is compiled once.
kernels: $(VENV)/development.stamp ## compile all CPU kernels, so that no two tests compile the same one
	@$(python) -m dryfit_cpu.side_by_side $$($(python) -m dryfit_cpu.warm_up missing) > $(VENV)/kernels.log

generated: $(VENV)/development.stamp ## the generated pages of docs are current
	$(python) docs/generate.py --check

unit: $(VENV)/development.stamp ## the tests; TESTS=path and JOBS=n choose which and how many at a time
	$(if $(filter tests,$(TESTS)),$(all_tests),$(some_tests)) --durations=15 --durations-min=10 $(THOROUGH)

site: $(VENV)/site.stamp ## the documentation site, in build/site/html; warnings are errors
	$(python) docs/build_site.py

bench: $(VENV)/benchmarks.stamp ## benchmarks, as ratios against other runtimes in one run; BENCHMARKS=names chooses
	@set -e; for name in $(BENCHMARKS); do echo "== benchmarks/$$name.py"; $(python) benchmarks/$$name.py; done

docs: $(VENV)/development.stamp ## write the generated pages of docs anew
	$(python) docs/generate.py

pictures: $(VENV)/development.stamp ## draw the pictures of docs anew
	$(python) docs/draw_pictures.py

wheel: build/wheel/installed.stamp ## build the wheel, install it into an empty environment and ask it for help
	cd build/wheel && venv/bin/dryfit --help && venv/bin/dryfit targets list

stranger: $(addprefix stranger-,$(strangers)) ## packages that are not dryfit's, beside the built wheel, in that environment

stranger-%: export DRYFIT_ETHOS_U_LAYERS ?= 30
stranger-%: strangers-installed kernels
	@cd build/wheel && venv/bin/python -m pytest --quiet -p no:cacheprovider --rootdir=$(CURDIR)/examples/$* $(CURDIR)/examples/$*/tests

strangers-installed: build/wheel/vela.stamp
	@$(call install,$(wheel_python),--no-deps --force-reinstall $(addprefix ./examples/,$(strangers)))
	@cd build/wheel && venv/bin/dryfit plugins doctor

clean: ## remove everything that was made, the environment too
	rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Environments ---------------------------------------------------------------------------------------------------------

$(python):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 15))' || \
		{ echo "dryfit needs Python 3.11 to 3.15; choose one by PYTHON=python3.11"; exit 1; }
	@echo "Making an environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing (on Debian: apt install python3-venv)"; exit 1; }
	@$(pip) install uv || echo "uv cannot be installed here; using pip instead"

# A stamp says that the packages of one group are installed as pyproject.toml asks for them.
$(VENV)/demo.stamp: pyproject.toml | $(python)
	@echo "Installing dryfit and what its examples need"
	@$(call install,$(python),--editable '.[examples]')
	@touch $@

$(VENV)/development.stamp: pyproject.toml | $(python)
	@echo "Installing dryfit and what its tests need"
	@$(call install,$(python),--editable '.[dev$(comma)examples]')
	@touch $@ $(VENV)/demo.stamp

$(VENV)/site.stamp: pyproject.toml | $(python)
	@echo "Installing dryfit and what its documentation site needs"
	@$(call install,$(python),--editable '.[site]')
	@touch $@

$(VENV)/benchmarks.stamp: pyproject.toml | $(python)
	@echo "Installing dryfit and what its benchmarks need"
	@$(pip) install --editable '.[benchmarks]'
	@touch $@

# Both in one go, for `make test`.
$(VENV)/test.stamp: pyproject.toml | $(python)
	@echo "Installing dryfit and what its tests and its documentation site need"
	@$(call install,$(python),--editable '.[dev$(comma)examples$(comma)site]')
	@touch $@ $(VENV)/demo.stamp $(VENV)/development.stamp $(VENV)/site.stamp

# An environment with the wheel and nothing of this folder: what a user gets who installs dryfit.
build/wheel/installed.stamp: $(packaged) | $(python)
	@echo "Building the wheel and installing it into an empty environment"
	@rm -rf build/wheel && mkdir -p build/wheel
	@$(pip) wheel --no-deps --wheel-dir build/wheel .
	@$(PYTHON) -m venv --without-pip build/wheel/venv
	@$(call install,$(wheel_python),"$$(echo build/wheel/dryfit-*.whl)[testing]")
	@touch $@

# Arm's compiler, which the Ethos-U is held against; where it has no wheel, these tests are skipped visibly.
build/wheel/vela.stamp: build/wheel/installed.stamp examples/dryfit-ethos-u/pyproject.toml
	@$(call install,$(wheel_python),--only-binary :all: 'ethos-u-vela==5.2.0' 'ai-edge-litert>=2.0' "$$(echo build/wheel/dryfit-*.whl)[tflite]") || \
		echo "Arm's compiler cannot be installed here: tests against it are skipped"
	@touch $@
