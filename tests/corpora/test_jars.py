import hashlib
import sys

import pytest

from synmask.pipeline.corpora.jars import fetch_jar
from synmask.pipeline.files import UserError

JAR = "org.example:parser:1.0:jar:models"
SUM = hashlib.sha256(b"a jar").hexdigest()
MAVEN = f"""#!{sys.executable}
import sys
settings = dict(word[2:].split("=", 1) for word in sys.argv if word.startswith("-D"))
if "dependency:copy" not in sys.argv or settings["artifact"] != "{JAR}":
    sys.exit("[INFO] x\\n[ERROR] Could not find artifact " + settings["artifact"] + "\\n[ERROR] more")
open(settings["outputDirectory"] + "/parser-1.0-models.jar", "wb").write(b"a jar")
"""


@pytest.fixture
def maven(tmp_path, monkeypatch):
    """A Maven that knows one artifact."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mvn").write_text(MAVEN)
    (tmp_path / "bin/mvn").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def left(tmp_path):
    return [path.name for path in (tmp_path / "jars").iterdir()]


def test_maven_fetches_a_jar(maven, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a relative output must not become relative to where Maven runs
    fetch_jar(coordinates=JAR, output="jars/parser-1.0-models.jar", sha256=SUM)
    assert (tmp_path / "jars/parser-1.0-models.jar").read_bytes() == b"a jar"
    assert left(tmp_path) == ["parser-1.0-models.jar"]


def test_a_wrong_checksum_leaves_nothing(maven, tmp_path):
    with pytest.raises(UserError, match=f"wrong checksum of {JAR}: expected sha256 000.*got {SUM}; delete"):
        fetch_jar(coordinates=JAR, output=tmp_path / "jars/parser-1.0-models.jar", sha256="0" * 64)
    assert left(tmp_path) == []


def test_an_unknown_jar(maven, tmp_path):
    with pytest.raises(UserError) as error:
        fetch_jar(
            coordinates="org.example:parser:2.0:jar", output=tmp_path / "jars/parser-2.0.jar", sha256=SUM
        )
    assert str(error.value) == (
        "corenlp: Maven cannot fetch org.example:parser:2.0:jar ([ERROR] Could not find artifact "
        "org.example:parser:2.0:jar); fix that, or set mirrors: {corenlp: <folder or URL with parser-2.0.jar>} "
        "in config.yaml"
    )
    assert left(tmp_path) == []


def test_neither_maven_nor_a_mirror(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"no Maven to fetch p\.jar; install it .* or set mirrors: {corenlp:"):
        fetch_jar(coordinates=JAR, output=tmp_path / "p.jar", sha256=SUM)


def test_a_mirror_needs_no_maven(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/p.jar").write_bytes(b"a jar")
    for place in (tmp_path / "mirror", (tmp_path / "mirror").as_uri()):
        output = tmp_path / "jars/p.jar"
        fetch_jar(coordinates=JAR, output=output, sha256=SUM, mirror=str(place))
        assert output.read_bytes() == b"a jar"
        output.unlink()
    (tmp_path / "mirror/p.jar").write_bytes(b"a bad jar")
    with pytest.raises(UserError, match=r"corenlp: wrong checksum of .*mirror/p\.jar.*mirrors: {corenlp: …}"):
        fetch_jar(coordinates=JAR, output=output, sha256=SUM, mirror=str(tmp_path / "mirror"))
