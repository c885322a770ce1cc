"""Fetch the jars of Stanford CoreNLP with Maven, or from a mirror that the user names."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from synmask.pipeline import files
from synmask.pipeline.corpora.download import fetch
from synmask.pipeline.files import UserError


def fetch_jar(*, coordinates: str, output: Path, sha256: str, mirror: str | None = None) -> None:
    """Fetch one of CoreNLP's jars with Maven or from a mirror, and check it.

    Args:
        coordinates: Maven's: group:artifact:version:jar[:classifier].
        output: The jar to write, whole or not at all.
        sha256: Its checksum.
        mirror: Folder or URL that holds the jar under the output's name.

    Raises:
        UserError: there is neither Maven nor a mirror, Maven finds no such jar, or the checksum differs; and
            as for `corpora.download.fetch`.
    """
    if mirror is not None:
        fetch(name="corenlp", url=output.name, output=output, sha256=sha256, mirror=mirror)
        return
    hint = f"set mirrors: {{corenlp: <folder or URL with {output.name}>}} in config.yaml"
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError(f"corenlp: no Maven to fetch {output.name}; install it (Debian: maven), or {hint}")
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        print(f"corenlp: Maven fetches {coordinates}", file=sys.stderr)
        settings = [f"-Dartifact={coordinates}", f"-DoutputDirectory={os.path.abspath(folder)}"]
        done = subprocess.run(
            [maven, "-q", "-B", "-Dstyle.color=never", "dependency:copy", *settings],
            cwd=folder,  # outside of any project of the user's
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        found = list(Path(folder).glob("*.jar"))
        if done.returncode or not found:
            said = next((line for line in done.stdout.splitlines() if "ERROR" in line), "no jar").strip()
            raise UserError(f"corenlp: Maven cannot fetch {coordinates} ({said[:300]}); fix that, or {hint}")
        if (got := files.sha256(found[0])) != sha256:
            raise UserError(
                f"corenlp: wrong checksum of {coordinates}: expected sha256 {sha256}, got {got}; "
                "delete it from Maven's repository (~/.m2), or fix corenlp in config.yaml"
            )
        with open(found[0], "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(found[0], output)
