# Faults that Snakemake would tell without the file and line of the configuration, or not at all: keys given twice.
import filecmp
import os
import sys
from pathlib import Path

import synmask
from synmask.pipeline.config import project_files, read_yaml
from synmask.pipeline.files import UserError

if not os.path.isdir("src/synmask"):  # as where snakedeploy has put a workflow
    sys.exit(
        "src/synmask: not here, and rules depend on its files; clone synmask's repository, and run snakemake there"
    )
runs = os.path.dirname(synmask.__file__)
here = [path.relative_to("src/synmask") for path in Path("src/synmask").rglob("*.py")]
_, other, missing = filecmp.cmpfiles("src/synmask", runs, here, shallow=False)
if other or missing:  # its results would carry the digest of code that has not run
    sys.exit(
        f"{runs}: this synmask would run, and {(other + missing)[0]} differs from that in src/synmask of this folder; "
        "activate this clone's own environment (`make` builds .venv)"
    )
try:
    for path in [*project_files(), *workflow.overwrite_configfiles]:
        read_yaml(path)
except UserError as error:
    sys.exit(str(error).removeprefix(f"{os.getcwd()}/"))
