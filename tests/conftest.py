"""CoreNLP's jars, fetched once and kept outside of the repository."""

import os
from pathlib import Path

import pytest

from synmask import files
from synmask.config import load, read_yaml
from synmask.corpora.jars import fetch_jar

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def corenlp():
    """The folder with the jars that config.yaml names, and its configuration.

    SYNMASK_TEST_CACHE names another folder than the user's cache. Tests that use it belong to the xdist group
    "corenlp", so that one worker fetches them.
    """
    cache = os.environ.get("SYNMASK_TEST_CACHE") or Path.home() / ".cache/synmask-tests"
    config = load(read_yaml(ROOT / "config.yaml") | {"data_dir": str(cache)})
    for path, (coordinates, sha256) in config.corenlp_jars().items():
        if not Path(path).exists() or files.sha256(path) != sha256:
            fetch_jar(coordinates, path, sha256=sha256)
    return config
