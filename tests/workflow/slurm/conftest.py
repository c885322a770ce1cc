"""A SLURM of three nodes that runs while these tests do."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("cluster.sh")
MISSING = 3


@pytest.fixture(scope="module")
def cluster(request, tmp_path_factory):
    """Start SLURM, and have all that is started here use it. A module's ACCOUNTING asks for a database of jobs."""
    folder = tmp_path_factory.mktemp("slurm")
    words = ["accounting"] if getattr(request.module, "ACCOUNTING", False) else []
    with pytest.MonkeyPatch.context() as patch:
        started = subprocess.run([SCRIPT, "start", folder, *words], check=False).returncode
        if started == MISSING:
            pytest.skip("SLURM is not installed")  # CI installs it, and takes a skip for a failure
        assert started == 0
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        patch.setenv("PATH", str(folder / "bin"), prepend=":")
        try:
            yield folder
        finally:
            subprocess.run([SCRIPT, "stop", folder], check=True)
