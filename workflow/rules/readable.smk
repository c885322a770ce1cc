# Faults that Snakemake would tell without the file and line of the configuration.
import sys

from synmask.config import read_yaml
from synmask.files import UserError

try:
    read_yaml("config.yaml")
except UserError as error:
    sys.exit(str(error))
