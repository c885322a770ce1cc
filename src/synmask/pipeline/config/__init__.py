"""The typed configuration: the one place that knows every key of config.yaml, published.yaml, claims.yaml."""

from synmask.pipeline.config.faults import Fault
from synmask.pipeline.config.guides import GUIDES
from synmask.pipeline.config.loading import (
    check_named,
    fault,
    laid_over,
    load,
    merge,
    project_files,
    read_all,
    read_claims,
    read_published,
)
from synmask.pipeline.config.machine import check_machine
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.config.sections import SPLITS
from synmask.pipeline.config.sweeps import asked_sweeps, check_sweeps
from synmask.pipeline.config.yaml_source import read_yaml

__all__ = [
    "GUIDES",
    "SPLITS",
    "Config",
    "Fault",
    "as_json",
    "asked_sweeps",
    "check_machine",
    "check_named",
    "check_sweeps",
    "fault",
    "laid_over",
    "load",
    "merge",
    "project_files",
    "read_all",
    "read_claims",
    "read_published",
    "read_yaml",
]
