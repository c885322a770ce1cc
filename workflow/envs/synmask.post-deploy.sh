#!/usr/bin/env bash
# Run by Snakemake in the new environment: the same packages as `make` puts into .venv.
set -euo pipefail
pip install -r requirements.txt
pip install --no-deps fairseq==0.12.2
pip install --no-deps --no-build-isolation -e .
