"""A real browser for the tests of pages, the real CoreNLP for those of parsing, and a full disk."""

import os
import resource
import shutil
import sys
from pathlib import Path

import pytest

import browser
from synmask.pipeline import disk
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.corpora.download import fetch
from warm import Warm

pytest_plugins = ["alone", "small_models"]
os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # as benchmarks/machine.py, before anything loads torch
# the workers share the processor: threads would wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
# else each process of a test compiles the project again, and each run of the tests all of them
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(scope="session", params=browser.found()[:1])
def chromium(request, tmp_path_factory):
    """The first Chromium that is there; test_browser.py tries each, and the others have the same engine."""
    if request.param is None:
        pytest.skip("no Chromium: install Debian's chromium or chromium-headless-shell")
    started = browser.Browser(request.param, tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@pytest.fixture
def open_page(chromium, tmp_path_factory):
    """Open an HTML file, with nothing beside it, `width` pixels wide, and run a script in it once it is there.

    The script is the body of a function; what it returns, if need be by a promise, is the page's `result`.
    `scripts=False` runs none of the page's own scripts, `part` goes to an anchor.
    """

    def open_page(path, script="", *, width=1280, scripts=True, part=""):
        copy = shutil.copy(path, tmp_path_factory.mktemp("page") / "page.html")
        return chromium.open(copy, script, width=width, scripts=scripts, part=part)

    return open_page


@pytest.fixture
def full_disk():
    """From its call to the end of the test, no file can grow beyond 100 kB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="session")
def warm(tmp_path_factory):
    """`snakemake` and `synmask` that start fast, in its `folder`."""
    warm = Warm(tmp_path_factory.mktemp("warm"))
    yield warm
    warm.close()


def configured():
    """The configuration with a cache as `data_dir`: the user's, or the folder that SYNMASK_TEST_CACHE names."""
    cache = os.environ.get("SYNMASK_TEST_CACHE") or Path.home() / ".cache/synmask-tests"
    return load(read_all(project_files(Path(__file__).parents[1])) | {"data_dir": str(cache)})


def fetched(*languages):
    """The configuration of `configured`, once the jars that parse `languages` are there."""
    config = configured()
    main = set(DataFiles(config).tokeniser_jars("corenlp"))
    wanted = main.union(*map(DataFiles(config).corenlp_jars, languages))
    for path in wanted:
        url, sha256 = DataFiles(config).origin("corenlp", Path(path).name)
        if not Path(path).exists() or disk.sha256(path) != sha256:
            fetch(name="corenlp", url=url, output=Path(path), sha256=sha256)
    return config


@pytest.fixture(scope="session")
def corenlp(tmp_path_factory):
    """The configuration, in whose `data_dir` are the jars that parse German and English.

    Tests that use it belong to the xdist group "corenlp", so that one worker fetches them. `java` then compiles only
    quickly: it parses too little for what the best code takes to compile.
    """
    java = tmp_path_factory.mktemp("java") / "java"
    java.write_text(f'#!/bin/sh\nexec {shutil.which("java")} -XX:TieredStopAtLevel=1 "$@"\n')
    java.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(java.parent), prepend=":")
        yield fetched("de", "en")


@pytest.fixture(scope="session")
def chinese():
    """The same for Chinese, whose 1.6 GB are fetched only if SYNMASK_TEST_CHINESE is set; the same group, too."""
    if os.environ.get("SYNMASK_TEST_CHINESE") or all(
        map(os.path.exists, DataFiles(configured()).corenlp_jars("zh"))
    ):
        return fetched("zh")
    pytest.skip("CoreNLP's Chinese models (1.6 GB) are not there; SYNMASK_TEST_CHINESE=1 fetches them")


@pytest.fixture(scope="session")
def corenlp_jars():
    """The jars of `tokeniser: corenlp`; for the same xdist group."""
    return DataFiles(fetched()).tokeniser_jars("corenlp")
