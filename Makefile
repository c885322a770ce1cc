# make demo: set up, then run the main job.  make test: set up, then all tests.
# make chaos: kill the whole demo 20 times and compare its end with that of an undisturbed one.
# make fuzz: call every verb wrongly, 100 times each (FUZZ); FUZZ_SEED draws other calls.
# make cluster: what a scheduler and another user may do, as root; what scheduling costs (docs/slurm.md); slow cells of docs/library/encoder.md.
# make audit: look for known vulnerabilities in the pinned packages.  make sbom: write sbom.json, a bill of materials.
# make demo-docs: copy the demo's tables and figures from results/ to docs/demo.md.
# make demo-model: train the model that is shipped as `demo` again, and write it.
# make configuration: write docs/configuration.md and config/schema.json, which explain all keys.
# make docs: build the site from docs/ into site/; after the set-up it needs no network.
# make gpu-report: measure all that there is on a GPU; writes docs/gpu.md and docs/gpu.csv.
# make bench: measure on this machine's CPU, and rewrite the tables of docs/performance.md; needs `make demo`'s results.
# make verdict: build studies/multi30k/report.html, a page of the site, from the runs that are shipped.
# Everything else is `snakemake`.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
ACTIVATE := . $(VENV)/bin/activate

PINS := requirements/uv.txt requirements/pipeline.txt requirements/fairseq.txt
KERNELS := setup.py src/synmask/kernels.py $(wildcard src/synmask/*/kernel.cpp src/synmask/*/*/kernel.cpp)
AUDIT := .venv-audit
DOCS := .venv-docs

VERDICT := build/verdict
DEMO := results/demo/de-en/grammar-mended/seed1/average.pt

.PHONY: demo demo-docs demo-model configuration test chaos fuzz cluster bench gpu-report audit sbom docs verdict
.DELETE_ON_ERROR:
SHELL := /bin/bash

demo: $(READY)
	@$(ACTIVATE) && snakemake

demo-docs:
	@$(PYTHON) docs/demo.py

demo-model: $(READY)
	@$(ACTIVATE) && snakemake $(DEMO) && python docs/demo_model.py $(DEMO)

configuration: $(READY)
	@$(ACTIVATE) && python docs/configuration.py

test: $(READY)
	@$(ACTIVATE) && pytest -n 2 --dist loadgroup

chaos: $(READY)
	@$(ACTIVATE) && CHAOS_KILLS=$${CHAOS_KILLS:-20} pytest -s tests/workflow/test_chaos.py

fuzz: $(READY)
	@$(ACTIVATE) && export FUZZ=$${FUZZ:-100} FUZZ_SEED=$${FUZZ_SEED:-$$RANDOM} && \
	  echo "FUZZ=$$FUZZ FUZZ_SEED=$$FUZZ_SEED" && pytest tests/cli/test_hostile.py

cluster: $(READY)
	@$(ACTIVATE) && pytest -m cluster tests
	@$(ACTIVATE) && python tests/workflow/slurm/scheduling.py

bench: $(READY)
	@$(ACTIVATE) && python benchmarks/page.py

gpu-report: $(READY)
	@$(ACTIVATE) && python benchmarks/gpu.py --output docs/gpu $(if $(CONFIGFILE),--configfile $(CONFIGFILE))

# strict: without it, pip-audit finds "no known vulnerabilities" in packages that its service does not answer for
audit: $(AUDIT)/.ready
	$(AUDIT)/bin/pip-audit --strict --disable-pip --require-hashes $(PINS:%=-r %)

sbom: $(AUDIT)/.ready $(READY)
	$(AUDIT)/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml -o sbom.json $(VENV)/bin/python

# --fresh-env: an unchanged page does not repeat its warnings
docs: $(DOCS)/.ready
	$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --fresh-env -c docs -d build/doctrees . site
	@echo "site     site/index.html: open it in a browser"

# in a folder of its own: these results are not to be taken for the user's
verdict: $(READY)
	@rm -rf $(VERDICT) && mkdir -p $(VERDICT)/results
	@tar -xJf studies/multi30k/runs.tar.xz -C $(VERDICT)/results
	@ln -s $(addprefix ../../,Snakefile config config.yaml profiles src studies workflow) $(VERDICT)
	@$(ACTIVATE) && cd $(VERDICT) && snakemake -c1 results/report-verdict.html --configfile studies/multi30k/config.yaml --config partial=true
	@$(PYTHON) docs/pages.py $(VERDICT)/results/report-verdict.html studies/multi30k/report.html

# a virtual environment with uv, which installs the rest; without --python it would take .venv for its own
define with_uv
@$(PYTHON) -m venv $(1)
@$(1)/bin/pip install --quiet --require-hashes -r requirements/uv.txt
endef
# else each process compiles what it imports
unexport PYTHONDONTWRITEBYTECODE
UV_INSTALL = $(1)/bin/uv pip install --python $(1)
# a stage is one line with its time (a recipe's line has a shell of its own, which counts SECONDS); a fault is shown in full
STAGE = log=$(VENV)/set-up.log; stage() { printf 'set-up   %s … ' "$$1"; shift; \
  "$$@" > $$log 2>&1 || { echo failed; cat $$log >&2; exit 1; }; echo "$$SECONDS s"; }; stage

$(AUDIT)/.ready $(DOCS)/.ready: .venv-%/.ready: requirements/%.txt requirements/uv.txt
	$(call with_uv,.venv-$*)
	$(call UV_INSTALL,.venv-$*) --require-hashes -r $<
	@touch $@

IMPORT_ALL := import snakemake.cli; from importlib import import_module; from synmask.pipeline.verbs import VERBS, module_of; \
  [*map(import_module, map(module_of, VERBS))]

#: others who use this clone may not write it. --reinstall-package: uv would not see that a kernel has changed
$(READY): $(PINS) pyproject.toml $(KERNELS)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { echo "$(PYTHON): Python 3.11, 3.12 or 3.13 is needed (make PYTHON=/path/to/python3.11)"; exit 1; }
	@command -v $${CXX:-g++} > /dev/null || { echo "no C++ compiler: install g++ (Debian: apt-get install g++)"; exit 1; }
	@test -f "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h" || { echo "no Python headers: install them (Debian: apt-get install python3-dev)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2> /dev/null || { echo "no venv: install it (Debian: apt-get install python3-venv)"; exit 1; }
	$(call with_uv,$(VENV))
	@$(STAGE) "1 of 4: the pinned packages: 2.8 GB to download (PyTorch's libraries for GPUs are most of it), 5.5 GB on the disk" \
	  $(call UV_INSTALL,$(VENV)) --require-hashes -r requirements/pipeline.txt
	@$(STAGE) "2 of 4: fairseq, which is compiled" \
	  $(call UV_INSTALL,$(VENV)) --require-hashes --no-deps -r requirements/fairseq.txt
	@$(STAGE) "3 of 4: synmask, whose operators are compiled (1 to 2 minutes)" \
	  $(call UV_INSTALL,$(VENV)) --no-deps --no-build-isolation --reinstall-package synmask -e .
	@$(STAGE) "4 of 4: bytecode of what snakemake and all verbs import" $(VENV)/bin/python -c '$(IMPORT_ALL)'
	@touch $@
