"""The typed configuration: the one place that knows every key of config.yaml and published.yaml."""

from synmask.config.guides import GUIDES
from synmask.config.loading import load, merge, read_published, read_yaml
from synmask.config.schema import Config, as_json
from synmask.config.sections import SPLITS

__all__ = ["GUIDES", "SPLITS", "Config", "as_json", "load", "merge", "read_published", "read_yaml"]
