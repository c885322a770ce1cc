"""The typed configuration: the one place that knows every key of config.yaml and published.yaml."""

from synmask.pipeline.config.blame import fault
from synmask.pipeline.config.faults import Fault
from synmask.pipeline.config.guides import GUIDES
from synmask.pipeline.config.loading import (
    check_named,
    laid_over,
    load,
    merge,
    project_files,
    read_all,
    read_published,
    read_section,
)
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.config.sections import SPLITS
from synmask.pipeline.config.yaml_source import read_yaml
