"""The typed configuration: the one place that knows every key of config.yaml, published.yaml, claims.yaml."""

from synmask.config.faults import Fault
from synmask.config.guides import GUIDES
from synmask.config.loading import fault, load, merge, read_claims, read_published
from synmask.config.machine import check_machine
from synmask.config.schema import Config, as_json
from synmask.config.sections import SPLITS
from synmask.config.sweeps import asked_sweeps, check_sweeps
from synmask.config.yaml_source import read_yaml

__all__ = [
    "GUIDES",
    "SPLITS",
    "Config",
    "Fault",
    "as_json",
    "asked_sweeps",
    "check_machine",
    "check_sweeps",
    "fault",
    "load",
    "merge",
    "read_claims",
    "read_published",
    "read_yaml",
]
