#!/usr/bin/env bash
# Run by Snakemake in the new environment: fetching jars and calling CoreNLP need no more of synmask's packages.
set -euo pipefail
pip install --no-deps --no-build-isolation -e .
