"""The conditions of Snakemake's workflow catalog, and the messages to users of snakedeploy.

The conditions: snakemake/snakemake-workflow-catalog, source/docs/about/adding_workflows.md.
"""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from synmask.pipeline.config import read_yaml

ROOT = Path(__file__).parents[2]


def test_the_catalog_lists_the_workflow_with_its_usage():
    readme = (ROOT / "README.md").read_text().lower()
    assert "snakemake" in readme
    assert "workflow" in readme
    assert (ROOT / "workflow/Snakefile").exists()
    assert [*(ROOT / "workflow/rules").glob("*.smk")]
    assert (ROOT / "config/config.yaml").samefile(ROOT / "config.yaml")  # snakedeploy copies it
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert {*usage} == {"mandatory-flags", "software-stack-deployment", "report"}
    assert {*usage["mandatory-flags"]} == {"desc", "flags"}
    assert {*usage["software-stack-deployment"]} == {"conda", "apptainer", "apptainer+conda"}
    assert all(
        type(works) is bool for works in [*usage["software-stack-deployment"].values(), usage["report"]]
    )


def test_the_configurations_page_names_sections_that_there_are():
    rows = re.findall(r"^\| (`.+?) \|", (ROOT / "config/README.md").read_text(), re.M)
    named = {name for row in rows for name in re.findall("`([a-z_]+)`", row)}
    assert {"systems", "corpora", "experiments"} <= named <= {*read_yaml(ROOT / "config.yaml")}


def test_the_catalogs_snakefile_is_the_workflow(project):
    assert project.planned("-s", "workflow/Snakefile", "demo") == project.planned("demo")


def test_a_workflow_without_its_library_says_what_to_do(project, tmp_path):
    """As snakedeploy 0.17 writes it."""
    folder = tmp_path / "deployed"
    (folder / "workflow").mkdir(parents=True)
    (folder / "config").mkdir()
    (folder / "config/config.yaml").write_text("targets: [demo]\n")
    (folder / "workflow/Snakefile").write_text(
        f'configfile: "config/config.yaml"\n\nmodule synmask:\n    snakefile: "{project.folder}/workflow/Snakefile"\n'
        "    config: config\n\nuse rule * from synmask\n"
    )
    done = subprocess.run(
        [Path(sys.executable).with_name("snakemake"), "-n"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert (done.stdout + done.stderr).strip().startswith("src/synmask: not here")
