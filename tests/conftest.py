"""A real browser for the tests of pages, the real CoreNLP for those of parsing, and a full disk."""

import base64
import hashlib
import os
import re
import resource
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from synmask.pipeline import files
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.corpora.download import fetch
from warm import Warm

pytest_plugins = ["alone", "small_models"]
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
)
os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # as benchmarks/timing.py, before anything loads torch
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"


class Page(HTMLParser):
    """A page as the browser left it: `console`, its messages; `elements`, (tag, attributes) in order."""

    def __init__(self, html, console):
        super().__init__()
        self.html, self.console, self.elements = html, console, []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def said(self):
        """The answer of `open_page`'s script."""
        return dict(self.elements)["html"].get("data-said")


@pytest.fixture(scope="session")
def open_page(tmp_path_factory):
    """Open an HTML file in headless Chromium, `width` pixels wide, and run a script in it once it is there.

    The script is the body of a function; what it returns, if need be by a promise, stands in the result's
    `said`. `scripts=False` takes the page's own scripts away, `part` goes to an anchor.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium: install Debian's chromium-headless-shell")
    folder = tmp_path_factory.mktemp("browser")

    def open_page(path, script="", *, width=1280, scripts=True, part=""):
        html = path.read_text(encoding="utf-8")
        if not scripts:
            html = re.sub(r"<script.*?</script>", "", html, flags=re.S)
        question = f"(async () => document.documentElement.dataset.said = await (() => {{ {script} }})())();"
        digest = base64.b64encode(hashlib.sha256(question.encode()).digest()).decode()
        html = html.replace(
            "script-src ", f"script-src 'sha256-{digest}' ", 1
        )  # the page's policy allows no other
        asked = f"<script>{question}</script>"
        copy = folder / "page.html"
        copy.write_text(html.replace("</body>", f"{asked}</body>"), encoding="utf-8")
        command = [
            browser,
            *FLAGS,
            OFFLINE,
            f"--window-size={width},900",
            "--virtual-time-budget=20000",
            f"--user-data-dir={folder}/profile",
        ]
        for _ in range(3):  # virtual time may be over before a busy machine shows the page's first frame
            done = subprocess.run(
                [*command, "--dump-dom", f"file://{copy}{part}"],
                capture_output=True,
                text=True,
                timeout=120,
                check=True,
            )
            opened = Page(done.stdout, re.findall(r"CONSOLE[^\]]*\] (.*)", done.stderr))
            if not script or opened.said is not None:
                break
        return opened

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
    main = set(config.tokeniser_jars("corenlp"))
    wanted = main.union(*map(config.corenlp_jars, languages))
    for path in wanted:
        url, sha256 = config.origin("corenlp", Path(path).name)
        if not Path(path).exists() or files.sha256(path) != sha256:
            fetch(name="corenlp", url=url, output=Path(path), sha256=sha256)
    return config


@pytest.fixture(scope="session")
def corenlp():
    """The configuration, in whose `data_dir` are the jars that parse German and English.

    Tests that use it belong to the xdist group "corenlp", so that one worker fetches them.
    """
    return fetched("de", "en")


@pytest.fixture(scope="session")
def chinese():
    """The same for Chinese, whose 1.6 GB are fetched only if SYNMASK_TEST_CHINESE is set; the same group, too."""
    if os.environ.get("SYNMASK_TEST_CHINESE") or all(map(os.path.exists, configured().corenlp_jars("zh"))):
        return fetched("zh")
    pytest.skip("CoreNLP's Chinese models (1.6 GB) are not there; SYNMASK_TEST_CHINESE=1 fetches them")


@pytest.fixture(scope="session")
def corenlp_jars():
    """The jars of `tokeniser: corenlp`; for the same xdist group."""
    return fetched().tokeniser_jars("corenlp")
