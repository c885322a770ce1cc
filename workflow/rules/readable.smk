# Faults that Snakemake would tell without the file and line of the configuration, or not at all: keys given twice.
import os
import sys

import synmask
from synmask.pipeline.config import project_files, read_yaml
from synmask.pipeline.files import UserError

if not os.path.isdir("src/synmask"):  # as where snakedeploy has put a workflow
    sys.exit(
        "src/synmask: not here, and rules depend on its files; clone synmask's repository, and run snakemake there"
    )
if (other := os.path.dirname(os.path.realpath(synmask.__file__))) != os.path.realpath("src/synmask"):
    sys.exit(
        f"{other}: this synmask would run, but the rules here depend on src/synmask of this folder; "
        "activate this clone's own environment (`make` builds .venv)"
    )
try:
    for path in [*project_files(), *workflow.overwrite_configfiles]:
        read_yaml(path)
except UserError as error:
    sys.exit(str(error).removeprefix(f"{os.getcwd()}/"))
