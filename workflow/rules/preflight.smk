# Faults that Snakemake would tell in a traceback, without the file and line of the configuration, or not at all.
import os
import sys
import tempfile
from pathlib import Path

from synmask.pipeline.errors import UserError
from synmask.pipeline.provenance import check_code

if not os.path.isdir("src/synmask"):  # as where snakedeploy has put a workflow
    sys.exit(
        "src/synmask: not here, and rules depend on its files; clone synmask's repository, and run snakemake there"
    )
if set("{}") & set(workflow.basedir):  # Snakemake takes what is in braces for a wildcard
    sys.exit(f"{workflow.basedir}: Snakemake cannot run below a folder with braces in its name; rename that")
os.environ.update(SYNMASK_SOURCE=os.path.abspath("src/synmask"))  # `synmask` in jobs compares, too
RECORDS = (f".snakemake/{name}" for name in ("incomplete", "iocache", "locks", "log", "metadata"))
for folder in filter(os.path.lexists, (".", ".snakemake", *RECORDS, "results")):  # also a link to nothing
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(2**16))
            file.flush()
    except OSError as error:
        sys.exit(
            f"{os.path.abspath(folder)}: {error.strerror}; snakemake keeps its records and results there"
        )
try:
    check_code(Path("src/synmask"))
except UserError as error:
    sys.exit(str(error).removeprefix(f"{os.getcwd()}/"))
