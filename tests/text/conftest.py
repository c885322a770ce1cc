"""CoreNLP's main jar, fetched once by Maven into a cache folder outside of the project."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

JAR = "stanford-corenlp-4.5.10.jar"
CACHE = Path(os.environ.get("SYNMASK_TEST_CACHE", Path.home() / ".cache/synmask-tests"))


@pytest.fixture(scope="session")
def corenlp_jar():
    path = CACHE / JAR
    if not path.is_file():
        if shutil.which("mvn") is None or shutil.which("java") is None:
            pytest.skip("needs Java and Maven")
        artifact = "edu.stanford.nlp:stanford-corenlp:4.5.10"
        words = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={CACHE}"]
        subprocess.run(["mvn", "-q", "-B", *words], check=True, cwd=Path.home())
    return path
