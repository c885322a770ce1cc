"""A SLURM of three nodes that runs while these tests do."""

import os
import subprocess
from pathlib import Path

import pytest

from on_slurm import account

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Show SLURM's jobs with a failure: the cluster's folder may be gone when somebody looks for the cause."""
    report = yield
    if report.failed and "cluster" in getattr(item, "fixturenames", ()) and "SLURM_CONF" in os.environ:
        try:
            told = account()
        except (OSError, subprocess.SubprocessError) as error:  # as where SLURM did not start
            told = str(error)
        report.sections.append(("SLURM's jobs", told))
    return report
