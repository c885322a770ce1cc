"""CoreNLP's jars, fetched once and kept outside of the repository."""

import os
from pathlib import Path

import pytest

from synmask import files
from synmask.config import load, read_yaml
from synmask.corpora.jars import fetch_jar

ROOT = Path(__file__).parents[1]


def fetched(*languages):
    """The configuration with the cache as `data_dir`, once the jars that parse `languages` are there.

    SYNMASK_TEST_CACHE names another folder than the user's cache.
    """
    cache = os.environ.get("SYNMASK_TEST_CACHE") or Path.home() / ".cache/synmask-tests"
    config = load(read_yaml(ROOT / "config.yaml") | {"data_dir": str(cache)})
    main = set(config.tokeniser_jars("nc11", "de"))
    wanted = main.union(*map(config.corenlp_jars, languages))
    for path, (coordinates, sha256) in config.corenlp_jars().items():
        if path in wanted and (not Path(path).exists() or files.sha256(path) != sha256):
            fetch_jar(coordinates, path, sha256=sha256)
    return config


@pytest.fixture(scope="session")
def corenlp():
    """The configuration, in whose `data_dir` are the jars that parse German and English.

    Tests that use it belong to the xdist group "corenlp", so that one worker fetches them.
    """
    return fetched("de", "en")


@pytest.fixture(scope="session")
def corenlp_jars():
    """The jars of `tokeniser: corenlp`; for the same xdist group."""
    return fetched().tokeniser_jars("nc11", "de")
