#!/usr/bin/env bash
# Run by Snakemake in the new environment: the same packages as `make` puts into .venv.
set -euo pipefail
pip install --require-hashes -r requirements/uv.txt
export UV_PYTHON=$CONDA_PREFIX UV_COMPILE_BYTECODE=1
uv pip install --require-hashes -r requirements/pipeline.txt
uv pip install --require-hashes --no-deps -r requirements/fairseq.txt
uv pip install --no-deps --no-build-isolation -e .
